"""Randomized response: each row reports its category truthfully with a known probability."""

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

import skdp.accounting as accounting
from skdp._data._frames import check_not_masked, column_values, columns_of, is_frame, objects
from skdp._data._labels import category_codes, kind_of_others, label_kinds
from skdp.accounting import Event
from skdp.noise import SourceLike, as_source, truthful, uniform_integers
from skdp.utils._validation import check_integer, check_positive, check_within
from skdp.utils._values import FrozenValue, checked


def _distinct_labels(categories):
    """Return declared categories as a list of Python values, after a check that they differ."""
    is_sequence = hasattr(categories, "__len__") and hasattr(categories, "__getitem__")
    is_vector = getattr(categories, "ndim", 1) == 1
    if not (is_sequence and is_vector) or isinstance(categories, str | bytes | Mapping):
        raise ValueError(f"categories must be a list or a vector, got {categories!r}")
    labels = []
    for category in categories:
        # `item` would return an integer for dates and durations in nanoseconds.
        if isinstance(category, np.generic) and category.dtype.kind not in "mM":
            category = category.item()
        labels.append(category)
    try:
        is_distinct = len(set(labels)) == len(labels)
        is_missing = any(label != label for label in labels)
    except TypeError:
        raise ValueError(f"categories must be hashable and not missing, got {labels!r}") from None
    if not labels or not is_distinct or is_missing:
        raise ValueError(f"categories must be distinct, not NaN, and not empty, got {labels!r}")
    if any(isinstance(label, complex) for label in labels):
        raise ValueError(
            f"categories must not be complex numbers, which are not labels, got {labels!r}: "
            "declare real numbers or strings, and convert the column in the same way"
        )
    if any(isinstance(label, np.longdouble) and float(label) != label for label in labels):
        raise ValueError(
            "categories must not be long doubles between two doubles, which no row would equal, "
            f"got {labels!r}: declare them as float(value)"
        )
    if any(isinstance(label, str | bytes) and label[-1:] in ("\0", b"\0") for label in labels):
        raise ValueError(f"categories must not end in a NUL, which numpy drops: got {labels!r}")
    return labels


def _check_categories(categories, name="categories"):
    """Return at least two distinct categories as a tuple."""
    labels = tuple(_distinct_labels(categories))
    if len(labels) < 2:
        raise ValueError(f"categories must be at least two, got {labels!r}")
    return labels


