"""Randomized response: a category, reported truthfully with a known probability."""

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from skdp import accounting
from skdp.accounting import Event
from skdp.noise import SourceLike, as_source, truthful, uniform_integers
from skdp.utils._frames import column_values, columns_of, is_frame, objects
from skdp.utils._labels import category_codes, kind_of_others, label_kinds
from skdp.utils._validation import check_integer, check_positive, check_within
from skdp.utils._values import FrozenValue, checked


def _distinct_labels(categories):
    is_sequence = hasattr(categories, "__len__") and hasattr(categories, "__getitem__")
    is_vector = getattr(categories, "ndim", 1) == 1
    if not (is_sequence and is_vector) or isinstance(categories, str | bytes | Mapping):
        raise ValueError(f"categories must be a sequence, got {categories!r}")
    # The items of dates of nanoseconds are integers.
    is_plain = [isinstance(c, np.generic) and c.dtype.kind not in "mM" for c in categories]
    labels = [c.item() if plain else c for c, plain in zip(categories, is_plain, strict=True)]
    try:
        distinct = len(set(labels)) == len(labels) and not any(c != c for c in labels)
    except TypeError:
        raise ValueError("categories must be hashable and not missing") from None
    if not labels or not distinct:
        raise ValueError(f"categories must be distinct, not NaN, and not empty, got {labels!r}")
    if any(isinstance(c, str | bytes) and c[-1:] in ("\0", b"\0") for c in labels):
        raise ValueError(f"categories must not end in a NUL, which numpy drops: got {labels!r}")
    return labels


def _check_categories(categories, name="categories"):
    labels = tuple(_distinct_labels(categories))
    if len(labels) < 2:
        raise ValueError(f"categories must be at least two, got {labels!r}")
    return labels


