"""Which rows are trained and which are tested on: by index and a public seed, never by value."""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold, PredefinedSplit
from sklearn.utils import shuffle

from skdp.model_selection._person_folds import PersonKFold
from skdp.pipeline._instances import sklearn_name
from skdp.utils._labels import label_hashes
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue

# By the names of classes; their splits hang on row numbers alone.
ALLOWED = "KFold RepeatedKFold ShuffleSplit LeaveOneOut TimeSeriesSplit PredefinedSplit".split()
DEFAULT_FOLDS = 5
PUBLIC_SEED = 0
# Of folds of persons: of folds by the same key, those of the others are no folds again.
PERSON_KEY = 2**31 - 1
HELD_OUT = 0.25


class Pattern(NamedTuple):
    """In which splits, or in which runs, each (candidate, split), a row is trained on and scored.

    Of runs it matters only whether it is scored.
    """

    trained: tuple
    scored: tuple | bool


@dataclass(frozen=True)
class Splits(FrozenValue):
    """Index arrays of training and test units: of rows, or of persons.

    Parameters
    ----------
    train, test : tuple of ndarray of int
        One array for each fit.
    n_samples : int
    """

    train: tuple
    test: tuple
    n_samples: int

    # How many rows each fit is trained on.
    @property
    def train_sizes(self):
        return tuple(map(len, self.train))

    # How many rows each fit is tested on.
    @property
    def test_sizes(self):
        return tuple(map(len, self.test))

    @cached_property
    def memberships(self):
        """Return the distinct ways in which one row takes part in splits.

        Returns
        -------
        list of Pattern
        """
        both = np.zeros((self.n_samples, 2 * len(self.train)), dtype=bool)
        for column, rows in enumerate((*self.train, *self.test)):
            both[rows, column] = True
        packed = np.packbits(both, axis=1)
        whole = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        both = both[np.unique(whole, return_index=True)[1]]
        halves = (np.split(row, 2) for row in both)
        return [Pattern(*(tuple(np.flatnonzero(part)) for part in pair)) for pair in halves]


@dataclass(frozen=True)
class Layout(FrozenValue):
    """Which candidate is fitted on which splits.

    Parameters
    ----------
    splits : Splits
    of_candidate : tuple of tuple of int
        The splits on which each candidate is fitted and scored.
    """

    splits: object
    of_candidate: tuple

    @classmethod
    def all_on_all(cls, splits, n_candidates=1):
        """Return that of candidates which are all fitted on all splits."""
        return cls(splits, (tuple(range(len(splits.train))),) * n_candidates)

    @property
    def runs(self):
        """Every fit, as (candidate, split)."""
        return [(i, s) for i, splits in enumerate(self.of_candidate) for s in splits]

    def patterns(self):
        """Return what a row can take part in, as far as it matters for the price.

        The price of a run depends on its candidate and on the number of training rows, and a
        row that takes part in less than another one costs less.

        Returns
        -------
        list of Pattern
        """
        sizes = self.splits.train_sizes
        found = {}
        for train, test in self.splits.memberships:
            train = set(train)
            pattern = Pattern(tuple(run for run in self.runs if run[1] in train), bool(test))
            kinds = Counter((i, sizes[s]) for i, s in pattern.trained)
            found[frozenset(kinds.items()), pattern.scored] = pattern, kinds

        def is_most(pattern, kinds):
            others = (pair for pair in found.values() if pair[0] != pattern)
            return not any(one.scored >= pattern.scored and more >= kinds for one, more in others)

        return sorted(pattern for pattern, kinds in found.values() if is_most(pattern, kinds))

    def sensitivity(self, score, relation):
        """Return by how much one row moves the score of any candidate."""
        sizes = np.asarray(self.splits.test_sizes)
        largest = 0.0
        for splits in set(self.of_candidate):
            weights = zip(splits, score.weights(sizes[list(splits)]), strict=True)
            moves = {s: w * score.sensitivity(int(sizes[s]), relation) for s, w in weights}
            for _, test in self.splits.memberships:
                largest = max(largest, math.fsum(moves.get(s, 0.0) for s in test))
        # Scores of several splits are added up in floating point.
        return largest * (1.0 + 2.0**-40)

    def score(self, score, values, candidate):
        """Return a candidate's score from those of its runs."""
        splits = list(self.of_candidate[candidate])
        weights = score.weights(np.asarray(self.splits.test_sizes)[splits])
        return math.fsum(w * values[candidate, s] for w, s in zip(weights, splits, strict=True))


