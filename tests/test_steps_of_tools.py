"""Steps and members of every kind are named before the charge, and prices of tools are known."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    SplineTransformer,
    StandardScaler,
)

from skdp import (
    DPKBinsDiscretizer,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyAccountant,
    RawDataWarning,
)
from skdp.exceptions import BudgetExceededError
from skdp.model_selection import make_dp_scorer

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (120, 3))
y = (X[:, 0] > 0).astype(int)
FOLDS = KFold(3, shuffle=True, random_state=0)


class Names:
    """A ledger with private estimators of epsilon .1."""

    def __init__(self, epsilon=100.0, **terms):
        self.ledger = a = PrivacyAccountant(epsilon, 1e-2, **terms)
        self.model = DPLogisticRegression(0.1, delta=1e-7, data_norm=2.0, accountant=a)
        self.scaler = DPStandardScaler(0.1, bounds=(-1, 1), accountant=a)
        self.score = make_dp_scorer("accuracy", epsilon=0.1, accountant=a)


class Center(TransformerMixin):
    """A step without `get_params`, which learns the exact mean."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


class OnlyFitTransform:
    """A step of which scikit-learn calls `fit_transform`."""

    def fit_transform(self, X, y=None):
        return X - X.mean(axis=0)

    def transform(self, X):
        return X


