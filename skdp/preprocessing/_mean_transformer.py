"""Means of features with differential privacy."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from skdp._data._columns import declared_bounds
from skdp._data._persons import MAX_PERSONS, row_weights_of
from skdp._data._sums import sum_grid
from skdp._data._tables import read_samples
from skdp._fitting._findings import report_unfilled_means
from skdp.base import (
    guarantee_of,
    plans_for_groups,
    private_answer,
    private_fit,
    private_fit_method,
    row_wise_answer,
)
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import bounded_noise, plan_release
from skdp.preprocessing._planned import BoundedColumnsTransformer
from skdp.stats._moments import SUMS, UNIT_OF_SUMS, unit_sums
from skdp.stats._release import plan_within_bounds
from skdp.utils._types import Bounds
from skdp.utils._units import UnitText
from skdp.utils._validation import check_choice, check_integer, has_auto, is_auto

# Grid to which values in [-1, 1] are rounded, so that their sums are exact in float64.
STEP = 2.0**-22
LARGEST_COUNT = 2**31
# With a noisy count, the number of persons is private and must not determine the grid. Weighted
# values are truncated to multiples of FINE_STEP, so sums over the maximum number of persons
# fit into 64-bit integers. If the noise is so small that its grid is finer, COARSE_STEP is used,
# because doubles must represent the sums.
FINE_STEP = 0.5 / MAX_PERSONS * 2.0**-9
COARSE_STEP = 0.5 / MAX_PERSONS
NUMBER = UnitText(lambda unit: f"the number of {unit}s")


def plan_means(shape, guarantee, *, noise, noisy_count=False):
    """Return the plan of the means of features within bounds.

    Parameters
    ----------
    shape : TableShape
        The number of rows is not used with `noisy_count`.
    guarantee : Guarantee
    noise : {"auto", "laplace", "gaussian"}
    noisy_count : bool, default=False
        True if the sums are divided by a noisy number of rows, which is released with them.

    Returns
    -------
    Plan
        Its `run` also receives the bounds, arrays `low` and `high` of shape (n_columns,), and
        returns the noisy means, within the bounds.
    """
    size = shape.n_columns + noisy_count
    mechanism = noise_of_means(guarantee, size, noise)
    n_rows = shape.n_rows
    if noisy_count:
        n_rows = None
    return plan_release(
        mechanism,
        partial(_release_means, mechanism, n_rows),
        stage_name=SUMS,
        unit=UNIT_OF_SUMS,
        size=size,
    )


def _release_means(mechanism, n_rows, X, source, low, high, persons=None):
    """Return the noisy means, within the bounds. If `n_rows` is None, it is released with noise."""
    means = np.clip(scaled_means(mechanism, X, source, low, high, n_rows, persons), -1.0, 1.0)
    half = (high - low) / 2
    # A warning must not depend on the number of rows if that is private.
    if n_rows is not None:
        report_unfilled_means(means, mechanism.deviation(len(low)) / n_rows, low, high)
    return np.clip(low + half + half * means, low, high)


def noise_of_means(guarantee, size, noise):
    """Return the mechanism for `size` sums of scaled values, one of which may be the count.

    `noise` is "laplace" or "gaussian"; "auto" selects the one with the smaller standard deviation.
    """
    # A row contributes a point in [-1, 1]^d, and 1 to the count; a null row contributes nothing.
    # The square root is rounded, so the next larger double is taken as an upper bound.
    sensitivity = float(guarantee.neighbors.sensitivity_factor)
    l1 = sensitivity * size
    l2 = math.nextafter(sensitivity * math.sqrt(size), math.inf)
    pure = replace(guarantee, delta=0.0)
    met = {"laplace": [pure], "gaussian": [guarantee], "auto": [pure, guarantee]}
    choices = [bounded_noise(choice, l1, l2) for choice in met[noise]]
    return min(choices, key=lambda mechanism: mechanism.deviation(size))


def scaled_means(mechanism, X, source, low, high, n_rows=None, persons=None):
    """Return the noisy means, before clipping, of the features scaled to [-1, 1].

    If the number of rows, or of persons, is None, it is released with noise, together with the
    sums. The noise comes from `mechanism` and `source`.
    """
    row_weights = row_weights_of(persons)
    if n_rows is not None:
        exact = rounded_sums(X, low, high, persons)
        return mechanism.release(exact, random_state=source) / n_rows
    if persons is None:
        count = len(X)
        exact = rounded_sums(X, low, high)
    else:
        count = row_weights.sum()
        grid = mechanism.grid_for(len(low) + 1)
        exact = sums_by_noise(X, low, high, row_weights, grid)
    released = mechanism.release(np.append(exact, float(count)), random_state=source)
    return released[:-1] / max(released[-1], 1.0)


class DPMeanTransformer(BoundedColumnsTransformer):
    """Center features with noisy means.

    Values are clipped to `bounds`, in `fit` only. The sums of all features are released jointly.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive.
    delta : float, default=0.0
        Largest delta of a fit, in [0, 1). A fit with Laplace noise needs no delta: it is charged,
        and `privacy_` states, a delta of 0.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of each feature: numbers or arrays of shape (n_features,), or one pair per column,
        within -1e150 and 1e150 and at least 1e-150 apart. It must not be computed from the data.
        "auto" finds it privately for a fifth of epsilon and needs a public number of rows.
    mechanism : {"auto", "laplace", "gaussian"}, default="auto"
        "auto" chooses the mechanism whose noise has the smaller standard deviation for epsilon,
        delta and the number of features. "gaussian" needs delta > 0.
    count : {"public", "noisy"}, default="public"
        Divisor of the sums. "public": the number of rows, which is then public. A removed row is
        still counted, and contributes the midpoint of the bounds. "noisy": a noisy count that is
        released together with the sums, for tables whose number of rows is private. The noise is
        then larger. Under "replace_one" the number of rows is public and "noisy" is refused.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Noisy means, clipped to the bounds.
    bounds_ : tuple of (low, high), ndarrays of shape (n_features,)
        Bounds of each feature, declared or found privately.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the fit and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    See Also
    --------
    DPStandardScaler : Also divides by noisy standard deviations.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The proof is in ``docs/theory/transformers.md``.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim and A. Smith. Calibrating noise to sensitivity in private
    data analysis. TCC 2006.

    B. Balle and Y.-X. Wang. Improving the Gaussian mechanism for differential privacy. ICML
    2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMeanTransformer
    >>> ages = np.random.default_rng(0).uniform(17, 90, size=(10_000, 1))
    >>> center = DPMeanTransformer(epsilon=1.0, bounds=(17, 90))
    >>> center.expected_error(n_samples=10_000).round(4)
    array([0.0052])
    >>> bool(abs(center.fit(ages).mean_[0] - ages.mean()) < 0.1)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bounds: Bounds | Literal["auto"] = "auto",
        mechanism: Literal["auto", "laplace", "gaussian"] = "auto",
        count: Literal["public", "noisy"] = "public",
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.mechanism = mechanism
        self.count = count
        self.accountant = accountant
        self.random_state = random_state

    @private_fit_method
    def fit(self, X, y=None, *, groups=None):
        """Charge the accountant and release the statistics of all features.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows. A table that is larger than memory is read block by block.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        with private_fit(self) as fit:
            table = fit.read(X, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            within = fit.run(plan, table)
            fit.publish(
                plan,
                is_size_public=self.count == "public",
                bounds_=within.bounds,
                mean_=within.released,
            )
        return self

    def _assumptions(self):
        """Return descriptions of the facts that a fit assumes to be public."""
        public = ("the number of columns",)
        if self.count == "public":
            public = (NUMBER, *public)
        if not is_auto(self.bounds):
            public += ("bounds",)
        return public

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a data set of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table. If the number of rows or of columns is None, the plan's event
            holds for every shape; parameters that need no shape are still checked.
        guarantee : Guarantee
            Guarantee that the fit must meet. It replaces `epsilon`, `delta` and `accountant`, which
            are not read.

        Returns
        -------
        Plan
            Plan made from public information only. No data is read, nothing is charged and no noise
            is drawn.

        Raises
        ------
        ValueError
            If a parameter is invalid, as in `fit`.
        """
        if shape.n_rows > LARGEST_COUNT:
            raise ValueError(f"at most 2**31 rows can be summed, got {shape.n_rows}")
        check_choice(self.count, "count", ("public", "noisy"))
        check_choice(self.mechanism, "mechanism", ("auto", "laplace", "gaussian"))
        if self.mechanism == "gaussian" and guarantee.delta == 0.0:
            raise ValueError("mechanism='gaussian' needs delta > 0")
        noisy = self.count == "noisy"
        if noisy and guarantee.relation == "replace_one":
            raise ValueError(
                "count='noisy' is not useful under relation='replace_one', where the number of "
                "rows is public; use count='public'"
            )
        if noisy and has_auto(self.bounds):
            raise ValueError("bounds='auto' reads the number of rows: count='noisy' needs bounds")
        plan_statistics = partial(plan_means, noise=self.mechanism, noisy_count=noisy)
        return plan_within_bounds(plan_statistics, self.bounds, shape, guarantee)

    def expected_error(self, n_samples, n_features=None):
        """Return the expected error of the means of the clipped values.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        n_features : int, default=None
            Number of features that are released together. None means the length of `bounds`, or 1
            if `bounds` is a pair of numbers.

        Returns
        -------
        ndarray of shape (n_features,)
            Root mean squared error of each mean, before it is clipped to the bounds. With
            ``count="noisy"`` it is the error of a mean at the midpoint of the bounds, to first
            order; at either end it is larger by a factor of sqrt(2).

        Raises
        ------
        ValueError
            If a parameter is invalid.

        Examples
        --------
        >>> from skdp import DPMeanTransformer
        >>> center = DPMeanTransformer(epsilon=1.0, delta=1e-6, bounds=(0, 1))
        >>> errors = [center.expected_error(1000, n_features=d)[0] for d in (1, 100)]
        >>> bool(errors[1] < 100 * errors[0])
        True
        """
        n_samples = check_integer(n_samples, "n_samples", low=1)
        if n_features is None:
            if isinstance(self.bounds, Mapping):
                n_features = len(self.bounds)
            elif np.iterable(self.bounds):
                n_features = max(map(np.size, self.bounds), default=1)
            else:
                n_features = 1
        n_features = check_integer(n_features, "n_features", low=1)
        if has_auto(self.bounds):
            raise ValueError("the expected error needs declared bounds")
        shape = self._shape_of_size(n_samples, n_features)
        low, high = declared_bounds(self.bounds, shape)
        mechanism = self.plan_fit(shape, guarantee_of(self)).mechanism
        noise_std = mechanism.deviation(n_features + (self.count == "noisy"))
        return (high - low) / 2 * noise_std / n_samples

    @row_wise_answer
    def transform(self, X):
        """Subtract the noisy means.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples. They are not clipped.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        return read_samples(self, X) - self.mean_

    @private_answer
    def inverse_transform(self, X):
        """Add the noisy means.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Centered samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        return read_samples(self, X) + self.mean_


