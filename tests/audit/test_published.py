import re
import threading
import zlib
from collections import defaultdict, deque
from functools import partial
from itertools import count

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

from skdp import PrivacyAccountant
from skdp.audit import audit_epsilon
from skdp.audit._published import as_matrix, observe
from skdp.exceptions import PrivacyViolationWarning


def published_floats(estimator):
    return np.concatenate([np.empty(0), *observe(estimator).values()])


class Part:
    def __init__(self, **parts):
        vars(self).update(parts)

    def shown(self):
        return 1


class Slotted(Part):
    __slots__ = ("hidden",)

    def __init__(self, hidden):
        super().__init__(shown=1)
        self.hidden = hidden


SECRET = 0.12345
# Numbers of objects, by id, that are in no attribute.
ELSEWHERE = {}


class AddsToItsPickle(BaseEstimator):
    """Adds a number to its attributes when it is pickled."""

    def __init__(self, hidden=None):
        ELSEWHERE[id(self)] = hidden
        self.hidden = None

    def __getstate__(self):
        return super().__getstate__() | {"added": ELSEWHERE[id(self)]}


class PicklesOnlyItsState(Part):
    """Has attributes, and pickles a number instead."""

    def __getstate__(self):
        return ELSEWHERE[self.key]


class ReducesToANumber(PicklesOnlyItsState):
    def __reduce_ex__(self, protocol):
        return Part, (), {"added": ELSEWHERE[self.key]}


ELSEWHERE["state"] = [SECRET]


@pytest.mark.parametrize(
    "place",
    [
        SECRET,
        np.float32(SECRET),
        [1, SECRET],
        ("a", None, [SECRET]),
        {"a": {SECRET: "b"}},
        {SECRET},
        np.array([[SECRET, 1.0]]),
        np.array([None, np.array([SECRET])], dtype=object),
        np.array([(1, SECRET)], dtype=[("a", int), ("b", float)]),
        np.array([SECRET + 1j]),
        csr_array([[0.0, SECRET]]),
        pd.Series([SECRET]),
        Part(hidden=Part(deeper_=SECRET)),
        partial(max, SECRET),
        lambda secret=SECRET: secret,
        Part(hidden=SECRET).shown,
        count(SECRET),
        deque([SECRET]),
        Slotted(SECRET),
        AddsToItsPickle(SECRET),
        PicklesOnlyItsState(key="state"),
        ReducesToANumber(key="state"),
    ],
    ids=lambda place: type(place).__name__,
)
def test_a_number_is_seen_wherever_it_is(place):
    seen = published_floats(Part(_kept=[("step", Part(steps={"a": place}))]))
    assert np.isclose(seen, SECRET).any()


class Words(list):
    pass


def words_about(secret):
    words = Words([1.0])
    words.secret = secret
    return words


@pytest.mark.parametrize(
    "hold",
    [
        lambda secret: pd.Series([1.0], index=[secret]),
        lambda secret: pd.DataFrame({str(secret): [1.0]}),
        lambda secret: pd.Categorical([1.0], categories=[1.0, secret]),
        lambda secret: np.ma.array([secret], mask=[True]),
        lambda secret: dict.fromkeys(["a", "b"] if secret < 0.5 else ["b", "a"]),
        lambda secret: np.ones(2, "f4" if secret < 0.5 else "f8"),
        lambda secret: np.ones((0, round(10 * secret))),
        lambda secret: [None] * round(10 * secret),
        words_about,
        lambda secret: defaultdict(lambda: secret),
        lambda secret: re.compile(str(secret)),
        # Of nine zeros some are stored.
        lambda secret: csr_array((np.zeros(n := round(10 * secret)), range(n), [0, n]), (1, 9)),
        lambda secret: -0.0 if secret < 0.5 else 0.0,
        lambda secret: np.array([-0.0 if secret < 0.5 else 0.0]),
        lambda secret: 1e200 * secret,
        lambda secret: np.array([[1e200 * secret]]),
        lambda secret: 2**60 + round(10 * secret),
        lambda secret: np.array([2**60 + round(10 * secret)]),
        lambda secret: True if secret < 0.5 else 1,
        lambda secret: [1] if secret < 0.5 else (1,),
        lambda secret: np.ones((2, 2), order="C" if secret < 0.5 else "F"),
        lambda secret: memoryview(np.array([secret])),
    ],
    ids=["index", "column", "category", "masked", "order", "dtype", "shape", "size"]
    + ["attribute of a list", "default of a dict", "pattern", "stored zeros"]
    + ["sign of a zero", "sign of an array's zero", "huge", "huge in an array"]
    + ["whole number", "whole number in an array", "type", "kind of list", "layout", "view"],
)
def test_what_a_container_tells_beside_its_numbers_is_seen(hold):
    values, _ = as_matrix([observe(Part(kept_=hold(secret))) for secret in (SECRET, 1.0 - SECRET)])
    assert (values[0] != values[1]).any()
    values, _ = as_matrix([observe(Part(kept_=hold(SECRET))) for _ in range(2)])
    assert (values[0] == values[1]).all()


