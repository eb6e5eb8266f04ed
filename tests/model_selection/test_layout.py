"""Rows are grouped by what they pay for, and no group is forgotten."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, TimeSeriesSplit

from skdp.model_selection._splits import Layout, Splits, make_disjoint_subsets, make_splits


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
