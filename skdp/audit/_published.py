"""Everything that can be seen in a fitted estimator, as numbers, and tests between two worlds.

A composition of estimators is read like a single one: attributes, parameters, lists, dicts,
functions' variables and objects that hold estimators are searched, as a pickle would hold them.
The best of simple tests is chosen on half of the runs and judged on the rest.
"""

import copyreg
import math
import types
import zlib
from collections.abc import Iterator
from functools import lru_cache, partial

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp.audit import _bounds
from skdp.utils._values import FrozenValue

LARGEST = 1e140
ANSWERS = ("decision_function", "predict_proba", "predict", "transform")
SCALARS = frozenset((bool, int, float, str, bytes))
CODE = type | types.ModuleType | types.BuiltinFunctionType


def walk(value):
    """Yield the numbers within a value as (name, list of float), in a fixed order.

    Parameters
    ----------
    value : object
        An object that holds itself is looked into once.
    """
    seen, stack = {}, [("", value)]
    while stack:
        name, part = stack.pop()
        if part is None:
            continue
        numbers = _numbers(part)
        if numbers is not None:
            yield name + _form(part), numbers
            # Most parts hold nothing else, which their type shows at once. A sparse matrix holds
            # which of its zeros are stored, and in which order.
            if type(part) in SCALARS or _is_array(part) or not _converts(part):
                continue
        if id(part) not in seen:
            # Kept, because the identity of an object that is gone is given to another.
            seen[id(part)] = part
            stack += [(name + place, item) for place, item in reversed(_inner(part))]


def observe(estimator, probe=None):
    """Return every number that a fitted estimator and all that is in it show.

    Differences between the rows of a matrix are among them, where noise that is shared between
    classes cancels. Text is a number by its check sum.

    Parameters
    ----------
    estimator : fitted estimator
    probe : table, default=None
        The rows that it is asked about. To refuse them is an answer, too.

    Returns
    -------
    dict of str to ndarray
        Where the numbers are, and the numbers.
    """
    found = [(f"published number {name.lstrip('.')}", part) for name, part in walk(estimator)]
    if probe is not None:
        answers = walk(_answers(estimator, probe))
        found += [(f"the model's answer to the canary{name}", part) for name, part in answers]
    return {name: np.array(numbers) for name, numbers in found}


def as_matrix(observations):
    """Return the numbers of all fits as rows of one width, and what the columns are.

    How many numbers a fit shows is a column too, because it may reveal a row.

    Parameters
    ----------
    observations : list of dict
        From `observe`.

    Returns
    -------
    values : ndarray of shape (n_fits, n_columns)
    names : list of str
    """
    blocks, names, sizes = [np.empty((len(observations), 0))], [], {}
    for name in dict.fromkeys(name for seen in observations for name in seen):
        size = np.array([len(seen[name]) if name in seen else -1 for seen in observations])
        width = size.max()
        block = np.zeros((len(size), width))
        numbers = [seen[name] for seen in observations if name in seen]
        block[np.arange(width) < size[:, None]] = np.concatenate(numbers)
        blocks.append(block)
        names += [f"{name}[{i}]" for i in range(width)] if width > 1 else [name] * width
        sizes[f"how many numbers there are in {name}"] = size
    values, names = np.column_stack([*blocks, *sizes.values()]), [*names, *sizes]
    # Numbers whose squares can be summed, and one for what is none.
    return np.clip(np.nan_to_num(values, nan=LARGEST / 2.0), -LARGEST, LARGEST), names


def _answers(estimator, probe):
    for name in ANSWERS:
        if hasattr(estimator, name):
            try:
                return getattr(estimator, name)(probe)
            except Exception as error:
                return type(error).__name__
    return None


