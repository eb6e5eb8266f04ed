"""Callbacks of scikit-learn, where its version has them (from 1.9 on)."""

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:
        """Takes no callbacks."""

    def with_callbacks(method):
        """Return the method."""
        return method


def callback_context(estimator, n_tasks):
    """Return the context in which a fit tells callbacks of its tasks, None without callbacks.

    Parameters
    ----------
    estimator : estimator
        Whose fit has begun.
    n_tasks : int or None
        Of the fit; None where they are not known.
    """
    # The developer's interface of scikit-learn's mixin, in spite of its name.
    make = getattr(estimator, "_init_callback_context", None)
    return None if make is None else make(max_subtasks=n_tasks)
