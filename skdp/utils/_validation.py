"""Checks of parameters of estimators and mechanisms."""

import math
import unicodedata
from collections.abc import Mapping, Set
from decimal import Decimal
from numbers import Integral, Real

import numpy as np

from skdp.utils._units import UnitText

RELATIONS = ("add_remove", "replace_one")
SIZES = UnitText(lambda unit: f"the numbers of {unit}s and columns")
# A larger epsilon is a mistake: its noise would be below the rounding errors of doubles.
MAX_EPSILON = 1e15
# Not all larger integers are exact as doubles.
MAX_INTEGER = 2**53
# Numbers by their type that are not numbers: NumPy's durations are integers.
NO_NUMBERS = bool | np.bool_ | np.timedelta64
# Smallest distance between two bounds, in steps of double precision. If bounds were closer, the
# differences between quantiles, bins or scaled values would be rounding errors.
MIN_STEPS = 64


def check_real(value: object, name: str) -> float:
    """Return a float, or raise `ValueError`."""
    if type(value) is float:
        return value
    if isinstance(value, NO_NUMBERS) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} must be within the range of a float, got {value!r}") from None


def as_doubles(value):
    """Return an array of doubles, which may be the value, or an array of NaN if it is not numeric.

    Every parameter that is an array of numbers is read here. NumPy would parse strings, read dates
    and durations as numbers in their unit, booleans as 0 and 1, complex numbers as their real part,
    and masked values as what they hide.
    """
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    if np.ma.is_masked(value):
        return np.array(np.nan)
    try:
        if isinstance(value, list | tuple):
            # Among floats, NumPy would convert a boolean.
            array = np.asarray(value, dtype=object)
        else:
            array = np.asarray(value)
        if array.dtype.kind not in "iuf" and not all(map(_is_number, array.flat)):
            return np.array(np.nan)
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array(np.nan)


def _is_number(value):
    """Return True for a real number, also of a type that only converts to a float."""
    return isinstance(value, Real | Decimal) and not isinstance(value, NO_NUMBERS)


def check_integer(value: object, name: str, low: int, high: float = MAX_INTEGER) -> int:
    """Return an int from `low` to `high`, by default the largest exact float64."""
    if type(value) is int:
        number = value
    elif isinstance(value, Integral) and not isinstance(value, NO_NUMBERS):
        number = int(value)
    else:
        raise ValueError(f"{name} must be an integer of at least {low}, got {value!r}")
    if number < low:
        raise ValueError(f"{name} must be an integer of at least {low}, got {value!r}")
    if number > high:
        raise ValueError(f"{name} must be at most {high}, got {value!r}")
    return number


def check_verbose(verbose):
    """Raise `ValueError` unless it is False, True or an integer of at least 0."""
    if not isinstance(verbose, bool):
        check_integer(verbose, "verbose", 0)


def check_n_jobs(n_jobs):
    """Raise `ValueError` unless joblib's number of jobs is None or a nonzero integer."""
    is_integer = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_integer or n_jobs == 0):
        raise ValueError(f"n_jobs must be a nonzero integer or None, got {n_jobs!r}")


def check_within(
    value: object, name: str, low: float, high: float = math.inf, ends: str = "[]"
) -> float:
    """Return a float in an interval, or raise `ValueError`.

    `ends` is "[]", "()", "[)" or "(]": a round bracket excludes that end.
    """
    number = check_real(value, name)
    is_above = number > low or (number == low and ends[0] == "[")
    is_below = number < high or (number == high and ends[1] == "]")
    if not (is_above and is_below):
        interval = f"{ends[0]}{low:g}, {high:g}{ends[1]}"
        raise ValueError(f"{name} must be a number in {interval}, got {value!r}")
    return number


def check_positive(value: object, name: str) -> float:
    """Return a positive finite float, or raise `ValueError`."""
    return check_within(value, name, 0.0, ends="()")


def check_magnitude(value: object, name: str) -> float:
    """Return a float between 1e-50 and 1e50, so that small multiples of its square are finite."""
    return check_within(value, name, 1e-50, 1e50)


def check_epsilon(epsilon: object, name: str = "epsilon") -> float:
    """Return epsilon as a float, from 1e-100 to 1e15.

    The grids on which events are composed do not resolve privacy losses beyond 1e15.
    """
    return check_within(epsilon, name, 1e-100, MAX_EPSILON)


def check_delta(delta: object, name: str = "delta") -> float:
    """Return delta as a float, 0 or from 1e-100 to below 1."""
    delta = check_real(delta, name)
    if not (delta == 0 or 1e-100 <= delta < 1):
        raise ValueError(f"{name} must be 0 or between 1e-100 and 1, got {delta!r}")
    return delta