def _numbers(value):
    """Return the numbers that a value is as a list, None if it is none."""
    kind = type(value)
    if kind is bool or (kind is int and abs(value) <= 2**53):
        return [float(value)]
    if kind is float and 0.0 < abs(value) <= LARGEST:
        return [value]
    if kind in (str, bytes, int):
        text = value if kind is bytes else str(value).encode("utf-8", "surrogatepass")
        return [float(zlib.crc32(text))]
    if kind in (list, tuple) and value and set(map(type, value)) <= {bool, int, float}:
        return [number for item in value for number in _numbers(item)]
    array = _array(value)
    if array is None or array.dtype.kind not in "biufcmMSU":
        return None
    if array.dtype.kind in "SU":
        return [number for text in array.ravel().tolist() for number in _numbers(text)]
    if array.dtype.kind in "mM":
        array = array.astype(np.int64)
    elif array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1).reshape(*array.shape[:-1], -1)
    with np.errstate(over="ignore", invalid="ignore"):
        exact, array = array, array.astype(float)
        differences = np.diff(array, axis=0).ravel().tolist() if array.ndim == 2 else []
        hidden = np.abs(array) > (LARGEST if exact.dtype.kind == "f" else 2**53)
    # Others than these are not told apart by their doubles, or by comparing them.
    hidden |= (array == 0.0) & np.signbit(array)
    bits = (exact if exact.dtype.kind in "iu" else array)[hidden].tobytes()
    told = [float(zlib.crc32(bits))] if bits else []
    return array.ravel().tolist() + differences + told


def _converts(value):
    """Return True if a value can be converted to an array and is none."""
    return hasattr(value, "__array__") or hasattr(value, "toarray")


def _array(value):
    if isinstance(value, np.ndarray) or value is None:
        return value
    if isinstance(value, float | complex | np.generic | memoryview):
        return np.asarray(value)
    if isinstance(value, type):
        return None
    if hasattr(value, "toarray"):
        return value.toarray()
    return np.asarray(value) if hasattr(value, "__array__") else None


def _is_array(value):
    """Say whether a value is an array or a number of numpy's, and holds nothing beside."""
    return type(value) is np.ndarray or isinstance(value, np.generic)


def _form(value):
    """Return in words what of an array is not in its numbers, and tells of rows, too."""
    if not _is_array(value):
        return "" if type(value) in (float, list, str) else f" ({type(value).__name__})"
    if value.dtype == np.float64 and value.size and not value.flags.fnc:
        return ""
    order = ", by columns" if value.flags.fnc else ""
    return f" ({value.dtype.str}, {value.shape if not value.size else value.ndim}{order})"


def _inner(value):
    """Return what is within a value, as pairs of place and part."""
    if isinstance(value, types.FunctionType):
        # One that was made while something ran may keep what it saw.
        kept = (value.__defaults__, value.__kwdefaults__, vars(value))
        filled = [cell for cell in value.__closure__ or () if cell != types.CellType()]
        cells = [cell.cell_contents for cell in filled]
        return [(".kept", part) for part in (*kept, *cells)] if "<" in value.__qualname__ else []
    if isinstance(value, CODE) or hasattr(type(value), "charge"):
        return []
    plain = type(value) in (dict, list, tuple, set, frozenset) or _is_array(value)
    return _items(value) if plain else [*_items(value), *_state(value)]


def _items(value):
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: repr(item[0]))
        keys = [(f"[{i}].key", key) for i, (key, _) in enumerate(items)]
        keys.append((".order", list(value)))
        return keys + [(f"[{i}]", item) for i, (_, item) in enumerate(items)]
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, list | tuple):
        return [(".size", len(value)), *((f"[{i}]", item) for i, item in enumerate(value))]
    array = _array(value)
    if array is not None and array.dtype.names:
        return [(f".{name}", array[name]) for name in array.dtype.names]
    if array is not None and _numbers(value) is None:
        return [(f"[{i}]", item) for i, item in enumerate(array.ravel().tolist())]
    return []


@lru_cache(maxsize=1024)
def _has_slots(kind):
    return any(vars(base).get("__slots__") for base in kind.__mro__)


def _state(value):
    """Return what an object is made of again by a pickle, beside its items."""
    own = vars(value) if hasattr(value, "__dict__") else {}
    found = [(f".{name}", own[name]) for name in sorted(own)]
    kind = type(value)
    if found and kind.__reduce__ is object.__reduce__ and not _has_slots(kind):
        return found
    try:
        # What it is made of again: a function, a range, a generator's position, a queue's items.
        made = copyreg.dispatch_table.get(kind, lambda v: v.__reduce_ex__(4))(value)[1:5]
    except Exception:
        # What has no state to show, a lock say, is no release.
        return found
    made = [list(part) if isinstance(part, Iterator) else part for part in made]
    return [*found, *((f".state{i}", part) for i, part in enumerate(made) if part)]


