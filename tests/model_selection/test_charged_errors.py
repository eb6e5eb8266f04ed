"""What any private step of a search refuses, it refuses before the charge."""

import threading
from pickle import PicklingError

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
)

from skdp import (
    DPPCA,
    ChunkedArray,
    DPAdditiveClassifier,
    DPGridSearchCV,
    DPLinearRegression,
    DPLogisticRegression,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPRandomizedSearchCV,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    DPTargetEncoder,
    PrivacyAccountant,
)
from skdp.model_selection import dp_cross_val_score, dp_learning_curve, dp_validation_curve
from skdp.pipeline import plan_pipeline, split_budget
from tests._estimators import BOUNDED_TRANSFORMERS

N = 40
BUDGET = {"epsilon": 1.0, "delta": 1e-5}

# The warning of steps that raise on some values, behind private ones.
MAY_FAIL = "ignore:step '\\w+'. its fit raises on"


def by_grid(pipe, X, y, accountant):
    DPGridSearchCV(pipe, {}, strategy="holdout", accountant=accountant, **BUDGET).fit(X, y)


def by_draws(pipe, X, y, accountant):
    given = {"n_iter": 1, "strategy": "holdout", "accountant": accountant}
    DPRandomizedSearchCV(pipe, {}, **given, **BUDGET).fit(X, y)


def by_folds(pipe, X, y, accountant):
    dp_cross_val_score(pipe, X, y, cv=2, accountant=accountant, **BUDGET)


def by_sizes(pipe, X, y, accountant):
    dp_learning_curve(pipe, X, y, cv=2, accountant=accountant, **BUDGET)


def by_values(pipe, X, y, accountant):
    name = [name for name in pipe.get_params() if name.endswith("data_norm")][0]
    tried = {"param_name": name, "param_range": [2.0], "cv": 2}
    dp_validation_curve(pipe, X, y, **tried, accountant=accountant, **BUDGET)


SEARCHES = [by_grid, by_draws, by_folds, by_sizes, by_values]


def scaler():
    return DPStandardScaler(bounds=(0, 1))


def classifier():
    return DPLogisticRegression(data_norm=2.0, classes=[0, 1])


def regressor():
    return DPLinearRegression(data_norm=2.0, target_bounds=(0, 1))


def side_by_side():
    parts = [("a", scaler(), [0]), ("b", DPMeanTransformer(bounds=(0, 1)), [1, 2])]
    return make_pipeline(ColumnTransformer(parts), classifier())


def passed_through():
    parts = [("a", scaler(), [0])]
    return make_pipeline(ColumnTransformer(parts, remainder="passthrough"), classifier())


def imputed_beside():
    parts = [("a", DPSimpleImputer(bounds=(0, 1)), [0]), ("b", scaler(), [1])]
    return make_pipeline(ColumnTransformer(parts), classifier())


def united():
    imputer = DPSimpleImputer(strategy="most_frequent", categories=[0.0, 1.0])
    return make_pipeline(FeatureUnion([("a", imputer), ("b", scaler())]), classifier())


def nested():
    numbers = make_pipeline(DPSimpleImputer(bounds=(0, 1)), scaler())
    filled = DPSimpleImputer(strategy="most_frequent", categories=["a", "b"], fill_value="a")
    found = make_pipeline(DPOneHotEncoder(delta=1e-6, sparse_output=False), scaler())
    encoded = DPOneHotEncoder(categories=["a", "b"], sparse_output=False)
    parts = [("w", make_pipeline(filled, encoded), [2]), ("f", found, [2]), ("n", numbers, [0, 1])]
    return make_pipeline(ColumnTransformer(parts), classifier())


def behind_a_function():
    parts = [("a", scaler(), [0])]
    union = ColumnTransformer(parts, remainder="passthrough")
    return make_pipeline(union, PolynomialFeatures(2), classifier())


def regressed():
    return make_pipeline(scaler(), regressor())


