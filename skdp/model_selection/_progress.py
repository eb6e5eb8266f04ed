"""Callbacks of scikit-learn, where its version has them: they hear of stages alone."""

from contextlib import contextmanager

from sklearn.frozen import FrozenEstimator

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:
        """Takes no callbacks."""

    def with_callbacks(method):
        return method


__all__ = ["CallbackSupportMixin", "Stages", "with_callbacks", "without_callbacks"]


class Stages:
    """The stages of a fit, whose number is public.

    A callback gets neither rows nor targets nor models, and no stage for each fit: the number
    of fits can be secret.

    Parameters
    ----------
    estimator : estimator
        Being fitted.
    number : int
        Of stages.
    """

    def __init__(self, estimator, number):
        self.estimator, self.context = estimator, None
        if hasattr(estimator, "set_callbacks"):
            self.context = estimator._init_callback_context(max_subtasks=number)
            self.context.call_on_fit_task_begin(estimator=estimator)

    @contextmanager
    def stage(self, name):
        """Tell callbacks that a stage begins, and that it ends unless it fails."""
        if self.context is None:
            yield
            return
        context = self.context.subcontext(name)
        context.call_on_fit_task_begin(estimator=self.estimator)
        yield
        context.call_on_fit_task_end(estimator=self.estimator)

    def end(self):
        """Tell callbacks that the fit is done."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator)


def without_callbacks(model):
    """Return a clone with its callbacks taken away: they would see rows, or count fits."""
    parts = [model, *model.get_params().values()]
    fixed = {id(part.estimator) for part in parts if isinstance(part, FrozenEstimator)}
    for part in parts:
        if hasattr(part, "set_callbacks") and id(part) not in fixed:
            part.set_callbacks()
    return model
