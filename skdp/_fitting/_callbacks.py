"""Callbacks of scikit-learn, which exist from version 1.9 on."""

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]  # stands in for the class above
        """Base class without callbacks, for older versions of scikit-learn."""

    def with_callbacks(method):
        """Return the method unchanged."""
        return method


def callback_context(estimator, n_tasks):
    """Return the context of a fit for scikit-learn's callbacks; None without callbacks.

    Parameters
    ----------
    estimator : estimator
        Estimator whose fit has begun.
    n_tasks : int or None
        Number of tasks of the fit; None if unknown.
    """
    # Despite its underscore, this is the interface of scikit-learn's mixin for developers.
    make = getattr(estimator, "_init_callback_context", None)
    return None if make is None else make(max_subtasks=n_tasks)