def table(column=None, cell=None, share=1):
    """Return a table with a bad cell in every `share` rows of a column, "y" for the targets."""
    X = np.random.default_rng(0).uniform(size=(N, 3))
    y = (X[:, 0] > 0.5).astype(int)
    if column is None:
        return X, y
    rows = slice(N - 3, N - 2) if share == 1 else slice(None)
    if column == "y":
        y = y.astype(object)
        y[rows] = cell
    else:
        X = X.astype(object)
        X[rows, column] = cell
    return X, y


def spent(search, pipe, X, y):
    accountant = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises((ValueError, TypeError)):
        search(pipe, X, y, accountant)
    return accountant.epsilon_spent


CASES = [
    (regressed, "y", (np.nan, np.inf, "x", None)),
    (side_by_side, 2, (np.nan, np.inf, "x")),
    (passed_through, 1, (np.nan, "x")),
    (imputed_beside, 1, (np.nan,)),
    (united, 2, (np.nan,)),
    (nested, 1, ("x",)),
    (nested, "y", (7, "x")),
    (behind_a_function, 1, (np.nan, np.inf)),
]


def costs_nothing(search, case, container):
    make, column, cells = case
    for cell in cells:
        X, y = table(column, cell)
        assert spent(search, make(), container(X), y) == 0.0, cell


@pytest.mark.quick_cases(every=8)
@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_bad_cell_costs_nothing(number):
    make, column, cells = CASES[number]
    search, container = SEARCHES[number % 5], (np.asarray, pd.DataFrame)[number % 2]
    costs_nothing(search, (make, column, cells[:2]), container)


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_a_bad_cell_costs_nothing_in_any_search(search, case, container):
    costs_nothing(search, case, container)


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("make", [side_by_side, passed_through, behind_a_function])
def test_a_column_of_words_costs_nothing(make, null):
    X, y = table(2, "word", share=N)
    if null:
        X[5, 2] = None
    assert spent(by_folds, make(), X, y) == 0.0


def test_targets_that_an_encoder_refuses_cost_nothing():
    """What stands beside it for a release was read before it raises."""
    beside = make_union(DPOneHotEncoder(sparse_output=False), DPTargetEncoder(categories=WORDS))
    pipe = make_pipeline(beside, regressor())
    assert spent(by_folds, pipe, words(), table()[0][:, 0]) == 0.0


class Charged(Exception):
    """A fit has come to its charge."""


def dry_run(pipe, X, y):
    """Run a search up to its charge, which follows the rehearsal of its fits."""

    def charge(*args, **kwargs):
        raise Charged

    accountant = PrivacyAccountant(1.0, 1e-5)
    search = DPGridSearchCV(pipe, {}, strategy="cv", cv=3, accountant=accountant, **BUDGET)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivacyAccountant, "charge", charge)
        with pytest.raises(Charged):
            search.fit(X, y)


WORDS = [["a", "b"]] * 3


def words():
    return np.random.default_rng(0).choice(["a", "b"], size=(N, 3)).astype(object)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    ("pipe", "make_X"),
    [
        # The logarithm and the encoder refuse what stands for the release.
        (
            make_pipeline(
                DPMinMaxScaler(bounds=(0, 1), feature_range=(2, 3)),
                FunctionTransformer(np.log),
                classifier(),
            ),
            None,
        ),
        (
            make_pipeline(
                DPSimpleImputer(strategy="most_frequent", fill_value="a", delta=1e-6),
                OneHotEncoder(categories=WORDS, sparse_output=False),
                classifier(),
            ),
            words,
        ),
        (
            make_pipeline(
                DPSimpleImputer(strategy="most_frequent", categories=["a", "b"], fill_value="a"),
                OneHotEncoder(categories=WORDS, sparse_output=False),
                classifier(),
            ),
            words,
        ),
        (
            make_pipeline(
                DPSimpleImputer(strategy="most_frequent", fill_value="a", delta=1e-6),
                DPOneHotEncoder(categories=["a", "b"]),
                classifier(),
            ),
            words,
        ),
        (
            make_pipeline(
                DPPCA(n_components=2, data_norm=2.0), DPMinMaxScaler(bounds=(-1, 1)), classifier()
            ),
            None,
        ),
        (
            make_pipeline(DPOneHotEncoder(delta=1e-6, sparse_output=False), scaler(), classifier()),
            None,
        ),
        (
            make_pipeline(
                DPOneHotEncoder(delta=1e-6, sparse_output=False),
                DPStandardScaler(bounds=([0] * 6, [1] * 6)),
                classifier(),
            ),
            words,
        ),
        (side_by_side(), None),
        (united(), None),
        (regressed(), None),
        (classifier(), None),
    ],
)
# A scaled number is not below -1, but a pipeline does not know that.
@pytest.mark.filterwarnings(MAY_FAIL)
@pytest.mark.parametrize("frame", [False, True])
def test_an_honest_pipeline_passes_the_rehearsal(pipe, make_X, frame):
    X, y = table()
    X = X if make_X is None else make_X()
    dry_run(pipe, pd.DataFrame(X, columns=["p", "q", "r"]) if frame else X, y)


