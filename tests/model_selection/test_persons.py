"""Folds, scores and searches where the unit is a person."""

import re
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline

from skdp import DPLogisticRegression, DPStandardScaler, PrivacyAccountant
from skdp.model_selection import (
    BoundedScore,
    DPGridSearchCV,
    PersonKFold,
    bounded_score,
    dp_cross_val_score,
    dp_learning_curve,
    make_dp_scorer,
    person_train_test_split,
)
from skdp.pipeline import split_budget
from tests._persons import persons_of

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

BOUNDS = {"bounds": (-4.0, 4.0)}
MODEL = DPLogisticRegression(mechanism="output", C=0.1)


def accountant_of(unit="person", relation="add_remove"):
    return PrivacyAccountant(1e6, 0.5, unit=unit, relation=relation)


def table_of(n_persons=60, seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat(np.arange(n_persons), rng.integers(1, 6, n_persons)))
    X = rng.normal(size=(len(ids), 2))
    return X, (X[:, 0] > 0).astype(int), np.array([f"person {i}" for i in ids])


def fold_of(cv, ids):
    """Return the fold of each person, who is in one."""
    found = {}
    for fold, (train, test) in enumerate(cv.split(np.zeros(len(ids)), groups=ids)):
        assert len(train) + len(test) == len(ids)
        for row in test:
            assert found.setdefault(ids[row], fold) == fold
    return found


def test_no_persons_rows_move_another_to_another_fold():
    _, _, ids = table_of()
    cv = PersonKFold(4, random_state=3)
    folds = fold_of(cv, ids)
    assert set(folds.values()) == {0, 1, 2, 3}
    for person in np.unique(ids)[:5]:
        more = np.append(np.repeat(person, 500), ids[::-1])
        assert fold_of(cv, more) == folds
        assert fold_of(cv, ids[ids != person]).items() <= folds.items()
    assert fold_of(PersonKFold(4), ids) != folds


def test_equal_ids_are_in_one_fold():
    ids = [1, "1", 2.5, 10**30, b"x", np.datetime64("2020-01-01"), 7, 8, 9, 10, 11, 12]
    same = [
        1.0,
        "1\0",
        Fraction(5, 2),
        1e30,
        b"x",
        np.datetime64("2020-01-01T00:00"),
        *range(7, 13),
    ]
    same[6:] = np.arange(7, 13, dtype=np.int8)
    same[3] = 10**30
    for seed in range(3):
        folds = (list(PersonKFold(2, random_state=seed).split(ids, groups=g)) for g in (ids, same))
        for one, other in zip(*folds, strict=True):
            np.testing.assert_array_equal(one[1], other[1])


def test_folds_are_the_same_in_each_process():
    ids = ["ann", "bob", "eve", 1, 2.0, 3, b"x", np.datetime64("2020-01-01")]
    folds = [test.tolist() for _, test in PersonKFold(2, random_state=1).split(ids, groups=ids)]
    assert folds == [[0, 7], [1, 2, 3, 4, 5, 6]]


def test_a_split_by_persons():
    X, y, ids = table_of(200)
    split = person_train_test_split(X, y.tolist(), groups=ids, test_size=0.3)
    X_train, X_test, y_train, y_test, ids_train, ids_test = split
    assert not set(ids_train) & set(ids_test) and len(X_train) == len(y_train) == len(ids_train)
    assert len(X_test) == len(y_test) == len(ids_test) and isinstance(y_test, list)
    # Of 200 persons 60 in expectation; outside of this with a probability of 1e-5.
    assert 33 <= len(set(ids_test)) <= 90
    person = ids_test[0]
    _, again = person_train_test_split(groups=ids[ids != person], test_size=0.3)
    assert set(again) == set(ids_test) - {person}


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (None, "got a NoneType"),
        ((i for i in range(6)), "got a generator"),
        ({0, 1, 2, 3, 4, 5}, "got a set"),
        ("abcdef", "got a str"),
        (np.zeros((6, 2)), "one column"),
        ([[0, 1]] * 6, "one column|another type"),
        ([0, 1, 2, 3, 4, None], "is missing, .*: leave such rows out$"),
        ([0, 1, 2], "inconsistent"),
        ([frozenset({0}), 1, 2, 3, 4, 5], "convert it to a number"),
        ([0, 0, 0, 0, 0, 0], "fewer folds"),
    ],
)
def test_groups_that_name_nobody_are_refused(groups, words):
    with pytest.raises(ValueError, match=words):
        list(PersonKFold(2).split(np.zeros(6), groups=groups))


