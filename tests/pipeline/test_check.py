import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import RFECV
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    StratifiedKFold,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

from skdp import (
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPLinearSVC,
    DPLogisticRegression,
    DPMaxAbsScaler,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPQuantileTransformer,
    DPRobustScaler,
    DPStandardScaler,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from skdp.accounting import Gaussian, Laplace, get_epsilon
from skdp.model_selection import PersonKFold, make_dp_scorer
from skdp.pipeline import check_pipeline, split_budget

ACCOUNTANT = PrivacyAccountant(100.0, 0.1)


def scaler(**params):
    return DPStandardScaler(**({"bounds": (0, 1), "accountant": ACCOUNTANT} | params))


def magnitudes():
    return DPMaxAbsScaler(bounds=(0, 1), accountant=ACCOUNTANT)


def model(**params):
    return DPLogisticRegression(**({"accountant": ACCOUNTANT} | params))


def found(result):
    return {(finding.step, finding.problem) for finding in result}


def test_a_private_pipeline_has_no_findings():
    result = check_pipeline(make_pipeline(Normalizer(), scaler(), model(mechanism="output")))
    assert result.accepted and not list(result)
    assert [step.kind for step in result.steps] == ["stateless", "private", "private"]
    assert "no findings" in str(result)


@pytest.mark.parametrize(
    ("step", "remedy"),
    [
        (StandardScaler(), "use DPStandardScaler, or name it in public_steps"),
        (OneHotEncoder(), "declare its categories"),
        (SimpleImputer(), "strategy='constant'"),
    ],
)
def test_steps_that_learn_without_privacy_are_named(step, remedy):
    result = check_pipeline(Pipeline([("first", step), ("model", model())]))
    assert found(result) == {("first", "not private")} and not result.accepted
    assert remedy in next(iter(result)).message


def test_a_public_step_is_repeated():
    result = check_pipeline(
        make_pipeline(StandardScaler(), model()), public_steps=["standardscaler"]
    )
    assert found(result) == {("standardscaler", "declared public")} and result.accepted
    with pytest.raises(ValueError, match="not the name of a step"):
        check_pipeline(model(), public_steps=["x"])


def test_steps_are_found_wherever_they_are():
    columns = ColumnTransformer(
        [("a", StandardScaler(), [0, 1]), ("b", "passthrough", slice(2, 4))],
        remainder=make_pipeline(StandardScaler()),
        sparse_threshold=0,
    )
    pipe = Pipeline(
        [("c", columns), ("u", FeatureUnion([("s", StandardScaler())])), ("model", model())]
    )
    result = check_pipeline(pipe, n_features=5)
    names = ["c__a", "c__remainder__standardscaler", "u__s"]
    assert found(result) == {(name, "not private") for name in names}
    assert [step.columns for step in result.steps][:3] == [
        "columns 0, 1",
        "columns 2:4",
        "the remaining columns",
    ]
    full = ColumnTransformer(
        [("a", "passthrough", [0, 1])], remainder=StandardScaler(), sparse_threshold=0
    )
    assert check_pipeline(full, n_features=2).accepted
    assert not check_pipeline(full, n_features=3).accepted


def test_a_name_and_a_position_may_mean_the_same_column():
    columns = ColumnTransformer(
        [("a", scaler(), ["x"]), ("b", scaler(), [0]), ("c", scaler(), ["y"])],
        remainder=StandardScaler(),
        sparse_threshold=0,
    )
    assert found(check_pipeline(columns, n_features=3)) == {("remainder", "not private")}


def test_columns_chosen_by_a_function_of_the_table():
    def largest(X):
        return [int(np.argmax(X.sum(axis=0)))]

    chosen = ColumnTransformer([("a", scaler(), largest)])
    assert found(check_pipeline(chosen)) == {("a__columns", "not private")}
    with pytest.raises(ValueError, match="a__columns"):
        split_budget(chosen, 1.0)
    by_type = ColumnTransformer([("a", scaler(), make_column_selector(dtype_include="number"))])
    assert check_pipeline(by_type).accepted


def test_costs_are_those_of_the_fits():
    accountant = PrivacyAccountant(100.0, 0.1)
    pipe = make_pipeline(
        DPStandardScaler(0.25, delta=1e-6, bounds=(0, 1), accountant=accountant),
        DPLogisticRegression(0.75, delta=9e-6, C=1.0, mechanism="output", accountant=accountant),
    )
    result = check_pipeline(pipe)
    assert (result.epsilon, result.delta) == pytest.approx((1.0, 1e-5))
    X = np.random.default_rng(0).uniform(size=(200, 3))
    pipe.fit(X, X[:, 0] > 0.5)
    assert [step.event for step in result.steps] == [s.event for s in accountant.charges]
    assert result.epsilon == pytest.approx(accountant.epsilon_spent)
    assert result.joint_epsilon == pytest.approx(accountant.recompose(delta=1e-5))
    assert result.joint_epsilon < 0.9


def test_a_split_pipeline_costs_its_total():
    accountant = PrivacyAccountant(100.0, 0.1)
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLinearSVC())
    result = check_pipeline(split_budget(pipe, 1.0, 1e-5, accountant))
    assert (result.epsilon, result.delta, result.joint_epsilon) == (1.0, 1e-5, 1.0)
    assert not list(result)
    without = check_pipeline(split_budget(pipe, 1.0, 1e-5))
    assert without.epsilon > 1.0 >= without.joint_epsilon
    assert {problem for _, problem in found(without)} == {"no accountant"}


