"""Every sentence of a privacy statement against what the ledger was charged."""

import copy
import inspect
import itertools
import json
import math
import pickle
import re

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from skdp import PrivacyAccountant, privacy_report, stats
from skdp.accounting import Composed, Gaussian, get_epsilon
from skdp.model_selection import dp_cross_val_score, dp_learning_curve, make_dp_scorer
from skdp.pipeline import split_budget

N = 60
X = np.random.default_rng(0).uniform(size=(N, 3))
Y = np.arange(N) % 2
IDS = np.arange(N) // 2
WORDS = np.array(["a", "b", "c"])[np.arange(2 * N).reshape(N, 2) % 3]

UNITS = {"row": {}, "person": {"unit": "person"}, "group": {"unit": "group", "max_rows": 2}}
RELATIONS = "add_remove", "replace_one"
COMPOSITIONS = "basic", "zcdp", "rdp", "gdp", "pld", "auto"

ESTIMATORS = {
    "mean": skdp.DPMeanTransformer(bounds=(0, 1)),
    "scaler": skdp.DPStandardScaler(delta=1e-6),
    "minmax": skdp.DPMinMaxScaler(bounds=(0, 1)),
    "pca": skdp.DPPCA(1, delta=1e-6),
    "kmeans": skdp.DPKMeans(2, bounds=(0, 1)),
    "logistic": skdp.DPLogisticRegression(),
    "pure logistic": skdp.DPLogisticRegression(delta=0.0, mechanism="objective"),
    "ridge": skdp.DPRidge(target_bounds=(0, 1)),
    "svc": skdp.DPLinearSVC(),
    "sgd": skdp.DPSGDClassifier(classes=[0, 1], max_iter=2),
    "poisson sgd": skdp.DPSGDClassifier(classes=[0, 1], max_iter=2, batch_size=20),
    "pure sgd": skdp.DPSGDClassifier(classes=[0, 1], max_iter=2, batch_size=20, delta=0.0),
    "sgd regressor": skdp.DPSGDRegressor(target_bounds=(0, 1), max_iter=2),
    "additive": skdp.DPAdditiveClassifier(),
    "pure additive": skdp.DPAdditiveRegressor(target_bounds=(0, 1), bounds=(0, 1), delta=0.0),
    "forest": skdp.DPRandomForestClassifier(n_estimators=3, bounds=(0, 1)),
    "histogram": skdp.DPHistogramNB(bounds=(0, 1)),
    "gaussian": skdp.DPGaussianNB(),
    "vectorizer": skdp.DPTableVectorizer(),
}


def rounded_up(*amounts):
    """Six digits of each, no less than the amount but for what a sum of doubles is off by."""
    texts = []
    for amount in amounts:
        text = f"{amount:.6g}"
        if float(text) < amount * (1.0 - 1e-12):
            text = f"{float(text) + 10.0 ** (math.floor(math.log10(amount)) - 5):.6g}"
        texts.append(text)
    return ", ".join(texts)


def ledger(unit="row", relation="add_remove", composition="basic", **options):
    order = {"rdp_order": 8.0} if composition == "rdp" else {}
    terms = {"relation": relation, "composition": composition}
    return PrivacyAccountant(1e4, 0.5, **terms, **UNITS[unit], **order, **options)


def told(unit):
    """Return the keywords of `fit` by which persons are named."""
    return {"groups": IDS} if unit == "person" else {}


def check_stages(statement, spend, relation):
    """What the stages cost together is what was charged."""
    assert statement.stages
    events = Composed(tuple(stage.total_event for stage in statement.stages))
    delta = max(spend.delta, 1e-9) if spend.delta else 0.0
    stated, charged = (get_epsilon(e, delta, relation=relation) for e in (events, spend.event))
    assert stated <= charged * (1.0 + 1e-6), (stated, charged)
    # A stage that is left out, or noise that is stated too large, is seen. The price of a
    # vectorizer has a part of delta for finding categories, whether a table needs it or not.
    assert stated >= 0.99 * charged, (stated, charged)
    for weights in (stage for stage in statement.stages if stage.name == "weights"):
        shown = statement.noise_scale, statement.sensitivity
        assert shown == pytest.approx((weights.scale, weights.sensitivity))
    for stage in statement.stages:
        assert stage.scale > 0.0 and stage.sensitivity > 0.0
        assert stage.law and stage.name not in ("", "the release")
        assert re.search("Gauss|Lapl|Geometric|Gamma|Exponential", stage.law), stage.law
        if isinstance(stage.event, Gaussian):
            assert stage.noise_multiplier == stage.event.noise_multiplier
        if stage.noise_multiplier is not None:
            multiplier = stage.scale / stage.sensitivity
            assert multiplier == pytest.approx(stage.noise_multiplier, rel=1e-9)
        assert ("to one record of a batch" in str(stage)) is stage.is_sampled
    if statement.noise_multiplier is not None:
        multiplier = statement.noise_scale / statement.sensitivity
        assert multiplier == pytest.approx(statement.noise_multiplier, rel=1e-9)


def check_statement(statement, accountant, *, unit, relation, composition, seeded):
    spend = accountant.charges[-1]
    assert statement.relation == relation and accountant.dataset == statement.dataset
    assert statement.record == spend.hash and dict(statement.rows())["record"] == spend.hash
    assert statement.composition.startswith(composition)
    assert statement.seeded is seeded is spend.seeded
    words = dict(statement.rows())
    assert ("YES" in words["seeded"]) is seeded
    other = {"person": r"\brows?\b", "row": "person", "group": "person"}[unit]
    assert not re.search(other, f"{words['sampler']} {words['public']} {words['stages']}")
    assert {"person": "person", "row": "row", "group": "at most 2"}[unit] in words["relation"]
    if unit == "person":
        assert "number of persons is public" in words["relation"]
        assert "rows of" in words["relation"]
    assert rounded_up(statement.epsilon, statement.delta) in str(statement).splitlines()[0]
    assert statement.mechanism and statement.noise_scale > 0.0 and statement.sensitivity > 0.0
    # Also where a count of persons is one of NumPy's integers.
    assert json.loads(json.dumps(statement.to_dict()))["unit"].startswith(unit)


