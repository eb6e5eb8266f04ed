"""Searches and validations are refused before a charge if a fit would refuse a single row.

scikit-learn replaces the error of a fit with NaN, so the scores would show which folds contain the
row.
"""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    cross_val_score,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, SplineTransformer

from skdp import (
    DPDecisionTreeClassifier,
    DPGridSearchCV,
    DPLogisticRegression,
    DPRidge,
    DPSimpleImputer,
    DPStandardScaler,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from skdp.model_selection import make_dp_scorer

FOLDS = KFold(2, shuffle=True, random_state=0)
N_ROWS = 40
ROW = 11


def classifier(accountant):
    return DPLogisticRegression(
        0.1, delta=1e-6, data_norm=2.0, classes=[0, 1], accountant=accountant
    )


def scaler(accountant):
    return DPStandardScaler(0.1, bounds=(-1, 1), accountant=accountant)


MODELS = {
    "classifier": classifier,
    "pipeline": lambda a: make_pipeline(scaler(a), classifier(a)),
    "passed on": lambda a: Pipeline([("none", "passthrough"), ("model", classifier(a))]),
    "function": lambda a: make_pipeline(FunctionTransformer(np.negative), classifier(a)),
    "union": lambda a: make_pipeline(make_union(scaler(a), scaler(a)), classifier(a)),
    "columns": lambda a: make_pipeline(
        make_column_transformer((scaler(a), [0]), remainder="passthrough"), classifier(a)
    ),
    "selection": lambda a: make_pipeline(SelectFromModel(classifier(a)), classifier(a)),
    "elimination": lambda a: RFE(classifier(a), n_features_to_select=2),
    "threshold": lambda a: FixedThresholdClassifier(classifier(a)),
    "voting": lambda a: VotingClassifier([("one", make_pipeline(scaler(a), classifier(a)))]),
    "search": lambda a: GridSearchCV(
        make_pipeline(scaler(a), classifier(a)), {}, scoring=score(a), cv=FOLDS
    ),
    "private search": lambda a: DPGridSearchCV(
        DPLogisticRegression(data_norm=2.0, classes=[0, 1]),
        {},
        epsilon=0.1,
        delta=1e-6,
        cv=2,
        accountant=a,
    ),
}
# Models whose members receive other labels, or columns.
WITHOUT_LABELS = ("voting",)


def score(accountant):
    return make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)


def search(kind, **options):
    return lambda model, X, y, a: kind(model, {}, scoring=score(a), cv=FOLDS, **options).fit(X, y)


TOOLS = {
    "cross_val_score": lambda model, X, y, a: cross_val_score(
        model, X, y, scoring=score(a), cv=FOLDS
    ),
    "learning_curve": lambda model, X, y, a: learning_curve(
        model, X, y, scoring=score(a), cv=FOLDS, train_sizes=[1.0]
    ),
    "validation_curve": lambda model, X, y, a: validation_curve(
        model, X, y, param_name="verbose", param_range=[0], scoring=score(a), cv=FOLDS
    ),
    "GridSearchCV": search(GridSearchCV),
    "GridSearchCV that stops": search(GridSearchCV, error_score="raise"),
    "HalvingGridSearchCV": search(HalvingGridSearchCV, min_resources=N_ROWS),
    "inner candidates": lambda model, X, y, a: GridSearchCV(
        Pipeline([("model", "passthrough")]), {"model": [model]}, scoring=score(a), cv=FOLDS
    ).fit(X, y),
}

# Tools that are checked in the same places as others.
SIMILAR = ("validation_curve", "GridSearchCV that stops", "HalvingGridSearchCV")


def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.9, 0.9, (N_ROWS, 3))
    return X, (X[:, 0] > 0).astype(int)


def with_defect(defect):
    X, y = table()
    if defect == "label":
        y[ROW] = 2
    else:
        X[ROW, 1] = np.nan
    return X, y


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore::UserWarning")
@pytest.mark.parametrize("defect", ["missing", "label"])
@pytest.mark.parametrize(
    "tool",
    [pytest.param(tool, marks=pytest.mark.thorough) if tool in SIMILAR else tool for tool in TOOLS],
)
def test_a_row_that_a_fit_would_refuse_costs_nothing(tool, defect):
    X, y = with_defect(defect)
    for name, build in MODELS.items():
        if defect == "label" and name in WITHOUT_LABELS:
            continue
        accountant = PrivacyAccountant(100.0, 1e-2)
        with pytest.raises(ValueError, match="NaN|label"):
            TOOLS[tool](build(accountant), X, y, accountant)
        assert accountant.epsilon_spent == 0, name


