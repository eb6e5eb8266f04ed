"""Each check passes on an estimator that keeps the contract and fails on one that does not."""

import warnings
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import EstimatorCheckFailedWarning, SkipTestWarning

from skdp import DPMinMaxScaler, PrivacyAccountant
from skdp.testing import check_dp_estimator, dp_checks, parametrize_with_dp_checks
from skdp.testing._case import Case
from skdp.testing._claims import check_limit
from tests.testing import _broken_estimators as zoo

# Which of them scikit-learn skips depends on what is installed.
pytestmark = pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")

CHECKS = {check.__name__: check for check in dp_checks()}
BROKEN = {
    "check_refused_charge": zoo.LateMean(),
    "check_charge_before_touch": zoo.PeekingMean(),
    "check_handle_identity": zoo.ForgetfulMean(),
    "check_exact_spend": zoo.CheapMean(),
    "check_workers": zoo.HoardedNoiseMean(),
    "check_cost_of_mechanisms": zoo.TwiceMean(),
    "check_public_words": zoo.TellingMean(),
    "check_failed_fit": zoo.HastyMean(),
    "check_privacy_parameters": zoo.CarelessMean(),
    "check_tiny_epsilon": zoo.OverflowingMean(),
    "check_no_training_row": zoo.HoardingMean(),
    "check_no_raw_statistic": zoo.RawMean(),
    "check_fresh_noise": zoo.RepeatingMean(),
    "check_noise_of_classes": zoo.SharingCentroids(),
    "check_seeded_flag": zoo.SecretiveMean(),
    "check_statement": zoo.TersePublicMean(),
    "check_group_statement": zoo.RowsMean(),
    "check_relation": zoo.OneRelationMean(),
    "check_accuracy_rises": zoo.IdleMean(),
    "check_limit": zoo.CappedMean(),
    "check_neighbors": zoo.QuietMean(),
    "check_persons": zoo.CrowdedMean(),
    "check_declared_bounds": zoo.FixedMean(),
    "check_no_sample_weight": zoo.WeightedMean(),
    "check_sklearn_contract": zoo.MeddlingMean(),
}
# A mistake that several checks see.
MORE = [
    ("check_exact_spend", zoo.LateMean()),
    ("check_charge_before_touch", zoo.LateMean()),
    ("check_cost_of_mechanisms", zoo.UnderstatedMean()),
    # Less delta than the parameters allow may be spent, but only by noise that needs no more.
    ("check_cost_of_mechanisms", zoo.FreeDeltaMean()),
    ("check_statement", zoo.OverstatedDeltaMean()),
    ("check_statement", zoo.SpendthriftMean()),
    ("check_exact_spend", zoo.ForgetfulMean()),
    ("check_no_raw_statistic", zoo.HoardingMean()),
    ("check_no_raw_statistic", zoo.RepeatingMean()),
    ("check_neighbors", zoo.RepeatingMean()),
    ("check_seeded_flag", zoo.HoardedNoiseMean()),
    ("check_limit", zoo.IdleMean()),
    ("check_neighbors", zoo.UnclippedMean()),
    # The noise of statistics that two rows at opposite ends of the bounds do not change.
    ("check_neighbors", zoo.QuietMagnitudes()),
    ("check_neighbors", zoo.QuietMaxAbsScaler(bounds=(-10, 10))),
    ("check_relation", zoo.OneRelationCounts()),
    ("check_declared_bounds", zoo.UnclippedMean()),
    ("check_declared_bounds", zoo.SearchingMean()),
    ("check_cost_of_mechanisms", zoo.UnchargedMean()),
    ("check_group_statement", zoo.UnchargedMean()),
    ("check_public_words", zoo.TellingMean(where="warning")),
    ("check_public_words", zoo.TellingMean(where="class")),
    ("check_public_words", zoo.TellingMean(where="print")),
    *(("check_no_raw_statistic", zoo.HidingMean(place=p)) for p in zoo.HIDING_PLACES),
]