def test_costs_are_of_the_accountants_unit():
    accountant = PrivacyAccountant(100.0, 0.1, unit="group", max_rows=2)
    result = check_pipeline(scaler(accountant=accountant))
    assert (result.epsilon, result.joint_epsilon) == (1.0, pytest.approx(1.0, rel=1e-9))


def test_plain_searches_publish_raw_scores():
    search = GridSearchCV(
        make_pipeline(scaler(), model()), {"dplogisticregression__C": [1.0, 2.0]}, cv=KFold(5)
    )
    result = check_pipeline(search)
    assert ("GridSearchCV", "raw scores") in found(result) and not result.accepted
    assert ("GridSearchCV", "stratified folds") not in found(result)
    assert ("estimator__dpstandardscaler", "paid twice") in found(result)
    assert not result.exact and "costs at least" in str(result)
    columns = ColumnTransformer([("s", scaler(), [0])], remainder="passthrough")
    inside = check_pipeline(GridSearchCV(make_pipeline(columns, model()), {}, cv=KFold(5)))
    assert {problem for _, problem in found(inside)} == {"raw scores", "paid twice"}
    tuned = GridSearchCV(
        make_pipeline(scaler(), model()), [{"dpstandardscaler__with_mean": [True, False]}]
    )
    assert not any(problem == "paid twice" for _, problem in found(check_pipeline(tuned)))


@pytest.mark.parametrize(
    ("cv", "stratified"), [(None, True), (3, True), (StratifiedKFold(3), True), (KFold(3), False)]
)
def test_stratified_folds_are_named(cv, stratified):
    result = check_pipeline(GridSearchCV(model(), {"C": [1.0]}, cv=cv))
    assert (("GridSearchCV", "stratified folds") in found(result)) is stratified


SCORER = make_dp_scorer("accuracy", epsilon=0.1, accountant=ACCOUNTANT)
TABLE = np.ones((9, 2))
# Reasons why a search is not accepted, each with the parameters that are the reason.
REASONS_OF_SEARCHES = {
    "raw scores": {"scoring": "accuracy"},
    "not private": {"importance_getter": lambda model: TABLE[0]},
    "stratified folds": {"cv": StratifiedKFold(3)},
    "folds by values": {"cv": GroupKFold(3)},
}


@pytest.mark.parametrize("first", REASONS_OF_SEARCHES)
@pytest.mark.parametrize("second", REASONS_OF_SEARCHES)
def test_each_reason_against_a_search_is_named_and_no_other(first, second):
    params = REASONS_OF_SEARCHES[first] | REASONS_OF_SEARCHES[second]
    reasons = {first, second}
    if {"stratified folds", "folds by values"} == reasons:
        reasons = {second}
    search = RFECV(model(), **{"scoring": SCORER, "cv": KFold(3)} | params)
    assert {problem for _, problem in found(check_pipeline(search))} == reasons


