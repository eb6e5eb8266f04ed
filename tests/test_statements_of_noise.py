"""The stages of a statement against the noise that a fit drew, and each sentence of its unit."""

import itertools
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skdp
from skdp import PrivacyAccountant, privacy_report
from skdp.accounting import PureDP
from skdp.mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism
from tests._draws import missing_draws, record_draws
from tests._estimators import LISTED

N = 120
RNG = np.random.default_rng(0)
X = RNG.integers(0, 3, size=(N, 3)).astype(float)
Y = np.arange(N) % 2
IDS = np.arange(N) // 2
UNITS = {"row": {}, "person": {"unit": "person"}, "group": {"unit": "group", "max_rows": 2}}
RELATIONS = "add_remove", "replace_one"
# A secret number of runs is drawn, and reports of rows are drawn by `transform`.
MODELS = [
    model
    for model in LISTED
    if getattr(model, "strategy", "") != "random_stopping"
    and not isinstance(model, skdp.RandomizedResponseTransformer)
]


def ledger(unit="row", relation="add_remove", **options):
    return PrivacyAccountant(1e4, 0.5, relation=relation, **UNITS[unit], **options)


@pytest.mark.quick_cases(every=20)
@pytest.mark.parametrize(
    ("index", "unit", "relation"), [*itertools.product(range(len(MODELS)), UNITS, RELATIONS)]
)
def test_each_stage_is_drawn_as_often_as_it_says(index, unit, relation, monkeypatch):
    model = clone(MODELS[index]).set_params(accountant=ledger(unit, relation))
    draws = record_draws(monkeypatch)
    try:
        model.fit(X, Y, **({"groups": IDS} if unit == "person" else {}))
    except ValueError as error:
        assert "no release whose unit is a person" in str(error)
        pytest.skip(str(error))
    assert missing_draws(model.privacy_.stages, draws) == []


def test_noise_that_was_not_drawn_is_found(monkeypatch):
    draws = record_draws(monkeypatch)
    stages = skdp.DPMeanTransformer(bounds=(0, 2)).fit(X).privacy_.stages
    assert len(draws) == 1 and missing_draws(stages, draws) == []
    draws[0].scale *= 1.5
    assert len(missing_draws(stages, draws)) == 1
    assert len(missing_draws(stages, [])) == 1