def statuses(results):
    return {result["check_name"]: result["status"] for result in results}


class MeanWithoutPrivacy(BaseEstimator):
    def fit(self, X, y=None):
        self.mean_ = np.mean(X, axis=0)
        return self


def test_every_check_has_a_broken_estimator():
    assert list(BROKEN) == list(CHECKS)


@pytest.mark.parametrize("name", BROKEN)
def test_a_check_finds_what_it_is_for(name):
    with pytest.raises(AssertionError) as caught:
        CHECKS[name](BROKEN[name])
    rule, _, found = str(caught.value).partition(" But: ")
    assert rule == CHECKS[name].__doc__.split("\n")[0] and rule.endswith(".")
    assert found


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize(("name", "broken"), MORE)
def test_checks_find_mistakes_that_are_not_theirs_alone(name, broken):
    with pytest.raises(AssertionError):
        CHECKS[name](broken)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize(
    ("estimator", "reference"),
    [(zoo.PrivateMean(), MeanWithoutPrivacy()), (zoo.PrivateCentroids(), None)],
    ids=str,
)
def test_estimators_that_keep_the_contract_pass(estimator, reference):
    results = check_dp_estimator(estimator, reference=reference, on_skip=None)
    skipped = {"check_persons", "check_declared_bounds"} | (
        {"check_noise_of_classes"} if reference else set()
    )
    assert {name for name, status in statuses(results).items() if status == "skipped"} == skipped


@pytest.mark.parametrize("name", ["check_fresh_noise", "check_workers"])
@pytest.mark.parametrize("epsilon", [1.0, 20.0])
def test_an_integer_may_be_released_twice(name, epsilon):
    """False alarms have a probability below 1e-7."""
    CHECKS[name](zoo.PrivateCount(epsilon))


@pytest.mark.parametrize(
    "estimator",
    [
        zoo.PrivateUpperQuantile(),
        DPMinMaxScaler(bounds=(-1, 1), quantile_range=(97, 99)),
        zoo.PrivateFractions(),
    ],
    ids=str,
)
def test_a_sensitivity_that_is_little_or_no_larger_under_replace_one_is_honest(estimator):
    CHECKS["check_relation"](estimator)


def test_a_sensitivity_that_ignores_the_relation_is_refused_with_a_remedy():
    with pytest.raises(AssertionError, match="sensitivity_factor.*expected_failed_checks"):
        CHECKS["check_relation"](zoo.OneRelationMean())


@pytest.mark.thorough
def test_an_estimator_without_statement_and_seeds_is_checked_for_the_rest():
    # scikit-learn demands that a fit can be repeated, which needs a seed.
    expected = {"check_sklearn_contract": "fresh noise in every fit"}
    results = statuses(
        check_dp_estimator(zoo.PlainMean(), on_skip=None, expected_failed_checks=expected)
    )
    assert results["check_sklearn_contract"] == "xfail"
    assert {name for name, status in results.items() if status == "skipped"} == {
        "check_charge_before_touch",
        "check_privacy_parameters",
        "check_noise_of_classes",
        "check_seeded_flag",
        "check_statement",
        "check_group_statement",
        "check_persons",
        "check_declared_bounds",
        "check_relation",
    }


def test_the_limit_is_compared_with_a_reference():
    check_limit(Case(zoo.PrivateMean()), MeanWithoutPrivacy())
    with pytest.raises(AssertionError, match="mean_"):
        check_limit(Case(zoo.ShrunkenMean()), MeanWithoutPrivacy())


def test_a_copied_accountant_is_found(monkeypatch):
    def copied(self, memo=None):
        return PrivacyAccountant(self.epsilon, self.delta, dataset="copy")

    monkeypatch.setattr(PrivacyAccountant, "__sklearn_clone__", copied)
    monkeypatch.setattr(PrivacyAccountant, "__deepcopy__", copied)
    for name in ("check_handle_identity", "check_exact_spend"):
        with pytest.raises(AssertionError):
            CHECKS[name](zoo.PrivateMean())