MAX_FEATURES = 500
N_THRESHOLDS = 200
# Runs for each weight of a discriminant. With more weights it would fit the noise of the runs.
RUNS_PER_WEIGHT = 4
# Little, or what numbers with shared noise say together would be lost; more than rounding errors.
SHRINKAGE = 1e-9
# Number of features for which the distance to the median of a world is a candidate, too.
SPREAD_FEATURES = 3


class ChosenTest(FrozenValue, eq=False):
    """A test of "was the canary in the table?", chosen without the runs that judge it.

    Parameters
    ----------
    description : str
        The number, or the combination of numbers, that the test looks at.
    score : callable
        Maps values of shape (n_runs, n_numbers) to one score a run.
    threshold : float
        The test says "in" where the score reaches it.
    bound : float
        The epsilon that the runs which chose the test would certify, at the error of all
        candidates together. It ranks tests and certifies nothing.
    """

    description: str
    score: object
    threshold: float
    bound: float

    def counts(self, inside, outside):
        """Return true positives and runs, false positives and runs."""
        scores = self.score(inside), self.score(outside)
        return tuple(int(n) for n in _counts(*scores, self.threshold))


class TestResult(FrozenValue):
    """The outcome of a test between two tables.

    Parameters
    ----------
    epsilon : float
        The certified lower bound.
    test : str
        Description of the test.
    counts : tuple of int, default=()
        True positives and runs, false positives and runs; empty without a test.
    has_statement : bool, default=False
        Whether a part of the fitted estimator makes a `privacy_` statement of skdp.
    """

    epsilon: float
    test: str
    counts: tuple = ()
    has_statement: bool = False


NO_TEST = "nothing: no number that is published depends on the rows"


def distinguish(inside, outside, *, names, delta, confidence, gaussian=False):
    """Certify an epsilon from the numbers that fits to two tables published.

    The test is chosen on the even runs and judged on the odd ones.

    Parameters
    ----------
    inside, outside : ndarray of shape (n_runs, n_numbers)
    names : sequence of str
        Description of each number.
    delta, confidence : float
    gaussian : bool, default=False
        Bound epsilon through the trade-off curve of a Gaussian mechanism.

    Returns
    -------
    TestResult
    """
    options = {"delta": delta, "confidence": confidence, "gaussian": gaussian}
    test = choose_test(inside[::2], outside[::2], names=names, **options)
    if test is None:
        return TestResult(0.0, NO_TEST)
    counts = test.counts(inside[1::2], outside[1::2])
    return TestResult(certified_epsilon(counts, **options), test.description, counts)


def certified_epsilon(counts, *, delta, confidence, gaussian=False):
    """Return the epsilon that the counts of a `ChosenTest` certify."""
    certify = _bounds.gaussian_epsilon_from_rates if gaussian else _bounds.epsilon_from_rates
    return certify(*counts, delta=delta, confidence=confidence)


def choose_test(inside, outside, *, names, delta, confidence, gaussian=False):
    """Choose the test that is expected to certify the largest epsilon on further runs.

    Numbers that never change, and those that repeat an earlier one, are left out. Candidates are
    single numbers, the distance of some of them to the median of either world, a linear
    discriminant and likelihood ratios of Laplace noise, with thresholds at quantiles.

    Parameters
    ----------
    inside, outside : ndarray of shape (n_runs, n_numbers)
    names : sequence of str
    delta, confidence : float
    gaussian : bool, default=False
        As in `distinguish`.

    Returns
    -------
    ChosenTest or None
        None if no number ever changes.
    """
    # A composition shows a number in many places, and a discriminant has few weights.
    both = np.vstack([inside, outside])
    first = {both[:, column].tobytes(): column for column in reversed(range(both.shape[1]))}
    columns = sorted(column for column in first.values() if np.ptp(both[:, column]))
    if not columns:
        return None
    scorers = _scorers(inside, outside, names, columns)
    bound_all = (
        _bounds.mus_of_tests if gaussian else partial(_bounds.epsilons_of_tests, delta=delta)
    )
    # At the error of all candidates together; otherwise the luckiest threshold would be chosen.
    error = (1.0 - confidence) / (len(scorers) * N_THRESHOLDS)
    quantiles = np.linspace(0.0, 1.0, N_THRESHOLDS)
    # Where no test certifies anything, any will do.
    best = ChosenTest(*scorers[0], -math.inf, -math.inf)
    for name, score in scorers:
        scores_in, scores_out = score(inside), score(outside)
        thresholds = np.unique(np.quantile(np.concatenate([scores_in, scores_out]), quantiles))
        bounds = bound_all(*_counts(scores_in, scores_out, thresholds), error=error)
        place = np.argmax(bounds)
        if bounds[place] > best.bound:
            best = ChosenTest(name, score, thresholds[place], float(bounds[place]))
    return best


