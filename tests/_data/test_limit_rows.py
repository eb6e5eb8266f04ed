import numpy as np
import pytest

from skdp import DPLinearSVC, limit_rows


def test_each_person_keeps_the_first_rows():
    groups = np.random.default_rng(0).integers(0, 30, size=500)
    X = np.arange(1000).reshape(500, 2)
    kept, y = limit_rows(X, np.arange(500), groups, max_rows=3)
    np.testing.assert_array_equal(kept, X[y])
    assert (np.diff(y) > 0).all()
    for person in range(30):
        np.testing.assert_array_equal(y[groups[y] == person], np.flatnonzero(groups == person)[:3])


def test_frames_lists_and_no_labels():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2, 3]}, index=[7, 8, 9])
    X, y = limit_rows(frame, None, ["p", "p", "q"], max_rows=1)
    assert list(X.index) == [7, 9] and y is None
    X, y = limit_rows([[1], [2]], ["no", "yes"], [0, 0], max_rows=1)
    assert X == [[1]] and y == ["no"]
    pyarrow = pytest.importorskip("pyarrow")
    X, y = limit_rows(pyarrow.table({"a": [1, 2]}), pyarrow.array([3, 4]), [0, 0], max_rows=1)
    assert X.to_pylist() == [{"a": 1}] and y.to_pylist() == [3]


def test_an_estimator_reads_what_is_kept_of_lists():
    X, y = [[i % 2, i] for i in range(40)], [i % 2 for i in range(40)]
    kept = limit_rows(X, y, list(range(40)), max_rows=1)
    one, other = (DPLinearSVC(random_state=0).fit(*rows).coef_ for rows in ((X, y), kept))
    np.testing.assert_array_equal(one, other)


def test_a_missing_id_has_advice_that_can_be_followed():
    X, ids = np.arange(8).reshape(4, 2), ["p", None, None, "p"]
    with pytest.raises(ValueError, match="give each a distinct id"):
        limit_rows(X, None, ids, 1)
    kept, _ = limit_rows(X, None, [i if one is None else one for i, one in enumerate(ids)], 1)
    np.testing.assert_array_equal(kept, X[:3])


@pytest.mark.parametrize("max_rows", [0, -1, 1.5, None, True])
def test_bad_limits_are_refused(max_rows):
    with pytest.raises(ValueError, match="max_rows"):
        limit_rows([[1]], [1], [0], max_rows)


def test_lengths_must_agree():
    with pytest.raises(ValueError):
        limit_rows([[1], [2]], [1, 2], [0], 1)
