"""Fit parameters that a step refuses, or that name other persons, cost nothing."""

import uuid
import warnings

import numpy as np
import pytest
import sklearn
from sklearn import config_context
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_score,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import PolynomialFeatures

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPMinMaxScaler,
    DPRandomizedSearchCV,
    DPRidge,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp.model_selection import PersonKFold, bounded_score, dp_cross_val_score, make_dp_scorer
from skdp.pipeline import split_budget

N = 120
X = np.random.default_rng(0).uniform(size=(N, 3))
Y = (X[:, 0] > 0.5).astype(int)
IDS = np.arange(N) // 2
ROWS = np.arange(N)
STRATEGIES = ("auto", "holdout", "disjoint", "cv", "random_stopping")


def scaler():
    return DPStandardScaler(bounds=(0, 1))


def model(**params):
    return DPLogisticRegression(data_norm=2.0, **params)


def search(estimator=None, **params):
    return DPGridSearchCV(model() if estimator is None else estimator, {}, **params)


def by_split(pipe):
    return lambda accountant: split_budget(pipe, 1.0, 1e-6, accountant)


def by_search(pipe, **params):
    return lambda accountant: DPGridSearchCV(pipe, {}, accountant=accountant, **params)


def budget(unit):
    return PrivacyAccountant(100.0, 1e-2, unit=unit, ledger="memory://")


def check_refused(make, words, unit="row", **params):
    accountant = budget(unit)
    with warnings.catch_warnings(), pytest.raises((TypeError, ValueError), match=words):
        warnings.simplefilter("ignore")
        make(accountant).fit(X, Y, **params)
    assert accountant.epsilon_spent == 0.0


# Pipelines whose last step is a model, and the names of the scaler and of the model.
NESTED = {
    "flat": (lambda: Pipeline([("s", scaler()), ("m", model())]), "s", "m"),
    "inner scaler": (
        lambda: Pipeline([("p", Pipeline([("s", scaler())])), ("m", model())]),
        "p__s",
        "m",
    ),
    "inner model": (
        lambda: Pipeline([("s", scaler()), ("p", Pipeline([("m", model())]))]),
        "s",
        "p__m",
    ),
    "deep": (
        lambda: Pipeline([("s", scaler()), ("p", make_pipeline(Pipeline([("m", model())])))]),
        "s",
        "p__pipeline__m",
    ),
    "union": (lambda: Pipeline([("u", make_union(scaler())), ("m", model())]), "u", "m"),
}
CONTAINERS = sorted(NESTED)


@pytest.mark.quick_cases(every=20)
@pytest.mark.parametrize("by", [by_split, by_search])
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    ("argument", "words"),
    [("sample_weight", "sample_weight is not supported"), ("foo", "not accept the parameter")],
)
def test_a_parameter_that_a_step_refuses_costs_nothing(by, container, argument, words):
    make, *names = NESTED[container]
    for name in names:
        check_refused(by(make()), words, **{f"{name}__{argument}": np.ones(N)})


@pytest.mark.parametrize("by", [by_split, by_search])
@pytest.mark.parametrize(
    "name", ["zz__foo", "p__zz__foo", "foo", "p__foo", "poly__foo", "none__foo"]
)
def test_a_parameter_that_reaches_no_step_costs_nothing(by, name):
    steps = [
        ("s", scaler()),
        ("none", "passthrough"),
        ("poly", PolynomialFeatures(2)),
        ("p", Pipeline([("m", model())])),
    ]
    check_refused(by(Pipeline(steps)), "foo", **{name: 1})


@pytest.mark.quick_cases(every=15)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("argument", ["sample_weight", "foo", "groups"])
def test_every_strategy_of_a_search_refuses_a_parameter_before_its_charge(strategy, argument):
    pipe = Pipeline([("s", scaler()), ("m", model())])
    words = {"groups": "unit is a row"}.get(argument, argument)
    check_refused(by_search(pipe, strategy=strategy), words, **{f"m__{argument}": IDS})
    random = DPRandomizedSearchCV(pipe, {"m__C": [1.0]}, n_iter=1, strategy=strategy)
    check_refused(lambda a: random.set_params(accountant=a), words, **{f"m__{argument}": IDS})
    if argument != "groups":
        check_refused(by_search(model(), strategy=strategy), argument, **{argument: IDS})


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("params", [{"foo": 1}, {"m__foo": 1}, {"m__sample_weight": np.ones(N)}])
def test_a_search_that_is_a_step_passes_no_parameter_to_its_candidates_unchecked(params):
    inner = search(Pipeline([("t", scaler()), ("m", model())]))
    pipe = Pipeline([("s", scaler()), ("g", inner)])
    params = {f"g__{name}": value for name, value in params.items()}
    check_refused(by_split(pipe), "step 'g__estimator|g__estimator", **params)
    check_refused(by_search(pipe), "g__estimator", **params)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("container", CONTAINERS)
