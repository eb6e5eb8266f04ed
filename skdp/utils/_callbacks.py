"""Callbacks of scikit-learn, where its version has them (from 1.9 on)."""

from skdp.utils._warnings import warn_user

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:
        """Takes no callbacks."""

    def with_callbacks(method):
        """Return the method."""
        return method


# Classes of scikit-learn that learn from rows, as `make_pipeline` names their steps.
LEARNING_STEPS = frozenset(
    "standardscaler minmaxscaler maxabsscaler robustscaler quantiletransformer powertransformer "
    "kbinsdiscretizer targetencoder knnimputer iterativeimputer pca truncatedsvd selectkbest "
    "selectpercentile selectfrommodel variancethreshold rfe rfecv".split()
)


def callback_context(estimator, n_tasks):
    """Return the context in which a fit tells callbacks of its tasks, None without callbacks.

    What scikit-learn says in it of the estimators around a fit is looked at: there is a warning
    where one of them learns without privacy.

    Parameters
    ----------
    estimator : estimator
        Whose fit has begun.
    n_tasks : int or None
        Of the fit; None where they are not known.
    """
    # The developer's interface of scikit-learn's mixin, in spite of its name.
    make = getattr(estimator, "_init_callback_context", None)
    if make is None:
        return None
    context = make(max_subtasks=n_tasks)
    # The handle of a step of a plan: its pipeline was checked.
    if not hasattr(getattr(estimator, "accountant", None), "planned"):
        _warn_of_surroundings(context, type(estimator).__name__)
    return context


def _warn_of_surroundings(context, name):
    outer = context.parent
    while outer is not None:
        if outer.estimator_name.endswith("SearchCV") and not outer.estimator_name.startswith("DP"):
            warn_user(
                f"{outer.estimator_name} around {name} publishes scores of the raw rows, by folds "
                "that depend on labels by default: use DPGridSearchCV or DPRandomizedSearchCV"
            )
        if outer.estimator_name == "Pipeline":
            learning = sorted(LEARNING_STEPS & set(map(_step_name, outer)))
            if learning:
                warn_user(
                    f"the steps {learning} before {name} learn from rows without privacy: use "
                    "private ones (see check_pipeline), or split_budget(..., public_steps=...)"
                )
        outer = outer.parent


def _step_name(task):
    """Return what `make_pipeline` calls the step whose task it is."""
    if task.source_task_name is not None:
        return task.estimator_name.lower()
    return task.task_name.removeprefix("fit-transform-").rstrip("-0123456789")
