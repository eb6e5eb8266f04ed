"""The words of every estimator's stages against the price of their events."""

import itertools
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skdp
from skdp import PrivacyAccountant, stats
from skdp.accounting import Gaussian, PureDP, get_epsilon
from skdp.model_selection import dp_cross_val_score, dp_cross_validate, dp_evaluate
from skdp.pipeline import split_budget
from tests._estimators import LISTED

N = 120
RNG = np.random.default_rng(0)
X = RNG.integers(0, 3, size=(N, 3)).astype(float)
Y = np.arange(N) % 2
IDS = np.arange(N) // 2
UNITS = {"row": {}, "person": {"unit": "person"}, "group": {"unit": "group", "max_rows": 3}}
RELATIONS = "add_remove", "replace_one"
DELTA = 1e-6
WORDS = re.compile(
    r"(?P<name>.*?): (?P<law>[^:]*), scale (?P<scale>\S+), sensitivity (?P<sensitivity>[^\s,;]+)"
    r"(?: to one record of a batch)?(?:, noise multiplier [^\s,;]+)?"
    r"(?:, (?P<count>\d+) releases)?; reads .*"
)


def events_in_words(words):
    """Return the events that the noise, scale and sensitivity of a stage can have."""
    scale = float(words["scale"])
    sensitivity = float(words["sensitivity"])
    if "Gaussian" in words["law"]:
        return [Gaussian(scale / sensitivity)]
    # Scores that all change in one direction need half as much noise.
    factors = [1.0, 2.0] if words["law"] == "Exponential mechanism" else [1.0]
    factors = [2.0] if "recursively" in words["law"] else factors
    return [PureDP(factor * sensitivity / scale) for factor in factors]


def check_words(stage, relation):
    words = WORDS.fullmatch(str(stage))
    assert words, str(stage)
    count = int(words["count"] or 1)
    event = getattr(stage.event, "event", stage.event) if stage.is_sampled else stage.event
    stated = [
        get_epsilon(event * count, DELTA, relation=relation) for event in events_in_words(words)
    ]
    # Pure events have their epsilon at delta = 0; at delta > 0 the two may be priced differently.
    pure = [count * e.epsilon for e in events_in_words(words) if isinstance(e, PureDP)]
    paid = get_epsilon(event * count, DELTA, relation=relation)
    exact = count * getattr(event, "epsilon", np.inf)
    if "Objective perturbation" in words["law"]:
        # A part of epsilon pays for the Jacobian.
        assert min(stated + pure) <= paid * (1.0 + 1e-3) + DELTA
        return
    is_price = any(price == pytest.approx(paid, rel=1e-3) for price in stated)
    assert is_price or any(price == pytest.approx(exact, rel=1e-3) for price in pure), str(stage)


@pytest.mark.quick_cases(every=25)
@pytest.mark.parametrize(
    ("index", "unit", "relation"), [*itertools.product(range(len(LISTED)), UNITS, RELATIONS)]
)
def test_the_words_of_a_stage_are_those_of_its_event(index, unit, relation):
    model = clone(LISTED[index])
    if isinstance(model, skdp.RandomizedResponseTransformer):
        pytest.skip("its reports are described by their event")
    model.set_params(accountant=PrivacyAccountant(1e3, 0.1, relation=relation, **UNITS[unit]))
    try:
        model.fit(X, Y, **({"groups": IDS} if unit == "person" else {}))
    except ValueError as error:
        assert "no release whose unit is a person" in str(error)
        pytest.skip(str(error))
    statement = model.privacy_
    for stage in statement.stages:
        check_words(stage, relation)
    if statement.noise_multiplier is not None:
        multiplier = statement.noise_scale / statement.sensitivity
        assert statement.noise_multiplier == pytest.approx(multiplier, rel=1e-9)


def test_words_that_are_wrong_are_found():
    stage = skdp.DPQuantileTransformer(bounds=(0, 2)).fit(X).privacy_.stages[0]
    check_words(stage, "add_remove")
    with pytest.raises(AssertionError):
        check_words(type(stage)(**vars(stage) | {"sensitivity": 3.0}), "add_remove")


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("composition", ["basic", "auto"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("model", [skdp.DPLinearSVC(), skdp.DPSGDClassifier(max_iter=1)])
def test_a_part_of_a_plan_costs_no_more_than_the_plan(model, relation, composition):
    accountant = PrivacyAccountant(1e3, 0.1, relation=relation, composition=composition)
    shape = {"n_samples": N, "n_features": 3}
    pipe = split_budget(make_pipeline(model), 0.5, 1e-5, accountant, **shape)
    for _ in range(2):
        statement = pipe.fit(X, Y)[-1].privacy_
        charge = accountant.charges[-1]
        assert (charge.epsilon, charge.delta) == (0.5, 1e-5)
        # Alone, the noise of the step has a higher price by composition.
        assert (statement.epsilon, statement.delta) == (0.5, 1e-5)


def functions():
    model = skdp.DPLogisticRegression().fit(X, Y)
    yield stats.dp_describe(X, epsilon=1.0, delta=DELTA, bounds=(0, 2)).privacy
    yield dp_evaluate(model, X, Y, epsilon=1.0).privacy_
    yield dp_cross_validate(skdp.DPLogisticRegression(), X, Y, epsilon=1.0, delta=DELTA).privacy_
    yield dp_cross_val_score(skdp.DPLogisticRegression(), X, Y, epsilon=1.0, delta=DELTA).privacy_


@pytest.mark.filterwarnings("ignore:.*released little of some columns:UserWarning")
def test_functions_are_not_said_to_be_fits_whose_scores_are_not_covered():
    for statement in functions():
        words = dict(statement.rows())
        assert words["covered"].startswith("the values of this release")
        assert "fitting took" not in words["not covered"]
        assert "predictions" not in words["covered"]
        assert words["not covered"].startswith("scores on private rows that are not part of")
        assert statement.to_dict()["covered"] == words["covered"]
    fit = skdp.DPStandardScaler(bounds=(0, 2)).fit(X).privacy_
    assert "attributes of this fit" in fit.covered and "fitting took" in fit.not_covered