def test_all_steps_of_one_charge_protect_the_same_persons(container):
    make, first, last = NESTED[container]
    first, last = f"{first}__groups", f"{last}__groups"
    split = by_split(make())
    check_refused(split, "different persons", "person", **{first: IDS, last: ROWS})
    check_refused(split, "receives no groups", "person", **{first: IDS})
    check_refused(split, "receives no groups", "person", **{last: IDS})
    check_refused(split, "unit is a row", "row", **{first: IDS, last: IDS})
    accountant = budget("person")
    # Other names of the same persons are the same partition of the rows.
    fitted = split(accountant).fit(X, Y, **{first: IDS, last: [f"person {i}" for i in IDS]})
    assert accountant.epsilon_spent == pytest.approx(1.0)
    assert fitted.predict(X).shape == (N,)


def test_groups_of_a_pipeline_reach_the_pipelines_inside_of_it():
    for container in ("flat", "inner scaler", "inner model", "deep"):
        accountant = budget("person")
        by_split(NESTED[container][0]())(accountant).fit(X, Y, groups=IDS)
        assert accountant.epsilon_spent == pytest.approx(1.0)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: make_column_transformer((scaler(), [0, 1])),
        lambda: make_union(scaler(), "passthrough"),
        lambda: make_column_transformer((make_pipeline(scaler(), DPMinMaxScaler()), [0, 1])),
        lambda: make_union(make_column_transformer((scaler(), [0]))),
    ],
    ids=["columns", "union", "pipeline in columns", "columns in union"],
)
def test_groups_reach_the_parts_of_column_transformers_and_unions(make, method):
    """No fit parameter with the name of a step reaches such a part."""
    for pipe in (make_pipeline(make(), model()), make_pipeline(make_pipeline(make()), model())):
        accountant = budget("person")
        split = by_split(pipe)(accountant)
        if method == "fit":
            split.fit(X, Y, groups=IDS)
            assert accountant.epsilon_spent == pytest.approx(1.0)
        check_refused(by_split(pipe), "unit is a row|fit parameter|metadata", "row", groups=IDS)
    accountant = budget("person")
    getattr(by_split(make())(accountant), method)(X, Y, groups=IDS)
    assert accountant.epsilon_spent == pytest.approx(1.0)


def test_the_remedy_for_a_part_is_one_that_works():
    """A plain container passes persons on to its parts only with metadata routing."""

    def make(accountant):
        parts = make_column_transformer((scaler().set_params(accountant=accountant), [0, 1]))
        return Pipeline([("c", parts), ("m", model(accountant=accountant))])

    check_refused(make, "enable_metadata_routing", "person", m__groups=IDS)
    accountant = budget("person")
    with config_context(enable_metadata_routing=True):
        make(accountant).fit(X, Y, groups=IDS)
    assert accountant.epsilon_spent == pytest.approx(2.0)


def charged(accountant, pid=False):
    return requests(model(accountant=accountant), "pid" if pid else True)


def scorer(accountant, name="accuracy", **params):
    return make_dp_scorer(name, accountant=accountant, **params)


def person_grid(accountant, estimator):
    score = scorer(accountant)
    return GridSearchCV(estimator, {"C": [1.0]}, cv=PersonKFold(2), scoring=score)


def validate(function, estimator, accountant, params, **options):
    score = scorer(accountant)
    options = {"cv": PersonKFold(2), "params": params, "scoring": score} | options
    return function(estimator, X, Y, **options)