def test_a_halving_search_with_private_scores_has_no_raw_ones():
    search = HalvingGridSearchCV(model(), {"C": [1.0]}, scoring=SCORER, cv=KFold(3))
    result = check_pipeline(search)
    assert found(result) == {("HalvingGridSearchCV", "not checkable")} and not result.accepted


@pytest.mark.parametrize(
    "cv", [GroupKFold(3), KFold(3), 3, None, [(np.arange(5), np.arange(5, 9))], PersonKFold(3)]
)
def test_folds_under_persons_are_of_persons(cv):
    accountant = PrivacyAccountant(100.0, 0.1, unit="person")
    pipe = make_pipeline(StandardScaler(), model(accountant=accountant))
    result = check_pipeline(GridSearchCV(pipe, {"dplogisticregression__C": [1.0]}, cv=cv))
    of_folds = {problem for _, problem in found(result) if "folds" in problem}
    assert of_folds == (set() if isinstance(cv, PersonKFold) else {"folds not by person"})


def test_other_wrappers_and_local_privacy():
    result = check_pipeline(OneVsRestClassifier(DPLinearSVC(accountant=ACCOUNTANT)))
    assert found(result) == {("OneVsRestClassifier", "not checkable")}
    assert [step.step for step in result.steps] == ["OneVsRestClassifier", "estimator"]
    local = RandomizedResponseTransformer(categories=[0, 1], accountant=ACCOUNTANT)
    result = check_pipeline(make_pipeline(local, model()))
    assert found(result) == {("randomizedresponsetransformer", "local")} and not result.accepted


@pytest.mark.parametrize(
    ("pipe", "step"),
    [
        (make_pipeline(scaler(), scaler(epsilon=0.1), model()), "dpstandardscaler-1"),
        (make_pipeline(magnitudes(), scaler()), "dpmaxabsscaler"),
        (make_union(scaler(), scaler()), "dpstandardscaler-2"),
        (Pipeline([("a", Pipeline([("s", scaler())])), ("b", scaler())]), "a__s"),
        (ColumnTransformer([("a", scaler(), [0]), ("b", scaler(), [0])]), "b"),
    ],
)
def test_steps_that_are_paid_for_to_no_purpose(pipe, step):
    assert found(check_pipeline(pipe)) == {(step, "paid twice")}


@pytest.mark.parametrize(
    "transformer",
    [
        DPStandardScaler(),
        DPStandardScaler(with_mean=False),
        DPStandardScaler(with_std=False),
        DPMinMaxScaler(),
        DPMaxAbsScaler(),
        DPRobustScaler(),
        DPRobustScaler(with_centering=False),
        DPRobustScaler(with_scaling=False),
        DPQuantileTransformer(n_quantiles=5),
        DPKBinsDiscretizer(encode="ordinal", n_bins=4),
        DPMeanTransformer(),
        DPHistogramTransformer(encode="ordinal", n_bins=4),
    ],
    ids=str,
)
def test_scaling_before_is_for_nothing_if_the_output_is_the_same_without_it(transformer):
    """The output for X is compared with that for 3 X + 2 and its bounds."""
    X = np.random.default_rng(0).uniform(size=(400, 2))
    outputs = []
    for factor, shift in ((1.0, 0.0), (3.0, 2.0)):
        bounds = (shift, factor + shift)
        fitted = clone(transformer).set_params(epsilon=1e6, bounds=bounds).fit(factor * X + shift)
        outputs.append(fitted.transform(factor * X + shift))
    is_undone = np.allclose(*outputs, atol=0.03)
    second = clone(transformer).set_params(bounds=(-1, 1), accountant=ACCOUNTANT)
    pipe = Pipeline([("first", scaler()), ("second", second), ("model", model())])
    is_reported = ("first", "paid twice") in found(check_pipeline(pipe))
    # Bins of a histogram also have counts, for which the features are learned about again.
    assert is_reported == is_undone or isinstance(transformer, DPHistogramTransformer)