@pytest.mark.parametrize("params", [{"n_splits": 1}, {"random_state": None}, {"random_state": -1}])
def test_impossible_folds_are_refused(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        list(PersonKFold(**params).split(np.zeros(3), groups=[0, 1, 2]))


class Voter(ClassifierMixin, BaseEstimator):
    """Answers with the first column, or its complement, for the second class."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return (X[:, 0] > 0.5).astype(int)

    def predict_proba(self, X):
        return np.column_stack([1.0 - X[:, 0], X[:, 0]])


class Guess(BaseEstimator):
    def predict(self, X):
        return X[:, 0]


SCORES = {
    "accuracy": (bounded_score("accuracy"), Voter()),
    "errors": (bounded_score("neg_error_count"), Voter()),
    "balanced": (bounded_score("balanced_accuracy", class_counts={0: 1, 1: 2}), Voter()),
    "recall": (bounded_score("recall", class_counts={0: 1, 1: 2}), Voter()),
    "F1": (bounded_score("f1", class_counts={0: 1, 1: 9}), Voter()),
    "log loss": (bounded_score("neg_log_loss", bound=3.0), Voter()),
    "Brier": (bounded_score("neg_brier_score"), Voter()),
    "AUC": (bounded_score("roc_auc", class_counts={0: 1, 1: 1}), Voter()),
    "R2": (bounded_score("r2", target_bounds=(0.0, 1.0), target_variance=1 / 12), Guess()),
}
KINDS = ((0.0, 0), (0.0, 1), (1.0, 0), (1.0, 1))


def scores_of(name, n_rows, row_weights=None):
    """Return the scores of ten persons, of whom the last has so many rows of each kind."""
    score, model = SCORES[name]
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 4, 9)
    x, y = rng.integers(0, 2, counts.sum()).astype(float), np.arange(counts.sum()) % 2
    ids = np.repeat(np.arange(9), counts)
    found = []
    # At the end and at the beginning, where an area's classes are cut by the row weights before.
    for place in (0, len(ids)):
        for kind in KINDS:
            rows = np.insert(x, place, np.repeat(kind[0], n_rows))
            labels = np.insert(y, place, np.repeat(kind[1], n_rows))
            groups = np.insert(ids, place, np.full(n_rows, 9))
            persons = replace(persons_of(groups), n_persons=10)
            if row_weights is not None:
                persons = replace(persons, row_weights=np.full(len(groups), row_weights))
            found.append(score.value(model, rows[:, None], labels, persons))
    return np.array(found)


@pytest.mark.parametrize("name", SCORES)
def test_a_person_moves_a_score_by_what_a_row_does(name):
    score, null = SCORES[name][0], scores_of(name, 0)
    by_rows = {n: scores_of(name, n) for n in (1, 2, 7, 500)}
    moves = {n: np.abs(values - null).max() for n, values in by_rows.items()}
    assert max(moves.values()) <= score.sensitivity(10)
    assert moves[500] >= 0.9 * moves[1] > 0.0
    every = np.concatenate(list(by_rows.values()))
    assert np.ptp(every) <= score.sensitivity(10, "replace_one")
    # Rows that count one each are noticed.
    counted = scores_of(name, 40, row_weights=1.0) - scores_of(name, 0, row_weights=1.0)
    assert np.abs(counted).max() > score.sensitivity(10)


@pytest.mark.parametrize("name", SCORES)
def test_with_one_row_a_person_a_score_is_that_of_rows(name):
    score, model = SCORES[name]
    x, y = np.random.default_rng(1).uniform(size=(50, 1)), np.arange(50) % 2
    assert score.value(model, x, y) == score.value(model, x, y, persons_of(np.arange(50)))


@pytest.mark.parametrize("n_rows", [1, 2, 7, 500])
def test_an_area_has_so_many_shares_of_a_class_alone(n_rows):
    """Nine persons of the class of which five count: whoever is of the other is above five."""
    score, model = SCORES["AUC"]
    groups = np.append(np.repeat(np.arange(9), 2), np.full(n_rows, 9))
    y = (groups == 9).astype(int)
    value = score.value(model, y[:, None].astype(float), y, persons_of(groups))
    assert 0.99 * score.sensitivity(10) < value <= score.sensitivity(10) == 0.2 + 2.0**-50


@dataclass(frozen=True)
class OfRows(BoundedScore):
    name = "mine"

    def value(self, estimator, X, y):
        return 0.0

    def sensitivity(self, n_samples, relation="add_remove"):
        return 1.0


@pytest.mark.parametrize("routing", [False, True])
def test_cross_validation_of_persons(routing):
    X, y, ids = table_of()
    ledger = accountant_of()
    pipe = make_pipeline(DPStandardScaler(**BOUNDS), MODEL)
    asked = {"groups": ids, "epsilon": 3.0, "accountant": ledger}
    with config_context(enable_metadata_routing=routing):
        result = dp_cross_val_score(pipe, X, y, cv=PersonKFold(3), **asked)
        assert result.privacy_.unit == "person, however many rows each has"
        assert "which persons go where" in result.privacy_.public
        assert result.scores_.shape == (3,) and ledger.epsilon_spent == 3.0
        sizes = {"train_sizes": (0.5, 1.0), "scoring": "neg_log_loss"}
        alone = dp_learning_curve(MODEL, X, y, cv=3, groups=ids, **sizes)
        assert alone.scores_.shape == (2, 3) and alone.privacy_.unit.startswith("person")


SLOW = [pytest.param(s, marks=pytest.mark.slow) for s in ("holdout", "random_stopping")]


@pytest.mark.parametrize("strategy", ["disjoint", "cv", *SLOW])
def test_searches_fit_whole_persons(strategy, monkeypatch):
    X, y, ids = table_of()
    seen = []

    def recording(self, X, y, *, groups=None):
        seen.append((X[:, 0].tolist(), groups))
        return own(self, X, y, groups=groups)

    own = DPLogisticRegression.fit
    monkeypatch.setattr(DPLogisticRegression, "fit", recording)
    ledger, grid = accountant_of(), {"C": [0.1, 0.2]}
    mean = {"mean_runs": 3} if strategy == "random_stopping" else {}
    search = DPGridSearchCV(MODEL, grid, strategy=strategy, accountant=ledger, **mean)
    search.fit(X, y, groups=ids)
    assert ledger.epsilon_spent == 1.0 and search.privacy_.unit.startswith("person")
    assert search.best_estimator_.privacy_.unit.startswith("person") and len(seen) > 1
    person_of = dict(zip(X[:, 0].tolist(), ids, strict=True))
    for column, groups in seen:
        persons = [person_of[value] for value in column]
        assert len(set(persons)) == len(set(zip(persons, groups, strict=True))) == len(set(groups))
        assert len(column) == np.isin(ids, persons).sum()


@pytest.mark.thorough
def test_what_a_search_refuses_of_persons_costs_nothing():
    X, y, ids = table_of()
    ledger = accountant_of()
    refused = {
        "Use PersonKFold": {"cv": GroupKFold(3), "groups": ids},
        "can change the folds": {"cv": KFold(3), "groups": ids},
        "the rows of one person": {"cv": list(KFold(3).split(X)), "groups": ids},
        "PersonKFold": {"cv": LeaveOneGroupOut(), "groups": ids},
        "needs groups|pass groups": {"cv": PersonKFold(3)},
        "pass groups": {"cv": 3},
        "does not support persons": {"scoring": OfRows(), "groups": ids},
        "groups has .* rows, but X has": {"groups": ids[1:]},
        "got a generator": {"groups": (i for i in ids)},
        "one is missing": {"groups": [None, *ids[1:]]},
        "one column": {"groups": np.column_stack([ids, ids])},
        "do not support unit='person'": {
            "estimator": DPLogisticRegression(standard_errors="total")
        },
    }
    refused["do not support unit='person'"]["groups"] = ids
    for words, asked in refused.items():
        model = asked.pop("estimator", MODEL)
        with pytest.raises(ValueError, match=words):
            dp_cross_val_score(model, X, y, accountant=ledger, **asked)
        search = {name: asked.pop(name) for name in ("cv", "scoring") if name in asked}
        with pytest.raises(ValueError, match=words):
            DPGridSearchCV(model, {"C": [0.1]}, strategy="cv", accountant=ledger, **search).fit(
                X, y, **asked
            )
    for unit in ({"unit": "row"}, {"unit": "group", "max_rows": 5}):
        other = PrivacyAccountant(9.0, 0.1, **unit)
        for call in (
            lambda a: dp_cross_val_score(MODEL, X, y, groups=ids, accountant=a),
            lambda a: DPGridSearchCV(MODEL, {"C": [1.0]}, accountant=a).fit(X, y, groups=ids),
            lambda a: make_dp_scorer("accuracy", accountant=a)(Voter(), X, y, groups=ids),
        ):
            with pytest.raises(ValueError, match="unit='person'"):
                call(other)
        assert other.epsilon_spent == 0.0
    with pytest.raises(ValueError, match="does not support persons"):
        make_dp_scorer(OfRows(), accountant=ledger)(Voter(), X, y, groups=ids)
    fitted = clone(MODEL).fit(X, y)
    with pytest.raises(ValueError, match="pass groups"):
        make_dp_scorer("accuracy", accountant=ledger)(fitted, X, y)
    # Whether the predictions of a class of the user's own are row-wise is not known.
    with pytest.raises(ValueError, match="if there are other rows"):
        make_dp_scorer("accuracy", accountant=ledger)(Voter(), X, y, groups=ids)
    assert ledger.epsilon_spent == 0.0


def test_functions_of_scikit_learn_route_groups():
    X, y, ids = table_of(80)
    ledger = accountant_of()
    model = DPLogisticRegression(mechanism="output", C=0.1, accountant=ledger)
    scorer = make_dp_scorer("accuracy", epsilon=0.5, accountant=ledger)
    with config_context(enable_metadata_routing=True):
        given = {"cv": PersonKFold(2), "params": {"groups": ids}}
        cross_val_score(model, X, y, scoring=scorer, **given)
        assert ledger.epsilon_spent == 3.0
        GridSearchCV(model, {"C": [0.1, 0.2]}, cv=PersonKFold(2), refit=False).fit(X, y, groups=ids)
        assert ledger.epsilon_spent == 7.0
        search = DPGridSearchCV(MODEL, {"C": [0.1]}, accountant=ledger)
        cross_val_score(search, X, y, **given)
        assert ledger.epsilon_spent == 9.0
        scaler = DPStandardScaler(**BOUNDS)
        pipe = split_budget(make_pipeline(scaler, MODEL), 2.0, 1e-6, ledger)
        pipe.fit(X, y, groups=ids)
        assert ledger.epsilon_spent == 11.0 and pipe[0].privacy_.unit.startswith("person")
    with pytest.raises(ValueError, match=re.escape("enable_metadata_routing=True")):
        pipe.fit(X, y)
    assert ledger.epsilon_spent == 11.0