def rounded_sums(X, low, high, persons=None):
    """Return the exact sums over rows of X, mapped to [-1, 1] and rounded to multiples of 2**-22.

    The sums are integers below 2**53 for at most 2**31 rows, so they do not depend on the order of
    rows or the block size, and a row changes each sum by at most 1. Products with row weights are
    exact and are truncated to the finest grid that represents the sums of all persons, so a
    person also changes a sum by at most 1.
    """
    finest = 1.0
    if persons is not None:
        finest = sum_grid(1.0, persons.n_persons) / STEP
    add = partial(_add_rounded, finest)
    return unit_sums(X, add, np.zeros(X.shape[1]), low, high, row_weights_of(persons)) * STEP


def sums_by_noise(X, low, high, row_weights, noise_grid):
    """Return the sums of `rounded_sums` for a private number of persons, rounded for a release.

    Each weighted value is truncated to a multiple of `FINE_STEP`, so a person changes no sum
    by more than 1. The sums are 64-bit integers: at most 2**26 persons times 2**36. They are
    rounded to the nearest multiple of the noise's grid, which the sensitivity of the release takes
    into account. The result can be represented exactly as a double, because it is below 2**26 and a
    multiple of at least 2**-27. No operation depends on the number of rows or persons.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
    low, high : ndarray of shape (n_columns,)
    row_weights : ndarray of shape (n_rows,)
    noise_grid : float
        The grid of the noise, a power of two.
    """
    step = COARSE_STEP
    if noise_grid >= COARSE_STEP:
        step = FINE_STEP
    add = partial(_add_truncated, step)
    sums = unit_sums(X, add, np.zeros(X.shape[1], dtype=np.int64), low, high, row_weights)
    # Beyond 2**40 steps the release itself rounds further, also to multiples of its grid.
    ratio = int(min(max(noise_grid / step, 1.0), 2.0**40))
    return (sums + ratio // 2) // ratio * (ratio * step)


def _add_truncated(step, sums, u, row_weights):
    """Add a block's weighted rows in [-1, 1] to integer sums, in units of `step`, truncated."""
    u *= 1.0 / STEP
    np.rint(u, out=u)
    # The product is exact: an integer below 2**49 times a power of two.
    u *= (row_weights * (STEP / step))[:, np.newaxis]
    sums += np.trunc(u, out=u).astype(np.int64).sum(axis=0)


def _add_rounded(finest, sums, u, row_weights):
    """Add a block's rows in [-1, 1] to the sums, in units of STEP, rounded to multiples of it.

    With row weights, products with them are truncated to multiples of `finest` steps.
    """
    u *= 1.0 / STEP
    np.rint(u, out=u)
    if row_weights is not None:
        u *= (row_weights / finest)[:, np.newaxis]
        np.trunc(u, out=u)
    sums += np.ones(len(u)).dot(u) * finest