def _scorers(inside, outside, names, columns):
    """Return (name, function) of the candidates, larger scores for the world with the canary."""
    columns = np.asarray(columns)
    gap = np.mean(inside[:, columns], axis=0) - np.mean(outside[:, columns], axis=0)
    # The variance of equal numbers is a rounding error above 0, which depends on the processor.
    variances = [
        np.where(np.ptp(world, axis=0) > 0.0, np.var(world, axis=0), 0.0)
        for world in (inside[:, columns], outside[:, columns])
    ]
    spread = np.sqrt(variances[0] + variances[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        clarity = np.where(gap == 0.0, 0.0, np.abs(gap) / spread)
        spread_ratio = np.abs(np.log(variances[0] / variances[1]))
    clearest = np.argsort(-clarity, kind="stable")
    scorers = [
        (names[columns[j]], _value(columns[j], np.sign(gap[j]) or 1.0))
        for j in clearest[:MAX_FEATURES]
    ]
    used = columns[clearest[spread[clearest] > 0.0][: len(inside) // RUNS_PER_WEIGHT]]
    if len(used) > 1:
        labels = np.repeat([1, 0], [len(inside), len(outside)])
        table = np.vstack([inside, outside])[:, used]
        discriminant = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE)
        model = make_pipeline(StandardScaler(), discriminant).fit(table, labels)
        combined = [
            ("a linear discriminant", lambda values: model.decision_function(values[:, used])),
            ("likelihoods of Laplace noise", _likelihood_ratio(inside, outside, used)),
        ]
        scorers = (scorers[:1] if len(scorers) > 18 else scorers) + combined
    spread_ratio = np.where(np.isfinite(spread_ratio), spread_ratio, 0.0)
    by_spread = np.argsort(-spread_ratio)[:SPREAD_FEATURES]
    for column in columns[sorted({*np.argsort(-clarity)[:SPREAD_FEATURES], *by_spread})]:
        for world, sign in ((inside, -1.0), (outside, 1.0)):
            name = f"the distance of {names[column]} to one world's median"
            scorers.append((name, _distance(column, sign, np.median(world[:, column]))))
    return scorers


def _value(column, sign):
    return lambda values: sign * values[:, column]


def _distance(column, sign, center):
    return lambda values: sign * np.abs(values[:, column] - center)


def _likelihood_ratio(inside, outside, columns):
    """Return the log likelihood ratio of two worlds whose numbers have independent Laplace noise.

    It is the best test where the noise is that; a discriminant is the best for Gaussian noise.
    """
    floor = SHRINKAGE * np.ptp(np.vstack([inside, outside])[:, columns], axis=0)
    laws = []
    for world in (inside[:, columns], outside[:, columns]):
        center = np.median(world, axis=0)
        laws.append((center, np.mean(np.abs(world - center), axis=0) + floor))

    def score(values):
        near, far = (np.sum(np.abs(values[:, columns] - c) / s, axis=1) for c, s in laws)
        return far - near

    return score


def _counts(scores_in, scores_out, thresholds):
    """Return how many scores of each world reach the thresholds, and how many there are."""
    below_in = np.searchsorted(np.sort(scores_in), thresholds)
    below_out = np.searchsorted(np.sort(scores_out), thresholds)
    return (len(scores_in) - below_in, len(scores_in), len(scores_out) - below_out, len(scores_out))