def check_privacy_parameters(epsilon: object, delta: object) -> tuple[float, float]:
    """Return (epsilon, delta) as `check_epsilon` and `check_delta` do."""
    return check_epsilon(epsilon), check_delta(delta)


def check_boolean(value: object, name: str) -> bool:
    """Return a bool, or raise `ValueError`."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_any_true(**switches):
    """Raise `ValueError` unless all values are booleans and one of them is true."""
    booleans = [check_boolean(value, name) for name, value in switches.items()]
    if not any(booleans):
        raise ValueError(f"one of {' and '.join(switches)} must be true")


def check_choice(value, name, choices):
    """Return a value that is one of the choices, or raise `ValueError`."""
    choices = tuple(choices)
    # The type is checked first, because an array compares as an array.
    if not (isinstance(value, tuple(map(type, choices))) and value in choices):
        raise ValueError(f"{name} must be one of {choices}, got {value!r}")
    return value


def is_estimator(value):
    """Return True if a value is an estimator, rather than a class or a string."""
    return hasattr(value, "fit") and hasattr(value, "get_params") and not isinstance(value, type)


def check_is_estimator(value, name):
    """Raise `ValueError` unless a parameter's value is an estimator."""
    if not is_estimator(value):
        hint = ""
        if isinstance(value, type):
            hint = f": pass an instance, {value.__name__}()"
        raise ValueError(f"{name} must be an estimator, got {value!r}{hint}")


def check_name(name, parameter):
    """Return a name with only printable characters in its normal form, or raise `ValueError`."""
    normalized = ""
    if isinstance(name, str):
        normalized = unicodedata.normalize("NFC", name).strip()
    if not (normalized and name.isprintable()):
        raise ValueError(f"{parameter} must be a name, got {name!r}")
    return normalized


def check_relation(relation, name="relation"):
    """Return the name of a relation, or raise `ValueError`."""
    return check_choice(relation, name, RELATIONS)


def check_has_order(value, name):
    """Raise `ValueError` if a value is a set, dict, string or bytes instead of a pair of numbers.

    A set has no order, iterating over a dict gives its keys, and characters are no numbers.
    """
    if isinstance(value, Set | Mapping | str | bytes | bytearray):
        raise ValueError(f"{name} must be a tuple or list (low, high), got {value!r}")


def check_not_pairs(bounds, n_features):
    """Raise `ValueError` for lists that may mean either one pair per column, or lows and highs.

    Lists are ambiguous if each low is below its high in both meanings. Arrays mean lows and highs.
    """
    are_lists = isinstance(bounds, list | tuple) and all(
        isinstance(bound, list | tuple) for bound in bounds
    )
    if not (are_lists and n_features == 2 and [len(bound) for bound in bounds] == [2, 2]):
        return
    (a, b), (c, d) = bounds
    try:
        is_ambiguous = a < b and c < d and a < c and b < d
    except (TypeError, ValueError):
        return
    if is_ambiguous:
        raise ValueError(
            f"bounds={bounds!r} is ambiguous for two columns: write a pair for each column as a "
            f"dict, {{0: ({a!r}, {b!r}), 1: ({c!r}, {d!r})}} with column names or indices, or lows "
            f"and highs as two arrays, (np.array([{a!r}, {b!r}]), np.array([{c!r}, {d!r}]))"
        )


def broadcast_bounds(bounds, n_features):
    """Return (low, high), two finite float64 arrays of length `n_features` with low <= high.

    For clips, sums and sensitivities, whose range may be a single point. Callers that divide by
    high - low need `check_bounds`, which also requires low < high.

    The arrays are read-only views, possibly of the caller's arrays.
    """
    check_has_order(bounds, "bounds")
    check_not_pairs(bounds, n_features)
    message = f"bounds must be (low, high), numbers or arrays of length n_features, got {bounds!r}"
    if hasattr(bounds, "__array__"):
        # The cells of a column of Arrow are no numbers.
        bounds = as_doubles(bounds)
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError(message) from None
    are_numbers = True
    ends = []
    for bound in (low, high):
        end = as_doubles(bound)
        are_numbers &= isinstance(bound, Real) or not np.isnan(end).all()
        ends.append(end)
    if not are_numbers:
        raise ValueError(message)
    low, high = ends
    for name, bound in (("low", low), ("high", high)):
        if bound.ndim > 1 or (bound.ndim == 1 and bound.shape != (n_features,)):
            raise ValueError(
                f"bounds: {name} must be a number or of shape ({n_features},), got {bound.shape}"
            )
        if not np.isfinite(bound).all():
            raise ValueError(f"bounds: {name} must be finite")
    low, high = (np.broadcast_to(bound, (n_features,)) for bound in (low, high))
    if not (low <= high).all():
        raise ValueError("bounds: no low may exceed its high")
    return low, high


