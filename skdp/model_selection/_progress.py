"""What a search tells while it runs: callbacks hear of stages alone, and inner fits are silent."""

from contextlib import contextmanager
from warnings import catch_warnings

from joblib import parallel_config
from sklearn.frozen import FrozenEstimator

from skdp.pipeline._instances import fitted_params
from skdp.utils._callbacks import callback_context


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
        self.estimator, self.context = estimator, callback_context(estimator, number)

    @contextmanager
    def stage(self, name=None):
        """Tell callbacks that a stage, or the whole, begins, and that it ends unless it fails."""
        if self.context is None:
            yield
            return
        context = self.context if name is None else self.context.subcontext(name)
        context.call_on_fit_task_begin(estimator=self.estimator)
        yield
        context.call_on_fit_task_end(estimator=self.estimator)


def told_by_params(model):
    """Return the parameters that make a model print something at each fit."""
    return {name: value for name, value in fitted_params(model, "verbose").items() if value}


def quiet(model):
    """Take from a clone what would see rows or count fits: callbacks and `verbose`.

    Parameters
    ----------
    model : estimator
        A clone.

    Returns
    -------
    estimator
        The same.
    """
    told = told_by_params(model).items()
    model.set_params(**{name: False if isinstance(value, bool) else 0 for name, value in told})
    parts = [model, *model.get_params().values()]
    fixed = {id(part.estimator) for part in parts if isinstance(part, FrozenEstimator)}
    for part in parts:
        if hasattr(part, "set_callbacks") and id(part) not in fixed:
            part.set_callbacks()
    return model


@contextmanager
def silence():
    """Keep the warnings of fits, and joblib's progress, which would count them.

    What a warning says can be private, and so can the number of warnings.
    """
    with catch_warnings(action="ignore"), parallel_config(verbose=0):
        yield
