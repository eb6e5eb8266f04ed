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
from functools import partial

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp.audit import _bounds
from skdp.utils._values import FrozenValue

LARGEST = 1e140
ANSWERS = ("decision_function", "predict_proba", "predict", "transform")
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
        numbers = _numbers(part)
        if numbers is not None:
            yield name + _form(part), numbers
        # Of a sparse matrix, which of its zeros are stored, and in which order.
        converts = hasattr(part, "__array__") or hasattr(part, "toarray")
        holds_more = numbers is None or (converts and not _is_array(part))
        if part is not None and holds_more and id(part) not in seen:
            # Kept, as the identity of an object that is gone is given to another.
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


def _state(value):
    """Return what an object is made of again by a pickle, beside its items."""
    own = vars(value) if hasattr(value, "__dict__") else {}
    found = [(f".{name}", own[name]) for name in sorted(own)]
    kind = type(value)
    has_slots = any(vars(base).get("__slots__") for base in kind.__mro__)
    if found and kind.__reduce__ is object.__reduce__ and not has_slots:
        return found
    try:
        # What it is made of again: a function, a range, a generator's position, a queue's items.
        made = copyreg.dispatch_table.get(kind, lambda v: v.__reduce_ex__(4))(value)[1:5]
    except Exception:
        # What has no state to show, a lock say, is no release.
        return found
    made = [list(part) if isinstance(part, Iterator) else part for part in made]
    return [*found, *((f".state{i}", part) for i, part in enumerate(made) if part)]


MOST_FEATURES = 500
N_THRESHOLDS = 200
# A discriminant of more numbers, the clearest first, would learn the noise of the runs.
ROWS_A_WEIGHT = 4
# Little, or what numbers with one noise say together would not be heard, and more than rounding.
SHRINKAGE = 1e-9
# Of so many numbers it is looked at, too, how near they are to where one world's crowd.
CROWDED_FEATURES = 3
CROWD = 0.1


class Verdict(FrozenValue):
    """What a test between two worlds certifies.

    Parameters
    ----------
    epsilon : float
    test : str
        What was looked at, in words.
    counts : tuple of int
        True positives and runs, false positives and runs.
    states : bool, default=False
        Whether a part of what was fitted makes the statement of skdp.
    """

    epsilon: float
    test: str
    counts: tuple = ()
    states: bool = False


def distinguish(inside, outside, *, names, delta, confidence, gaussian=False):
    """Certify an epsilon from what two worlds published.

    Numbers that never move, and those that repeat an earlier one, are left out. Candidates are
    single numbers, how near some of them are to where one world's crowd, a
    linear discriminant and likelihoods of Laplace noise, with thresholds at quantiles, all
    chosen on even runs; the odd runs judge the one that was chosen.

    Parameters
    ----------
    inside, outside : ndarray of shape (n_runs, n_floats)
    names : sequence of str
        What each number is, in words.
    delta, confidence : float
    gaussian : bool, default=False
        Bound epsilon through the trade-off curve of a Gaussian mechanism.

    Returns
    -------
    Verdict
    """
    # A nest shows a number in many places, and a discriminant has so many weights only.
    both = np.vstack([inside, outside])
    first = {both[:, column].tobytes(): column for column in reversed(range(both.shape[1]))}
    columns = sorted(column for column in first.values() if np.ptp(both[:, column]))
    if not columns:
        return Verdict(0.0, "nothing: no number that is published depends on the rows")
    inside, outside, names = inside[:, columns], outside[:, columns], [names[i] for i in columns]
    scorers = _scorers(inside[::2], outside[::2], names)
    certify = _bounds.gaussian_epsilon_from_rates if gaussian else _bounds.epsilon_from_rates
    prove = _bounds.mus_of_tests if gaussian else partial(_bounds.epsilons_of_tests, delta=delta)
    # With the error of all candidates together, or the luckiest threshold would be chosen.
    error = (1.0 - confidence) / (len(scorers) * N_THRESHOLDS)
    # Where nothing is certain of any test, any will do.
    best, chosen = -math.inf, (*scorers[0], -math.inf)
    for name, score in scorers:
        a, b = score(inside[::2]), score(outside[::2])
        shares = np.linspace(0.0, 1.0, N_THRESHOLDS)
        thresholds = np.unique(np.quantile(np.concatenate([a, b]), shares))
        bounds = prove(*_counts(a, b, thresholds), error=error)
        if bounds.max() > best:
            best, chosen = bounds.max(), (name, score, thresholds[np.argmax(bounds)])
    name, score, threshold = chosen
    counts = tuple(int(n) for n in _counts(score(inside[1::2]), score(outside[1::2]), threshold))
    return Verdict(certify(*counts, delta=delta, confidence=confidence), name, counts)