TOOLS = {
    "voting": lambda a, p: VotingClassifier([("a", charged(a)), ("b", charged(a, True))]).fit(
        X, Y, **p
    ),
    "voting behind a step": lambda a, p: make_pipeline(
        scaler().set_params(accountant=a), VotingClassifier([("b", charged(a, True))])
    ).fit(X, Y, **p),
    "one versus rest": lambda a, p: make_pipeline(
        scaler().set_params(accountant=a), OneVsRestClassifier(charged(a, True))
    ).fit(X, Y, **p),
    "selection": lambda a, p: make_pipeline(SelectFromModel(charged(a, True)), charged(a)).fit(
        X, Y, **p
    ),
    "transformed target": lambda a, p: make_pipeline(
        scaler().set_params(accountant=a),
        TransformedTargetRegressor(
            requests(DPRidge(data_norm=2.0, target_bounds=(0, 1), accountant=a), "pid")
        ),
    ).fit(X, X[:, 0], **p),
    "search": lambda a, p: person_grid(a, charged(a, True)).fit(X, Y, **p),
    "search behind a step": lambda a, p: make_pipeline(
        scaler().set_params(accountant=a), person_grid(a, charged(a, True))
    ).fit(X, Y, **p),
    "cross_val_score": lambda a, p: validate(cross_val_score, charged(a, True), a, p),
    "learning_curve": lambda a, p: validate(
        learning_curve, charged(a, True), a, p, train_sizes=[0.5]
    ),
    "validation_curve": lambda a, p: validate(
        validation_curve, charged(a, True), a, p, param_name="C", param_range=[1.0]
    ),
}


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("tool", sorted(TOOLS))
@pytest.mark.filterwarnings("ignore")
def test_members_and_scores_of_a_tool_protect_the_same_persons(tool):
    if tool == "selection" and sklearn.__version__.startswith("1.7"):
        pytest.skip("scikit-learn 1.7 does not pass parameters on to the model of SelectFromModel")
    accountant = budget("person")
    with config_context(enable_metadata_routing=True):
        with pytest.raises(ValueError, match="different persons"):
            TOOLS[tool](accountant, {"groups": IDS, "pid": ROWS})
        assert accountant.epsilon_spent == 0.0
        TOOLS[tool](accountant, {"groups": IDS, "pid": IDS.astype(str)})
    assert accountant.epsilon_spent > 0.0


def test_members_without_persons_cost_nothing():
    def voting(accountant):
        members = [("a", model(accountant=accountant)), ("b", model(accountant=accountant))]
        steps = [("s", scaler().set_params(accountant=accountant))]
        return Pipeline([*steps, ("v", VotingClassifier(members))])

    check_refused(voting, "enable_metadata_routing", "person", s__groups=IDS)

    def without_request(accountant):
        members = [("a", charged(accountant))]
        members += [("b", requests(model(accountant=accountant), False))]
        return VotingClassifier(members)

    with config_context(enable_metadata_routing=True):
        check_refused(without_request, "set_fit_request", "person", groups=IDS)


def requests(estimator, groups):
    with config_context(enable_metadata_routing=True):
        return estimator.set_fit_request(groups=groups)


ROUTED = {
    "pipeline": lambda s, m: make_pipeline(s, m),
    "nested": lambda s, m: make_pipeline(make_pipeline(s), make_pipeline(m)),
    "columns": lambda s, m: make_pipeline(make_column_transformer((s, [0, 1])), m),
    "union": lambda s, m: make_pipeline(make_union(s), m),
    "search": lambda s, m: make_pipeline(
        s, requests(search(), m.get_metadata_routing().fit.requests["groups"])
    ),
}


@pytest.mark.quick_cases(every=25)
@pytest.mark.parametrize("container", sorted(ROUTED))
@pytest.mark.parametrize(
    ("request_of_model", "more"),
    [
        (False, {}),
        ("pid", {}),
        ("pid", {"pid": ROWS}),
        ("pid", {"pid": IDS[:-1]}),
        ("pid", {"pid": IDS % 7}),
    ],
)
def test_routed_ids_of_other_persons_cost_nothing(container, request_of_model, more):
    pipe = ROUTED[container](scaler(), requests(model(), request_of_model))
    words = "groups|pid"
    with config_context(enable_metadata_routing=True):
        check_refused(by_split(pipe), words, "person", groups=IDS, **more)
        if container != "search":
            check_refused(by_search(pipe), words, "person", groups=IDS, **more)


def test_routed_ids_of_the_same_persons_are_one_unit():
    pipe = make_pipeline(scaler(), requests(model(), "pid"))
    for by in (by_split, by_search):
        accountant = budget("person")
        with config_context(enable_metadata_routing=True):
            by(pipe)(accountant).fit(X, Y, groups=IDS, pid=IDS.astype(str))
        assert accountant.epsilon_spent == pytest.approx(1.0)
    ids = Pipeline([("s", scaler()), ("m", requests(model(), "pid"))], transform_input=["pid"])
    with config_context(enable_metadata_routing=True):
        check_refused(by_split(ids), "transform_input", "person", groups=IDS, pid=IDS)


