"""What a search tells while it runs: callbacks hear of stages alone, and inner fits are silent."""

from contextlib import contextmanager

from sklearn.frozen import FrozenEstimator

from skdp.utils._callbacks import callback_context

# Parameters by which an estimator tells of each fit, and what makes it silent.
TELLING = {"verbose": 0, "memory": None}


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
        if self.context is not None:
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


def fitted_params(model, *names):
    """Return the parameters of some names, of an estimator and all in it that will be fitted.

    Parameters
    ----------
    model : estimator
    *names : str
        Without the prefix by which ``set_params`` knows them.

    Returns
    -------
    dict
    """
    params = model.get_params()
    frozen = [f"{name}__" for name, part in params.items() if isinstance(part, FrozenEstimator)]
    return {
        name: value
        for name, value in params.items()
        if name.rpartition("__")[2] in names and not name.startswith(tuple(frozen))
    }


def told_by_params(model):
    """Return the parameters that make a model print something at each fit, or keep its rows."""
    return {name: value for name, value in fitted_params(model, *TELLING).items() if value}


def quiet(model):
    """Take from a clone what would see rows, keep them or count fits.

    These are callbacks, `verbose`, and the `memory` of pipelines.

    Parameters
    ----------
    model : estimator
        A clone.

    Returns
    -------
    estimator
        The same.
    """
    silent = {}
    for name, value in told_by_params(model).items():
        word = TELLING[name.rpartition("__")[2]]
        silent[name] = False if isinstance(value, bool) else word
    model.set_params(**silent)
    parts = [model, *model.get_params().values()]
    fixed = {id(part.estimator) for part in parts if isinstance(part, FrozenEstimator)}
    for part in parts:
        if hasattr(part, "set_callbacks") and id(part) not in fixed:
            part.set_callbacks()
    return model
