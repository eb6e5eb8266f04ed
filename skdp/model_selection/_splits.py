"""Training and test splits that depend on row numbers and a public seed, never on values."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold, PredefinedSplit
from sklearn.utils import shuffle

from skdp._data._labels import label_hashes
from skdp._tools._scores_and_folds import splitter_of
from skdp.model_selection._person_folds import PersonKFold
from skdp.pipeline._instances import sklearn_name
from skdp.utils._units import UnitText
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue

# Names of scikit-learn splitters whose splits depend only on row numbers.
ALLOWED_SPLITTERS = (
    "KFold",
    "RepeatedKFold",
    "ShuffleSplit",
    "LeaveOneOut",
    "TimeSeriesSplit",
    "PredefinedSplit",
)
DEFAULT_FOLDS = 5
PUBLIC_SEED = 0
# Hash key of person folds. Nested folds need a different key, or they repeat the outer split.
PERSON_KEY = 2**31 - 1
# Fraction of rows in the test set of a single split.
TEST_FRACTION = 0.25


class Pattern(NamedTuple):
    """The fits that use a row for training, and the splits that use it in the test set.

    `Splits.memberships` and `Layout.patterns` fill it differently.

    Attributes
    ----------
    trained : tuple
        In `Splits`, the indices of the splits whose training set contains the row. In a `Layout`,
        the runs that are fitted to the row, as (candidate, split).
    scored : tuple or bool
        In `Splits`, the indices of the splits whose test set contains the row. In a `Layout`, True
        if any test set contains it.
    """

    trained: tuple
    scored: tuple | bool


@dataclass(frozen=True)
class Splits(FrozenValue):
    """Index arrays of the rows, or persons, on which each fit is trained and tested.

    Parameters
    ----------
    train, test : tuple of ndarray of int
        One array per split.
    n_samples : int
        Number of rows, or of persons.
    """

    train: tuple
    test: tuple
    n_samples: int

    @property
    def train_sizes(self):
        """Number of training rows of each split."""
        return tuple(map(len, self.train))

    @property
    def test_sizes(self):
        """Number of test rows of each split."""
        return tuple(map(len, self.test))

    @cached_property
    def memberships(self):
        """Distinct combinations of training and test sets that contain one row.

        Returns
        -------
        list of Pattern
        """
        n_splits = len(self.train)
        is_member = np.zeros((self.n_samples, 2 * n_splits), dtype=bool)
        for column, rows in enumerate((*self.train, *self.test)):
            is_member[rows, column] = True
        # Each row of bits becomes one value, so that `unique` sorts values instead of rows.
        packed = np.packbits(is_member, axis=1)
        keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        patterns = []
        for row in is_member[np.unique(keys, return_index=True)[1]]:
            trained = tuple(np.flatnonzero(row[:n_splits]))
            scored = tuple(np.flatnonzero(row[n_splits:]))
            patterns.append(Pattern(trained, scored))
        return patterns

    def describe(self, *, is_part=False, n_candidates=1):
        """Return a description of the training and test sets that a row is in.

        Parameters
        ----------
        is_part : bool, default=False
            True if the training sets are disjoint parts with one test set.
        n_candidates : int, default=1
            Number of candidates that are each fitted on every split.

        Returns
        -------
        UnitText
        """
        n_trained = {len(pattern.trained) for pattern in self.memberships}
        n_scored = {len(pattern.scored) for pattern in self.memberships}
        n_fits = len(self.train)
        unused = any(not (p.trained or p.scored) for p in self.memberships)

        def write(unit):
            """Return the description for a privacy unit, "row" or "person"."""
            if is_part or n_fits == 1:
                places = "the training set"
                if is_part and n_fits > 1:
                    places = "one of the parts"
                neither = ""
                if unused:
                    neither = ", or in neither"
                return f"each {unit} in {places} or in the test set{neither}"
            of_each = ""
            if n_candidates > 1:
                of_each = " of each candidate"
            return (
                f"of the {n_fits} fits{of_each}, each {unit} is used for training in "
                f"{_count_range(n_trained)} and for scoring in {_count_range(n_scored)}"
            )

        return UnitText(write)


def _count_range(counts):
    """Return the smallest and the largest of some counts as text."""
    first = min(counts)
    last = max(counts)
    if first == last:
        return f"{first}"
    return f"{first} to {last}"


@dataclass(frozen=True)
class Layout(FrozenValue):
    """Assignment of candidates to the splits on which they are fitted and scored.

    Parameters
    ----------
    splits : Splits
    candidate_splits : tuple of tuple of int
        Indices of the splits of each candidate.
    """

    splits: object
    candidate_splits: tuple

    @classmethod
    def all_on_all(cls, splits, n_candidates=1):
        """Return the layout in which every candidate is fitted on every split."""
        return cls(splits, (tuple(range(len(splits.train))),) * n_candidates)

    @property
    def runs(self):
        """All fits, as (candidate, split)."""
        return [(i, s) for i, splits in enumerate(self.candidate_splits) for s in splits]

    def patterns(self):
        """Return the patterns of runs of the rows that can have the highest privacy cost.

        The cost of a run depends only on its candidate and the number of training rows. A row that
        takes part in only some of the runs of another row costs less and is left out.

        Returns
        -------
        list of Pattern
        """
        sizes = self.splits.train_sizes
        distinct = {}
        for train, test in self.splits.memberships:
            train = set(train)
            pattern = Pattern(tuple(run for run in self.runs if run[1] in train), bool(test))
            counts = Counter((i, sizes[s]) for i, s in pattern.trained)
            distinct[frozenset(counts.items()), pattern.scored] = pattern, counts

        def is_dominated(pattern, counts):
            """Return True if another row takes part in runs of the same costs and in more."""
            for other, other_counts in distinct.values():
                if other == pattern:
                    continue
                if other.scored >= pattern.scored and other_counts >= counts:
                    return True
            return False

        return sorted(
            pattern for pattern, counts in distinct.values() if not is_dominated(pattern, counts)
        )

    def sensitivity(self, score, relation):
        """Return the largest change of any candidate's score when one row changes."""
        sizes = np.asarray(self.splits.test_sizes)
        largest = 0.0
        for splits in set(self.candidate_splits):
            changes = {}
            for s, weight in zip(splits, score.weights(sizes[list(splits)]), strict=True):
                changes[s] = weight * score.planned_sensitivity(int(sizes[s]), relation)
            for _, test in self.splits.memberships:
                largest = max(largest, math.fsum(changes.get(s, 0.0) for s in test))
        # Scores of several splits are added in floating point; the factor covers the rounding.
        return largest * (1.0 + 2.0**-40)

    def score(self, score, values, candidate):
        """Return the score of a candidate: the weighted sum over its splits."""
        splits = list(self.candidate_splits[candidate])
        weights = score.weights(np.asarray(self.splits.test_sizes)[splits])
        return math.fsum(w * values[candidate, s] for w, s in zip(weights, splits, strict=True))