def fake_checks(**_):
    def check_good(estimator):
        pass

    def check_bad(estimator):
        raise AssertionError("broken")

    def check_lacking(estimator):
        raise SkipTest("nothing to check")

    return [check_good, check_bad, check_lacking, check_good]


def test_the_driver_raises_warns_or_reports(monkeypatch):
    monkeypatch.setattr("skdp.testing._checks.dp_checks", fake_checks)
    seen = []
    with pytest.raises(AssertionError, match="broken"):
        check_dp_estimator(zoo.PrivateMean(), callback=lambda **result: seen.append(result))
    assert list(statuses(seen).values()) == ["passed", "failed"]
    with pytest.warns(EstimatorCheckFailedWarning), pytest.warns(SkipTestWarning):
        check_dp_estimator(zoo.PrivateMean(), on_fail="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = check_dp_estimator(zoo.PrivateMean(), on_fail=None, on_skip=None)
    assert [r["status"] for r in results] == ["passed", "failed", "skipped", "passed"]
    assert str(results[1]["exception"]) == "broken"


def test_failures_may_be_expected(monkeypatch):
    monkeypatch.setattr("skdp.testing._checks.dp_checks", fake_checks)
    expected = {"check_bad": "known"}
    results = check_dp_estimator(zoo.PrivateMean(), on_skip=None, expected_failed_checks=expected)
    assert results[1]["status"] == "xfail"
    assert results[1]["expected_to_fail_reason"] == "known"
    decorator = parametrize_with_dp_checks(
        [zoo.PrivateMean()], expected_failed_checks=lambda estimator: expected
    )
    marks = [pair.marks for pair in decorator.args[1]]
    assert [len(m) for m in marks] == [0, 1, 0, 0] and marks[1][0].name == "xfail"


@pytest.mark.parametrize(
    ("estimator", "options", "error"),
    [
        (zoo.PrivateMean, {}, TypeError),
        (zoo.PrivateMean(), {"on_fail": "report"}, ValueError),
        (zoo.PrivateMean(), {"on_skip": "raise"}, ValueError),
    ],
)
def test_impossible_options_are_refused(estimator, options, error):
    with pytest.raises(error):
        check_dp_estimator(estimator, **options)
    with pytest.raises(TypeError):
        parametrize_with_dp_checks([zoo.PrivateMean])


def test_few_fits_are_refused():
    check = next(c for c in dp_checks(n_fits=20) if c.__name__ == "check_neighbors")
    with pytest.raises(ValueError, match="n_fits"):
        check(zoo.PrivateMean())


@parametrize_with_dp_checks([zoo.PrivateMean()])
def test_the_decorator_gives_every_pair(estimator, check):
    assert CHECKS[check.__name__].__doc__ == check.__doc__
    assert isinstance(estimator, zoo.PrivateMean)


def test_a_plan_that_is_left_out_is_named_before_anything_is_charged():
    methods = {name: vars(zoo.MeanOfColumns)[name] for name in ("__init__", "fit")}
    kind = type("Unfinished", zoo.MeanOfColumns.__bases__, methods)
    accountant = PrivacyAccountant(1.0, 0.0)
    with pytest.raises(NotImplementedError, match="Unfinished.*plan_fit"):
        kind(accountant=accountant).fit([[0.0], [1.0]])
    assert accountant.charges == []


@pytest.mark.parametrize(
    "name", ["charge_before_touch", "cost_of_mechanisms", "tiny_epsilon", "statement", "limit"]
)
def test_an_estimator_that_has_them_keeps_the_contract(name):
    CHECKS[f"check_{name}"](zoo.MeanOfColumns())


@pytest.mark.parametrize("name", ["exact_spend", "cost_of_mechanisms", "statement", "neighbors"])
def test_a_fit_may_spend_less_delta_than_it_is_allowed(name):
    CHECKS[f"check_{name}"](zoo.MeanWithDelta())