OUT_OF_RANGE = [(np.arange(60), np.arange(100, 300))]
# Scores and splits of a search that no fit accepts; the words are of the error.
WRONG_SEARCHES = {
    "unknown score": ({"scoring": "jaccard"}, "jaccard"),
    "score with bounds": ({"scoring": "r2"}, "target_bounds"),
    "unbounded score": ({"scoring": "average_precision"}, "no bounded sensitivity"),
    "score of numbers": ({"scoring": bounded_score("r2", target_bounds=(0, 1))}, "a regressor"),
    "function": ({"scoring": lambda estimator, X, y: 1.0}, "scoring|score"),
    "stratified": ({"cv": StratifiedKFold(3), "strategy": "cv"}, "not private"),
    "groups": ({"cv": GroupKFold(3)}, "not private"),
    "persons": ({"cv": PersonKFold(3), "strategy": "cv"}, "needs groups"),
    "many folds": ({"cv": 10**4, "strategy": "cv"}, "n_splits|folds"),
    "out of range": ({"cv": OUT_OF_RANGE}, "row numbers below"),
    "length": ({"cv": PredefinedSplit(np.arange(7) % 2)}, "test_fold"),
    "several splits": ({"cv": KFold(3), "strategy": "holdout"}, "one split"),
}


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("wrong", sorted(WRONG_SEARCHES))
def test_a_search_behind_a_step_is_scored_and_split_before_the_first_charge(wrong):
    params, words = WRONG_SEARCHES[wrong]
    check_refused(by_split(make_pipeline(scaler(), search(**params))), words)
    accountant = budget("row")
    with pytest.raises((TypeError, ValueError), match=words):
        dp_cross_val_score(search(**params), X, Y, accountant=accountant)
    assert accountant.epsilon_spent == 0.0


def test_a_search_behind_a_step_has_one_accountant_and_one_budget():
    other = model(accountant=budget("row"))
    words = "separate accountant|cannot be searched over"
    for inner in (search(other), DPGridSearchCV(model(), {"epsilon": [1.0]})):
        accountant = budget("row")
        with pytest.raises(ValueError, match=words):
            split_budget(make_pipeline(scaler(), inner), 1.0, 1e-6, accountant).fit(X, Y)
        assert accountant.epsilon_spent == 0.0


def test_folds_of_the_whole_table_do_not_fit_the_folds_of_an_outer_validation():
    accountant = budget("row")
    inner = search(cv=[(np.arange(80), np.arange(80, N))])
    with pytest.raises(ValueError, match="row numbers below"):
        dp_cross_val_score(inner, X, Y, accountant=accountant)
    assert accountant.epsilon_spent == 0.0


def test_folds_without_persons_are_refused_before_the_first_charge():
    pipe = make_pipeline(scaler(), search(strategy="cv"))
    check_refused(by_split(pipe), "without persons", "person", groups=ROWS % 3)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "ids",
    [[uuid.UUID(int=i) for i in IDS], [(i, "a") for i in IDS.tolist()]],
    ids=["uuid", "tuple"],
)
def test_ids_that_a_model_accepts_are_accepted_by_a_search(ids):
    for make in (by_search(model()), by_split(make_pipeline(scaler(), search()))):
        accountant = budget("person")
        make(accountant).fit(X, Y, groups=ids)
        assert accountant.epsilon_spent == pytest.approx(1.0)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(
    "make",
    [
        lambda s, t: make_union(s, t),
        lambda s, t: make_column_transformer((s, [0]), (t, [1])),
        lambda s, t: make_column_transformer((s, [0]), remainder=t),
        lambda s, t: make_pipeline(s, make_union(t)),
    ],
    ids=["union", "columns", "remainder", "pipeline"],
)
def test_parts_of_a_container_protect_the_same_persons(make, method):
    parts = make(scaler(), requests(scaler(), "pid"))
    accountant = budget("person")
    split = split_budget(parts, 1.0, 1e-6, accountant)
    with config_context(enable_metadata_routing=True):
        with pytest.raises(ValueError, match="different persons"):
            getattr(split, method)(X, Y, groups=IDS, pid=ROWS)
        assert accountant.epsilon_spent == 0.0
        getattr(split, method)(X, Y, groups=IDS, pid=IDS)
    assert accountant.epsilon_spent == pytest.approx(1.0)


def test_a_search_of_pipelines_behind_a_step_passes_persons_on():
    inner = search(make_pipeline(scaler(), model()), strategy="holdout")
    accountant = budget("person")
    by_split(make_pipeline(scaler(), inner))(accountant).fit(X, Y, groups=IDS)
    assert accountant.epsilon_spent == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("params", "unit"),
    [
        ({"m__sample_weight": np.ones(N)}, "row"),
        ({"m__foo": 1}, "row"),
        ({"s__groups": IDS}, "person"),
        ({"s__groups": IDS, "m__groups": ROWS}, "person"),
    ],
)
def test_a_plain_pipeline_checks_the_fit_parameters_of_its_steps(params, unit):
    """Each step has a charge; the ledger adds them up as those of one set of persons."""

    def make(accountant):
        steps = [("s", scaler()), ("m", model())]
        return Pipeline(steps).set_params(s__accountant=accountant, m__accountant=accountant)

    check_refused(make, "sample_weight|foo|groups", unit, **params)
