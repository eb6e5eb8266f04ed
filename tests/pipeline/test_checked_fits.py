"""Cells that a later step would refuse are refused before the first step is charged."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import SkewedChi2Sampler
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    SplineTransformer,
    StandardScaler,
)

from skdp import (
    ChunkedArray,
    DPGridSearchCV,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPSGDClassifier,
    DPSimpleImputer,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp.exceptions import RawDataWarning
from skdp.model_selection import dp_cross_val_score, make_dp_scorer
from skdp.pipeline import split_budget, tabular_pipeline

N = 400


def table():
    rng = np.random.default_rng(0)
    columns = {"age": rng.uniform(size=N), "income": rng.uniform(size=N)}
    frame = pd.DataFrame(columns).assign(job=rng.choice(["a", "b"], size=N))
    return frame, (frame.age > 0.5).astype(int)


def scaler():
    return DPStandardScaler(bounds=(0, 1), random_state=0)


def encoder():
    return DPOneHotEncoder(
        categories=[["a", "b"]], min_frequency=2, sparse_output=False, random_state=0
    )


def model():
    return DPLogisticRegression(data_norm=2.0, random_state=0)


def columns(income, **more):
    return ColumnTransformer(
        [("age", scaler(), [0]), ("income", income, [1]), ("job", encoder(), [2])], **more
    )


# What `income` is given to is not the first step that is charged.
PIPES = {
    "columns": lambda: make_pipeline(columns(scaler()), model()),
    "columns alone": lambda: columns(scaler()),
    "columns in columns": lambda: make_pipeline(
        ColumnTransformer([("all", columns(scaler()), [0, 1, 2])]), model()
    ),
    "behind a step that learns nothing": lambda: make_pipeline(
        columns(make_pipeline(FunctionTransformer(np.sqrt), scaler())), model()
    ),
    "beside a private step, to the model": lambda: make_pipeline(columns("passthrough"), model()),
    "beside a private step, to another": lambda: make_pipeline(
        ColumnTransformer([("age", scaler(), [0]), ("income", "passthrough", [1])]),
        scaler(),
        model(),
    ),
    "a union": lambda: make_union(
        ColumnTransformer([("age", scaler(), [0])]), ColumnTransformer([("income", scaler(), [1])])
    ),
}
BAD = {"a gap": np.nan, "infinity": np.inf, "a word": "x"}


def fitted(pipe, X, y, **params):
    accountant = PrivacyAccountant(9.0, 1e-3)
    pipe = split_budget(pipe, 1.0, 1e-4, accountant)
    return accountant, pipe, lambda: pipe.fit(X, y, **params)


@pytest.mark.quick_cases(every=21)
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("pipe", PIPES)
def test_a_bad_cell_is_refused_before_the_charge(pipe, bad):
    frame, y = table()
    X = frame.to_numpy(object)
    X[7, 1] = BAD[bad]
    for held in (X, pd.DataFrame(X, columns=frame.columns)):
        accountant, _, fit = fitted(PIPES[pipe](), held, y)
        with pytest.raises((ValueError, TypeError)):
            fit()
        assert accountant.charges == []


def test_a_bad_cell_in_any_container_is_refused_before_the_charge():
    frame, y = table()
    frame.loc[7, "income"] = np.nan
    numbers = ColumnTransformer([("age", scaler(), [0]), ("income", scaler(), [1])])
    for held in (
        frame,
        pl.from_pandas(frame),
        frame[["age", "income"]].to_numpy(),
        ChunkedArray([frame[["age", "income"]].to_numpy()[:100], np.ones((300, 2))]),
    ):
        accountant, _, fit = fitted(make_pipeline(numbers, model()), held, y)
        with pytest.raises(ValueError, match="NaN"):
            fit()
        assert accountant.charges == []


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("pipe", PIPES)
def test_a_trial_leaves_no_trace_in_a_fit(pipe):
    frame, y = table()
    models = []
    for tries in (True, False):
        accountant, split, fit = fitted(PIPES[pipe](), frame, y)
        split.checks_fits = tries
        fit()
        assert len(accountant.charges) == 1 and accountant.epsilon_spent == 1.0
        models.append(split)
    answers = [
        getattr(each, "predict" if hasattr(each, "predict") else "transform")(frame)
        for each in models
    ]
    np.testing.assert_array_equal(*answers)


def test_rows_that_a_public_step_writes_to_are_those_of_one_fit():
    frame, y = table()
    X = frame[["age", "income"]].to_numpy()

    def halve(rows):
        rows *= 0.5
        return rows

    step = FunctionTransformer(halve)
    pipe = make_pipeline(
        ColumnTransformer([("age", scaler(), [0]), ("all", "passthrough", [0, 1])]), model()
    )
    pipe = make_pipeline(step, pipe)
    accountant = PrivacyAccountant(9.0, 1e-3)
    split = split_budget(pipe, 1.0, 1e-4, accountant, public_steps=["functiontransformer"])
    held = X.copy()
    split.fit(held, y)
    np.testing.assert_array_equal(held, 0.5 * X)


def test_lists_of_rows_are_tried_cell_by_cell():
    frame, y = table()
    rows = [
        [*row, mixed]
        for row, mixed in zip(frame.to_numpy(object).tolist(), "ab" * (N // 2), strict=True)
    ]
    rows[3][3] = 7
    pipe = make_pipeline(columns(scaler()), model())
    accountant, split, fit = fitted(pipe, rows, y)
    fit()
    assert len(accountant.charges) == 1 and len(split.predict(rows)) == N
    rows[5][1] = float("nan")
    accountant, _, fit = fitted(pipe, rows, y)
    with pytest.raises(ValueError, match="NaN"):
        fit()
    assert accountant.charges == []


def test_persons_reach_the_trial_and_another_accountant_is_not_charged_by_it():
    frame, y = table()
    groups = np.arange(N) // 2
    pipe = PIPES["columns"]()
    accountant = PrivacyAccountant(9.0, 1e-3, unit="person")
    bad = frame.to_numpy(object)
    bad[7, 1] = np.nan
    with config_context(enable_metadata_routing=True):
        split = split_budget(pipe, 1.0, 1e-4, accountant)
        with pytest.raises(ValueError, match="NaN"):
            split.fit(bad, y, groups=groups)
        assert accountant.charges == []
        split.fit(frame.to_numpy(object), y, groups=groups)
    assert len(accountant.charges) == 1
    other, accountant = PrivacyAccountant(9.0, 1e-3), PrivacyAccountant(9.0, 1e-3)
    split = split_budget(pipe, 1.0, 1e-4, accountant)
    split.set_params(columntransformer__income__accountant=other)
    with pytest.raises(ValueError, match="NaN"):
        split.fit(bad, y)
    assert other.charges == accountant.charges == []


def test_a_chain_of_private_steps_is_not_tried(monkeypatch):
    """Its first step reads the whole raw table before the charge, and once is enough."""
    (frame, y), planned = table(), []

    def counting(plan_fit):
        def counted(self, *args, **kwargs):
            planned.append(type(self))
            return plan_fit(self, *args, **kwargs)

        return counted

    pipe = make_pipeline(DPSimpleImputer(bounds=(0, 1)), scaler(), model())
    _, _, fit = fitted(pipe, frame[["age", "income"]], y)
    for step in (DPSimpleImputer, DPStandardScaler):
        monkeypatch.setattr(step, "plan_fit", counting(step.plan_fit))
    fit()
    # A trial plans the first step once more.
    assert planned.count(DPSimpleImputer) == planned.count(DPStandardScaler) > 0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("sparse", [True, False])
def test_where_no_category_is_found_the_error_says_so(sparse):
    frame, y = table()
    frame["job"] = [f"job {k}" for k in range(N)]
    # Each of 400 labels of one row is found with a probability of up to delta: the noise is fixed.
    encoder = DPOneHotEncoder(sparse_output=sparse, random_state=0)
    found = ColumnTransformer([("job", encoder, ["job"])])
    for pipe in (make_pipeline(found, model()), found):
        if sparse:
            with pytest.raises(ValueError, match=r"DPOneHotEncoder\(other=\.\.\.\)"):
                fitted(pipe, frame, y)[-1]()
    other = DPOneHotEncoder(other="another", sparse_output=sparse)
    pipe = make_pipeline(ColumnTransformer([("job", other, ["job"])]), model())
    _, split, fit = fitted(pipe, frame, y)
    fit()
    assert len(split.predict(frame)) == N


def test_containers_keep_their_methods():
    frame, y = table()
    X = frame[["age", "income"]]
    union = FeatureUnion([("one", scaler()), ("two", scaler())])
    for pipe in (ColumnTransformer([("age", scaler(), [0])]), union, make_pipeline(scaler())):
        one, other = (fitted(pipe, X, y)[1] for _ in range(2))
        np.testing.assert_array_equal(one.fit_transform(X, y), other.fit(X, y).transform(X))


FRAMES = {
    "the columns": lambda pipe, output: pipe[0].set_output(transform=output),
    "the pipeline": lambda pipe, output: pipe.set_output(transform=output),
    "one step": lambda pipe, output: pipe[0].transformers[0][1].set_output(transform=output),
    "all inner steps": lambda pipe, output: [
        step.set_output(transform=output) for _, step, _ in pipe[0].transformers
    ],
}


@pytest.mark.quick_cases(every=12)
@pytest.mark.parametrize("output", ["pandas", "polars", "default"])
@pytest.mark.parametrize("where", FRAMES)
def test_private_steps_may_make_frames(where, output):
    frame, y = table()
    pipes = [PIPES["columns"]() for _ in range(2)]
    FRAMES[where](pipes[0], output)
    answers = []
    for pipe in pipes:
        accountant, split, fit = fitted(pipe, frame, y)
        fit()
        assert accountant.epsilon_spent == 1.0
        answers.append(split.predict_proba(frame))
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize(
    ("unit", "params", "error"),
    [
        ("row", {"dplogisticregression__sample_weight": np.ones(N)}, "sample_weight"),
        ("row", {"dplogisticregression__foo": 1}, "does not accept the parameter 'foo'"),
        ("row", {"dplogisticregression__groups": np.arange(N)}, "unit='person'"),
        ("person", {"dpstandardscaler__groups": np.arange(N)}, "receives no groups"),
        (
            "person",
            {
                "dpstandardscaler__groups": np.arange(N) // 4,
                "dplogisticregression__groups": np.arange(N),
            },
            "different groups",
        ),
    ],
)
def test_fit_parameters_of_later_steps_are_checked_before_the_charge(unit, params, error):
    frame, y = table()
    accountant = PrivacyAccountant(9.0, 1e-3, unit=unit)
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1e5)), DPLogisticRegression(data_norm=2.0))
    split = split_budget(pipe, 1.0, 1e-6, accountant)
    with pytest.raises((TypeError, ValueError), match=error):
        split.fit(frame[["age", "income"]], y, **params)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_groups_of_a_pipeline_are_those_of_all_its_private_steps(method):
    frame, y = table()
    accountant = PrivacyAccountant(9.0, 1e-3, unit="person")
    last = (
        DPLogisticRegression(data_norm=2.0) if method == "fit" else DPStandardScaler(bounds=(0, 9))
    )
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1e5)), last)
    split = split_budget(pipe, 1.0, 1e-6, accountant)
    getattr(split, method)(frame[["age", "income"]], y, groups=np.arange(N) // 4)
    assert accountant.epsilon_spent == pytest.approx(1.0)
    assert all("person" in step.privacy_.unit for step in split)


def test_groups_of_a_pipeline_by_rows_are_refused():
    frame, y = table()
    accountant = PrivacyAccountant(9.0, 1e-3)
    pipe = tabular_pipeline("classifier", epsilon=1.0, accountant=accountant)
    with pytest.raises(ValueError, match="unit='person'"):
        pipe.fit(frame, y, groups=np.arange(N) // 4)
    assert accountant.epsilon_spent == 0.0


def test_the_same_groups_for_all_steps_are_taken():
    frame, y = table()
    accountant = PrivacyAccountant(9.0, 1e-3, unit="person")
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1e5)), DPLogisticRegression(data_norm=2.0))
    ids = np.arange(N) // 4
    split_budget(pipe, 1.0, 1e-6, accountant).fit(
        frame[["age", "income"]],
        y,
        dpstandardscaler__groups=ids,
        dplogisticregression__groups=ids.tolist(),
    )
    assert accountant.epsilon_spent == pytest.approx(1.0)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    "change",
    [
        {"n_samples": N - 1},
        {"n_features": 5},
        {"classes": [1, 2]},
        {"dplogisticregression__epsilon": 5.0},
        {"dpstandardscaler__epsilon": 5.0},
    ],
    ids=str,
)
def test_a_fit_that_is_not_the_planned_one_is_refused_before_the_charge(change):
    frame, y = table()
    X = frame[["age", "income"]]
    accountant = PrivacyAccountant(9.0, 1e-3)
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1e5)), DPLogisticRegression(data_norm=2.0))
    shape = {"n_samples": N, "n_features": 2, "classes": [0, 1]}
    is_shape = next(iter(change)) in shape
    split = split_budget(pipe, 1.0, 1e-6, accountant, **(shape | change if is_shape else shape))
    if not is_shape:
        split.set_params(**change)
    with pytest.raises(ValueError):
        split.fit(X, y)
    assert accountant.epsilon_spent == 0.0


RAW = [StandardScaler(), SimpleImputer(), PCA(2), SelectKBest(k=2), OneHotEncoder()]


def plan_of(kind, accountant, public_steps=()):
    """Return a planned container, and the name of a step of it."""
    scaler = DPStandardScaler(bounds=(-1, 1))
    if kind == "pipeline":
        pipe = Pipeline([("part", scaler), ("model", DPLogisticRegression(data_norm=2.0))])
    elif kind == "union":
        pipe = FeatureUnion([("part", scaler), ("other", clone(scaler))])
    elif kind == "columns":
        pipe = ColumnTransformer([("part", scaler, [0, 1]), ("other", clone(scaler), [1, 2])])
    else:
        inner = ColumnTransformer([("part", scaler, [0, 1])], remainder="passthrough")
        pipe = Pipeline([("columns", inner), ("model", DPLogisticRegression(data_norm=2.0))])
    plan = split_budget(pipe, 0.2, 1e-6, accountant, public_steps=public_steps)
    return plan, "columns__part" if kind == "nested" else "part"


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("kind", ["pipeline", "union", "columns", "nested"])
@pytest.mark.parametrize("raw", RAW, ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("is_cloned", [False, True])
def test_a_raw_step_that_was_put_into_a_plan_is_refused_before_the_charge(kind, raw, is_cloned):
    accountant = PrivacyAccountant(1.0, 1e-4)
    plan, name = plan_of(kind, accountant)
    plan.set_params(**{name: clone(raw)})
    if is_cloned:
        plan = clone(plan)
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    with pytest.raises(ValueError, match=f"{name}.* learns from the data without privacy"):
        plan.fit(X, X[:, 0] > 0)
    assert accountant.epsilon_spent == 0.0


def test_a_step_before_those_of_a_plan_is_judged():
    accountant = PrivacyAccountant(1.0, 1e-4)
    plan, _ = plan_of("pipeline", accountant)
    plan.steps.insert(0, ("raw", StandardScaler()))
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    with pytest.raises(ValueError, match="step 'raw' learns"):
        plan.fit(X, X[:, 0] > 0)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("search", ["ours", "theirs"])
def test_a_search_publishes_no_raw_step_in_a_plan(search):
    accountant = PrivacyAccountant(10.0, 1e-2)
    grid = {"part": [StandardScaler()]}
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    if search == "ours":
        plan, _ = plan_of("pipeline", None)
        tool = DPGridSearchCV(plan, grid, epsilon=1.0, delta=1e-5, accountant=accountant)
    else:
        plan, _ = plan_of("pipeline", accountant)
        score = make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)
        folds = KFold(3, shuffle=True, random_state=0)
        tool = GridSearchCV(plan, grid, scoring=score, cv=folds)
    with pytest.raises((ValueError, RawDataWarning), match="learns from|has steps that learn"):
        tool.fit(X, (X[:, 0] > 0).astype(int))
    assert accountant.epsilon_spent == 0.0


def test_a_step_that_charges_nothing_is_refused_in_a_plan():
    accountant = PrivacyAccountant(1.0, 1e-4)
    plan, _ = plan_of("pipeline", accountant)
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    with pytest.raises(ValueError, match="would not be charged"):
        plan.set_params(model=DPLogisticRegression(data_norm=2.0)).fit(X, X[:, 0] > 0)
    assert accountant.epsilon_spent == 0.0


def test_what_was_declared_public_stays_public_in_clones_and_slices():
    accountant = PrivacyAccountant(1.0, 1e-4)
    steps = [("raw", StandardScaler()), ("model", DPLogisticRegression(data_norm=2.0))]
    plan = split_budget(Pipeline(steps), 0.2, 1e-6, accountant, public_steps=["raw"])
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    y = X[:, 0] > 0
    for pipe in (clone(plan), pickle.loads(pickle.dumps(plan)), plan[:1], plan[1:]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pipe.fit(X, y)
    plan.set_params(raw="passthrough").fit(X, y)
    assert accountant.epsilon_spent == pytest.approx(0.8)


def test_a_refused_fit_leaves_no_earlier_model():
    frame, y = table()
    X = frame[["age", "income"]]
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1e5)), DPLogisticRegression(data_norm=2.0))
    split = split_budget(pipe, 1.0, 1e-6, PrivacyAccountant(9.0, 1e-3)).fit(X, y)
    split.set_params(dplogisticregression__C=-1.0)
    with pytest.raises(ValueError, match="C must be"):
        split.fit(X, y)
    with pytest.raises(NotFittedError):
        split.predict(X)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("kind", ["pipeline", "nested"])
def test_a_plan_can_be_cross_validated_privately(kind):
    accountant = PrivacyAccountant(10.0, 1e-2)
    plan, _ = plan_of(kind, None)
    X = np.random.default_rng(0).uniform(-1, 1, (90, 3))
    terms = {"epsilon": 1.0, "delta": 1e-5, "accountant": accountant}
    dp_cross_val_score(plan, X, (X[:, 0] > 0).astype(int), cv=3, **terms)
    assert accountant.epsilon_spent == pytest.approx(1.0)


@pytest.mark.parametrize(
    "seed", [-1, "a", 0.5, np.random.default_rng(0)], ids=["-1", "a", "0.5", "generator"]
)
def test_the_seed_of_a_later_step_is_checked_before_the_charge(seed):
    frame, y = table()
    accountant = PrivacyAccountant(9.0, 1e-3)
    last = DPLogisticRegression(data_norm=2.0, random_state=seed)
    error = "step 'dplogisticregression': random_state must be"
    with pytest.raises(ValueError, match=error):
        split_budget(make_pipeline(scaler(), last), 1.0, 1e-6, accountant)
    pipe = make_pipeline(scaler(), DPLogisticRegression(data_norm=2.0))
    split = split_budget(pipe, 1.0, 1e-6, accountant)
    with pytest.raises(ValueError, match=error):
        split.set_params(dplogisticregression__random_state=seed).fit(frame[["age", "income"]], y)
    assert accountant.epsilon_spent == 0.0


def test_a_refused_fit_leaves_frozen_models_as_they_were():
    frame, y = table()
    X = frame[["age", "income"]]
    paid = DPStandardScaler(bounds=(0, 1), random_state=0).fit(X)
    pipe = make_pipeline(FrozenEstimator(paid), DPLogisticRegression(data_norm=2.0))
    split = split_budget(pipe, 1.0, 1e-6, PrivacyAccountant(9.0, 1e-3)).fit(X, y)
    with pytest.raises(ValueError, match="C must be"):
        split.set_params(dplogisticregression__C=-1.0).fit(X, y)
    assert hasattr(split[0].estimator, "mean_") and hasattr(paid, "mean_")
    assert not hasattr(split[1], "coef_")


def test_a_search_behind_a_step_takes_parameters_for_its_candidates():
    frame, y = table()
    last = DPLogisticRegression(data_norm=2.0)
    search = DPGridSearchCV(last, {"C": [0.1, 1.0]}, strategy="cv", cv=2)
    params = {"dpgridsearchcv__nope": 1}
    accountant = PrivacyAccountant(9.0, 1e-3)
    split = split_budget(make_pipeline(scaler(), search), 1.0, 1e-4, accountant)
    # No signature of a step tells it: the candidates of the search do.
    with pytest.raises(ValueError, match="dpgridsearchcv.*does not accept the parameter 'nope'"):
        split.fit(frame[["age", "income"]], y, **params)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("n_samples", [N // 4, N // 4 - 1, N])
def test_a_number_of_persons_that_was_not_planned_is_refused_before_the_charge(n_samples):
    frame, y = table()
    accountant = PrivacyAccountant(9.0, 1e-3, unit="person")
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1e5)), DPSGDClassifier(data_norm=2.0))
    split = split_budget(pipe, 1.0, 1e-6, accountant, n_samples=n_samples, n_features=2)
    ids = np.arange(N) // 4
    groups = {f"{name}__groups": ids for name, _ in split.steps}
    if n_samples == N // 4:
        split.fit(frame[["age", "income"]], y, **groups)
        assert accountant.epsilon_spent == pytest.approx(1.0)
        return
    with pytest.raises(ValueError, match="dpsgdclassifier.*number of persons"):
        split.fit(frame[["age", "income"]], y, **groups)
    assert accountant.epsilon_spent == 0.0


def test_a_public_step_beside_the_only_private_one_reads_its_cells_before_the_charge():
    frame, _ = table()
    accountant = PrivacyAccountant(9.0, 1e-3)
    words = OneHotEncoder(categories=[["a", "c"]], sparse_output=False)
    beside = ColumnTransformer([("age", scaler(), ["age"]), ("job", words, ["job"])])
    with pytest.raises(ValueError, match="unknown categories"):
        split_budget(beside, 1.0, 1e-6, accountant).fit(frame)
    assert accountant.epsilon_spent == 0.0


KNOTS = np.linspace(0, 1, 4)[:, None]
FAILING = [
    FunctionTransformer(np.log),
    SkewedChi2Sampler(),
    SplineTransformer(knots=KNOTS, extrapolation="error"),
]


@pytest.mark.parametrize("step", FAILING, ids=lambda step: type(step).__name__)
def test_a_step_that_may_fail_behind_a_charge_is_warned_of_when_it_is_planned(step):
    pipe = Pipeline([("first", scaler()), ("later", step), ("model", model())])
    with pytest.warns(UserWarning, match="step 'later': its fit raises on a value"):
        split_budget(pipe, 1.0, 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # What it reads of the raw table it reads before the charge.
        split_budget(Pipeline([("later", step), ("model", model())]), 1.0, 1e-6)
        split_budget(make_pipeline(scaler(), FunctionTransformer(np.exp), model()), 1.0, 1e-6)