class Last:
    """A last step around another model, without `get_params`."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y=None):
        self.model.fit(X, y)
        return self


class Several(ClassifierMixin, BaseEstimator):
    """A class of the user with a list of models."""

    def __init__(self, models=None):
        self.models = models

    def fit(self, X, y):
        self.models_ = [clone(model).fit(X, y) for model in self.models]
        self.classes_ = self.models_[0].classes_
        return self

    def predict(self, X):
        return self.models_[0].predict(X)


class Factory(ClassifierMixin, BaseEstimator):
    """A class of the user that creates its private model."""

    def __init__(self, ledger=None):
        self.ledger = ledger

    def fit(self, X, y):
        self.model_ = DPLogisticRegression(0.1, delta=1e-7, data_norm=2.0, accountant=self.ledger)
        self.model_.fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


def cross_validation(names, model):
    return cross_val_score(model, X, y, scoring=names.score, cv=FOLDS)


def grid(names, model, values, **params):
    return GridSearchCV(model, values, scoring=names.score, cv=FOLDS, **params).fit(X, y)


RAW = {
    "first step": lambda n: make_pipeline(Center(), n.model).fit(X, y),
    "step after a private one": lambda n: make_pipeline(n.scaler, Center(), n.model).fit(X, y),
    "fit_transform only": lambda n: make_pipeline(OnlyFitTransform(), n.model).fit(X, y),
    "last step": lambda n: make_pipeline(n.scaler, Center()).fit(X, y),
    "union": lambda n: FeatureUnion([("a", n.scaler), ("b", Center())]).fit(X, y),
    "member": lambda n: VotingClassifier([("a", make_pipeline(Center(), n.model))]).fit(X, y),
    "grid": lambda n: grid(n, make_pipeline(Center(), n.model), {}),
    "scores": lambda n: cross_validation(n, make_pipeline(Center(), n.model)),
    "candidate": lambda n: grid(
        n, Pipeline([("s", n.scaler), ("m", n.model)]), {"s": ["passthrough", Center()]}
    ),
    "models": lambda n: make_pipeline(
        n.scaler, Several([n.model, make_pipeline(StandardScaler(), n.model)])
    ).fit(X, y),
    "scored": lambda n: LogisticRegressionCV(scoring=n.score, cv=3).fit(X, y),
    "candidates": lambda n: grid(
        n, Pipeline([("m", LogisticRegression())]), {"m": [LogisticRegression(), n.model]}
    ),
}


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("name", RAW)
def test_a_raw_step_is_named_once_and_before_the_charge(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        RAW[name](Names())
    assert sum(issubclass(warning.category, RawDataWarning) for warning in caught) == 1
    names = Names(on_raw_data="raise")
    with pytest.raises(ValueError, match="on_raw_data"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        RAW[name](names)
    assert names.ledger.epsilon_spent == 0.0


# Functions that freeze a fitted estimator whose part may have been fitted alone.
FROZEN = {
    "once": FrozenEstimator,
    "twice": lambda fitted: FrozenEstimator(FrozenEstimator(fitted)),
    "inside": lambda fitted: FrozenEstimator(make_pipeline(Normalizer(), FrozenEstimator(fitted))),
}
# Tools that receive a frozen transformer, or a frozen model.
AROUND_FROZEN = {
    "pipeline": lambda n, step, model: make_pipeline(step, n.model),
    "union": lambda n, step, model: FeatureUnion([("a", n.scaler), ("b", step)]),
    "columns": lambda n, step, model: ColumnTransformer(
        [("a", n.scaler, [0]), ("b", step, [0, 1, 2])]
    ),
    "votes": lambda n, step, model: VotingClassifier([("a", n.model), ("b", model)]),
    "stack": lambda n, step, model: StackingClassifier(
        [("a", n.model), ("b", model)], n.model, cv=FOLDS
    ),
    "candidate": lambda n, step, model: GridSearchCV(
        Pipeline([("s", n.scaler), ("m", n.model)]), {"s": [step]}, scoring=n.score, cv=FOLDS
    ),
}


@pytest.mark.parametrize("name", AROUND_FROZEN)
@pytest.mark.parametrize("freeze", FROZEN)
@pytest.mark.parametrize("first", [StandardScaler(), Normalizer()])
def test_a_frozen_pipeline_is_named_exactly_if_a_part_learned_from_unknown_rows(
    name, freeze, first
):
    """Its parts may have been fitted alone, when no tool around a private estimator saw them."""
    fitted = Names()
    first.fit(X)
    step = make_pipeline(first, fitted.scaler.fit(X))
    model = make_pipeline(first, fitted.model.fit(X, y))
    names = Names()
    tool = AROUND_FROZEN[name](names, FROZEN[freeze](step), FROZEN[freeze](model))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tool.fit(X, y)
    texts = [str(w.message) for w in caught if issubclass(w.category, RawDataWarning)]
    assert len(texts) == isinstance(first, StandardScaler)
    assert all("rows that skdp does not know" in text for text in texts)


@pytest.mark.parametrize("model", [LogisticRegression(), "private"])
def test_a_frozen_last_model_of_a_stack_is_not_fitted(model):
    """It is named only if it learned from unknown rows."""
    names = Names()
    last = Names().model if model == "private" else model
    last.fit(X[:, :1], y)
    stack = StackingClassifier([("a", names.model)], FrozenEstimator(last), cv=FOLDS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stack.fit(X, y)
    texts = [str(w.message) for w in caught if issubclass(w.category, RawDataWarning)]
    assert len(texts) == (model != "private")
    assert all("final_estimator that learned from rows" in text for text in texts)


REFUSED = {
    "step without parameters": lambda n: make_pipeline(n.scaler, Last(BaggingClassifier(n.model))),
    "list": lambda n: make_pipeline(n.scaler, Several([BaggingClassifier(n.model)])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_repeated_rows_of_nested_models_are_refused_before_earlier_steps(name):
    names = Names()
    with pytest.raises(ValueError, match="BaggingClassifier"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        REFUSED[name](names).fit(X, y)
    assert names.ledger.epsilon_spent == 0.0


def test_weights_of_a_later_step_are_refused_before_the_first():
    names = Names()
    weights = {"dplogisticregression__sample_weight": np.ones(len(X))}
    with pytest.raises(ValueError, match="sample_weight is not supported"):
        make_pipeline(names.scaler, names.model).fit(X, y, **weights)
    assert names.ledger.epsilon_spent == 0.0


class Repeating(KFold):
    """A splitter of the user that draws rows with replacement, under a known name."""

    def split(self, X, y=None, groups=None):
        for _, test in super().split(X, y, groups):
            yield np.zeros(60, dtype=int), test


Repeating.__name__ = "KFold"


def test_folds_that_repeat_rows_are_refused_when_they_are_read():
    names = Names()
    # Its class is not the one of scikit-learn, so that its folds are unknown before they are read.
    with (
        pytest.warns(RawDataWarning, match="may depend on their labels"),
        pytest.raises(ValueError, match="list rows more than once"),
    ):
        cross_val_score(
            names.model, X, y, scoring=names.score, cv=Repeating(3), error_score="raise"
        )
    assert names.ledger.epsilon_spent == 0.0


# A tool and its charge.
PRICES = {
    "scores": (lambda n: cross_validation(n, n.model), 0.6),
    "learning curve": (
        lambda n: learning_curve(
            n.model, X, y, scoring=n.score, cv=FOLDS, train_sizes=[0.5, 1.0], error_score="raise"
        ),
        1.8,
    ),
    "validation curve": (
        lambda n: validation_curve(
            n.model, X, y, param_name="C", param_range=[0.1, 1.0], scoring=n.score, cv=FOLDS
        ),
        1.8,
    ),
    "list of grids": (lambda n: grid(n, n.model, [{"C": [0.1, 1.0]}, {"C": [2.0]}]), 1.9),
    "epsilon": (lambda n: grid(n, n.model, {"epsilon": [0.1, 0.1]}), 1.3),
    "steps": (
        lambda n: grid(
            n, Pipeline([("s", n.scaler), ("m", n.model)]), {"s": ["passthrough", "passthrough"]}
        ),
        1.3,
    ),
    "random": (
        lambda n: RandomizedSearchCV(
            n.model, [{"C": [0.1, 1.0]}], n_iter=2, scoring=n.score, cv=FOLDS
        ).fit(X, y),
        1.3,
    ),
    "nested": (
        lambda n: cross_validation(
            n, GridSearchCV(n.model, {"C": [0.1, 1.0]}, scoring=n.score, cv=FOLDS)
        ),
        4.2,
    ),
    "stack": (lambda n: StackingClassifier([("a", n.model)], n.model, cv=FOLDS).fit(X, y), 0.5),
}


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("name", PRICES)
def test_a_tool_is_refused_before_its_first_fit_if_and_only_if_the_budget_is_too_small(name):
    run, price = PRICES[name]
    names = Names(price + 1e-6)
    run(names)
    assert names.ledger.epsilon_spent == pytest.approx(price)
    names = Names(price - 0.05)
    with pytest.raises(BudgetExceededError, match="Nothing was computed or charged"):
        run(names)
    assert names.ledger.epsilon_spent == 0.0


def test_a_lower_bound_takes_the_cheapest_refit():
    names = Names(2.45)
    with pytest.raises(BudgetExceededError, match=r"2\.5 or more"):
        grid(names, names.model, {"epsilon": [0.1, 0.5]})
    assert names.ledger.epsilon_spent == 0.0


def test_a_class_that_creates_its_private_model_is_scored_without_a_warning():
    names = Names()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RawDataWarning)
        grid(names, Factory(names.ledger), {})
    assert names.ledger.epsilon_spent == pytest.approx(0.7)


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """An installed package that skdp does not know."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "unknown_of_test.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from threading import Thread\n"
        "import joblib\n"
        "from sklearn.base import clone\n"
        "def by_executor(model, X, y):\n"
        "    with ThreadPoolExecutor(2) as pool:\n"
        "        return [pool.submit(clone(model).fit, X, y).result() for _ in range(2)]\n"
        "def by_thread(model, X, y):\n"
        "    thread = Thread(target=clone(model).fit, args=(X, y))\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "def by_joblib(model, X, y):\n"
        "    tasks = (joblib.delayed(clone(model).fit)(X, y) for _ in range(2))\n"
        "    return joblib.Parallel(2, backend='threading')(tasks)\n"
        "def with_seed(model, X, y):\n"
        "    return clone(model).set_params(random_state=3).fit(X, y)\n"
    )
    monkeypatch.syspath_prepend(folder)
    return __import__("unknown_of_test")


