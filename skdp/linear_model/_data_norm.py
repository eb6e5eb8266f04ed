"""How a fit bounds its rows: by a given norm, or by one found privately in the same charge."""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._data._bounded import BoundedRows
from skdp.accounting import Guarantee
from skdp.linear_model._planning import Problem
from skdp.mechanisms._plan import one_charge
from skdp.stats._bounds import AUTO_SHARE, NormPlan
from skdp.utils._sums import split_epsilon
from skdp.utils._validation import check_boolean, check_magnitude, is_auto


@dataclass(frozen=True, kw_only=True)
class RowPlan:
    """How the rows of a fit are bounded.

    Parameters
    ----------
    search : NormPlan or None
        What finds the norm that rows are divided by; None if the norm was given.
    data_norm : float
        The bound on a row; 1 for rows that are divided by the norm that was found.
    constant : float
        The value of the constant feature that carries the intercept; 0 for none.
    whole, left : Guarantee
        Of the fit, and of what comes after the search.
    """

    search: NormPlan | None
    data_norm: float
    constant: float
    whole: Guarantee
    left: Guarantee

    @property
    def norm(self):
        """The bound on the norm of a row with its constant feature."""
        return math.hypot(self.data_norm, self.constant)

    def n_features(self, n_columns):
        """Return the number of features of so many columns, the constant one included."""
        return n_columns + (self.constant > 0)

    def problem(self, loss, shape):
        """Return what is public of the bounded rows of a table of some shape."""
        n_features = self.n_features(shape.n_columns)
        return Problem(loss=loss, n_rows=shape.n_rows, n_features=n_features, norm=self.norm)

    def joined(self, mechanism):
        """Return what is charged: the model's mechanism, after the search if there is one."""
        return one_charge((self.search, mechanism), self.whole)

    def run(self, X, source):
        """Return the rows, bounded; their norm is released first if it is searched.

        Parameters
        ----------
        X : array, CSR matrix or ChunkedArray of shape (n_rows, n_columns)
        source : RandomSource

        Returns
        -------
        BoundedRows
        """
        unit = 1.0 if self.search is None else self.search.run(X, source)
        return BoundedRows(X, self.data_norm, self.constant, unit)


def plan_rows(estimator, n_rows, guarantee):
    """Return how an estimator's fit bounds its rows; "auto" spends a fifth of epsilon on it.

    Parameters
    ----------
    estimator : estimator
        With parameters `data_norm`, `fit_intercept` and `intercept_scaling`.
    n_rows : int
    guarantee : Guarantee
        Of the fit.

    Returns
    -------
    RowPlan

    Raises
    ------
    ValueError
        If a parameter is not as described.
    """
    search, left, data_norm = None, guarantee, 1.0
    if is_auto(estimator.data_norm):
        first, rest = split_epsilon(guarantee.epsilon, AUTO_SHARE)
        search = NormPlan(n_rows=n_rows, guarantee=replace(guarantee, epsilon=first, delta=0.0))
        left = replace(guarantee, epsilon=rest)
    else:
        data_norm = check_magnitude(estimator.data_norm, "data_norm")
    scaling = check_magnitude(estimator.intercept_scaling, "intercept_scaling")
    fit_intercept = check_boolean(estimator.fit_intercept, "fit_intercept")
    constant = scaling * data_norm if fit_intercept else 0.0
    return RowPlan(
        search=search, data_norm=data_norm, constant=constant, whole=guarantee, left=left
    )


def released_model(rows, weights):
    """Return what released weights make public, in the units of the data.

    Parameters
    ----------
    rows : BoundedRows
        On which they were fitted.
    weights : ndarray of shape (n_features,) or (n_outputs, n_features)

    Returns
    -------
    dict
        `coef_` of shape (n_outputs, n_columns), `intercept_` and `data_norm_`.
    """
    weights = np.atleast_2d(weights)
    constant = rows.constant
    return {
        "coef_": weights[:, : rows.n_columns] / rows.unit,
        "intercept_": constant * weights[:, -1] if constant else np.zeros(len(weights)),
        "data_norm_": rows.unit * rows.data_norm,
    }