def test_a_search_fits_what_it_must_and_no_more(monkeypatch):
    X, y = table()
    fit, fits = DPLogisticRegression.fit, []

    def counted(self, X, y):
        fits.append(len(y))
        return fit(self, X, y)

    monkeypatch.setattr(DPLogisticRegression, "fit", counted)
    grid = {"C": [0.01, 0.1, 1.0]}
    DPGridSearchCV(classifier(), grid, strategy="cv", cv=4, **BUDGET).fit(X, y)
    assert fits == 3 * 4 * [N - N // 4] + [N]


@pytest.mark.parametrize(
    "steps",
    [
        (scaler(), PolynomialFeatures(-1)),
        (scaler(), Normalizer("l7")),
        (scaler(), FunctionTransformer(np.invert)),
        (DPOneHotEncoder(delta=1e-6, sparse_output=True), scaler()),
        (DPTableVectorizer(), scaler()),
    ],
)
def test_a_step_that_refuses_all_numbers_costs_nothing(steps):
    """Its error is no matter of the ones that stand for what a private step makes."""
    assert spent(by_grid, make_pipeline(*steps, classifier()), *table()) == 0.0


@pytest.mark.filterwarnings(MAY_FAIL)
def test_nothing_is_released_before_the_charge(monkeypatch):
    """An imputer that discovers categories reads rows for errors, and is not fitted to them."""
    monkeypatch.setattr(DPSimpleImputer, "fit", None)
    X, y = np.where(np.arange(3 * N).reshape(N, 3) % 5 == 2, None, words()), table()[1]
    imputer = DPSimpleImputer(strategy="most_frequent", fill_value="a", delta=1e-6)
    encoder = OneHotEncoder(categories=WORDS, sparse_output=False)
    dry_run(make_pipeline(imputer, encoder, classifier()), X, y)


def test_a_trial_neither_warns_of_rows_nor_writes_into_them(recwarn):
    X, y = table()
    X[3] = -X[3]
    before = X.copy()
    warns = FunctionTransformer(np.abs, inverse_func=np.positive)
    for step in (warns, Binarizer(threshold=-1, copy=False)):
        dry_run(make_pipeline(step, scaler(), classifier()), X, y)
    assert not recwarn.list and np.array_equal(X, before)


def test_names_reach_the_steps_behind():
    X, y = table()
    inner = ColumnTransformer([("c", scaler(), ["q", "r"])])
    pipe = make_pipeline(scaler(), inner, classifier()).set_output(transform="pandas")
    X = pd.DataFrame(X, columns=["p", "q", "r"])
    dry_run(pipe, X, y)
    with pytest.raises(ValueError, match="y holds labels"):
        dry_run(pipe, X, np.where(np.arange(N) == 3, 7, y))


# The sum by which scikit-learn looks for infinity may be inf - inf.
@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce:RuntimeWarning")
@pytest.mark.parametrize(
    "make",
    [
        scaler,
        *BOUNDED_TRANSFORMERS,
        lambda: DPPCA(epsilon=1e6, n_components=3, delta=1e-6, data_norm=2.0),
    ],
)
def test_a_finite_table_stays_finite(make):
    X, y = table()
    transformer = make()
    if hasattr(transformer, "bounds"):
        transformer.set_params(bounds=(0, 1e-3))
    transformer.fit(X * 1e-3)
    big = np.finfo(float).max * np.array([[1, 1, 1], [-1, -1, -1], [1, -1, 1], [0, 1, -1]])
    answer = transformer.transform(big)
    assert np.isfinite(answer.data if sp.issparse(answer) else answer).all()


def test_a_huge_value_does_not_end_a_search_after_its_charge():
    X, y = table()
    X[5, 0] = 1e308
    accountant = PrivacyAccountant(1.0, 1e-5)
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1e-3)), classifier())
    by_folds(pipe, X, y, accountant)
    assert accountant.epsilon_spent == 1.0


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.__name__)
def test_tables_whose_rows_cannot_be_taken_cost_nothing(search, tmp_path):
    X, y = np.tile([[0.0, 1.0], [1.0, 0.0]], (N // 2, 1)), np.tile([0, 1], N // 2)
    paths = [tmp_path / f"a={value}" / "rows.npy" for value in (0, 1)]
    for path in paths:
        path.parent.mkdir()
        np.save(path, X[: N // 2])
    X = ChunkedArray(paths)
    accountant = PrivacyAccountant(9.0, 0.5, ledger="memory://")
    with pytest.raises((TypeError, ValueError)):
        search(DPLogisticRegression(classes=[0, 1], data_norm=2.0), X, y, accountant)
    assert accountant.charges == []


def test_a_cell_that_cannot_be_sent_to_workers_costs_nothing():
    X = np.array([["a"], ["b"]] * (N // 2), dtype=object)
    X[0, 0] = threading.Lock()
    accountant = PrivacyAccountant(1.0, 1e-5, ledger="memory://")
    pipe = make_pipeline(DPOneHotEncoder(categories=["a", "b"]), classifier())
    search = DPGridSearchCV(pipe, {}, cv=2, n_jobs=2, accountant=accountant, **BUDGET)
    with pytest.raises((PicklingError, ValueError)):
        search.fit(X, table()[1])
    assert accountant.charges == []


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("strategy", ["holdout", "random_stopping"])
def test_no_more_workers_are_begun_than_there_are_runs(strategy):
    params = BUDGET | {"strategy": strategy, "delta": 1e-4}
    DPGridSearchCV(classifier(), {}, **params, n_jobs=2**64).fit(*table())


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("options", [{"n_jobs": 0}, {"n_jobs": "two"}], ids=str)
def test_a_number_of_workers_that_cannot_be_costs_nothing(options):
    X, y = table()
    inner = DPGridSearchCV(classifier(), {}, strategy="holdout", **options)
    accountant = PrivacyAccountant(1.0, 1e-5)
    given = {"accountant": accountant, **BUDGET}
    scored = given | options | {"cv": 2}
    for fit in (
        lambda: DPGridSearchCV(classifier(), {}, strategy="holdout", **given, **options).fit(X, y),
        lambda: dp_cross_val_score(classifier(), X, y, **scored),
        lambda: dp_learning_curve(classifier(), X, y, **scored),
        lambda: dp_validation_curve(
            classifier(), X, y, param_name="C", param_range=[1.0], **scored
        ),
        lambda: by_grid(inner, X, y, accountant),
        lambda: by_grid(make_pipeline(scaler(), inner), X, y, accountant),
    ):
        with pytest.raises(ValueError, match="n_jobs|int"):
            fit()
        assert accountant.epsilon_spent == 0.0


def in_columns(step):
    return ColumnTransformer([("s", step, [0, 1])], remainder="passthrough")


CONTAINERS = {
    "pipeline": lambda: make_pipeline(scaler(), classifier()),
    "columns": lambda: make_pipeline(in_columns(scaler()), classifier()),
    "remainder": lambda: make_pipeline(
        ColumnTransformer([("p", "passthrough", [0])], remainder=scaler(), sparse_threshold=0),
        classifier(),
    ),
    "union": lambda: make_pipeline(make_union(scaler(), "passthrough"), classifier()),
    "union in columns": lambda: make_pipeline(in_columns(make_union(scaler())), classifier()),
    "columns in columns": lambda: make_pipeline(in_columns(in_columns(scaler())), classifier()),
    "columns in a union": lambda: make_pipeline(make_union(in_columns(scaler())), classifier()),
    "no columns": lambda: make_pipeline(
        ColumnTransformer(
            [("n", scaler(), []), ("s", scaler(), [0])], remainder="drop", sparse_threshold=0
        ),
        classifier(),
    ),
    "search": lambda: make_pipeline(
        in_columns(scaler()), DPGridSearchCV(classifier(), {}, strategy="holdout", refit=False)
    ),
    "search over columns": lambda: DPGridSearchCV(
        make_pipeline(in_columns(scaler()), classifier()), {}, strategy="holdout", refit=False
    ),
    "frozen last": lambda: make_pipeline(
        in_columns(scaler()), FrozenEstimator(classifier().fit(*table()))
    ),
}


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("container", CONTAINERS)
def test_the_statements_of_what_is_published_are_found_in_any_container(
    container, strategy="holdout", refit=False
):
    pipe, (X, y), accountant = CONTAINERS[container](), table(), PrivacyAccountant(9.0, 0.0)
    pure = [name for name in pipe.get_params() if name.rpartition("__")[2] == "delta"]
    pipe.set_params(**dict.fromkeys(pure, 0.0))
    options = {"strategy": strategy, "refit": refit, "mean_runs": 2, "accountant": accountant}
    search = DPGridSearchCV(pipe, {}, epsilon=1.0, delta=0.0, **options).fit(X, y)
    assert search.privacy_.epsilon == 1.0 and accountant.epsilon_spent == 1.0
    if strategy == "cv" and not refit:
        return
    steps = plan_pipeline(pipe).steps
    found = [step.fitted_in(search.best_estimator_) for step in steps]
    stated = [part.privacy_.epsilon for part in found if hasattr(part, "privacy_")]
    assert len(stated) == sum(step.columns != "columns of an empty list" for step in steps)
    if not refit:
        # What was chosen among others costs what the choice costs.
        assert set(stated) == {1.0}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["disjoint", "holdout", "cv", "random_stopping"])
@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("container", CONTAINERS)
def test_the_statements_are_found_by_every_strategy(container, refit, strategy):
    test_the_statements_of_what_is_published_are_found_in_any_container(container, strategy, refit)


def test_a_search_of_what_got_no_columns_states_its_price():
    X, y = table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    nothing = ColumnTransformer(
        [("n", scaler(), make_column_selector(pattern="z"))],
        remainder="passthrough",
        sparse_threshold=0,
    )
    model = FrozenEstimator(classifier().fit(X, y))
    search = DPGridSearchCV(make_pipeline(nothing, model), {}, strategy="holdout", **BUDGET)
    assert search.fit(frame, y).privacy_.epsilon == 1.0


MIXED = pd.DataFrame({"size": np.arange(N) / N, "kind": ["a", "b"] * (N // 2)})


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("search", SEARCHES[:4], ids=lambda search: search.__name__)
@pytest.mark.parametrize("declared", [None, {"kind": ["a", "b"]}], ids=["found", "declared"])
def test_a_model_whose_charge_depends_on_the_kinds_of_columns_is_searched(search, declared):
    accountant = PrivacyAccountant(epsilon=10.0, delta=1e-4)
    model = DPAdditiveClassifier(categories=declared, bounds={"size": (0, 1)})
    search(model, MIXED, np.arange(N) % 2, accountant)
    assert accountant.epsilon_spent == 1.0


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (DPLogisticRegression(C=-1.0), np.arange(N) % 2),
        (DPLinearRegression(target_bounds=(0, 1)), np.array(["low", "high"] * (N // 2))),
    ],
    ids=["parameter", "target"],
)
def test_a_model_behind_a_table_of_unknown_width_refuses_before_the_charge(model, y):
    accountant = PrivacyAccountant(epsilon=10.0, delta=1e-4)
    pipe = make_pipeline(DPTableVectorizer(), model)
    with pytest.raises(ValueError, match="C must be|y must contain numbers"):
        by_grid(pipe, MIXED, y, accountant)
    assert not accountant.charges


def test_words_behind_a_step_that_hides_the_types_of_columns_are_planned_for():
    accountant = PrivacyAccountant(epsilon=10.0, delta=1e-4)
    # Behind a step, the plan knows no types of columns.
    pipe = make_pipeline(FunctionTransformer(), DPAdditiveClassifier())
    by_grid(pipe, MIXED, np.arange(N) % 2, accountant)
    assert len(accountant.charges) == 1


def beside(encoder):
    """Return a front of a private scaler and of an encoder of words, and a model."""
    front = ColumnTransformer([("n", scaler(), ["n"]), ("w", encoder, ["w"])], sparse_threshold=0)
    return make_pipeline(front, classifier())


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(categories=[["u", "v"]], drop="first", sparse_output=False),
        FrozenEstimator(OneHotEncoder(categories=[["u", "v"]], sparse_output=False)),
    ],
    ids=["drop", "unfitted"],
)
def test_what_stands_beside_a_private_step_and_fails_costs_nothing(encoder):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"n": np.linspace(0, 1, N), "w": np.resize(["u", "v"], N)})
    X.loc[7, "w"] = "q"
    accountant = PrivacyAccountant(9.0, 0.5)
    with pytest.raises(ValueError):
        by_folds(beside(encoder), X, np.tile([0, 1], N // 2), accountant)
    assert accountant.charges == []


def test_a_table_of_no_columns_is_named_after_the_charge():
    """That no category is found is what the release says: nothing could have said it before."""
    table = pd.DataFrame({"name": [f"person {i}" for i in range(60)]})
    front = ColumnTransformer([("words", DPOneHotEncoder(delta=1e-6), ["name"])])
    pipe = make_pipeline(front, DPLogisticRegression(data_norm=1.0))
    search = DPGridSearchCV(pipe, {}, epsilon=1.0, delta=1e-5, strategy="holdout")
    y = np.arange(60) % 2
    with pytest.raises(ValueError, match="returned no columns, because no category was found"):
        search.fit(table, y)


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(
    "later",
    [DPLogisticRegression(data_norm=1.0), DPStandardScaler(), DPPCA(), DPAdditiveClassifier()],
)
@pytest.mark.parametrize(
    "front",
    [
        DPOneHotEncoder(sparse_output=False),
        make_pipeline(DPOneHotEncoder(sparse_output=False)),
        make_union(DPOneHotEncoder(sparse_output=False)),
        ColumnTransformer([("words", DPOneHotEncoder(sparse_output=False), ["name"])]),
        DPOneHotEncoder(categories=[["a", "b"]], min_frequency=1000, sparse_output=False),
    ],
    ids=["encoder", "pipeline", "union", "columns", "rare"],
)
def test_a_step_behind_no_columns_says_why(front, later):
    table = pd.DataFrame({"name": [f"person {i}" for i in range(60)]})
    pipe = split_budget(make_pipeline(front, later), 1.0, 1e-5)
    with pytest.raises(ValueError, match="returned no columns, because no category was found"):
        pipe.fit(table, np.arange(60) % 2)


@pytest.mark.parametrize("later", [DPStandardScaler(bounds=(0, 1)), DPAdditiveClassifier()])
def test_a_step_that_takes_no_sparse_table_costs_nothing(later):
    table = pd.DataFrame({"name": ["a", "b"] * 30, "x": np.arange(60) / 60})
    y = np.arange(60) % 2
    accountant = PrivacyAccountant(1.0, 1e-5)
    terms = {"epsilon": 1.0, "delta": 1e-5, "accountant": accountant}
    steps = [DPTableVectorizer(), later]
    if not hasattr(later, "predict"):
        steps.append(DPLogisticRegression(data_norm=2.0))
    pipe = make_pipeline(*steps)
    with pytest.raises(ValueError, match="does not accept the sparse table"):
        DPGridSearchCV(pipe, {}, strategy="holdout", **terms).fit(table, y)
    with pytest.raises(ValueError, match="does not accept the sparse table"):
        dp_cross_val_score(pipe, table, y, **terms)
    assert accountant.epsilon_spent == 0.0