def check_cv(cv, by_person=False):
    """Return a splitter that reads only row numbers, or a list of index arrays.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        An int is ``KFold(cv, shuffle=True, random_state=0)``, for classifiers too, and None is 5
        folds. An iterable of (train, test) index arrays declares them public.
    by_person : bool, default=False
        Split persons: an int is then a `PersonKFold`, which is the only splitter allowed.

    Raises
    ------
    ValueError
        If the splitter may read values, or the number of rows of other persons. A change in one
        row, or in one person, could then move other rows to different folds.
    """
    if cv is None:
        cv = DEFAULT_FOLDS
    if isinstance(cv, Integral) and not isinstance(cv, bool | np.bool_):
        folds = check_integer(cv, "cv", 2)
        if by_person:
            return PersonKFold(folds, random_state=PERSON_KEY)
        return KFold(folds, shuffle=True, random_state=PUBLIC_SEED)
    if type(cv) is PersonKFold and not by_person:
        raise ValueError(f"cv={cv!r} needs groups: pass the person id of each row")
    if type(cv) is PersonKFold or (not by_person and sklearn_name(cv) in ALLOWED_SPLITTERS):
        return cv
    if by_person or sklearn_name(cv) == "GroupKFold":
        raise ValueError(
            f"cv={cv!r} is not private: the rows of one person can change the folds of other "
            "persons (GroupKFold, for example, balances the sizes of the folds). Use PersonKFold "
            "or an int, with groups"
        )
    if hasattr(cv, "split") or isinstance(cv, str | bool | np.bool_):
        raise ValueError(
            f"cv={cv!r} may read labels or values, and is not private: one changed label can move "
            "thousands of rows between the folds of a stratified splitter. Use an int, one of "
            f"{', '.join(ALLOWED_SPLITTERS)}, or a list of (train, test) index arrays, which "
            "declares them public"
        )
    # A splitter's generator is treated like the splitter: its folds are not declared public.
    splitter = splitter_of(cv)
    is_allowed = type(splitter) is PersonKFold or sklearn_name(splitter) in ALLOWED_SPLITTERS
    if hasattr(splitter, "split") and not is_allowed:
        return check_cv(splitter, by_person)
    try:
        return [tuple(split) for split in cv]
    except TypeError:
        raise ValueError(f"cv must be an int, a splitter or a list of splits, got {cv!r}") from None


def number_of_splits(cv):
    """Return the number of splits of a result of `check_cv`; None if it depends on the rows."""
    if isinstance(cv, list):
        return len(cv)
    try:
        return cv.get_n_splits()
    except (TypeError, ValueError):
        return None


def check_not_iterator(cv):
    """Raise `ValueError` for folds from an iterator, which can be read only once.

    A search inside a pipeline or an ensemble would read the folds after other charges, and copies
    of the search could not read them at all.
    """
    if isinstance(cv, Iterator):
        raise ValueError(
            f"cv is an iterator ({type(cv).__name__}), whose folds are read after the charges of "
            "other steps: give a list of folds, or a splitter"
        )