@pytest.mark.parametrize(
    "pipe",
    [
        make_union(scaler(), scaler(with_std=False)),
        make_pipeline(scaler(), Normalizer(), scaler()),
        ColumnTransformer([("a", scaler(), [0]), ("b", scaler(), [1])]),
        make_pipeline(make_union(scaler(), "passthrough"), scaler()),
        make_pipeline(FrozenEstimator(scaler()), scaler()),
    ],
)
def test_steps_that_are_paid_for_to_some_purpose(pipe):
    assert not list(check_pipeline(pipe))


class Automatic(DPStandardScaler):
    """Has a norm and ranges that it can find by itself."""

    __skdp_kind__ = "private"
    _undoes_scaling = False

    def __init__(self, epsilon=1.0, *, bounds="auto", data_norm="auto", accountant=None):
        super().__init__(epsilon, bounds=bounds, accountant=accountant)
        self.data_norm = data_norm


def test_what_is_known_need_not_be_found():
    automatic = Automatic(accountant=ACCOUNTANT)
    result = check_pipeline(make_pipeline(Normalizer(), automatic))
    assert found(result) == {("automatic", "paid twice")}
    for ranged in (DPMinMaxScaler(bounds=(0, 1), accountant=ACCOUNTANT), magnitudes()):
        result = check_pipeline(make_pipeline(ranged, automatic))
        assert found(result) == {("automatic", "paid twice")}


def test_accountants():
    other = PrivacyAccountant(1.0, 0.0)
    result = check_pipeline(make_pipeline(scaler(), model(accountant=other)))
    assert found(result) == {("dplogisticregression", "several accountants")}
    result = check_pipeline(make_pipeline(scaler(), model(accountant=None)))
    assert found(result) == {("dplogisticregression", "no accountant")}


OTHER_TERMS = [
    {},
    {"composition": "zcdp"},
    {"relation": "replace_one"},
    {"unit": "person"},
    {"unit": "group", "max_rows": 2},
]


@pytest.mark.parametrize("config", OTHER_TERMS)
@pytest.mark.parametrize("has_ledger", [True, False])
def test_costs_of_different_units_or_relations_are_no_total(config, has_ledger):
    other = PrivacyAccountant(9.0, 1e-4, **config)
    first = PrivacyAccountant(9.0, 1e-4) if has_ledger else None
    text = str(check_pipeline(make_pipeline(scaler(accountant=first), model(accountant=other))))
    is_said = "their costs do not add up, and the cost of one fit is no guarantee" in " ".join(
        text.split()
    )
    assert is_said is bool({"relation", "unit"} & set(config))


def test_a_memory_is_refused_with_its_remedy(tmp_path):
    result = check_pipeline(Pipeline([("n", Normalizer()), ("s", scaler())], memory=str(tmp_path)))
    assert found(result) == {("memory", "not private")} and not result.accepted
    assert "use None: it keeps rows on disk" in " ".join(str(result).split())


def test_nothing_is_charged_and_nothing_fitted():
    accountant = PrivacyAccountant(1.0, 0.0)
    pipe = make_pipeline(scaler(accountant=accountant), model(accountant=accountant, delta=0.0))
    before = accountant.verify()
    check_pipeline(pipe)
    assert accountant.verify() == before
    assert not any(hasattr(step, "privacy_") for step in pipe)


def test_the_result_can_be_read():
    pipe = make_pipeline(StandardScaler(), scaler(), model())
    result = check_pipeline(pipe, n_samples=1000, n_features=4)
    as_json = json.loads(json.dumps(result.to_dict()))
    assert as_json["findings"][0]["step"] == "standardscaler"
    assert as_json["steps"][1]["event"] == Laplace(1.0).to_json()
    for text in (str(result), result._repr_html_()):
        assert "not private" in text and "one fit costs (2, 1e-06)" in text
    assert isinstance(result.steps[2].epsilon, float)


def test_a_pipeline_without_a_private_step_has_no_cost():
    raw = make_pipeline(StandardScaler(), LogisticRegression())
    for text in (str(check_pipeline(raw)), check_pipeline(raw)._repr_html_()):
        assert "no step is private: a fit charges nothing, and the rows are not protected" in text
        assert "one fit costs" not in text
    stateless = check_pipeline(FunctionTransformer())
    assert "no step makes a private release, so a fit charges nothing" in str(stateless)