@pytest.mark.parametrize("way", ["by_executor", "by_thread", "by_joblib"])
def test_an_unknown_tool_is_seen_from_its_threads_once(tool, way):
    names = Names()
    with pytest.warns(RawDataWarning, match=f"{way} of unknown_of_test") as caught:
        getattr(tool, way)(names.model, X, y)
    assert sum(issubclass(warning.category, RawDataWarning) for warning in caught) == 1


def test_a_seed_that_a_function_sets_is_refused(tool):
    names = Names()
    with pytest.raises(ValueError, match="sets the seed"):
        tool.with_seed(names.model, X, y)
    assert names.ledger.epsilon_spent == 0.0


def test_threads_of_the_user_raise_no_warning():
    names = Names()
    with warnings.catch_warnings(), ThreadPoolExecutor(2) as pool:
        warnings.simplefilter("error", RawDataWarning)
        pool.submit(clone(names.model).fit, X, y).result()


def splines(sparse_output):
    return SplineTransformer(knots=[[-1.0], [0.0], [1.0]], sparse_output=sparse_output)


# Parts of a column transformer that read the first column.
PARTS = {
    "passthrough": lambda: "passthrough",
    "row by row": Normalizer,
    "function": lambda: FunctionTransformer(np.abs),
    "pipeline": lambda: make_pipeline(Normalizer(), "passthrough"),
    "union": lambda: FeatureUnion([("n", Normalizer()), ("d", "drop")]),
    "frozen": lambda: FrozenEstimator(Normalizer().fit(X[:, :1])),
    "columns": lambda: ColumnTransformer([("p", "passthrough", [0])], sparse_threshold=1.0),
    "dense columns": lambda: ColumnTransformer([("p", "passthrough", [0])], sparse_threshold=0),
    "dense splines": lambda: splines(False),
    "splines": lambda: splines(True),
    "splines in a pipeline": lambda: make_pipeline(splines(True), Normalizer()),
    "frozen splines": lambda: FrozenEstimator(
        make_pipeline(splines(True), Normalizer()).fit(X[:, :1])
    ),
}
AROUND_COLUMNS = {
    "nothing": lambda model, names: model,
    "votes": lambda model, names: VotingClassifier([("m", model)]),
    "search": lambda model, names: GridSearchCV(model, {}, scoring=names.score, cv=FOLDS),
}


