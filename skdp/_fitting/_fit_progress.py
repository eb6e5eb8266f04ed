"""Progress of a fit, for scikit-learn's callbacks and for `verbose`."""

import math
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar

from skdp._fitting._callbacks import CallbackSupportMixin, callback_context
from skdp.utils._rounding import format_rounded_up

# Number of progress lines of a run with verbose=1.
PROGRESS_LINES = 10
# The `FitProgress` of the current fit, `NO_PROGRESS` if it reports nothing, None outside of fits.
CURRENT_FIT = ContextVar("fit", default=None)


class FitProgress:
    """Context that reports the progress of a fit to scikit-learn's callbacks and with `verbose`.

    The fit is a task. Its subtasks are runs of planned steps, whose subtasks are epochs. Their
    metadata are the epsilon and delta spent so far. Rows, iterates and losses are not passed to
    callbacks. The iterations of a solver with a stopping rule are not reported, because their
    number depends on rows. All planned steps are taken, regardless of the callbacks' return values.

    Parameters
    ----------
    estimator : estimator
        Its `verbose`, if it has one: 0 is silent, 1 prints the charge and about ten progress
        lines, 2 or more prints one line per epoch.
    n_tasks : int, default=None
        Number of stages of the fit; None if unknown.
    """

    def __init__(self, estimator, n_tasks=None):
        self._estimator = estimator
        self._price = None
        self._task = callback_context(estimator, n_tasks)

    def __enter__(self):
        self._token = CURRENT_FIT.set(self)
        if self._task is not None:
            self._begin(self._task)
        return self

    def __exit__(self, kind, error, traceback):
        CURRENT_FIT.reset(self._token)
        if error is None and self._task is not None:
            self._end(self._task, lambda: self._price.epsilon)

    def charged(self, plan, price):
        """Report the charge; `price` is the cost for a privacy unit."""
        self._price = price
        # The cost for a group cannot be divided into steps, but that for a row can.
        self._has_step_prices = price is plan
        if getattr(self._estimator, "verbose", 0):
            epsilon = format_rounded_up(price.epsilon)
            amounts = f"epsilon {epsilon}, delta {format_rounded_up(price.delta)}"
            print(f"{type(self._estimator).__name__}: {plan.name}; {amounts}", flush=True)

    @contextmanager
    def stage(self, name, spent=None):
        """Context of a stage that reports its beginning and, unless it fails, its end.

        `spent` is a function that returns the epsilon spent after the stage. Without it, the whole
        cost is spent and the stage is not printed.
        """
        price = self._price

        def spent_after_stage():
            """Return the epsilon spent at the end of the stage."""
            if spent is None or not self._has_step_prices:
                return price.epsilon
            return spent()

        stage = self._begin_subtask(self._task, name)
        yield
        self._end(stage, spent_after_stage)
        if spent is not None and getattr(self._estimator, "verbose", 0):
            print(f"{name}: {self._amounts(spent_after_stage())}", flush=True)

    def steps(self, n_steps, n_epochs, spent_after):
        """Begin a run, and return a function of the number of steps taken that reports progress.

        Parameters
        ----------
        n_steps, n_epochs : int
            Number of steps of the run, and of the epochs into which its progress is divided.
        spent_after : callable
            Maps a number of steps of this run to the epsilon that they have spent.
        """
        price = self._price
        verbose = int(getattr(self._estimator, "verbose", 0))
        n_lines = n_epochs
        if verbose == 1:
            n_lines = PROGRESS_LINES
        epochs_per_line = math.ceil(n_epochs / n_lines)
        run = self._begin_subtask(self._task, "run", n_epochs)
        epoch = self._begin_subtask(run, "epoch")
        n_done = 0
        n_shown = 0

        def after_step(n_taken):
            """Report the end of an epoch, and of the run, if the step taken last completes one."""
            nonlocal epoch, n_done, n_shown

            def spent():
                """Return the epsilon spent so far: the cost without that of later steps."""
                if not self._has_step_prices:
                    return price.epsilon
                return price.epsilon - (spent_after(n_steps) - spent_after(n_taken))

            if n_taken * n_epochs // n_steps == n_done:
                return
            n_done = n_taken * n_epochs // n_steps
            self._end(epoch, spent)
            if n_done == n_epochs:
                self._end(run, spent)
            else:
                epoch = self._begin_subtask(run, "epoch")
            if verbose and (n_done - n_shown >= epochs_per_line or n_done == n_epochs):
                n_shown = n_done
                print(f"epoch {n_done} of {n_epochs}: {self._amounts(spent())}", flush=True)

        return after_step

    def _amounts(self, spent):
        """Return the text of the epsilon spent so far."""
        epsilon = format_rounded_up(spent, digits=4)
        total = format_rounded_up(self._price.epsilon, digits=4)
        return f"epsilon {epsilon} of {total} at delta {format_rounded_up(self._price.delta)}"

    def _begin_subtask(self, task, name, n_tasks=0):
        """Begin a subtask of a task; return None without callbacks."""
        return task and self._begin(task.subcontext(task_name=name, max_subtasks=n_tasks))

    def _begin(self, task):
        """Call the callbacks when a task begins, and return the task; None without callbacks."""
        if task is not None:
            task.call_on_fit_task_begin(estimator=self._estimator)
        return task

    def _end(self, task, spent=None):
        """Call the callbacks at the end of a task; `spent` returns the epsilon spent so far."""

        def metadata():
            return self._price and {"epsilon": spent(), "delta": self._price.delta}

        if task is not None:
            task.call_on_fit_task_end(estimator=self._estimator, metadata=metadata)


# Progress of a fit without callbacks and messages. It has no state, so all fits share it:
# `PrivateFit` sets `CURRENT_FIT` to it, instead of entering it as a context.
NO_PROGRESS = FitProgress(None)


def fits_alone():
    """Return True if scikit-learn (1.9 and later) reports that no pipeline runs the fit."""
    fit = CURRENT_FIT.get()
    if fit is NO_PROGRESS:
        # With a pipeline around it, the fit would have callbacks.
        return hasattr(CallbackSupportMixin, "_init_callback_context")
    return fit is not None and getattr(fit._task, "parent", fit) is None


def progress_callback(n_steps, n_epochs, spent_after):
    """Begin a run of planned steps, and return the function by which it reports its progress.

    The run calls the function after each step, with the number of steps that it has taken.

    Parameters
    ----------
    n_steps, n_epochs : int
        Number of steps and of epochs of the run.
    spent_after : callable
        Function of n that returns the epsilon of the first n steps.

    Returns
    -------
    callable or None
        None outside of fits, and if the fit has neither callbacks nor messages.
    """
    fit = CURRENT_FIT.get()
    if fit is None or fit is NO_PROGRESS:
        return None
    return fit.steps(n_steps, n_epochs, spent_after)


def fit_stage(name, spent):
    """Return the context of a reported stage of the current fit; see `FitProgress`.

    Parameters
    ----------
    name : str
    spent : callable
        Function that returns the epsilon spent after the stage.
    """
    fit = CURRENT_FIT.get()
    if fit is None:
        return nullcontext()
    return fit.stage(name, spent)