def check_cv(cv, by_person=False):
    """Return a splitter that never looks at values, or a list of index arrays.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        An int, or None for 5, is ``KFold(cv, shuffle=True, random_state=0)``, for classifiers
        too. An iterable of (train, test) index arrays declares them public.
    by_person : bool, default=False
        Whether persons are what is split: an int is a `PersonKFold`, the one splitter there is.

    Raises
    ------
    ValueError
        If the splitter could look at values, or at how many rows others have: that moves other
        people's rows between folds when one row, or one person, changes.
    """
    if cv is None:
        cv = DEFAULT_FOLDS
    if isinstance(cv, Integral) and not isinstance(cv, bool | np.bool_):
        folds = check_integer(cv, "cv", 2)
        if by_person:
            return PersonKFold(folds, random_state=PERSON_KEY)
        return KFold(folds, shuffle=True, random_state=PUBLIC_SEED)
    if type(cv) is PersonKFold and not by_person:
        raise ValueError(f"cv={cv!r} needs groups, an id of the person of each row")
    if type(cv) is PersonKFold or (not by_person and sklearn_name(cv) in ALLOWED):
        return cv
    if by_person or sklearn_name(cv) == "GroupKFold":
        raise ValueError(
            f"cv={cv!r} lets the rows of one person decide in which folds those of others are, by "
            "their number (GroupKFold balances the folds' sizes) or by their places: use "
            "PersonKFold, or an int, with groups"
        )
    if hasattr(cv, "split") or isinstance(cv, str | bool | np.bool_):
        raise ValueError(
            f"cv={cv!r} may look at labels or values: one flipped label moves thousands of other "
            "rows between the folds of a stratified splitter, and then no accounting holds. "
            f"Allowed are {', '.join(ALLOWED)}, an int, and an explicit list of (train, test) "
            "index arrays, which declares them public"
        )
    try:
        return [tuple(split) for split in cv]
    except TypeError:
        raise ValueError(f"cv must be an int, a splitter or a list of splits, got {cv!r}") from None


def make_splits(cv, n_samples, ids=None):
    """Return the splits of a table of `n_samples` rows, or persons.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        As in `check_cv`.
    n_samples : int
    ids : ndarray of shape (n_samples,), default=None
        Of persons, where these are split.

    Returns
    -------
    Splits

    Raises
    ------
    ValueError
        If the splitter is not allowed or does not fit the table.
    """
    cv = check_cv(cv, ids is not None)
    if isinstance(cv, PredefinedSplit) and len(cv.test_fold) != n_samples:
        raise ValueError(f"PredefinedSplit must name the fold of {n_samples} rows")
    pairs = cv if isinstance(cv, list) else cv.split(np.zeros((n_samples, 1)), groups=ids)
    pairs = [tuple(_indices(rows, n_samples) for rows in pair) for pair in pairs]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ValueError("cv must give at least one pair of training and test rows")
    for train, test in pairs:
        if np.intersect1d(train, test).size:
            raise ValueError("cv gives a row both for training and for testing")
    return Splits(tuple(p[0] for p in pairs), tuple(p[1] for p in pairs), n_samples)


def make_parts(rows, parts, ids=None):
    """Divide rows into disjoint parts of one size in a public random order, or persons by hash.

    Parameters
    ----------
    rows : ndarray of int
    parts : int
    ids : ndarray of shape (n_samples,), default=None
        As in `make_splits`.

    Returns
    -------
    list of ndarray of int
        Sorted; up to ``parts - 1`` rows are in none.

    Raises
    ------
    ValueError
        If there are more parts than rows, or one is empty.
    """
    if ids is not None:
        places = label_hashes(ids[rows], "parts") % np.uint64(parts)
        return [_some(rows[places == part]) for part in range(parts)]
    if parts > len(rows):
        raise ValueError(f"{len(rows)} rows cannot make {parts} disjoint parts")
    order = shuffle(rows, random_state=PUBLIC_SEED)
    size = len(rows) // parts
    return [np.sort(order[i * size : (i + 1) * size]) for i in range(parts)]


def make_share(rows, share, ids=None, purpose="share"):
    """Return a share of some rows, or persons, that is within each larger one of that purpose.

    Parameters
    ----------
    rows : ndarray of int
    share : float
    ids : ndarray of shape (n_samples,), default=None
        As in `make_splits`.
    purpose : str, default="share"
        The key of the hash of persons.
    """
    if ids is not None:
        return _some(rows[label_hashes(ids[rows], purpose) <= share * 2.0**64])
    order = shuffle(rows, random_state=PUBLIC_SEED)
    return np.sort(order[: max(1, round(share * len(order)))])


def hold_out(n_samples, ids=None):
    """Return the one split that is used where none is given: a quarter of the rows is tested on.

    Parameters
    ----------
    n_samples : int
    ids : ndarray of shape (n_samples,), default=None
        As in `make_splits`.

    Raises
    ------
    ValueError
        If there are fewer than two rows, or none on one of the sides.
    """
    if ids is None and n_samples < 2:
        raise ValueError(f"n_samples={n_samples} is too few rows to hold one out")
    everyone = np.arange(n_samples)
    tested = make_share(everyone, HELD_OUT, ids, "hold out")
    return Splits((_some(np.setdiff1d(everyone, tested, True)),), (tested,), n_samples)


def _some(persons):
    if not len(persons):
        raise ValueError("a part has no person: there are too few for so many parts")
    return persons


def _indices(rows, n_samples):
    index = np.asarray(rows)
    if index.dtype == bool and index.shape == (n_samples,):
        index = np.flatnonzero(index)
    if index.ndim != 1 or index.dtype.kind not in "iu" or index.size == 0:
        raise ValueError("cv must give flat, non-empty arrays of row numbers")
    ordered = np.unique(index)
    if ordered[0] < 0 or ordered[-1] >= n_samples or ordered.size < index.size:
        raise ValueError(f"cv must give distinct row numbers below {n_samples}")
    return ordered