@dataclass(frozen=True)
class RandomizedResponse(FrozenValue):
    """Report each row's category, or a different one at random; each report is epsilon-DP.

    With k categories, the true category is reported with probability ``p = e^epsilon / (k - 1 +
    e^epsilon)`` and each other category with ``q = 1 / (k - 1 + e^epsilon)``. Each row is protected
    separately, even from the curator who collects the reports. A value outside the categories is
    the null record, whose report is uniform.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one report.
    categories : sequence, default=(0, 1)
        The k >= 2 distinct categories, declared without looking at the data.

    Attributes
    ----------
    truth_probability, other_probability : float
        The probabilities p and q.
    sensitivity : float
        It is 1: a row has one report.
    scale : float
        ``sqrt(q (1 - q)) / (p - q)``, the standard deviation that a row with another category
        contributes to a category's debiased count.
    event : skdp.accounting.RandomizedResponse
        Privacy event of one report of every row.
    delta : float
        It is 0.

    Raises
    ------
    ValueError
        If epsilon is not a positive finite number, if there are fewer than two categories, or if
        one is repeated or missing (NaN).

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
        """Return the mechanism with the given `scale`; its epsilon is rounded to a float.

        Parameters
        ----------
        scale : float > 0
            Standard deviation that one row contributes to a category's debiased count.
        categories : sequence, default=(0, 1)
            Categories as in the constructor.

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
    def _probability_difference(self):
        """The difference p - q, computed without cancellation."""
        return -math.expm1(-self.epsilon) * self.truth_probability

    @property
    def scale(self) -> float:
        q = self.other_probability
        return math.sqrt(q * (1.0 - q)) / self._probability_difference

    @property
    def event(self) -> Event:
        return accounting.RandomizedResponse(self.epsilon, len(self.categories))

    def release(self, values: ArrayLike, *, random_state: SourceLike = None) -> object:
        """Return a report for each value.

        Parameters
        ----------
        values : scalar or array-like
            Categories. Any other value counts as the null record.
        random_state : None, int or RandomSource, default=None
            None draws from the operating system's generator. An integer makes the noise
            reproducible, so there is no protection.

        Returns
        -------
        scalar or ndarray
            Reports with the shape of `values`; each is one of the categories.
        """
        codes = self._encode(values)
        released = self.release_codes(codes, random_state=random_state)
        if codes.ndim == 0:
            return self.categories[int(released)]
        return categories_array(self.categories)[released]

    def release_codes(self, codes: ArrayLike, *, random_state: SourceLike = None) -> np.ndarray:
        """Return a report for each code of a category.

        Parameters
        ----------
        codes : array-like of int
            Indices of `categories`; -1 is the null record.
        random_state : None, int or RandomSource, default=None
            None draws from the operating system's generator.

        Returns
        -------
        ndarray of int64
            Reported codes, with the shape of `codes`.

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
        is_truthful = truthful(self.epsilon, k - 1, flat.size, stream)
        # One of the k - 1 other categories: codes from the true code on are shifted by 1.
        other = uniform_integers(k - 1, flat.size, stream)
        other += other >= flat
        # A uniform report is drawn for every row, so that the time does not depend on the number of
        # null records.
        uniform = uniform_integers(k, flat.size, stream)
        reports = np.where(is_truthful, flat, other)
        return np.where(flat < 0, uniform, reports).reshape(codes.shape)

    def estimate_frequencies(self, released: ArrayLike) -> np.ndarray:
        """Return an unbiased estimate of the frequency of each category among the true values.

        Parameters
        ----------
        released : array-like
            Reports for one column.

        Returns
        -------
        ndarray of shape (k,)
            Frequencies. They sum to 1 and may be outside [0, 1]. A null record adds 1 / k of a row
            to each category.
        """
        return self._estimate(released)[0]

    def variance(self, frequencies: ArrayLike, n_rows: int) -> np.ndarray:
        """Return the variance of the estimated frequencies, given the true frequencies.

        Parameters
        ----------
        frequencies : array-like
            True frequencies.
        n_rows : int
            Number of reports.

        Returns
        -------
        ndarray
            Variances, with the shape of `frequencies`.
        """
        n_rows = check_integer(n_rows, "n_rows", 1, math.inf)
        constant, coefficient = self._variance_coefficients(n_rows)
        return constant + coefficient * np.asarray(frequencies, dtype=np.float64)

    def confidence_interval(self, released: ArrayLike, confidence: float = 0.95) -> np.ndarray:
        """Return an interval for the frequency of each category among the true values.

        It is a score interval: it contains the frequencies that a two-sided normal test, with the
        variance at the tested frequency, does not reject.

        Parameters
        ----------
        released : array-like
            Reports for one column.
        confidence : float in (0, 1), default=0.95
            Probability that the interval contains the frequency.

        Returns
        -------
        ndarray of shape (k, 2)
            Lower and upper ends, within [0, 1].
        """
        confidence = check_within(confidence, "confidence", 0.0, 1.0, "()")
        estimate, n = self._estimate(released)
        constant, coefficient = self._variance_coefficients(n)
        # The ends f solve (estimate - f)**2 = z**2 (constant + coefficient f).
        z_squared = ndtri(0.5 + 0.5 * confidence) ** 2
        shift = 0.5 * z_squared * coefficient
        discriminant = 2.0 * shift * estimate + shift**2 + z_squared * constant
        half_width = np.sqrt(np.maximum(discriminant, 0.0))
        center = estimate + shift
        interval = np.stack([center - half_width, center + half_width], axis=1)
        return np.clip(interval, 0.0, 1.0)

    def expected_error(self, confidence: float = 0.95, size: int = 1) -> float:
        """Return a bound, not a mean, on the error of a frequency, which holds with `confidence`.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            Probability that the error is at most the returned bound.
        size : int, default=1
            Number of rows.

        Returns
        -------
        float
            Bound for the least favorable frequency, in the normal approximation.
        """
        confidence = check_within(confidence, "confidence", 0.0, 1.0, "()")
        size = check_integer(size, "size", 1, math.inf)
        # The variance is linear in the frequency, so its maximum is at an end.
        max_variance = self.variance([0.0, 1.0], size).max()
        return float(ndtri(0.5 + 0.5 * confidence) * np.sqrt(max_variance))

    def _variance_coefficients(self, n):
        """Return the constant and the coefficient of the variance, linear in the frequency."""
        p = self.truth_probability
        q = self.other_probability
        untruthful = (len(self.categories) - 1) * q
        at_zero = q * (1.0 - q)
        at_one = p * untruthful
        scaling = n * self._probability_difference**2
        return at_zero / scaling, (at_one - at_zero) / scaling

    def _estimate(self, released):
        """Return the estimated frequencies and the number of reports."""
        codes = self._encode(released).ravel()
        if codes.size == 0 or np.any(codes < 0):
            raise ValueError(
                "reports must contain at least one row, and each must be one of the categories "
                f"{self.categories[:3]!r}"
            )
        frequencies = np.bincount(codes, minlength=len(self.categories)) / codes.size
        return (frequencies - self.other_probability) / self._probability_difference, codes.size

    def _encode(self, values):
        """Return the code of each value's category, -1 for the null record."""
        check_not_masked(values)
        if is_frame(values):
            return np.column_stack([self._encode(column) for column in columns_of(values)])
        if hasattr(values, "dtype") or hasattr(type(values), "to_pylist"):
            array, _ = column_values(values)
        else:
            array = np.array(values, dtype=object)
            if any(issubclass(type(cell), list | tuple | np.ndarray) for cell in array.flat):
                raise ValueError("values must be rows of equal length, got a ragged list")
        categories = categories_array(self.categories)
        other_kind = kind_of_others(array, label_kinds(categories))
        if other_kind is not None:
            raise ValueError(
                f"values contain {other_kind}, which equal none of the categories "
                f"{self.categories[:3]!r}: convert them to the type of the categories"
            )
        return category_codes(array.ravel(), categories).reshape(array.shape)


def categories_array(categories):
    """Return declared categories as an array, without changing their type.

    Parameters
    ----------
    categories : sequence
        Distinct and hashable labels, in the order of their codes.

    Returns
    -------
    ndarray of shape (n_categories,)
        Numbers or strings if NumPy represents all labels exactly, otherwise objects. Labels of
        mixed types do not become strings, and large integers do not become other numbers.

    Raises
    ------
    ValueError
        If `categories` is empty or not a sequence (strings, sets and mappings are not accepted), or
        if a label is missing (NaN), repeated, not hashable, a complex number, or ends in a NUL,
        which NumPy drops.
    """
    return labels_array(_distinct_labels(categories))


def labels_array(labels):
    """Return labels as an array, without changing their type; see `categories_array`.

    Parameters
    ----------
    labels : list

    Returns
    -------
    ndarray of shape (n_labels,)
    """
    is_text = all(isinstance(label, str) for label in labels)
    is_number = all(isinstance(label, numbers.Real) for label in labels)
    if is_text or is_number:
        array = np.asarray(labels)
        if array.dtype.kind in "biufU" and array.tolist() == labels:
            return array
    return objects(labels)