def make_splits(cv, n_samples, ids=None):
    """Return the splits of `n_samples` rows, or persons.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        As in `check_cv`.
    n_samples : int
    ids : ndarray of shape (n_samples,), default=None
        Id of each person, if persons are split.

    Returns
    -------
    Splits

    Raises
    ------
    ValueError
        If the splitter is not allowed, or its splits are not valid for the table.
    """
    cv = check_cv(cv, ids is not None)
    if isinstance(cv, PredefinedSplit) and len(cv.test_fold) != n_samples:
        raise ValueError(
            f"cv=PredefinedSplit has {len(cv.test_fold)} entries in test_fold, but there are "
            f"{n_samples} rows: give the fold of each row"
        )
    pairs = cv
    if not isinstance(cv, list):
        pairs = cv.split(np.zeros((n_samples, 1)), groups=ids)
    pairs = [tuple(_check_indices(rows, n_samples) for rows in pair) for pair in pairs]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ValueError("cv must give at least one pair of training and test rows")
    for train, test in pairs:
        if np.intersect1d(train, test).size:
            raise ValueError(
                "cv has a row in both the training and the test set of one split: remove it from "
                "one of them"
            )
    return Splits(
        train=tuple(train for train, _ in pairs),
        test=tuple(test for _, test in pairs),
        n_samples=n_samples,
    )


def make_disjoint_subsets(rows, n_subsets, ids=None):
    """Return disjoint subsets: rows in a public random order, in equal numbers, or persons by hash.

    Parameters
    ----------
    rows : ndarray of int
    n_subsets : int
    ids : ndarray of shape (n_samples,), default=None
        As in `make_splits`.

    Returns
    -------
    list of ndarray of int
        Sorted arrays. Up to ``n_subsets - 1`` rows are in no subset.

    Raises
    ------
    ValueError
        If there are more subsets than rows, or one is empty.
    """
    if ids is not None:
        # The string is the key of the hash; changing it would change seeded results.
        subsets = label_hashes(ids[rows], "parts") % np.uint64(n_subsets)
        return [_check_not_empty(rows[subsets == i]) for i in range(n_subsets)]
    if n_subsets > len(rows):
        raise ValueError(
            f"strategy='disjoint' needs a row for each of {n_subsets} candidates, but there are "
            f"{len(rows)} training rows: use fewer candidates or another strategy"
        )
    order = shuffle(rows, random_state=PUBLIC_SEED)
    size = len(rows) // n_subsets
    return [np.sort(order[i * size : (i + 1) * size]) for i in range(n_subsets)]


def take_fraction(rows, fraction, ids=None, purpose="share"):
    """Return a fraction of the rows, or persons; a smaller fraction is a subset of a larger one.

    Parameters
    ----------
    rows : ndarray of int
    fraction : float
        In (0, 1].
    ids : ndarray of shape (n_samples,), default=None
        As in `make_splits`.
    purpose : str, default="share"
        Key of the hash of persons. Fractions are nested if they have the same key.
    """
    if ids is not None:
        return _check_not_empty(rows[label_hashes(ids[rows], purpose) <= fraction * 2.0**64])
    order = shuffle(rows, random_state=PUBLIC_SEED)
    return np.sort(order[: max(1, round(fraction * len(order)))])


def hold_out(n_samples, ids=None, fraction=TEST_FRACTION):
    """Return a single split; a quarter of the rows, or persons, is the test set by default.

    Parameters
    ----------
    n_samples : int
    ids : ndarray of shape (n_samples,), default=None
        As in `make_splits`.
    fraction : float, default=0.25
        Fraction of the test set.

    Raises
    ------
    ValueError
        If there are fewer than two rows, or one side is empty.
    """
    if ids is None and n_samples < 2:
        raise ValueError(
            f"n_samples={n_samples} rows cannot be split into training and test rows: give at "
            "least 2"
        )
    units = np.arange(n_samples)
    test = take_fraction(units, fraction, ids, "hold out")
    train = _check_not_empty(np.setdiff1d(units, test, True))
    return Splits((train,), (test,), n_samples)


def _check_not_empty(persons):
    """Return the array of persons, or raise `ValueError` if it is empty."""
    if not len(persons):
        raise ValueError(
            "groups has too few persons: a training or test set would be empty. Use fewer folds or "
            "candidates"
        )
    return persons


def _check_indices(rows, n_samples):
    """Return row numbers, or the positions of a boolean mask, after checking them."""
    index = np.asarray(rows)
    if index.dtype == bool and index.shape == (n_samples,):
        index = np.flatnonzero(index)
    if index.ndim != 1 or index.dtype.kind not in "iu" or index.size == 0:
        raise ValueError("cv must give one-dimensional, non-empty arrays of row numbers")
    ordered = np.unique(index)
    if ordered[0] < 0 or ordered[-1] >= n_samples or ordered.size < index.size:
        raise ValueError(f"cv must give distinct row numbers below {n_samples}")
    return ordered
