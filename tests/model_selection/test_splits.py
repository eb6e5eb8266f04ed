"""Splits depend on row numbers and a public seed alone."""

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from skdp.model_selection._splits import (
    Layout,
    Splits,
    check_cv,
    hold_out,
    make_disjoint_subsets,
    make_splits,
)


@pytest.mark.parametrize(
    ("cv", "fits"),
    [
        (None, 5),
        (3, 3),
        (KFold(4), 4),
        (RepeatedKFold(n_splits=2, n_repeats=3, random_state=0), 6),
        (ShuffleSplit(2, random_state=0), 2),
        (LeaveOneOut(), 20),
        (TimeSeriesSplit(3), 3),
        (PredefinedSplit([0, 1] * 10), 2),
        ([(range(10), range(10, 20)), (np.arange(20) > 4, np.arange(20) <= 4)], 2),
    ],
)
def test_allowed_splits(cv, fits):
    splits = make_splits(cv, 20)
    assert len(splits.train) == len(splits.test) == fits
    for train, test in zip(splits.train, splits.test, strict=True):
        assert not set(train) & set(test)


def test_an_int_is_shuffled_by_a_public_seed():
    cv = check_cv(5)
    assert type(cv) is KFold and cv.shuffle and cv.random_state == 0
    one, two = (make_splits(5, 30) for _ in range(2))
    np.testing.assert_array_equal(one.test[0], two.test[0])


class LabelledFolds(KFold):
    """Could look at anything."""


@pytest.mark.parametrize(
    "cv",
    [
        GroupKFold(3),
        StratifiedKFold(3),
        StratifiedShuffleSplit(3),
        LabelledFolds(3),
        "kfold",
        1,
        True,
        0.5,
        [],
        [([0, 1], [1, 2])],
        [([0, 0], [1, 2])],
        [([0, 1], [20])],
        [([0, 1], [])],
        [([0.5], [1])],
        [([0], [1], [2])],
        PredefinedSplit([0, 1]),
    ],
)
def test_other_splits_are_refused(cv):
    with pytest.raises(ValueError):
        make_splits(cv, 20)


def test_each_row_is_in_all_folds_but_its_own():
    ways = make_splits(5, 23).memberships
    assert len(ways) == 5
    assert all(len(train) == 4 and len(test) == 1 for train, test in ways)


def test_parts_are_disjoint_and_of_one_size():
    parts = make_disjoint_subsets(np.arange(5, 28), 4)
    assert {len(part) for part in parts} == {5}
    assert len(set(np.concatenate(parts))) == 20
    with pytest.raises(ValueError, match="disjoint"):
        make_disjoint_subsets(np.arange(3), 4)


def test_a_quarter_is_held_out():
    splits = hold_out(100)
    assert (splits.train_sizes, splits.test_sizes) == ((75,), (25,))
    assert hold_out(2).test_sizes == (1,)
    with pytest.raises(ValueError):
        hold_out(1)


def layout_of(cv, n_samples=40, m=2):
    splits = make_splits(cv, n_samples)
    return Layout(splits, (tuple(range(len(splits.train))),) * m)


def apart(m):
    rows = np.arange(4 * m)
    parts = make_disjoint_subsets(rows, m)
    test = np.arange(4 * m, 4 * m + 10)
    return Layout(Splits(tuple(parts), (test,) * m, 4 * m + 10), tuple((i,) for i in range(m)))


@pytest.mark.parametrize("m", [3, 50])
def test_each_candidate_with_rows_of_its_own_has_a_pattern(m):
    patterns = apart(m).patterns()
    assert len(patterns) == m + 1
    assert {runs for runs, scored in patterns if not scored} == {((i, i),) for i in range(m)}
    assert ((), True) in patterns


@pytest.mark.parametrize("cv", [KFold(4), LeaveOneOut()])
def test_rows_that_pay_the_same_are_one_pattern(cv):
    layout = layout_of(cv)
    ((runs, scored),) = layout.patterns()
    assert scored and len(runs) == 2 * (len(layout.splits.train) - 1)


@pytest.mark.parametrize(
    "cv", [KFold(4), LeaveOneOut(), TimeSeriesSplit(4), ShuffleSplit(40, random_state=0)]
)
def test_some_pattern_covers_every_row(cv):
    layout = layout_of(cv, m=1)
    sizes = layout.splits.train_sizes
    patterns = [(sorted(sizes[s] for _, s in runs), scored) for runs, scored in layout.patterns()]
    for train, test in layout.splits.memberships:
        needed = sorted(sizes[s] for s in train)
        assert any(
            scored >= bool(test) and all(needed.count(n) <= had.count(n) for n in needed)
            for had, scored in patterns
        )