def test_what_is_not_a_number():
    assert zlib.crc32(b"text") in published_floats(Part(mode_=np.array(["text"], dtype=object)))
    assert zlib.crc32(b"text") in published_floats(Part(mode_=np.array(["text"])))
    date = np.datetime64("1970-01-02", "D")
    assert 1.0 in published_floats(Part(first_=np.array([date])))
    assert len(published_floats(Part(huge=2**100))) == 1
    nothing = Part(lock=threading.Lock(), none=None, code=len, module=np, kind=Part)
    nothing.method = BaseEstimator.get_params
    assert not published_floats(nothing).size
    accountant = PrivacyAccountant(1.0, 0.0)
    assert not published_floats(Part(accountant=accountant)).size


def test_a_function_may_name_what_is_not_there_yet():
    def of_later():
        return later

    assert SECRET not in published_floats(Part(kept_=of_later))
    later = SECRET
    assert SECRET in published_floats(Part(kept_=of_later))


def test_differences_of_the_rows_of_a_matrix():
    seen = published_floats(Part(coef_=np.array([[1.0, 2.0], [4.0, 8.0]]), count_=3))
    assert sorted(seen) == [1.0, 2.0, 3.0, 3.0, 4.0, 6.0, 8.0]


def test_what_holds_itself_is_looked_into_once():
    part = Part(value=SECRET)
    part.me, part.list = part, [part]
    assert np.sum(published_floats(part) == SECRET) == 1


def test_models_that_keep_their_state_to_themselves():
    X, y = np.arange(20.0)[:, None] + SECRET, np.arange(20) % 2
    assert np.isclose(published_floats(KNeighborsClassifier(1).fit(X, y)), SECRET).any()
    forest = RandomForestClassifier(2, bootstrap=False).fit(X, y)
    thresholds = published_floats(forest)
    assert np.isin(forest.estimators_[0].tree_.threshold, thresholds).all()


class Refuses(BaseEstimator):
    def transform(self, X):
        raise ValueError("unknown category")


def test_a_refusal_is_an_answer():
    seen = observe(Refuses(), np.zeros((1, 1)))
    assert any(zlib.crc32(b"ValueError") in numbers for numbers in seen.values())
    assert any("output for the canary" in name for name in seen)


def test_fits_that_show_differently_many_numbers():
    """A number stands in its own column, whatever is before it."""
    shown = [observe(Part(a=np.arange(size, dtype=float), b=7.0)) for size in (2, 3)]
    values, names = as_matrix([*shown, observe(Part(b=np.nan))])
    assert np.array_equal(values[:2, names.index("published number b")], [7.0, 7.0])
    assert list(values[:, names.index("the number of values in published number a")]) == [
        2.0,
        3.0,
        -1.0,
    ]
    assert np.isfinite(values).all() and values[2, names.index("published number b")] != 0.0


class RowsInItsPickle(BaseEstimator):
    """Publishes noise, but its pickle contains the exact mean of the rows."""

    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon

    def fit(self, X, y=None):
        ELSEWHERE[id(self)] = float(np.mean(X))
        self.noise_ = np.random.default_rng().normal()
        return self

    def __getstate__(self):
        return super().__getstate__() | {"mean": ELSEWHERE[id(self)]}


def test_an_audit_finds_what_only_a_pickle_contains():
    with pytest.warns(PrivacyViolationWarning):
        assert audit_epsilon(RowsInItsPickle(), n_fits=100, relation="replace_one").violation


def test_an_attribute_is_seen_once_although_the_pickle_contains_it():
    names = [name for name in observe(AddsToItsPickle()) if "hidden" in name]
    model = BaseEstimator()
    model.kept_ = np.arange(3.0)
    assert names == [] and sum("kept_" in name for name in observe(model)) == 1