@pytest.mark.parametrize("model", [name for name in MODELS if name != "private search"])
def test_rows_that_all_fits_accept_are_charged(model):
    """The check itself is no tool around the private estimators, about which a ledger complains."""
    accountant = PrivacyAccountant(100.0, 1e-2, on_raw_data="raise")
    scores = TOOLS["cross_val_score"](MODELS[model](accountant), *table(), accountant)
    assert np.isfinite(scores).all()
    assert accountant.epsilon_spent > 0


def test_a_step_that_fills_gaps_makes_them_acceptable():
    X, y = with_defect("missing")
    accountant = PrivacyAccountant(100.0, 1e-2)
    imputer = DPSimpleImputer(0.1, bounds=(-1, 1), accountant=accountant)
    model = make_pipeline(imputer, classifier(accountant))
    scores = TOOLS["cross_val_score"](model, X, y, accountant)
    assert np.isfinite(scores).all()


def test_a_value_that_a_function_makes_infinite_is_refused():
    X, y = table()
    X[ROW, 1] = 0.0
    accountant = PrivacyAccountant(100.0, 1e-2)
    inverse = FunctionTransformer(partial(np.divide, 1.0))
    model = make_pipeline(inverse, scaler(accountant), classifier(accountant))
    with pytest.raises(ValueError, match="infinity"):
        TOOLS["GridSearchCV"](model, X, y, accountant)
    assert accountant.epsilon_spent == 0


@pytest.mark.parametrize("is_target", [False, True])
def test_targets_are_transformed_before_they_are_checked(is_target):
    X, _ = table()
    y = np.abs(X[:, 0]) + 0.1
    if is_target:
        y[ROW] = 0.0
    else:
        X[ROW, 1] = np.nan
    accountant = PrivacyAccountant(100.0, 1e-2)
    ridge = DPRidge(0.1, delta=1e-6, data_norm=2.0, target_bounds=(-3, 3), accountant=accountant)
    model = TransformedTargetRegressor(ridge, func=np.log, inverse_func=np.exp)
    scoring = make_dp_scorer(
        "neg_mean_squared_error", epsilon=0.1, target_bounds=(-3, 3), accountant=accountant
    )
    with pytest.raises(ValueError, match="NaN|infinity"):
        cross_val_score(model, X, y, scoring=scoring, cv=FOLDS)
    assert accountant.epsilon_spent == 0


@pytest.mark.parametrize("kind", [RFECV, SequentialFeatureSelector])
def test_selections_by_folds_check_all_columns_first(kind):
    X, y = with_defect("missing")
    accountant = PrivacyAccountant(100.0, 1e-2)
    selection = kind(classifier(accountant), scoring=score(accountant), cv=FOLDS)
    with pytest.raises(ValueError, match="NaN"):
        selection.fit(X, y)
    assert accountant.epsilon_spent == 0


def test_columns_of_one_model_for_each_label_are_checked():
    X, _ = with_defect("missing")
    accountant = PrivacyAccountant(100.0, 1e-2)
    model = OneVsRestClassifier(classifier(accountant))
    with pytest.raises(ValueError, match="NaN"):
        TOOLS["cross_val_score"](model, X, np.arange(N_ROWS) % 3, accountant)
    assert accountant.epsilon_spent == 0


def test_rows_that_a_fitted_model_would_refuse_cost_nothing():
    X, y = with_defect("missing")
    accountant = PrivacyAccountant(100.0, 1e-2)
    model = FixedThresholdClassifier(FrozenEstimator(classifier(accountant).fit(*table())))
    charged = accountant.epsilon_spent
    with pytest.raises(ValueError, match="NaN"):
        TOOLS["GridSearchCV"](model, X, y, accountant)
    assert accountant.epsilon_spent == charged
    assert np.isfinite(TOOLS["cross_val_score"](model, *table(), accountant)).all()


