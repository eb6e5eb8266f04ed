"""The candidates of a search: estimators whose private steps share one budget."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import column_or_1d

from skdp._data._tables import indexable_table, target_array
from skdp.accounting import Allowance, plan_event
from skdp.model_selection._progress import fitted_params, quiet, told_by_params
from skdp.pipeline import plan_pipeline
from skdp.utils._validation import check_classes

__all__ = [
    "Candidate",
    "FitPlan",
    "check_names",
    "make_candidate",
    "take_rows",
    "training_table",
]

# What a search sets itself, from its own total.
SET_BY_SEARCH = ("epsilon", "delta", "accountant", "random_state")


@dataclass(frozen=True)
class Candidate:
    """One choice of parameters.

    Parameters
    ----------
    params : dict
        From the grid.
    estimator : estimator
        A clone with these parameters, and with the label set of the whole table.
    classes : ndarray or None
        The label set, None for a regressor.
    """

    params: dict
    estimator: object
    classes: object


@dataclass(frozen=True)
class FitPlan:
    """What one fit of a candidate will charge, step by step.

    Parameters
    ----------
    pipeline : skdp.pipeline.PipelinePlan
    epsilon, delta : float
        What the steps share.
    charges : tuple of PlannedCharge
    """

    pipeline: object
    epsilon: float
    delta: float
    charges: tuple

    @property
    def event(self):
        """What the fit costs."""
        return plan_event(self.charges)

    def unfitted(self, accountants, seeds=None):
        """Return the estimator with each private step's budget, accountant and seed set."""
        model = self.pipeline.with_budget(self.epsilon, self.delta, accountants)
        model = quiet(model)
        seeds = [None] * len(self.charges) if seeds is None else seeds
        steps = zip(self.pipeline.steps, seeds, strict=True)
        return model.set_params(
            **{
                _parameter(step, "random_state"): seed
                for step, seed in steps
                if "random_state" in step.estimator.get_params(deep=False)
            }
        )

    def fitted(self, table, terms, spend, releases, seeds=None, params=None):
        """Fit on paid allowances, one for each private step.

        Parameters
        ----------
        table : tuple
            The arguments of ``fit``.
        terms : Terms
        spend : Spend or None
            The charge of the whole search.
        releases : int
            How many releases it paid for.
        seeds : list of int, default=None
            One for each private step.
        params : dict, default=None
            Further arguments of ``fit``.

        Returns
        -------
        estimator
        """
        accountants = [Allowance(charge, terms, spend, releases) for charge in self.charges]
        return self.unfitted(accountants, seeds).fit(*table, **(params or {}))

    def with_accountant(self, model, accountant):
        """Give the private steps of a fitted model an accountant for later fits.

        Their `verbose` and `memory` are those of the user's estimator again.
        """
        handles = {_parameter(step, "accountant"): accountant for step in self.pipeline.steps}
        return model.set_params(**told_by_params(self.pipeline.pipe), **handles)


def check_names(names):
    """Refuse parameters that the search sets itself.

    Raises
    ------
    ValueError
    """
    for name in names:
        if name.rpartition("__")[2] in SET_BY_SEARCH:
            raise ValueError(
                f"{name!r} cannot be searched over: the search sets {', '.join(SET_BY_SEARCH)} of "
                "every fit, from its own total"
            )


def make_candidate(estimator, params, y, public_steps=(), accountant=None):
    """Return a candidate that knows all labels.

    Parameters
    ----------
    estimator : estimator
    params : dict
    y : array-like of shape (n_samples,)
    public_steps : tuple of str
    accountant : PrivacyAccountant or None
        The only one that the estimator may have.

    Raises
    ------
    ValueError
        If a step would learn from the data without privacy, or has an accountant that would not
        be charged, or y holds fewer than two labels, or one that is not declared.
    """
    model = clone(estimator).set_params(**clone(params, safe=False))
    steps = plan_pipeline(model, public_steps=public_steps).steps
    for step in steps:
        model.set_params(**_without_accountants(step, accountant))
    if not is_classifier(model):
        return Candidate(params, model, None)
    declared = {
        _parameter(step, name): classes
        for step in steps
        for name, classes in fitted_params(step.estimator, "classes").items()
    }
    known = [classes for classes in declared.values() if classes is not None]
    classes, _ = check_classes(known[-1] if known else None, column_or_1d(target_array(y)))
    missing = {name: classes for name, value in declared.items() if value is None}
    return Candidate(params, model.set_params(**missing), classes)


def _without_accountants(step, accountant):
    """Return the parameters that take the accountants from a step and from all in it."""
    taken = {}
    for name, own in fitted_params(step.estimator, "accountant").items():
        if own is not None and own is not accountant:
            raise ValueError(
                f"step {step.title!r} has an accountant of its own, which would not be charged: "
                "everything is charged at once, to the accountant that is given beside the "
                "estimator"
            )
        taken[_parameter(step, name)] = None
    return taken


def take_rows(X, rows):
    """Return some rows of a table, by number."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows]


def training_table(X, y, rows, params):
    """Return the arguments of a fit to some rows, by number: the table and the others."""
    params = {name: _aligned(value, rows, len(y)) for name, value in params.items()}
    return (take_rows(X, rows), take_rows(y, rows)), params


def _aligned(value, rows, n_samples):
    """Return the rows of an argument that has one entry a row, anything else as it is."""
    has_rows = hasattr(value, "shape") or isinstance(value, list | tuple)
    if has_rows and np.shape(value)[:1] == (n_samples,):
        return take_rows(indexable_table(value), rows)
    return value


def _parameter(step, name):
    return f"{step.name}__{name}" if step.name else name