def _scorers(inside, outside, names):
    """Return (name, function) of the candidates, larger values for the world with the row."""
    gap = np.mean(inside, axis=0) - np.mean(outside, axis=0)
    # The variance of equal numbers is a rounding error above 0, and which depends on the processor.
    variances = [
        np.where(np.ptp(world, axis=0) > 0.0, np.var(world, axis=0), 0.0)
        for world in (inside, outside)
    ]
    spread = np.sqrt(variances[0] + variances[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        clarity = np.where(gap == 0.0, 0.0, np.abs(gap) / spread)
        unlike = np.abs(np.log(variances[0] / variances[1]))
    clearest = np.argsort(-clarity, kind="stable")
    scorers = [(names[j], _value(j, np.sign(gap[j]) or 1.0)) for j in clearest[:MOST_FEATURES]]
    used = clearest[spread[clearest] > 0.0][: len(inside) // ROWS_A_WEIGHT]
    if len(used) > 1:
        labels = np.repeat([1, 0], [len(inside), len(outside)])
        table = np.vstack([inside, outside])[:, used]
        discriminant = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=SHRINKAGE)
        model = make_pipeline(StandardScaler(), discriminant).fit(table, labels)
        together = [
            ("a linear discriminant", lambda values: model.decision_function(values[:, used])),
            ("likelihoods of Laplace noise", _likelihood(inside, outside, used)),
        ]
        scorers = (scorers[:1] if len(scorers) > 18 else scorers) + together
    unlike = np.where(np.isfinite(unlike), unlike, 0.0)
    chosen = {*np.argsort(-clarity)[:CROWDED_FEATURES], *np.argsort(-unlike)[:CROWDED_FEATURES]}
    for column in sorted(chosen):
        name = f"how near {names[column]} is to where one world's crowd"
        for values, sign in ((inside, -1.0), (outside, 1.0)):
            scorers.append((name, _nearness(column, sign, _crowd(values[:, column]))))
    return scorers


def _crowd(values):
    """Return the middle of the shortest interval that holds a tenth of the values."""
    values = np.sort(values)
    n = max(1, int(CROWD * len(values)))
    start = np.argmin(values[n:] - values[:-n])
    return (values[start] + values[start + n]) / 2.0


def _value(column, sign):
    return lambda values: sign * values[:, column]


def _nearness(column, sign, centre):
    return lambda values: sign * np.abs(values[:, column] - centre)


def _likelihood(inside, outside, columns):
    """Say how much likelier one world is, as if each number had Laplace noise of its own.

    If so it is the best test there is; a discriminant is that of Gaussian noise.
    """
    floor = SHRINKAGE * np.ptp(np.vstack([inside, outside])[:, columns], axis=0)
    laws = []
    for world in (inside[:, columns], outside[:, columns]):
        centre = np.median(world, axis=0)
        laws.append((centre, np.mean(np.abs(world - centre), axis=0) + floor))

    def score(values):
        near, far = (np.sum(np.abs(values[:, columns] - c) / s, axis=1) for c, s in laws)
        return far - near

    return score


def _counts(a, b, thresholds):
    """Return how many values of each world reach the thresholds, and how many there are."""
    below = (np.searchsorted(np.sort(values), thresholds) for values in (a, b))
    return len(a) - next(below), len(a), len(b) - next(below), len(b)