def check_resolved(low, high, name):
    """Raise `ValueError` if doubles cannot resolve the range between bounds.

    Parameters
    ----------
    low, high : float or ndarray
        Finite bounds.
    name : str
        Name of the parameter.
    """
    steps = np.spacing(np.maximum(np.abs(low), np.abs(high)))
    if np.any(np.subtract(high, low) < MIN_STEPS * steps):
        raise ValueError(
            f"{name}: high - low must be at least {MIN_STEPS} times the distance between "
            "neighboring doubles of that size, or values between them cannot be resolved: "
            "subtract a public constant from each value first"
        )


def check_bounds(bounds, n_features, name="bounds", *, is_resolved=True):
    """Return (low, high), two float64 arrays of length `n_features` with low < high.

    For callers that divide by high - low; `broadcast_bounds` also accepts low = high. The arrays
    are read-only views, as there.

    Parameters
    ----------
    bounds : tuple of (scalar or array-like, scalar or array-like)
    n_features : int
    name : str, default="bounds"
    is_resolved : bool, default=True
        True if doubles must resolve the range; bin edges may be closer together.

    Raises
    ------
    ValueError
        If a bound is missing or not finite, if a length is not `n_features`, or if a low is not far
        enough below its high.
    """
    low, high = broadcast_bounds(bounds, n_features)
    if max(np.abs(low).max(), np.abs(high).max()) > 1e150 or (high - low).min() < 1e-150:
        raise ValueError(f"{name} must be between -1e150 and 1e150 and at least 1e-150 apart")
    if is_resolved:
        check_resolved(low, high, name)
    return low, high


def check_increasing(value, name, low, high, min_difference=0.0):
    """Return a pair of increasing floats from `low` to `high`.

    Raises
    ------
    ValueError
        If the value is not such a pair, or the difference is less than `min_difference`.
    """
    check_has_order(value, name)
    try:
        # `len` refuses iterators, which cannot be read again after the charge.
        (first, last), _ = value, len(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be two numbers, got {value!r}") from None
    first = check_within(first, name, low, high)
    last = check_within(last, name, low, high)
    if not (first < last and last - first >= min_difference):
        raise ValueError(f"{name} must increase by at least {min_difference:g}, got {value!r}")
    return first, last


def check_target_bounds(target_bounds, minimum=-math.inf):
    """Return (low, high) as floats with minimum <= low < high, or raise `ValueError`."""
    if target_bounds is None:
        raise ValueError(
            "target_bounds=(low, high) must be given: the possible targets, known from a form, a "
            "law or common sense, and not computed from the rows"
        )
    check_has_order(target_bounds, "target_bounds")
    try:
        low, high = check_increasing(target_bounds, "target_bounds", minimum, math.inf, 1e-100)
    except ValueError:
        low = high = 0.0
    if not 0.0 < high - low <= 1e100:
        raise ValueError(
            f"target_bounds must be finite with {minimum:g} <= low < high, and high - low must be "
            f"between 1e-100 and 1e100, got {target_bounds!r}"
        )
    check_resolved(low, high, "target_bounds")
    return low, high


def is_choice(value: object, *choices: str) -> bool:
    """Return True if a parameter is one of some strings, for parameters yet to be checked.

    The type is checked first, because an array compares as an array.
    """
    return isinstance(value, str) and value in choices


def is_auto(value: object) -> bool:
    """Return True if a parameter is "auto", so that its value is found privately."""
    return is_choice(value, "auto")


def has_auto(value: object) -> bool:
    """Return True if a parameter, or its entry for a column, is "auto"."""
    if isinstance(value, Mapping):
        return any(map(is_auto, value.values()))
    return is_auto(value)


def public_inputs(estimator, *names):
    """Return the public inputs of a fit as text: sizes, and the names of declared parameters.

    A parameter that is None or "auto" counts as undeclared, as does a dict with only such entries.
    """
    values = {name: getattr(estimator, name) for name in names}
    declared = (name for name, value in values.items() if not _declares_nothing(value))
    return (SIZES, *declared)


def _declares_nothing(value):
    """Return True if a parameter, or each entry of a dict of columns, is None or "auto"."""
    if isinstance(value, Mapping):
        return all(entry is None or is_auto(entry) for entry in value.values())
    return value is None or is_auto(value)