SEARCHES = {
    "disjoint": lambda m, o: skdp.DPGridSearchCV(m, {"max_iter": [2, 3]}, strategy="disjoint", **o),
    "holdout": lambda m, o: skdp.DPGridSearchCV(m, {"max_iter": [2, 3]}, strategy="holdout", **o),
    "threshold": lambda m, o: skdp.DPTunedThresholdClassifierCV(m, **o),
    "calibration": lambda m, o: skdp.DPCalibratedClassifierCV(m, **o),
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("with_ledger", [False, True])
@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("name", SEARCHES)
def test_a_published_fit_is_listed_once(name, refit, with_ledger, monkeypatch):
    """A fit to a training part that is published is not also one of the unpublished fits."""
    draws = record_draws(monkeypatch)
    accountant = ledger() if with_ledger else None
    model = skdp.DPSGDClassifier(max_iter=2)
    search = SEARCHES[name](model, {"refit": refit, "accountant": accountant}).fit(X, Y)
    statement = search.privacy_
    assert missing_draws(statement.stages, draws) == []
    n_candidates = 2 if name in ("disjoint", "holdout") else 1
    n_steps = sum(s.n_releases for s in statement.stages if s.name.endswith("weights"))
    assert n_steps == sum(draw.count for draw in draws if draw.count > 1)
    best = getattr(search, "best_estimator_", getattr(search, "estimator_", None))
    assert statement.noise_multiplier == best.privacy_.noise_multiplier is not None
    words = dict(statement.rows())
    assert ("chosen candidate" in words["sampler"]) is (refit and n_candidates == 2)
    assert ("then the model on all rows" in words["sampler"]) is (refit and n_candidates == 1)
    assert not re.search(r"\b1 (fits|candidates)\b", " ".join(words.values()))
    assert "the declared classes" not in best.privacy_.public
    assert "the label set" in best.privacy_.public
    own = dict(best.privacy_.rows())
    assert own["composition"].startswith("part of a plan of ")
    assert ("not charged; none: the release is in no ledger" in own["composition"]) is (
        not with_ledger
    )


def test_a_secret_number_of_runs_is_not_stated():
    search = skdp.DPGridSearchCV(
        skdp.DPLogisticRegression(), {"C": [0.1, 1.0]}, strategy="random_stopping", mean_runs=2
    )
    search.set_params(accountant=ledger(), refit=False).fit(X, Y)
    words = dict(search.best_estimator_.privacy_.rows())
    assert "plan of a secret number of releases that was charged" in words["composition"]
    assert "one of the runs drawn at random" in words["sampler"]


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_finer_bounds_are_said_to_be_found_of_narrow_columns_only(scale):
    rows = RNG.uniform(size=(2000, 2)) * scale + 1.0
    statement = skdp.DPStandardScaler(8.0).fit(rows).privacy_
    (finer,) = [stage for stage in statement.stages if stage.name.startswith("finer")]
    assert re.search(r"in each of at most \d levels, none if no column is narrow", str(finer))
    assert "levels of 2 narrow columns" in finer.law or "levels of 1 narrow column" in finer.law


@pytest.mark.parametrize("n_wide", [0, 1, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_stated_noise_of_finer_bounds_is_drawn_or_the_largest(monkeypatch, delta, n_wide):
    drawn = []
    for mechanism in (GeometricMechanism, LaplaceMechanism, GaussianMechanism):
        release = mechanism.release

        def release_and_note(self, values, release=release, **options):
            drawn.append(self.scale)
            return release(self, values, **options)

        monkeypatch.setattr(mechanism, "release", release_and_note)
    # One narrow column, and others that are not.
    columns = [RNG.uniform(size=(4000, 1)) * 1e-3 + 1.0, RNG.normal(size=(4000, n_wide)) * 100]
    model = skdp.DPHistogramNB(8.0, delta=delta, classes=[0, 1])
    statement = model.fit(np.hstack(columns), np.arange(4000) % 2).privacy_
    (finer,) = [stage for stage in statement.stages if stage.name.startswith("finer")]
    is_drawn = any(scale == pytest.approx(finer.scale) for scale in drawn)
    says_at_most = "no more noise for another number of columns" in finer.law
    assert is_drawn or says_at_most
    assert says_at_most is (n_wide > 0)


def unit_cases():
    yield skdp.DPLogisticRegression(data_norm="auto"), "in units of the released data_norm"
    yield skdp.DPPCA(1), "in units of the square of data_norm"
    yield skdp.DPStandardScaler(bounds=(-5, 5)), "in units of the bounds"
    yield skdp.DPGaussianNB(bounds=(-5, 5)), "in units of the bounds"
    yield skdp.DPRidge(target_bounds=(-5, 5)), "in units of target_bounds"
    yield skdp.DPLogisticRegression(mechanism="objective"), "on the objective and on its solution"
    yield skdp.DPAdditiveClassifier(delta=0.0), "on its solution, for features of L1 norm 1"


@pytest.mark.parametrize(("model", "words"), [*unit_cases()])
def test_a_scale_that_is_relative_names_its_unit(model, words):
    statement = model.fit(X, Y).privacy_
    assert any(words in stage.law for stage in statement.stages)


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        (
            partial(skdp.DPLogisticRegression, class_weight={0: 1.0, 1: 2.0}),
            "the released norm about the released center",
        ),
        (
            partial(skdp.DPRidge, target_bounds=(0, 1)),
            "the gradients of rows whitened by the released second moment",
        ),
    ],
    ids=["centered", "whitened"],
)
def test_noise_about_a_released_center_names_its_unit(kind, unit):
    rows = np.vstack([X] * 40)
    model = kind(epsilon=8.0, mechanism="gradient")
    stages = model.fit(rows, np.tile(Y, 40)).privacy_.stages
    weights = [s for s in stages if s.name == "weights"]
    assert "the mean row" in [stage.name for stage in stages]
    assert f"in units of {unit}" in weights[0].law


@pytest.mark.parametrize("with_release", [False, True])
def test_the_noise_of_balanced_weights_is_that_of_the_released_ones(with_release):
    model = skdp.DPLogisticRegression(class_weight="balanced")
    if with_release:
        statement = model.fit(X, Y).privacy_
    else:
        search = skdp.DPCalibratedClassifierCV(model, refit=True).fit(X, Y)
        statement = search.privacy_
    weights = [s.law for s in statement.stages if s.name.endswith("weights")]
    weights = [law for law in weights if "gradients" in law]
    planned = ["for a largest class weight of 10" in law for law in weights]
    # Those of the unpublished fit are not known.
    assert planned == ([False] if with_release else [True, False])


def test_numbers_of_a_statement_name_their_stage():
    model = skdp.DPLogisticRegression().fit(X, Y)
    words = dict(model.privacy_.rows())
    number = [stage.name for stage in model.privacy_.stages].index("weights") + 1
    for name in ("noise scale", "sensitivity", "noise multiplier"):
        assert words[name].endswith(f" in stage {number}")
    single = dict(skdp.DPMeanTransformer(bounds=(0, 2)).fit(X).privacy_.rows())
    assert "stage" not in single["noise scale"] and single["sampler"] == "all rows, once"
    several = dict(skdp.DPGaussianNB().fit(X, Y).privacy_.rows())["sampler"]
    assert "sums of columns: all rows, once" in several
    pure = skdp.DPAdditiveClassifier(delta=0.0, bounds=(0, 2)).fit(X, Y).privacy_
    assert pure.sampler == "all rows, once, in each stage"


@pytest.mark.parametrize("later", ["other", "none"])
def test_an_accountant_that_is_set_later_is_not_reported(later):
    clinic = ledger(dataset="clinic")
    model = skdp.DPMeanTransformer(0.5, bounds=(0, 2), accountant=clinic).fit(X)
    other = ledger(dataset="other")
    other.charge(PureDP(3.0))
    model.set_params(accountant=other if later == "other" else None)
    report = privacy_report(model)
    facts = dict(report.summary.facts)
    assert not any("'other'" in text for text in (*facts, *facts.values()))
    assert report.budgets == () and report.totals[0].epsilon == 0.5
    for name in ("total of the data set", "who", "why", "when"):
        assert facts[name].startswith("not known: the ledger is not in this report")
    # As a source of its own, it is the subject of the report, too.
    assert [b.dataset for b in privacy_report(model, other).budgets] == ["other"]
    # A model that was never charged has no ledger.
    free = skdp.DPMeanTransformer(0.5, bounds=(0, 2)).fit(X).set_params(accountant=other)
    assert privacy_report(free).budgets == ()


def test_what_is_charged_later_is_not_said_to_be_covered_by_the_fit():
    response = skdp.RandomizedResponseTransformer(categories=[0, 1, 2], accountant=ledger())
    response.fit(X)
    response.transform(X)
    words = dict(response.privacy_.rows())
    assert words["covered"].startswith("each release after the fit, by itself")
    heading = "Each release of RandomizedResponseTransformer is (1, 0)-differentially private"
    assert str(response.privacy_).splitlines()[0] == heading
    assert dict(privacy_report(response).summary.facts)["when"] == "nothing was charged"


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("seeds", [(None, 0), (0, None), (0, 0), (None, None)])
def test_only_seeded_noise_is_said_to_be_seeded(seeds):
    scaler = skdp.DPStandardScaler(bounds=(0, 2), random_state=seeds[0]).fit(X)
    model = skdp.DPGaussianNB(bounds=(0, 2), random_state=seeds[1]).fit(X, Y)
    pipe = skdp.pipeline.split_budget(make_pipeline(clone(scaler), clone(model)), 1.0).fit(X, Y)
    for report in (privacy_report(scaler, model), privacy_report(pipe)):
        text = " ".join(report.summary.conclusion)
        expected = {
            (None, 0): "The noise of DPGaussianNB was SEEDED",
            (0, None): "The noise of DPStandardScaler was SEEDED",
            (0, 0): "The noise was SEEDED",
            (None, None): "",
        }[seeds]
        assert expected in text and ("SEEDED" in text) is bool(expected)
    line = repr(pipe).splitlines()[-1]
    assert expected.replace("The", "the").replace(" was ", " is ") in line
    assert line.startswith("Privacy:") and ("SEEDED" in line) is bool(expected)


@pytest.mark.parametrize("n_calls", [1, 2, 3])
@pytest.mark.parametrize("unit", ["row", "person"])
def test_disjoint_calls_of_persons_add_up_in_reports(unit, n_calls):
    """A person may have rows in several calls, in the report as in the statement."""
    model = skdp.DPSGDClassifier(0.5, delta=0.0, classes=[0, 1], max_iter=1)
    model.set_params(partial_fit_rows="disjoint")
    for _ in range(n_calls):
        model.partial_fit(X, Y, **({"groups": IDS} if unit == "person" else {}))
    expected = 0.5 * n_calls if unit == "person" else 0.5
    (total,) = privacy_report(model).totals
    assert model.privacy_.epsilon == total.epsilon == expected


@pytest.mark.parametrize("n_calls", [1, 2, 3])
def test_disjoint_calls_of_rows_add_up_in_the_line_of_a_pipeline(n_calls):
    """Of the calls after `fit`, whose rows are disjoint, the most expensive one is added."""
    model = skdp.DPSGDClassifier(delta=0.0, classes=[0, 1], max_iter=1)
    model.set_params(partial_fit_rows="disjoint")
    pipe = skdp.pipeline.split_budget(make_pipeline(model), 0.5).fit(X, Y)
    for _ in range(n_calls):
        pipe[-1].partial_fit(X, Y)
    assert pipe[-1].privacy_.epsilon == 1.0
    assert "epsilon = 1, delta = 0 per row" in repr(pipe).splitlines()[-1]


def test_a_charge_without_a_finite_cost_is_named():
    """Each part may have a finite cost for a group although all of them together have none."""
    labels = pd.DataFrame({"word": np.array(["a", "b"])[Y], "number": X[:, 0]})
    accountant = ledger("group", composition="zcdp")
    model = skdp.DPAdditiveRegressor(4.0, target_bounds=(0, 1), categories={"word": "auto"})
    with pytest.raises(ValueError, match="no finite cost for the charge, which contains Approx"):
        model.set_params(accountant=accountant).fit(labels, Y.astype(float))
    assert not accountant.charges
