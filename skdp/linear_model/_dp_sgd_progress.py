"""How far a run is, told by numbers that are public before it begins."""

import math

from skdp.utils._callbacks import callback_context
from skdp.utils._rounding import in_digits

PROGRESS_LINES = 10


class Progress:
    """Prints a run's epochs and calls scikit-learn's callbacks for them.

    A callback's task is the fit, and an epoch is a task of that. Its metadata are the epsilon and
    delta of the steps so far. Neither rows nor iterates nor losses are handed on. As many steps
    are taken as were planned, whatever a callback returns.

    Parameters
    ----------
    estimator : estimator
        Whose `verbose` is 0 to print nothing, 1 for about ten lines, more for a line each epoch.
    plan : plan
        Of some `epsilon` and `delta`.
    n_epochs : int
    n_steps : int
        Of all epochs.
    spent_after : callable
        Returns the epsilon of so many first steps.
    """

    def __init__(self, estimator, plan, *, n_epochs, n_steps, spent_after):
        verbose = int(estimator.verbose)
        self._estimator, self._plan = estimator, plan
        self._n_epochs, self._n_steps, self._spent_after = n_epochs, n_steps, spent_after
        lines = PROGRESS_LINES if verbose == 1 else n_epochs
        self._epochs_a_line = math.ceil(n_epochs / lines) if verbose else math.inf
        self._shown = self._done = 0
        self._epoch = None
        self._task = callback_context(estimator, n_epochs)
        if self._task is not None:
            self._task.call_on_fit_task_begin(estimator=estimator)

    def begin(self):
        """Say that the first epoch begins."""
        if self._task is not None:
            self._epoch = self._task.subcontext(task_name="epoch")
            self._epoch.call_on_fit_task_begin(estimator=self._estimator)

    def after_step(self, taken):
        """Say which epochs are over after a number of steps."""
        epoch = taken * self._n_epochs // self._n_steps
        if epoch == self._done:
            return
        self._done = epoch
        if self._epoch is not None:
            self._end(self._epoch, taken)
            if epoch < self._n_epochs:
                self.begin()
            else:
                self._end(self._task, taken)
        last = epoch == self._n_epochs and self._epochs_a_line < math.inf
        if epoch - self._shown >= self._epochs_a_line or last:
            self._shown = epoch
            self._print(epoch, self._spent_after(taken))

    def _end(self, task, taken):
        def metadata():
            return {"epsilon": self._spent_after(taken), "delta": self._plan.delta}

        task.call_on_fit_task_end(estimator=self._estimator, metadata=metadata)

    def _print(self, epoch, spent):
        print(
            f"epoch {epoch} of {self._n_epochs}: epsilon {in_digits(spent, digits=4)} of "
            f"{self._plan.epsilon:.4g} at delta {self._plan.delta:g}",
            flush=True,
        )