@pytest.mark.parametrize("passthrough", [False, True])
def test_the_last_stage_of_a_stack_receives_the_rows_that_its_members_accept(passthrough):
    X, y = with_defect("missing")
    accountant = PrivacyAccountant(100.0, 1e-2)
    tree = DPDecisionTreeClassifier(0.1, bounds=(-1, 1), accountant=accountant)
    stack = StackingClassifier(
        [("tree", tree)], classifier(accountant), cv=FOLDS, passthrough=passthrough
    )
    if passthrough:
        with pytest.raises(ValueError, match="NaN"):
            TOOLS["cross_val_score"](stack, X, y, accountant)
        assert accountant.epsilon_spent == 0
        X, y = table()
    assert np.isfinite(TOOLS["cross_val_score"](stack, X, y, accountant)).all()


@pytest.mark.parametrize("tool", ["cross_val_score", "GridSearchCV"])
def test_a_list_that_a_score_would_refuse_costs_nothing(tool):
    """A fit to hashed words accepts rows of any length; a private score does not."""
    rows = [["a", "b"]] * (N_ROWS - 1) + [["a", "b", "c"]]
    accountant = PrivacyAccountant(100.0, 1e-2)
    model = make_pipeline(FeatureHasher(8, input_type="string"), classifier(accountant))
    with pytest.raises(ValueError, match="rows of different lengths"):
        TOOLS[tool](model, rows, table()[1], accountant)
    assert accountant.epsilon_spent == 0
    scores = TOOLS["cross_val_score"](model, rows[:-1], table()[1][:-1], accountant)
    assert np.isfinite(scores).all()


LATE = {
    "function": FunctionTransformer(np.log),
    "splines": SplineTransformer(knots=np.array([[-9.0], [9.0]]), extrapolation="error"),
}


@pytest.mark.parametrize("name", LATE)
@pytest.mark.parametrize("tool", ["cross_val_score", "GridSearchCV"])
def test_values_that_fail_behind_a_private_step_are_warned_about(tool, name):
    X, y = table()
    accountant = PrivacyAccountant(100.0, 1e-2, on_raw_data="raise")
    model = make_pipeline(scaler(accountant), LATE[name], classifier(accountant))
    with pytest.raises(ValueError, match=f"error_score='raise'.*{type(LATE[name]).__name__} in"):
        TOOLS[tool](model, X[:, :1], y, accountant)
    assert accountant.epsilon_spent == 0


def test_values_that_seldom_fail_are_not_warned_about():
    X, y = table()
    accountant = PrivacyAccountant(100.0, 1e-2, on_raw_data="raise")
    model = make_pipeline(scaler(accountant), FunctionTransformer(np.exp), classifier(accountant))
    TOOLS["cross_val_score"](model, X, y, accountant)
    late = make_pipeline(scaler(accountant), FunctionTransformer(np.cbrt), classifier(accountant))
    TOOLS["GridSearchCV that stops"](late, X, y, accountant)
    assert accountant.epsilon_spent > 0


@pytest.mark.filterwarnings("ignore::skdp.RawDataWarning")
@pytest.mark.parametrize("is_frozen", [False, True])
def test_the_check_charges_nothing_for_reports_of_rows(is_frozen):
    """Each transform of randomized response is charged, so it is no part of the check."""
    X, y = table()
    X = (X > 0).astype(float)

    def build(accountant):
        reports = RandomizedResponseTransformer(
            0.1, categories=[[0.0, 1.0]] * 3, accountant=accountant
        )
        if is_frozen:
            reports = FrozenEstimator(reports.fit(X))
        return make_pipeline(reports, classifier(accountant))

    accountant = PrivacyAccountant(100.0, 1e-2)
    model = build(accountant)
    scoring = score(accountant)
    for train, test in FOLDS.split(X):
        scoring(clone(model).fit(X[train], y[train]), X[test], y[test])
    by_tool = PrivacyAccountant(100.0, 1e-2)
    TOOLS["cross_val_score"](build(by_tool), X, y, by_tool)
    assert accountant.epsilon_spent == by_tool.epsilon_spent > 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_candidate_without_private_steps_is_not_read():
    X, y = table()
    accountant = PrivacyAccountant(100.0, 1e-2)
    pipe = Pipeline([("step", "passthrough"), ("model", classifier(accountant))])
    GridSearchCV(
        pipe, {"step": ["passthrough", scaler(accountant)]}, scoring=score(accountant), cv=FOLDS
    ).fit(X, y)
    empty = Pipeline([("model", "passthrough")])
    grid = {"model": ["passthrough", classifier(accountant)]}
    search = GridSearchCV(empty, grid, scoring=score(accountant), cv=FOLDS).fit(X, y)
    assert isinstance(search.best_estimator_["model"], DPLogisticRegression)