def sparse_frame(rows):
    return pd.DataFrame(rows).astype(pd.SparseDtype(float, 0.0))


CONTAINERS = [np.asarray, csr_array]
# scikit-learn 1.7 takes Sparse columns of pandas 3 for dense.
if not sklearn.__version__.startswith("1.7"):
    CONTAINERS.append(sparse_frame)
# Splines refuse sparse tables.
CASES_OF_PARTS = [
    (part, container)
    for part in PARTS
    for container in CONTAINERS
    if container is np.asarray or "splines" not in part
]


@pytest.mark.quick_cases(every=3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("part", "container"), CASES_OF_PARTS)
@pytest.mark.parametrize("around", AROUND_COLUMNS)
def test_a_density_that_is_published_is_found(part, container, around):
    """A column transformer publishes a density exactly if one of its parts returns a matrix.

    scikit-learn converts a frame of Sparse columns to a matrix if a part checks its table.
    """
    names = Names()
    table = X.copy()
    table[0] = 0.0
    all_sparse = ColumnTransformer([("p", PARTS[part](), [0])], sparse_threshold=1.0)
    is_published = issparse(all_sparse.fit_transform(container(table)))
    columns = ColumnTransformer([("p", PARTS[part](), [0])])
    model = make_pipeline(columns, names.model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        AROUND_COLUMNS[around](model, names).fit(container(table), y)
    assert any("sparse_threshold" in str(w.message) for w in caught) == is_published


# Private encoders whose output is sparse, and whether each cell is one entry of it.
ENCODERS = {
    "bins": (lambda a: DPKBinsDiscretizer(0.1, n_bins=4, bounds=(-1, 1), accountant=a), True),
    "vectors": (lambda a: DPTableVectorizer(0.1, bounds=(-1, 1), accountant=a), True),
    "scaled vectors": (
        lambda a: DPTableVectorizer(0.1, bounds=(-1, 1), numeric="scaled", accountant=a),
        True,
    ),
    "categories": (lambda a: DPOneHotEncoder(0.1, categories=[0.0, 1.0], accountant=a), False),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("after", [(), (Binarizer(threshold=0.5),)], ids=["alone", "behind"])
def test_a_density_that_values_decide_is_found(encoder, after):
    make, is_fixed = ENCODERS[encoder]
    fitted = make(None).fit(X)
    tables = (X, np.zeros_like(X), np.sign(X), np.full_like(X, 0.9))
    assert (len({fitted.transform(table).nnz for table in tables}) == 1) == is_fixed
    names = Names()
    part = make_pipeline(make(names.ledger), *after)
    columns = ColumnTransformer([("p", part, [0, 1]), ("q", "passthrough", [2])])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_pipeline(columns, names.model).fit(X, y)
    is_found = any("sparse_threshold" in str(w.message) for w in caught)
    assert is_found == (not is_fixed or bool(after))