def test_the_joint_cost_is_composed():
    pipe = make_union(*(scaler(delta=1e-6, with_std=s) for s in (True, False)))
    result = check_pipeline(pipe)
    event = result.steps[0].event
    assert isinstance(event, Gaussian)
    assert result.joint_epsilon == pytest.approx(get_epsilon(event * 2, 2e-6))


def test_a_null_that_turns_a_column_for_a_function_is_named_or_refused():
    pl = pytest.importorskip("polars")
    column = pl.Series("a", [1] * 30, dtype=pl.UInt8)
    table, neighbor = column.to_frame(), column.to_frame()
    neighbor[3, "a"] = None
    step = FunctionTransformer(np.negative)
    # The other rows: 255 without the null and -1 with it.
    assert (step.transform(table)[4:] != step.transform(neighbor)[4:]).all()
    (finding,) = check_pipeline(make_pipeline(step))
    assert finding.problem == "assumes of the table" and "validate=True" in finding.message
    step = FunctionTransformer(np.negative, validate=True)
    assert not list(check_pipeline(make_pipeline(step)))
    with pytest.raises(ValueError, match="NaN"):
        step.fit_transform(neighbor)


def several_entries(first):
    """Return rows of which all but the first have many entries for their one cell."""
    data = [1.0, 1.0] + ([1e16] + [1.0] * 28 + [-1e16]) * 39
    indices = [*first] + [0] * 1170
    return csr_array((data, indices, [0, *range(2, 1173, 30)]), shape=(40, 3))


@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(np.abs),
        Normalizer("max"),
        make_union("passthrough", GaussianRandomProjection(2, random_state=0)),
    ],
    ids=["abs", "Normalizer by the largest", "a union"],
)
def test_what_is_assumed_of_a_sparse_matrix_is_needed_and_is_enough(step):
    """Its entries for one cell would be added in the order of other rows."""
    assert "one entry per cell" in " ".join(check_pipeline.__doc__.split())
    firsts = ((0, 1), (1, 0))
    one, other = (step.fit_transform(several_entries(first)).toarray()[1:] for first in firsts)
    assert (one != other).any(axis=1).all()
    tables = [several_entries(first).tocoo() for first in firsts]
    for table in tables:
        table.sum_duplicates()
    one, other = (step.fit_transform(table.tocsr()).toarray()[1:] for table in tables)
    assert (one == other).all()


def test_types_that_a_function_made_are_known_inside_a_search():
    by_type = ColumnTransformer([("s", scaler(), make_column_selector(dtype_include="str"))])
    search = GridSearchCV(make_pipeline(by_type, DPLogisticRegression()), {}, cv=KFold(3))
    found = check_pipeline(make_pipeline(FunctionTransformer(np.abs), search))
    assert "gridsearchcv__estimator__columntransformer__s__columns" in [
        step.step for step in found.steps
    ]


@pytest.mark.parametrize("step", [CountVectorizer(vocabulary=["a", "b"]), MaxAbsScaler()])
def test_what_is_excused_may_still_not_tell_a_density(step):
    front = ColumnTransformer([("t", step, "text")], sparse_threshold=0.3)
    result = check_pipeline(make_pipeline(front, model()), public_steps=["columntransformer__t"])
    assert not result.accepted
    assert [f.step for f in result if f.problem == "not private"] == [
        "columntransformer__sparse_threshold"
    ]


@pytest.mark.parametrize("shape", [{}, {"n_samples": 100}, {"n_samples": 100, "n_features": 3}])
def test_a_wrong_parameter_is_reported_with_its_step(shape):
    pipe = make_pipeline(DPMinMaxScaler(bounds=(1, 0)), DPLogisticRegression(data_norm=1.0))
    try:
        texts = [str(finding) for finding in check_pipeline(pipe, **shape)]
    except ValueError as error:
        texts = [str(error)]
    assert any("dpminmaxscaler" in text and "bounds: no low" in text for text in texts)