def combinations():
    """Return each estimator with every unit and relation; the rest varies along."""
    whole = itertools.product(ESTIMATORS, UNITS, RELATIONS)
    for i, (name, unit, relation) in enumerate(whole):
        yield name, unit, relation, ("basic", "pld", "auto")[i % 3], i % 2 == 1


@pytest.mark.quick_cases(every=10)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize(("name", "unit", "relation", "composition", "seeded"), [*combinations()])
def test_a_fit(name, unit, relation, composition, seeded):
    accountant = ledger(unit, relation, composition)
    model = clone(ESTIMATORS[name])
    model.set_params(accountant=accountant, random_state=0 if seeded else None)
    try:
        model.fit(X, Y, **told(unit))
    except ValueError as error:
        assert "no release whose unit is a person" in str(error) and not accountant.charges
        pytest.skip(str(error))
    statement, (spend,) = model.privacy_, accountant.charges
    assert (statement.epsilon, statement.delta) == (spend.epsilon, spend.delta)
    known = {"unit": unit, "relation": relation, "composition": composition}
    check_statement(statement, accountant, **known, seeded=seeded)
    check_stages(statement, spend, relation)
    if name.endswith("sgd") or name == "sgd regressor":
        plan_like = model.noise_multiplier_
        weights = next(stage for stage in statement.stages if stage.name == "weights")
        assert plan_like == statement.noise_multiplier == weights.noise_multiplier
    if name in ("additive", "pure additive", "forest"):
        assert model.noise_multiplier_ == statement.noise_multiplier
        assert (model.noise_multiplier_ is None) == (name == "pure additive")


def calls(model, n_calls, unit="row"):
    for _ in range(n_calls):
        model.partial_fit(X, Y, **told(unit))
    return model


