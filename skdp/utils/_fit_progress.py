"""How far a fit is, told by what is public before it begins."""

import math
from contextlib import contextmanager
from contextvars import ContextVar

from skdp.utils._callbacks import callback_context
from skdp.utils._rounding import in_digits

PROGRESS_LINES = 10
_fit = ContextVar("fit", default=None)


class FitProgress:
    """Tells scikit-learn's callbacks, and by `verbose` the output, how far a fit is; as a context.

    The fit is a task, a run of planned steps is one of that, and an epoch is one of the run. Their
    metadata are the epsilon and delta so far. Rows, iterates and losses are not handed on, and
    the steps of a solver that stops when it is done, whose number depends on rows, are no tasks.
    As many steps are taken as were planned, whatever a callback returns.

    Parameters
    ----------
    estimator : estimator
        Whose `verbose`, if it has one, is 0 to print nothing, 1 for a line about the charge and
        about ten of a run, more for a line each epoch.
    n_tasks : int, default=None
        How many stages the fit has, where that is known.
    """

    def __init__(self, estimator, n_tasks=None):
        self._estimator = estimator
        self._price = None
        self._task = callback_context(estimator, n_tasks)

    def __enter__(self):
        self._token = _fit.set(self)
        self._begin(self._task)
        return self

    def __exit__(self, kind, error, traceback):
        _fit.reset(self._token)
        if error is None:
            self._end(self._task, lambda: self._price.epsilon)

    def charged(self, plan, price):
        """Say what was charged: the unit's price."""
        self._price = price
        self._by_step = price is plan
        if getattr(self._estimator, "verbose", 0):
            amounts = f"epsilon {in_digits(price.epsilon)}, delta {price.delta:g}"
            print(f"{type(self._estimator).__name__}: {plan.name}; {amounts}", flush=True)

    @contextmanager
    def stage(self, name):
        """Tell callbacks that a stage begins, and that it ends unless it fails."""
        stage = self._sub(self._task, name)
        yield
        self._end(stage)

    def steps(self, n_steps, n_epochs, spent_after):
        """Begin a run and return what is to be called with the number of steps taken."""
        price = self._price
        verbose = int(getattr(self._estimator, "verbose", 0))
        epochs_a_line = math.ceil(n_epochs / (PROGRESS_LINES if verbose == 1 else n_epochs))
        run = self._sub(self._task, "run", n_epochs)
        epoch = self._sub(run, "epoch")
        done = 0
        shown = 0

        def after_step(taken):
            nonlocal epoch, done, shown

            def spent():
                # Of a group's price no part is known: what steps cost is known of a row.
                left = spent_after(n_steps) - spent_after(taken) if self._by_step else 0.0
                return price.epsilon - left

            if taken * n_epochs // n_steps == done:
                return
            done = taken * n_epochs // n_steps
            self._end(epoch, spent)
            if done == n_epochs:
                self._end(run, spent)
            else:
                epoch = self._sub(run, "epoch")
            if verbose and (done - shown >= epochs_a_line or done == n_epochs):
                shown = done
                spent_so_far = in_digits(spent(), digits=4)
                amounts = f"epsilon {spent_so_far} of {price.epsilon:.4g} at delta {price.delta:g}"
                print(f"epoch {done} of {n_epochs}: {amounts}", flush=True)

        return after_step

    def _sub(self, task, name, n_tasks=0):
        """Begin a part of a task; None where there are no callbacks."""
        return task and self._begin(task.subcontext(task_name=name, max_subtasks=n_tasks))

    def _begin(self, task):
        if task is not None:
            task.call_on_fit_task_begin(estimator=self._estimator)
        return task

    def _end(self, task, spent=None):
        def metadata():
            return self._price and {"epsilon": spent(), "delta": self._price.delta}

        if task is not None:
            task.call_on_fit_task_end(estimator=self._estimator, metadata=metadata)


def fits_alone():
    """Return whether scikit-learn (1.9 and later) says that the fit is none of a pipeline's."""
    fit = _fit.get()
    return fit is not None and getattr(fit._task, "parent", fit) is None


def progress_callback(n_steps, n_epochs, spent_after):
    """Return what a run calls with the number of steps taken: the fit around it is told.

    Parameters
    ----------
    n_steps, n_epochs : int
        Of the run.
    spent_after : callable
        Returns the epsilon of so many first steps.
    """
    fit = _fit.get()
    return None if fit is None else fit.steps(n_steps, n_epochs, spent_after)
