"""A private score costs nothing if public facts of the table do not fit the model."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline, make_union

from skdp import (
    BudgetExceededError,
    ChunkedArray,
    DPAdditiveClassifier,
    DPGaussianNB,
    DPGridSearchCV,
    DPHistogramNB,
    DPLogisticRegression,
    DPRandomForestClassifier,
    DPRidge,
    DPSGDClassifier,
    DPStandardScaler,
    PrivacyAccountant,
    dp_evaluate,
)
from skdp.model_selection import make_dp_scorer

N = 80
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.uniform(size=(N, 2)), columns=["p", "q"])
Y = (FRAME.p > 0.5).astype(int).to_numpy()

pytestmark = pytest.mark.filterwarnings("ignore")


def scaler():
    return DPStandardScaler(bounds=(0, 1))


def model(**params):
    return DPLogisticRegression(data_norm=2.0, **params)


MODELS = {
    "model": lambda: model(),
    "pipeline": lambda: make_pipeline(scaler(), model()),
    "union": lambda: make_pipeline(make_union(scaler(), scaler()), model()),
    "columns": lambda: make_pipeline(make_column_transformer((scaler(), ["p"])), model()),
    "search": lambda: DPGridSearchCV(model(), {}),
}


@pytest.fixture(scope="module")
def models():
    """Fitted models by their names, which no test changes."""
    fitted = {name: make().fit(FRAME, Y) for name, make in MODELS.items()}
    fitted["frozen"] = FrozenEstimator(fitted["pipeline"])
    return fitted


def spent(estimator, X, y, name="accuracy", is_refused=True, **params):
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    scorer = make_dp_scorer(name, accountant=accountant, **params)
    if is_refused:
        with pytest.raises(ValueError):
            scorer(estimator, X, y)
    else:
        scorer(estimator, X, y)
    return accountant.epsilon_spent


@pytest.mark.parametrize("name", sorted([*MODELS, "frozen"]))
def test_a_table_with_other_columns_is_not_charged(models, name):
    fitted = models[name]
    assert spent(fitted, FRAME.rename(columns=str.upper), Y) == 0.0
    assert spent(fitted, FRAME.astype(str).replace(r".*", "x", regex=True)[["q"]], Y) == 0.0
    selects_by_name = name == "columns"
    assert spent(fitted, FRAME[["q", "p"]], Y, is_refused=not selects_by_name) == selects_by_name
    assert spent(fitted, FRAME.to_numpy(), Y, is_refused=selects_by_name) == 1 - selects_by_name
    assert spent(fitted, FRAME, Y, is_refused=False) == 1.0


def test_containers_and_models_that_cannot_be_scored_are_not_charged(models):
    assert spent(models["pipeline"], sp.csr_matrix(FRAME.to_numpy()), Y) == 0.0
    words = pd.DataFrame({"p": ["a", "b"] * (N // 2), "q": "c"}).astype("string")
    assert spent(models["pipeline"], words, Y) == 0.0
    for unfitted in (make() for make in MODELS.values()):
        assert spent(unfitted, FRAME, Y) == 0.0


def test_scores_and_labels_that_do_not_fit_the_model_are_not_charged(models):
    assert spent(models["model"], FRAME, Y.astype(str)) == 0.0
    words = model().fit(FRAME, Y.astype(str))
    assert spent(words, FRAME, Y) == 0.0
    for right in (Y.astype(float), Y.astype(bool), Y.astype(object), pd.Series(Y, dtype="Int64")):
        assert spent(models["model"], FRAME, right, is_refused=False) == 1.0
    regressor = DPRidge(target_bounds=(0, 1)).fit(FRAME, FRAME.p)
    assert spent(regressor, FRAME, Y) == 0.0
    bounds = {"target_bounds": (0, 1)}
    error = "neg_mean_squared_error"
    assert spent(models["model"], FRAME, FRAME.p, error, **bounds) == 0.0
    assert spent(regressor, FRAME, FRAME.p, error, is_refused=False, **bounds) == 1.0


def with_cell(value, dtype=object):
    table = FRAME.astype({"q": dtype})
    table.loc[N - 1, "q"] = value
    return table


# Tables that models of numbers refuse, some by the type of a column and some by one cell.
BAD_TABLES = {
    "infinite": lambda: with_cell(np.inf, float),
    "infinite, in partitions": lambda: ChunkedArray([FRAME[:40], with_cell(np.inf, float)[40:]]),
    "a string": lambda: with_cell("a"),
    "a list": lambda: with_cell([1]),
    "bytes": lambda: FRAME.to_numpy().astype("S5"),
    "complex": lambda: FRAME.to_numpy() + 1j,
    "dates": lambda: FRAME.assign(q=pd.date_range("2020-01-01", periods=N)),
    "durations": lambda: FRAME.assign(q=pd.to_timedelta(np.arange(N), "s")),
    "periods": lambda: FRAME.assign(q=pd.period_range("2020-01-01", periods=N, freq="D")),
    "intervals": lambda: FRAME.assign(q=pd.interval_range(0, N)),
    "categories": lambda: FRAME.assign(q=pd.Categorical(["a", "b"] * (N // 2))),
}
BOUNDED = {"bounds": (0, 1)}
OTHER_READERS = {
    "noisy gradients": DPSGDClassifier(data_norm=2.0),
    "additive": DPAdditiveClassifier(**BOUNDED),
    "gaussian": DPGaussianNB(**BOUNDED),
    "histograms": DPHistogramNB(**BOUNDED),
    "forest": DPRandomForestClassifier(**BOUNDED),
}
READERS = ["model", "pipeline", "columns", "search", *OTHER_READERS]


@pytest.fixture(scope="module")
def readers(models):
    """Fitted models that read a table in different ways, by their names."""
    return models | {name: clone(m).fit(FRAME, Y) for name, m in OTHER_READERS.items()}


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("kind", sorted(BAD_TABLES))
@pytest.mark.parametrize("name", sorted(READERS))
def test_rows_that_a_model_refuses_cost_nothing(readers, name, kind):
    fitted = readers[name]
    X = BAD_TABLES[kind]()
    try:
        fitted.predict(X)
    except (TypeError, ValueError):
        pass
    else:
        # A model that does not read this column, or reads it as a label.
        return
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    for score in ("accuracy", "roc_auc", "neg_brier_score"):
        scorer = make_dp_scorer(score, accountant=accountant)
        with pytest.raises((TypeError, ValueError)):
            scorer(fitted, X, Y)
    with pytest.raises((TypeError, ValueError)):
        dp_evaluate(fitted, X, Y, accountant=accountant)
    assert accountant.charges == []


def test_a_model_is_asked_once_and_not_without_a_budget(monkeypatch):
    accountant = PrivacyAccountant(0.5, 0.0, ledger="memory://")
    fitted = DPLogisticRegression(data_norm=2.0).fit(FRAME, Y)
    spent_before = []
    predict = DPLogisticRegression.predict

    def noted(self, X):
        spent_before.append(accountant.epsilon_spent)
        return predict(self, X)

    monkeypatch.setattr(DPLogisticRegression, "predict", noted)
    scorer = make_dp_scorer("accuracy", epsilon=0.5, accountant=accountant)
    scorer(fitted, FRAME, Y)
    with pytest.raises(BudgetExceededError):
        scorer(fitted, FRAME, Y)
    assert spent_before == [0.0]


def test_a_model_of_another_library_answers_after_the_charge():
    accountant = PrivacyAccountant(1.0, 0.0, ledger="memory://")
    spent_before = []

    class Model(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def __sklearn_is_fitted__(self):
            return True

        def predict_proba(self, X):
            spent_before.append(accountant.epsilon_spent)
            return np.full((len(X), 2), 0.5)

    dp_evaluate(Model(), FRAME, Y, epsilon=0.5, metrics=["accuracy"], accountant=accountant)
    assert spent_before == [0.5]