@dataclass(frozen=True)
class RandomizedResponse(FrozenValue):
    """Report each row's category, or another one at random; each report is epsilon-DP.

    With k categories the truth is reported with probability ``p = e^epsilon / (k - 1 + e^epsilon)``
    and each other category with ``q = 1 / (k - 1 + e^epsilon)``. Each row is protected by itself,
    also from whoever collects the reports. A value outside the categories is the null record and
    reports uniformly.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one report.
    categories : sequence, default=(0, 1)
        The k >= 2 distinct categories, declared without a look at the data.

    Attributes
    ----------
    truth_probability, other_probability : float
        p and q.
    sensitivity : float
        1: a row has one report.
    scale : float
        ``sqrt(q (1 - q)) / (p - q)``, the standard deviation that one row of another category adds
        to a category's debiased count.
    event : skdp.accounting.RandomizedResponse
        What one report of every row costs.
    delta : float
        0.

    Raises
    ------
    ValueError
        If epsilon is not a positive finite number, or the categories are fewer than two, repeated
        or missing (NaN).

    References
    ----------
    S. Warner, "Randomized Response", 1965. P. Kairouz, K. Bonawitz, D. Ramage, "Discrete
    Distribution Estimation under Local Privacy", 2016 (k categories).

    Examples
    --------
    >>> from skdp.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(epsilon=1.0, categories=("cat", "dog", "fish"))
    >>> reports = mechanism.release(["cat"] * 700 + ["dog"] * 300)
    >>> mechanism.estimate_frequencies(reports).shape
    (3,)
    """

    epsilon: float = checked(check_positive)
    categories: tuple = checked(_check_categories, default=(0, 1))

    name: ClassVar[str] = "Randomized response"
    delta: ClassVar[float] = 0.0
    sensitivity: ClassVar[float] = 1.0

    @classmethod
    def from_scale(cls, scale: float, categories: Sequence[object] = (0, 1)) -> Self:
        """Return the mechanism of a given `scale`, the epsilon rounded to a float.

        Parameters
        ----------
        scale : float > 0
            The standard deviation of a debiased count, for one row.
        categories : sequence, default=(0, 1)
            As in the constructor.

        Returns
        -------
        RandomizedResponse
        """
        scale = check_positive(scale, "scale")
        k = len(_check_categories(categories))
        # scale**2 = (k - 2 + x) / (x - 1)**2 for x = e^epsilon, a quadratic in y = x - 1 with
        # the root y = (1 + sqrt(1 + 4 scale**2 (k - 1))) / (2 scale**2).
        root = math.hypot(1.0, 2.0 * scale * math.sqrt(k - 1))
        log_y = math.log(0.5 + 0.5 * root) - 2.0 * math.log(scale)
        return cls(float(np.logaddexp(0.0, log_y)), tuple(categories))

    @property
    def truth_probability(self) -> float:
        return 1.0 / (1.0 + (len(self.categories) - 1) * math.exp(-self.epsilon))

    @property
    def other_probability(self) -> float:
        return math.exp(-self.epsilon) * self.truth_probability

    @property
    def _gap(self):
        return -math.expm1(-self.epsilon) * self.truth_probability

    @property
    def scale(self) -> float:
        q = self.other_probability
        return math.sqrt(q * (1.0 - q)) / self._gap

    @property
    def event(self) -> Event:
        return accounting.RandomizedResponse(self.epsilon, len(self.categories))

    def release(self, values: ArrayLike, *, random_state: SourceLike = None) -> object:
        """Return a report for each value.

        Parameters
        ----------
        values : scalar or array-like
            Categories; anything else is the null record.
        random_state : None, int or RandomSource, default=None
            None draws from the operating system's generator. An integer is reproducible and
            protects nothing.

        Returns
        -------
        scalar or ndarray
            Of the shape of `values`, each one of the categories.
        """
        codes = self._encode(values)
        released = self.release_codes(codes, random_state=random_state)
        if codes.ndim == 0:
            return self.categories[int(released)]
        return categories_array(self.categories)[released]

    def release_codes(self, codes: ArrayLike, *, random_state: SourceLike = None) -> np.ndarray:
        """Return a report for each category's number.

        Parameters
        ----------
        codes : array-like of int
            Positions in `categories`; -1 is the null record.
        random_state : None, int or RandomSource, default=None
            None is the operating system's generator.

        Returns
        -------
        ndarray of int64
            Of the shape of `codes`.

        Raises
        ------
        ValueError
            If the codes are not integers from -1 to k - 1.
        """
        codes = np.asarray(codes)
        k = len(self.categories)
        if codes.dtype.kind not in "iu" or np.any(codes < -1) or np.any(codes >= k):
            raise ValueError(f"codes must be integers from -1 to {k - 1}")
        stream = as_source(random_state).stream()
        flat = codes.astype(np.int64).ravel()
        keep = truthful(self.epsilon, k - 1, flat.size, stream)
        other = uniform_integers(k - 1, flat.size, stream)
        other += other >= flat
        null = uniform_integers(k, flat.size, stream)
        return np.where(flat < 0, null, np.where(keep, flat, other)).reshape(codes.shape)

    def estimate_frequencies(self, released: ArrayLike) -> np.ndarray:
        """Return an unbiased estimate of each category's share among the true values.

        Parameters
        ----------
        released : array-like
            Reports of one column.

        Returns
        -------
        ndarray of shape (k,)
            The shares sum to 1 and may lie outside [0, 1]. A null record adds 1 / k of a row to
            each category.
        """
        return self._estimate(released)[0]

    def variance(self, frequencies: ArrayLike, n_rows: int) -> np.ndarray:
        """Return the variance of the estimated frequencies for given true ones.

        Parameters
        ----------
        frequencies : array-like
            True shares.
        n_rows : int
            Number of reports.

        Returns
        -------
        ndarray
            Of the shape of `frequencies`.
        """
        constant, slope = self._variance_line(check_integer(n_rows, "n_rows", 1, math.inf))
        return constant + slope * np.asarray(frequencies, dtype=np.float64)

    def confidence_interval(self, released: ArrayLike, confidence: float = 0.95) -> np.ndarray:
        """Return an interval for each category's share among the true values.

        The interval holds the shares that a two-sided normal test with the variance at that very
        share does not refuse (a score interval).

        Parameters
        ----------
        released : array-like
            Reports of one column.
        confidence : float in (0, 1), default=0.95
            The probability with which the interval covers the share.

        Returns
        -------
        ndarray of shape (k, 2)
            Lower and upper ends, within [0, 1].
        """
        confidence = check_within(confidence, "confidence", 0.0, 1.0, "()")
        estimate, n = self._estimate(released)
        constant, slope = self._variance_line(n)
        square = ndtri(0.5 + 0.5 * confidence) ** 2
        half = 0.5 * square * slope
        width = np.sqrt(np.maximum(2.0 * half * estimate + half**2 + square * constant, 0.0))
        interval = np.stack([estimate + half - width, estimate + half + width], axis=1)
        return np.clip(interval, 0.0, 1.0)

    def expected_error(self, confidence: float = 0.95, size: int = 1) -> float:
        """Return what the error of one category's estimated share stays below.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            The probability with which the error stays below.
        size : int, default=1
            The number of rows.

        Returns
        -------
        float
            For the least favorable share, in the normal approximation.
        """
        confidence = check_within(confidence, "confidence", 0.0, 1.0, "()")
        worst = self.variance([0.0, 1.0], check_integer(size, "size", 1, math.inf)).max()
        return float(ndtri(0.5 + 0.5 * confidence) * np.sqrt(worst))

    def _variance_line(self, n):
        p = self.truth_probability
        q = self.other_probability
        lie = (len(self.categories) - 1) * q
        at_zero = q * (1.0 - q)
        at_one = p * lie
        return at_zero / (n * self._gap**2), (at_one - at_zero) / (n * self._gap**2)

    def _estimate(self, released):
        """The estimated shares, and of how many reports."""
        codes = self._encode(released).ravel()
        if codes.size == 0 or np.any(codes < 0):
            raise ValueError("reports must not be empty and each be one of the categories")
        shares = np.bincount(codes, minlength=len(self.categories)) / codes.size
        return (shares - self.other_probability) / self._gap, codes.size

    def _encode(self, values):
        if is_frame(values):
            return np.column_stack([self._encode(column) for column in columns_of(values)])
        if hasattr(values, "dtype") or hasattr(type(values), "to_pylist"):
            array, _ = column_values(values)
        else:
            array = np.array(values, dtype=object)
            if any(issubclass(type(cell), list | tuple | np.ndarray) for cell in array.flat):
                raise ValueError("values must be rows of one length, got a ragged list")
        categories = categories_array(self.categories)
        found = kind_of_others(array, label_kinds(categories))
        if found is not None:
            raise ValueError(
                f"values hold {found}, which equal none of the categories {self.categories[:3]!r}: "
                "they must be of the categories' type"
            )
        return category_codes(array.ravel(), categories).reshape(array.shape)


def categories_array(categories):
    """Return declared categories as an array that holds them unchanged.

    Parameters
    ----------
    categories : sequence
        Distinct and hashable labels, in the order in which codes count them.

    Returns
    -------
    ndarray of shape (n_categories,)
        Of numbers or of strings where numpy can hold all labels so, else of dtype object: labels
        of mixed types never become strings, nor integers other numbers.

    Raises
    ------
    ValueError
        If `categories` is not a sequence (a string, set or mapping is none), or is empty, or a
        label is missing (NaN), repeated, not hashable, or ends in a NUL, which numpy drops.
    """
    return labels_array(_distinct_labels(categories))


def labels_array(labels):
    """Return labels as an array that holds them unchanged; see `categories_array`.

    Parameters
    ----------
    labels : list

    Returns
    -------
    ndarray of shape (n_labels,)
    """
    if any(all(isinstance(label, kind) for label in labels) for kind in (str, numbers.Real)):
        array = np.asarray(labels)
        if array.dtype.kind in "biufU" and array.tolist() == labels:
            return array
    return objects(labels)