@pytest.mark.quick_cases(cover="values")
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("rows", ["any", "disjoint"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_calls_of_partial_fit_are_the_model_s(composition, unit, relation, rows):
    """The statement is what a ledger says in which nothing but the model's calls is charged."""
    accountant = ledger(unit, relation, composition)
    model = skdp.DPSGDClassifier(classes=[0, 1], max_iter=1, partial_fit_rows=rows)
    model.set_params(accountant=accountant, random_state=0)
    calls(model, 2, unit)
    model.set_params(random_state=None)
    calls(model, 1, unit)
    statement = model.privacy_
    spent = accountant.report().spent
    assert (statement.epsilon, statement.delta) == spent
    assert [c.event for c in statement.charges] == [s.event for s in accountant.charges]
    # The noise of the first two calls can be taken away.
    assert statement.seeded
    assert rounded_up(*spent) in str(statement).splitlines()[0]
    assert "3 calls" in dict(statement.rows())["calls"]
    assert statement.record == accountant.charges[-1].hash
    assert sum(stage.n_calls for stage in statement.stages if stage.name == "weights") == 3
    assert statement.to_tags()["epsilon"] == dict(statement.rows())["epsilon"]


@pytest.mark.quick_cases(every=6)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("with_ledger", [False, True])
@pytest.mark.parametrize("unit", UNITS)
def test_every_sentence_is_about_all_calls(unit, with_ledger):
    """What differs between a fit and the calls that go on from it is named of each of them."""
    accountant = ledger(unit) if with_ledger or unit == "group" else None
    model = skdp.DPSGDClassifier(2.0, classes=[0, 1], accountant=accountant)
    model.set_params(sampling="poisson", batch_size=20, max_iter=2, random_state=0)
    first = model.fit(X, Y, **told(unit)).privacy_
    model.set_params(delta=0.0, epsilon=0.5, sampling="full", batch_size="auto", random_state=None)
    second = calls(model, 1, unit).privacy_
    model.set_params(partial_fit_rows="disjoint")
    third = calls(model, 2, unit).privacy_
    words = dict(third.rows())
    assert first.mechanism in second.mechanism and first.mechanism in third.mechanism
    assert "Gaussian" in third.mechanism and "Laplace" in third.mechanism
    assert third.mechanism.startswith("1 call: ") and "; 3 calls: " in third.mechanism
    of_fit = [stage for stage in first.stages if stage.name == "weights"]
    of_calls = [stage for stage in third.stages if stage.name == "weights"]
    assert [stage.n_calls for stage in of_calls] == [1, 3] and of_calls[:1] == of_fit
    for stage in third.stages:
        assert stage.reads in third.sampler and str(stage) in words["stages"]
    assert "call 1 of partial_fit: a separate charge" in third.sampler
    assert "call 2 to call 3 of partial_fit: rows declared disjoint" in third.sampler
    assert set(first.public) <= set(third.public)
    assert third.seeded and len(third.charges) == 4 == len(third.calls)
    # The noise that is named is that of the call that reveals most.
    shown = [stage.noise_multiplier for stage in of_calls]
    assert third.noise_multiplier == min(shown)
    main = of_calls[shown.index(min(shown))]
    assert (third.noise_scale, third.sensitivity) == (main.scale, main.sensitivity)
    events = Composed(tuple(s.total_event * s.n_calls for s in third.stages))
    charged = Composed(tuple(charge.event for charge in third.charges))
    relation = third.relation
    stated, paid = (get_epsilon(event, 1e-5, relation=relation) for event in (events, charged))
    assert stated == pytest.approx(paid, rel=1e-3)
    assert set(third.to_dict()) == set(first.to_dict())
    # A whole fit begins anew.
    assert model.fit(X, Y, **told(unit)).privacy_.calls == ()


def test_calls_with_several_ledgers_name_all_of_them():
    model = skdp.DPSGDClassifier(classes=[0, 1], max_iter=1)
    calls(model, 1)
    for dataset in ("north", "south"):
        calls(model.set_params(accountant=ledger(dataset=dataset)), 1)
    words = dict(model.privacy_.rows())
    assert words["data set"] == (
        "call 1 of partial_fit: none; call 2 of partial_fit: 'north'; "
        "call 3 of partial_fit: 'south'"
    )
    assert model.privacy_.datasets == ("north", "south")
    for charge, place in zip(model.privacy_.charges, ("none", "north", "south"), strict=True):
        text = f"data set {place!r}, record {charge.hash}" if charge.hash else "none: no accountant"
        assert text in words["record"]
    assert "in no ledger" in words["composition"]
    assert model.privacy_.epsilon == 3.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_calls_without_an_accountant(delta):
    """By basic composition; of calls on disjoint rows the worst counts."""
    terms = {"classes": [0, 1], "max_iter": 1, "delta": delta}
    added = calls(skdp.DPSGDClassifier(0.5, **terms), 4).privacy_
    assert (added.epsilon, added.delta) == (2.0, 4 * delta)
    model = skdp.DPSGDClassifier(0.5, partial_fit_rows="disjoint", **terms)
    calls(model, 2)
    model.set_params(epsilon=0.75)
    assert calls(model, 1).privacy_.epsilon == 0.75
    # The rows of a whole fit may be in any call.
    model.fit(X, Y)
    model.set_params(epsilon=0.5)
    assert calls(model, 2).privacy_.epsilon == 1.25
    persons = skdp.DPSGDClassifier(0.5, partial_fit_rows="disjoint", **terms)
    # A person may have rows in several calls.
    assert calls(persons, 3, "person").privacy_.epsilon == 1.5


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_keep_the_calls_and_clones_begin_anew(copied):
    accountant = ledger()
    model = skdp.DPSGDClassifier(classes=[0, 1], max_iter=1, accountant=accountant)
    calls(model, 2)
    other = copied(model)
    assert other.privacy_ == model.privacy_
    assert calls(other, 1).privacy_.epsilon == 3.0
    assert model.privacy_.epsilon == 2.0 and accountant.epsilon_spent == 3.0
    assert calls(clone(other), 1).privacy_.epsilon == 1.0
    assert other.fit(X, Y).privacy_.epsilon == 1.0


def test_a_call_that_fails_leaves_the_statement():
    model = calls(skdp.DPSGDClassifier(classes=[0, 1], max_iter=1), 2)
    before = model.privacy_
    with pytest.raises(ValueError, match="must have the same unit and relation"):
        model.partial_fit(X, Y, groups=IDS)
    assert model.privacy_ is before
    with pytest.raises(ValueError):
        model.partial_fit(X, Y + 5)
    assert model.privacy_ is before


def test_a_record_that_is_missing_says_why():
    words = dict(skdp.DPMeanTransformer(bounds=(0, 1)).fit(X).privacy_.rows())
    assert words["record"] == "none: no accountant"
    for accountant in (None, ledger()):
        vectorizer = skdp.DPTableVectorizer(numeric="scaled", bounds=(0, 1), random_state=0)
        statement = vectorizer.set_params(accountant=accountant).fit(X).privacy_
        words = dict(statement.rows())
        assert "nothing was released" in words["record"]
        assert words["sampler"].startswith("no rows") and words["seeded"] == "no"
        assert statement.stages == statement.charges == () and statement.epsilon == 0.0


def test_a_report_at_each_transform_is_charged_later():
    response = skdp.RandomizedResponseTransformer(1.0, categories=["a", "b", "c"])
    statement = response.set_params(accountant=ledger()).fit(WORDS).privacy_
    assert "charged when it is made" in dict(statement.rows())["record"]
    assert statement.sampler == "every row by itself, at each transform"


@pytest.mark.parametrize("word", ["narrowed", "rows", "{rows}", "arrow"])
def test_names_are_never_edited(word):
    """A statement is composed from values; a name that holds the name of a unit stays."""
    pipe = Pipeline([(word, StandardScaler()), ("model", skdp.DPLogisticRegression())])
    search = skdp.DPGridSearchCV(pipe, {"model__C": [0.1]}, public_steps=(word,), refit=True)
    statement = search.fit(X, Y, groups=IDS).privacy_
    assert f"step {word!r}" in statement.public
    assert "the numbers of persons and columns" in statement.public
    assert "which persons go where" in statement.public
    assert math.isclose(statement.epsilon, 1.0)


def split_pipe(accountant, **shape):
    pipe = make_pipeline(skdp.DPStandardScaler(bounds=(0, 1)), skdp.DPLogisticRegression())
    return split_budget(pipe, 1.0, 1e-6, accountant, **shape)


@pytest.mark.quick_cases(every=12)
@pytest.mark.parametrize("composition", ["basic", "zcdp", "pld"])
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("shape", [{}, {"n_samples": N, "n_features": 3}])
def test_a_report_of_a_split_pipeline_has_the_total_and_the_ledger(composition, frozen, shape):
    accountant = ledger(composition=composition)
    if composition != "basic":
        shape = {"n_samples": N, "n_features": 3}
    pipe = split_pipe(accountant, **shape)
    pipe.fit(X, Y)
    report = privacy_report(FrozenEstimator(pipe) if frozen else pipe)
    (total,), (budget,) = report.totals, report.budgets
    (spend,) = accountant.charges
    assert (total.epsilon, total.delta) == (spend.epsilon, spend.delta)
    assert (total.dataset, total.head_hash) == ("default", budget.head_hash)
    assert total.n_charges == 1 and len(report.statements) == 2
    lines = report.to_text().splitlines()
    (heading,) = [line for line in lines if line.startswith("Total")]
    assert rounded_up(total.epsilon, total.delta) in heading
    assert report.to_dict()["totals"][0]["epsilon"] == total.epsilon
    # What was fitted by itself beside it adds up.
    other = skdp.DPMeanTransformer(0.5, bounds=(0, 1), accountant=accountant).fit(X)
    (total,) = privacy_report(pipe, other).totals
    assert (total.epsilon, total.delta) == accountant.report().spent and total.n_charges == 2


CONTAINERS = {
    "pipeline": make_pipeline(skdp.DPStandardScaler(bounds=(0, 1)), skdp.DPLogisticRegression()),
    "three steps": make_pipeline(
        skdp.DPMeanTransformer(bounds=(0, 1)),
        skdp.DPStandardScaler(bounds=(-1, 1)),
        skdp.DPSGDClassifier(classes=[0, 1], max_iter=2),
    ),
    "union": FeatureUnion(
        [("a", skdp.DPMinMaxScaler(bounds=(0, 1))), ("b", skdp.DPStandardScaler(bounds=(0, 1)))]
    ),
    "columns": ColumnTransformer(
        [
            ("a", skdp.DPMinMaxScaler(bounds=(0, 1)), [0]),
            ("b", skdp.DPStandardScaler(bounds=(0, 1)), [1, 2]),
        ]
    ),
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("shape", [{}, {"n_samples": N, "n_features": 3}], ids=["open", "known"])
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", CONTAINERS)
def test_a_report_of_a_split_budget_without_an_accountant_has_its_total(name, frozen, shape, delta):
    """Steps that were planned together cost what the plan costs, and not their sum."""
    pipe = split_budget(CONTAINERS[name], 1.0, delta, **shape).fit(X, Y)
    report = privacy_report(FrozenEstimator(pipe) if frozen else pipe)
    (total,) = report.totals
    charges = [charge for statement in report.statements for charge in statement.charges]
    assert total.n_charges == 1 and total.dataset == ""
    assert total.delta <= delta * (1.0 + 1e-9) and total.epsilon <= 1.0 + 1e-9
    joint = Composed(tuple(charge.event for charge in charges))
    assert total.epsilon >= get_epsilon(joint, total.delta) * (1.0 - 1e-9)
    lines = report.to_text().splitlines()
    (heading,) = [line for line in lines if line.startswith("Total")]
    assert rounded_up(total.epsilon, total.delta) in heading
    # What was fitted by itself, of which nobody knows why its parameters are what they are, is
    # added.
    other = skdp.DPMeanTransformer(0.5, bounds=(0, 1)).fit(X)
    (both,) = privacy_report(pipe, other).totals
    assert both.epsilon == pytest.approx(total.epsilon + 0.5) and both.n_charges == 2


def total_of(*sources):
    """Return the (epsilon, delta) of the only total of a report."""
    (total,) = privacy_report(*sources).totals
    return total.epsilon, total.delta


REPLACED = {
    "a transformer": {"dpstandardscaler": skdp.DPMinMaxScaler(5.0, bounds=(0, 1))},
    "a model": {"dplogisticregression": skdp.DPLogisticRegression(3.0, delta=1e-5)},
    "both": {
        "dpstandardscaler": skdp.DPMinMaxScaler(5.0, bounds=(0, 1)),
        "dplogisticregression": skdp.DPLogisticRegression(3.0, delta=1e-5),
    },
    "nothing": {"dpstandardscaler": "passthrough"},
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("shape", [{}, {"n_samples": N, "n_features": 3}], ids=["open", "known"])
@pytest.mark.parametrize("with_ledger", [False, True])
@pytest.mark.parametrize("name", REPLACED)
def test_a_report_follows_what_was_charged_for_the_steps_that_are_there(name, with_ledger, shape):
    """A step that was put into a plan has a price of its own, which adds up."""
    accountant = ledger() if with_ledger else None
    pipe = split_pipe(accountant, **shape)
    pipe.set_params(**copy.deepcopy(REPLACED[name]))
    replaced = [part for part in REPLACED[name] if hasattr(pipe[part], "fit")]
    for part in replaced:
        pipe[part].accountant = accountant
    pipe.fit(X, Y)
    own = [pipe[part].privacy_ for part in replaced]
    left = [step.privacy_ for step in pipe if hasattr(step, "privacy_")]
    left = [statement for statement in left if not any(statement is each for each in own)]
    epsilon = math.fsum(statement.epsilon for statement in own)
    delta = math.fsum(statement.delta for statement in own)
    if left and with_ledger:
        epsilon, delta = epsilon + 1.0, delta + 1e-6
    elif left:
        # One step of a plan costs what it costs.
        epsilon, delta = epsilon + left[0].epsilon, delta + left[0].delta
    assert total_of(pipe) == pytest.approx((epsilon, delta), rel=1e-9)
    if with_ledger:
        assert total_of(pipe) == pytest.approx(accountant.report().spent)
    # What is said of a fit does not change with the parameters of a later one.
    for part in pipe.named_steps.values():
        if hasattr(part, "privacy_"):
            later = {"epsilon": 50.0, "delta": 0.25}
            part.set_params(**{k: v for k, v in later.items() if k in part.get_params()})
    assert total_of(pipe) == pytest.approx((epsilon, delta), rel=1e-9)


@pytest.mark.parametrize("with_ledger", [False, True])
def test_a_split_budget_has_the_price_of_its_plan(with_ledger):
    pipe = split_pipe(ledger() if with_ledger else None)
    for fitted in (pipe.fit(X, Y), clone(pipe).fit(X, Y)):
        assert total_of(fitted) == (1.0, 1e-6)
        assert total_of(fitted, fitted) == (1.0, 1e-6)
        assert total_of(pickle.loads(pickle.dumps(fitted))) == (1.0, 1e-6)
    # A copy that is fitted on its own is another model.
    assert total_of(pipe, clone(pipe).fit(X, Y)) == (2.0, 2e-6)


def test_disjoint_calls_of_two_models_are_not_disjoint_from_one_another():
    prices = []
    models = []
    for epsilons in ((1.0, 0.25), (0.25, 1.0)):
        model = skdp.DPSGDClassifier(classes=[0, 1], max_iter=1, delta=0.0)
        model.set_params(partial_fit_rows="disjoint")
        for epsilon in epsilons:
            calls(model.set_params(epsilon=epsilon), 1)
        models.append(model)
        prices.append(model.privacy_.epsilon)
    assert prices == [1.0, 1.0] and total_of(*models) == (2.0, 0.0)


@pytest.mark.parametrize("unit", UNITS)
def test_a_private_number_of_rows_is_not_said_to_be_public(unit):
    accountant = ledger(unit)
    noisy = skdp.DPMeanTransformer(bounds=(0, 1), count="noisy", accountant=accountant)
    statement = noisy.fit(X, **told(unit)).privacy_
    assert not any("number" in words and "columns" not in words for words in statement.public)
    words = dict(statement.rows())["relation"]
    assert "is public" not in words and "private" in words
    assert {"person": "person", "row": "row", "group": "at most 2"}[unit] in words
    # Of both together the number is public, as one of them takes it to be.
    public = skdp.DPMeanTransformer(bounds=(0, 1), accountant=accountant).fit(X, **told(unit))
    for order in ((noisy, public), (public, noisy)):
        (total,) = privacy_report(*order).totals
        assert "is public" in total.neighbors


@pytest.mark.quick_cases(cover="values")
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("strategy", ["disjoint", "holdout", "cv", "random_stopping"])
def test_a_search_is_charged_once(strategy, refit, relation, unit):
    accountant = ledger(unit, relation)
    # Output perturbation releases weights once per fit.
    mechanism = "output" if strategy == "disjoint" else "auto"
    search = skdp.DPGridSearchCV(
        skdp.DPLogisticRegression(mechanism=mechanism),
        {"C": [0.1, 1.0]},
        strategy=strategy,
        refit=refit,
        random_state=0,
    )
    search.set_params(accountant=accountant, mean_runs=2).fit(X, Y, **told(unit))
    statement, (spend,) = search.privacy_, accountant.charges
    assert (statement.epsilon, statement.delta) == (spend.epsilon, spend.delta) == (1.0, 1e-6)
    known = {"unit": unit, "relation": relation, "composition": "basic"}
    check_statement(statement, accountant, **known, seeded=True)
    names = [stage.name for stage in statement.stages]
    assert "noisy scores" in names
    # The fits that are scored are releases, too: each candidate's, as it was planned.
    said = "a run drawn" if strategy == "random_stopping" else "fits that are scored"
    training = [stage for stage in statement.stages if stage.name.startswith(said)]
    assert len(set(training)) == len(training) >= 1
    assert all(None not in (stage.scale, stage.sensitivity) for stage in training)
    assert all(f"{unit}s of each fit's training part" in str(stage) for stage in training)
    assert all(get_epsilon(s.event, 1e-6, relation=relation) <= 1.0 for s in training)
    if strategy == "disjoint":
        # A row is in one of the two fits, and the fit that is published is listed separately.
        assert sum(stage.n_releases for stage in training) == 1 + refit
    assert ("DPLogisticRegression: weights" in names) == hasattr(search, "best_estimator_")
    report = privacy_report(FrozenEstimator(search))
    (total,) = report.totals
    assert (total.epsilon, total.delta, total.n_charges) == (1.0, 1e-6, 1)
    assert report.budgets[0].dataset == total.dataset == "default"
    if hasattr(search, "best_estimator_"):
        own = search.best_estimator_.privacy_
        assert own.record == spend.hash and own.composition.startswith("part of a plan")
        # A model that was chosen among others costs what the choice costs.
        assert (own.epsilon, own.delta) == (1.0, 1e-6) == (own.charges[0].epsilon, 1e-6)
        assert own.charges[0].event == spend.event and own.seeded
        assert "DPGridSearchCV" in dict(own.rows())["part of"]
        assert total_of(search.best_estimator_) == total_of(search, search.best_estimator_)
        assert total_of(search.best_estimator_) == (1.0, 1e-6)


@pytest.mark.parametrize("with_ledger", [False, True])
@pytest.mark.parametrize("refit", [True, False])
def test_the_steps_of_a_published_pipeline_have_one_charge(refit, with_ledger):
    accountant = ledger() if with_ledger else None
    pipe = make_pipeline(
        skdp.DPStandardScaler(bounds=(0, 1)), skdp.DPSGDClassifier(max_iter=1, classes=[0, 1])
    )
    search = skdp.DPGridSearchCV(pipe, {"dpsgdclassifier__alpha": [0.1, 1.0]}, refit=refit)
    search.set_params(strategy="holdout", accountant=accountant).fit(X, Y)
    best = search.best_estimator_
    for source in (search, best, best[-1], FrozenEstimator(best), pickle.loads(pickle.dumps(best))):
        assert total_of(source) == (1.0, 1e-6)
    # A model that goes on has the search behind it.
    step = best[-1].set_params(epsilon=0.5, delta=0.0, accountant=accountant)
    calls(step, 1)
    assert (step.privacy_.epsilon, step.privacy_.delta) == (1.5, 1e-6)
    assert total_of(best) == total_of(search) == (1.5, 1e-6)
    assert "DPGridSearchCV" in step.privacy_.part_of


@pytest.mark.parametrize("reserved", [False, True])
@pytest.mark.parametrize("relation", RELATIONS)
def test_calls_within_a_reserved_part_and_within_a_plan(relation, reserved):
    whole = ledger(relation=relation)
    accountant = whole.reserve(50.0, 0.1) if reserved else whole
    model = calls(skdp.DPSGDClassifier(classes=[0, 1], max_iter=1, accountant=accountant), 3)
    assert (model.privacy_.epsilon, model.privacy_.delta) == accountant.report().spent
    assert model.privacy_.dataset == whole.dataset
    (total,) = privacy_report(model).totals
    assert (total.epsilon, total.delta) == accountant.report().spent
    # Each call of a step of a plan is a round of the whole plan.
    step = split_budget(make_pipeline(clone(model)), 1.0, 1e-6, accountant)[-1]
    calls(step, 2)
    assert step.privacy_.epsilon == sum(charge.epsilon for charge in step.privacy_.charges)
    (total,) = privacy_report(step).totals
    assert (total.epsilon, total.n_charges) == (2.0, 2)


def test_a_report_without_a_ledger_adds_up():
    one = skdp.DPMeanTransformer(0.5, bounds=(0, 1)).fit(X)
    other = skdp.DPMeanTransformer(0.25, bounds=(0, 1)).fit(X)
    report = privacy_report(one, other)
    (total,) = report.totals
    assert (total.epsilon, total.delta, total.dataset) == (0.75, 0.0, "")
    assert "in no ledger" in " ".join(report.to_text().split())


def check_sentences(statement, spends, accountant, dataset, *, unit, relation, composition):
    """Check each sentence of a statement against the charges that are behind it."""
    words = dict(statement.rows())
    last = spends[-1]
    assert [charge.hash for charge in statement.charges] == [spend.hash for spend in spends]
    assert [charge.label for charge in statement.charges][-1] == statement.estimator
    seeded = any(charge.seeded for charge in statement.charges)
    assert statement.seeded is seeded and ("YES" in words["seeded"]) is seeded
    assert (statement.record, statement.dataset) == (last.hash, dataset)
    assert words["data set"] == dataset and statement.datasets == (dataset,)
    if len(spends) == 1:
        assert words["record"] == last.hash
    else:
        assert words["record"].count(f"data set {dataset!r}") <= 2
        assert all(spend.hash in words["record"] for spend in spends)
    is_reserved = dataset != accountant.dataset
    assert (f"{accountant.dataset!r} was reserved" in words["composition"]) is is_reserved
    assert statement.relation == relation and words["relation"].startswith(f"{relation}: ")
    protected = {"person": "person", "row": "row", "group": "at most 2"}[unit]
    assert protected in words["relation"] and words["unit"].startswith(unit)
    other = {"person": r"\brows?\b", "row": "person", "group": "person"}[unit]
    # The words of a call's rows are about a table's rows, whatever the unit is.
    texts = [*statement.public, *(str(stage) for stage in statement.stages)]
    assert not any(re.search(other, text) for text in texts)
    rule = accountant.report().composition
    assert rule in words["composition"] and rule == composition
    n_calls = len(spends)
    assert ("calls" in words) is (n_calls > 1)
    assert n_calls == 1 or words["calls"].startswith(f"{n_calls} calls")
    named = "of this fit" if statement.is_fit else "values of this release"
    named = f"each of its {n_calls} calls" if n_calls > 1 else named
    assert named in words["covered"]
    for stage in statement.stages:
        assert str(stage) in words["stages"] and stage.law and stage.reads
    assert statement.mechanism and words["sampler"]
    assert words["epsilon"] == rounded_up(statement.epsilon)
    assert words["delta"] == rounded_up(statement.delta)
    heading = f"({rounded_up(statement.epsilon, statement.delta)})-differentially private"
    assert heading in str(statement).splitlines()[0]
    values = statement.to_dict()
    assert [charge["epsilon"] for charge in values["charges"]] == [
        charge.epsilon for charge in statement.charges
    ]
    assert [stage["event"] for stage in values["stages"]] == [
        stage.event.to_json() for stage in statement.stages
    ]
    assert statement.to_tags()["mechanism"] == statement.mechanism


def check_stages_of_calls(statement, relation, *, tight=0.99):
    """What all stages of all calls cost is what was charged."""
    stages = Composed(tuple(s.total_event * s.n_calls for s in statement.stages))
    charged = Composed(tuple(charge.event for charge in statement.charges))
    stated, paid = (get_epsilon(event, 1e-5, relation=relation) for event in (stages, charged))
    assert tight * paid <= stated <= paid * (1.0 + 1e-6), (stated, paid)


def sgd(accountant, seed):
    model = skdp.DPSGDClassifier(classes=[0, 1], max_iter=1, delta=1e-7)
    return model.set_params(accountant=accountant, random_state=seed)


def split_of(accountant, seed, **shape):
    front = skdp.DPStandardScaler(bounds=(0, 1), random_state=seed)
    model = skdp.DPSGDClassifier(classes=[0, 1], max_iter=1, random_state=seed)
    return split_budget(make_pipeline(front, model), 1.0, 1e-6, accountant, **shape)


def search_of(accountant, seed, **options):
    search = skdp.DPGridSearchCV(skdp.DPLogisticRegression(), {"C": [0.1, 1.0]}, **options)
    return search.set_params(accountant=accountant, random_state=seed)


def fit_then_go_on(accountant, seed, unit):
    model = sgd(accountant, seed).fit(X, Y, **told(unit))
    return [calls(model.set_params(random_state=None, delta=1e-8), 1, unit)]


def in_a_pipeline(pipe, unit):
    with config_context(enable_metadata_routing=unit == "person"):
        return pipe.fit(X, Y, **told(unit))


# Each way returns the fitted models, of which none is part of another.
WAYS = {
    "fit": lambda acc, seed, unit: [sgd(acc, seed).fit(X, Y, **told(unit))],
    "calls": lambda acc, seed, unit: [calls(sgd(acc, seed), 2, unit)],
    "fit and call": fit_then_go_on,
    "two models": lambda acc, seed, unit: [
        sgd(acc, seed).fit(X, Y, **told(unit)),
        calls(sgd(acc, None), 2, unit),
    ],
    "split": lambda acc, seed, unit: [in_a_pipeline(split_of(acc, seed), unit)],
    "exact split": lambda acc, seed, unit: [
        in_a_pipeline(
            split_of(acc, seed, n_samples=N // (1 + (unit == "person")), n_features=3), unit
        )
    ],
    "frozen": lambda acc, seed, unit: [FrozenEstimator(in_a_pipeline(split_of(acc, seed), unit))],
    "search": lambda acc, seed, unit: [
        search_of(acc, seed, strategy="holdout").fit(X, Y, **told(unit))
    ],
    "published": lambda acc, seed, unit: [
        search_of(acc, seed, strategy="holdout").fit(X, Y, **told(unit)).best_estimator_
    ],
    "chosen": lambda acc, seed, unit: [
        search_of(acc, seed, strategy="disjoint", refit=False)
        .fit(X, Y, **told(unit))
        .best_estimator_
    ],
    "scores": lambda acc, seed, unit: [
        dp_cross_val_score(
            skdp.DPLogisticRegression(), X, Y, accountant=acc, random_state=seed, **told(unit)
        )
    ],
    "curve": lambda acc, seed, unit: [
        dp_learning_curve(
            skdp.DPLogisticRegression(), X, Y, accountant=acc, random_state=seed, **told(unit)
        )
    ],
}


def reserved_part(accountant, unit):
    """Return a reserved part of a ledger; groups of rows have none."""
    if unit == "group":
        pytest.skip("no part is reserved for groups of rows")
    return accountant.reserve(50.0, 0.1)


def ways():
    """Return each way with every unit, relation and seeding; the rest varies along."""
    whole = itertools.product(WAYS, UNITS, RELATIONS, [False, True])
    compositions = itertools.cycle(["basic", "zcdp", "basic", "pld", "auto"])
    for i, (values, composition) in enumerate(zip(whole, compositions, strict=False)):
        # A part is reserved of basic composition only, and for no groups of rows.
        reserved = (i // 2) % 3 == 0 and values[1] != "group"
        yield *values, reserved, "basic" if reserved else composition


@pytest.mark.quick_cases(every=72)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize(
    ("way", "unit", "relation", "seeded", "reserved", "composition"), [*ways()]
)
def test_every_way_of_fitting(way, unit, relation, seeded, reserved, composition):
    """Every sentence of the statements and of the report is that of what was charged."""
    if way in ("split", "frozen") and composition != "basic":
        # Stand-ins of an unknown shape have a price by addition.
        composition = "basic"
    whole = ledger(unit, relation, composition)
    accountant = reserved_part(whole, unit) if reserved else whole
    models = WAYS[way](accountant, 0 if seeded else None, unit)
    spends, report = accountant.charges, privacy_report(*models)
    known = {"unit": unit, "relation": relation, "composition": composition}
    # The total is what the ledger says, in which nothing else was charged.
    (total,), budgets = report.totals, {budget.dataset: budget for budget in report.budgets}
    assert set(budgets) == {whole.dataset, accountant.dataset}
    for handle in (whole, accountant):
        assert budgets[handle.dataset].spent == handle.report().spent
    budget = budgets[accountant.dataset]
    facts = dict(report.summary.facts)
    spent = rounded_up(whole.epsilon_spent)
    assert facts[f"total of data set {whole.dataset!r}"].startswith(f"epsilon = {spent}, ")
    assert (f"total of the budget {accountant.dataset!r}" in facts) is reserved
    assert all(statement.dataset == whole.dataset for statement in report.statements)
    # A single charge has its own price, whatever delta the ledger states its total at.
    alone = (spends[0].epsilon, spends[0].delta)
    assert (total.epsilon, total.delta) == (budget.spent if len(spends) > 1 else alone)
    assert total.n_charges == len(spends) and total.dataset == whole.dataset
    assert total.head_hash == budget.head_hash and total.composition.startswith(composition)
    assert total.neighbors.startswith(f"{relation}: ")
    text = report.to_text()
    assert f"({rounded_up(total.epsilon, total.delta)})-differentially private" in text
    assert report.to_dict()["totals"][0]["epsilon"] == total.epsilon
    is_seeded = [spend.seeded for spend in spends]
    assert any(is_seeded) is seeded
    if way in ("split", "exact split", "frozen"):
        (spend,) = spends
        assert len(report.statements) == 2 and (spend.epsilon, spend.delta) == (1.0, 1e-6)
        for statement in report.statements:
            assert statement.composition.startswith("part of a plan of 2 releases")
            amounts = f"epsilon={rounded_up(1.0)}, delta={rounded_up(1e-6)}"
            assert amounts in statement.composition
            assert statement.epsilon <= spend.epsilon and statement.record == spend.hash
            check_stages_of_calls(statement, relation)
            check_sentences(statement, spends, accountant, whole.dataset, **known)
        events = Composed(tuple(s.charges[0].event for s in report.statements))
        paid = get_epsilon(spend.event, 1e-6, relation=relation)
        assert get_epsilon(events, 1e-6, relation=relation) <= paid * (1.0 + 1e-6)
        return
    if way in ("search", "published", "chosen"):
        (spend,) = spends
        for statement in report.statements:
            own = statement.epsilon, statement.delta
            assert own == (spend.epsilon, spend.delta) == (1.0, 1e-6)
            assert [charge.event for charge in statement.charges] == [spend.event]
            is_part = statement.estimator != "DPGridSearchCV"
            assert ("DPGridSearchCV" in dict(statement.rows()).get("part of", "")) is is_part
        return
    if way in ("scores", "curve"):
        (spend,), (statement,) = spends, report.statements
        assert (statement.epsilon, statement.delta) == (spend.epsilon, spend.delta)
        check_sentences(statement, spends, accountant, whole.dataset, **known)
        *training, scores = statement.stages
        assert training and all(stage.name.startswith("fits that") for stage in training)
        assert scores.name == "noisy scores" and scores.scale == statement.noise_scale
        assert models[0].noise_ == pytest.approx(scores.scale, rel=1e-4)
        return
    left = list(spends)
    for statement in report.statements:
        own, left = left[: len(statement.charges)], left[len(statement.charges) :]
        check_sentences(statement, own, accountant, whole.dataset, **known)
        check_stages_of_calls(statement, relation)
        events = [charge.event for charge in statement.charges]
        assert events == [spend.event for spend in own]
        weights = [stage for stage in statement.stages if stage.name == "weights"]
        assert statement.noise_multiplier == min(stage.noise_multiplier for stage in weights)
        assert sum(stage.n_calls for stage in weights) == len(own)
    assert not left


STATISTICS = {
    "dp_mean": lambda **t: stats.dp_mean(X, axis=0, bounds=(0, 1), **t),
    "dp_var": lambda **t: stats.dp_var(X, axis=0, **t),
    "dp_sum": lambda **t: stats.dp_sum(X, axis=0, bounds=(0, 1), **t),
    "dp_count": lambda **t: stats.dp_count(X, axis=0, **t),
    "dp_histogram": lambda **t: stats.dp_histogram(X[:, 0], range=(0, 1), **t),
    "dp_histogram2d": lambda **t: stats.dp_histogram2d(
        X[:, 0], X[:, 1], range=[(0, 1), (0, 1)], **t
    ),
    "dp_histogramdd": lambda **t: stats.dp_histogramdd(X, bins=2, range=[(0, 1)] * 3, **t),
    "dp_quantile": lambda **t: stats.dp_quantile(X, [0.1, 0.9], axis=0, bounds=(0, 1), **t),
    "dp_median": lambda **t: stats.dp_median(X, axis=0, **t),
    "estimate_bounds": lambda **t: stats.estimate_bounds(X, axis=0, **t),
    "dp_covariance": lambda **t: stats.dp_covariance(X, bounds=(0, 1), **t),
    "dp_correlation": lambda **t: stats.dp_correlation(X, bounds=(0, 1), **t),
    "dp_crosstab": lambda **t: stats.dp_crosstab(Y, Y, categories=([0, 1], [0, 1]), **t),
    "dp_mode": lambda **t: stats.dp_mode(WORDS[:N, 0], categories=["a", "b", "c"], **t),
    "dp_describe": lambda **t: stats.dp_describe(X, bounds=(0, 1), **t),
}


def scored(accountant, random_state, epsilon, delta, **groups):
    model = skdp.DPLogisticRegression().fit(X, Y)
    scorer = make_dp_scorer(
        "accuracy", epsilon=epsilon, delta=delta, accountant=accountant, random_state=random_state
    )
    return scorer(model, X, Y, **groups)


def reported(accountant, random_state, epsilon, delta):
    response = skdp.RandomizedResponseTransformer(epsilon, categories=["a", "b", "c"])
    response.set_params(accountant=accountant, random_state=random_state)
    return response.fit(WORDS[:N, :1]).transform(WORDS[:N, :1])


FUNCTIONS = STATISTICS | {"DPScorer": scored, "RandomizedResponseTransformer": reported}


def test_every_statistic_is_in_the_test():
    charging = {
        name
        for name, function in vars(stats).items()
        if inspect.isfunction(function) and "accountant" in inspect.signature(function).parameters
    }
    assert charging == set(STATISTICS)


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.filterwarnings("ignore:.*released little about some columns:UserWarning")
@pytest.mark.parametrize("reserved", [False, True])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_function_charges(name, unit, relation, delta, reserved):
    """The ledger has its name, its price, an event of that price and whether noise was seeded."""
    whole = ledger(unit, relation)
    accountant = reserved_part(whole, unit) if reserved else whole
    seeded = reserved == (delta > 0.0)
    given = {"accountant": accountant, "random_state": 0 if seeded else None}
    given |= {"epsilon": 0.75, "delta": delta} | told(unit)
    try:
        FUNCTIONS[name](**given)
    except (TypeError, ValueError) as error:
        # What it has no release for is refused before the charge.
        assert accountant.epsilon_spent == 0.0 and not accountant.charges
        assert re.search("delta|person|groups", str(error)), error
        return
    (spend,) = accountant.charges
    assert spend.label == name and spend.seeded is seeded
    assert spend.epsilon == 0.75 and spend.delta in (0.0, delta)
    terms = UNITS[unit].get("max_rows", 1)
    paid = get_epsilon(spend.event, delta, relation=relation, group_size=terms)
    assert paid <= 0.75 * (1.0 + 1e-9)
    assert accountant.report().spent == (spend.epsilon, spend.delta)
    assert name in str(accountant.report())


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("with_ledger", [False, True])
def test_a_published_model_that_is_fitted_again_is_counted(with_ledger):
    accountant = ledger() if with_ledger else None
    search = search_of(accountant, None, strategy="holdout").fit(X, Y)
    for _ in range(2):
        assert total_of(copy.deepcopy(search)) == total_of(search) == (1.0, 1e-6)
        search.best_estimator_.set_params(epsilon=0.5, delta=0.0, accountant=accountant)
        search.best_estimator_.fit(X, Y)
        assert total_of(search) == total_of(pickle.loads(pickle.dumps(search))) == (1.5, 1e-6)
        assert total_of(search.best_estimator_) == (0.5, 0.0)
        search.fit(X, Y)
    other = search_of(accountant, None, strategy="holdout").fit(X, Y)
    assert total_of(search, other) == (2.0, 2e-6)


WRAPPERS = {
    "vote": lambda acc: VotingClassifier(
        [
            ("a", skdp.DPLogisticRegression(accountant=acc)),
            ("b", skdp.DPGaussianNB(bounds=(0, 1), accountant=acc)),
        ]
    ),
    "one against the rest": lambda acc: OneVsRestClassifier(
        skdp.DPLogisticRegression(accountant=acc)
    ),
    "target": lambda acc: TransformedTargetRegressor(
        skdp.DPRidge(target_bounds=(0, 1), accountant=acc)
    ),
    "threshold": lambda acc: FixedThresholdClassifier(skdp.DPLogisticRegression(accountant=acc)),
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("with_ledger", [False, True])
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_report_finds_the_models_in_a_wrapper(name, with_ledger):
    """The wrapper learns nothing but what its models do, so that their guarantees cover it."""
    accountant = ledger()
    y = np.arange(N) % 3 if name == "one against the rest" else Y.astype(float)
    wrapper = WRAPPERS[name](accountant).fit(X, y)
    spent = accountant.report().spent
    if not with_ledger:
        wrapper = WRAPPERS[name](None).fit(X, y)
    assert total_of(wrapper) == pytest.approx(spent)
    report = privacy_report(wrapper)
    assert len(report.statements) == len(accountant.charges)
    assert report.without_statement == report.missing == ()
    assert len(report.budgets) == with_ledger
