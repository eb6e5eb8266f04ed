"""Every estimator against scikit-learn's checks and skdp's own."""

from unittest import SkipTest

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from skdp import DPGridSearchCV, DPTunedThresholdClassifierCV, PrivacyAccountant
from skdp.testing import dp_checks
from tests import _public
from tests._estimators import ESTIMATORS, FIRST_OF_CLASS, firsts
from tests._tables import make_table

# scikit-learn's checks put their numbers into a data frame.
pytestmark = pytest.mark.filterwarnings("ignore:.* holds numbers, and data_norm")

OLD_SKLEARN = sklearn.__version__.startswith("1.7")


FIRST_OF_KIND = firsts(lambda estimator: get_tags(estimator).estimator_type, ESTIMATORS)
OTHERS = [e for e in ESTIMATORS if not any(e is first for first in FIRST_OF_CLASS)]


def run_sklearn_check(estimator, check):
    tags = get_tags(estimator).input_tags
    integers = tags.categorical and not tags.allow_nan
    if integers and check.func.__name__ == "check_positive_only_tag_during_fit" and OLD_SKLEARN:
        raise SkipTest("this release's check takes a float from integers in place")
    is_tuned = isinstance(estimator, DPTunedThresholdClassifierCV)
    if is_tuned and check.func.__name__ == "check_classifiers_train":
        # The check compares predictions with the scores at a probability of 1/2.
        has_probabilities = hasattr(estimator.estimator, "predict_proba")
        estimator = clone(estimator).set_params(thresholds=[0.5 if has_probabilities else 0.0])
    check(estimator)


@pytest.mark.quick_cases(
    one_per=lambda estimator, check: (get_tags(estimator).estimator_type, check.func.__name__)
)
@parametrize_with_checks(FIRST_OF_CLASS)
def test_sklearn_contract(estimator, check):
    run_sklearn_check(estimator, check)


def run_sklearn_checks(estimator, first, step):
    for _, check in list(estimator_checks_generator(estimator))[first::step]:
        try:
            run_sklearn_check(estimator, check)
        except SkipTest:
            continue


@pytest.mark.slow
@pytest.mark.parametrize("estimator", OTHERS, ids=str)
def test_sklearn_contract_of_further_parameters(estimator):
    run_sklearn_checks(estimator, 0, 1)


PARTS = 4


@pytest.mark.thorough
@pytest.mark.parametrize(("i", "estimator"), list(enumerate(OTHERS)), ids=str)
def test_a_part_of_sklearns_contract_of_further_parameters(i, estimator):
    """Each a quarter of the checks, and all of them by four in a row."""
    run_sklearn_checks(estimator, i % PARTS, PARTS)


# By default checks of many fits or of worker processes are for the first instance of each class,
# and scikit-learn's own checks with an accountant, which are above without one, for one of a kind.
LONG = {name: FIRST_OF_CLASS for name in ("check_limit", "check_accuracy_rises", "check_workers")}
LONG["check_sklearn_contract"] = FIRST_OF_KIND
# What chooses among mechanisms or candidates takes long to fit; linear_model/test_audit.py and
# model_selection/test_audit.py attack it.
CHOOSING = {repr(e) for e in ESTIMATORS if isinstance(e, DPGridSearchCV)} | {
    "DPLogisticRegression()"
}
LONG["check_persons"] = []


def told(estimator):
    """Return an estimator whose bounds are declared: noise in those that it finds hides a leak."""
    bounds = {"bounds": (-10, 10)} if estimator.get_params().get("bounds") == "auto" else {}
    return clone(estimator).set_params(**bounds)


TOLD = [told(e) for e in firsts(type, [e for e in ESTIMATORS if repr(e) not in CHOOSING])]
ESTIMATORS_BY_NAME = {repr(e): e for e in ESTIMATORS}
LONG["check_neighbors"] = [ESTIMATORS_BY_NAME.get(repr(e), e) for e in TOLD]


# README's command makes the checks of many fits on one estimator of each kind.
MANY_FITS = ("check_neighbors", "check_accuracy_rises", "check_limit")
QUICK = {name: firsts(lambda e: get_tags(e).estimator_type, LONG[name]) for name in MANY_FITS}


def is_one_of(estimator, estimators):
    return any(estimator is one for one in estimators)


# These take longest, one of them twenty seconds of a forest with other parameters.
LONGER = ("check_relation", "check_tiny_epsilon")


def is_quick(estimator, check, number):
    """Return whether README's command makes a check, of those that are numbered along."""
    if not is_one_of(estimator, FIRST_OF_CLASS):
        return check.__name__ not in LONGER and number % (3 * PARTS) == 0
    return check.__name__ not in LONGER or number % 3 == 0


def contract():
    """Mark what README's command leaves out."""
    for i, estimator in enumerate(ESTIMATORS):
        name = repr(estimator)
        for j, check in enumerate(dp_checks()):
            marks = []
            if not is_one_of(estimator, LONG.get(check.__name__, ESTIMATORS)):
                marks = [pytest.mark.slow]
            elif check.__name__ in QUICK:
                quick = is_one_of(estimator, QUICK[check.__name__])
                marks = [] if quick else [pytest.mark.thorough]
            elif not is_quick(estimator, check, i - j):
                marks = [pytest.mark.thorough]
            yield pytest.param(estimator, check, marks=marks, id=f"{name}-{check.__name__}")
    for estimator in LONG["check_neighbors"]:
        if not is_one_of(estimator, ESTIMATORS):
            check = next(c for c in dp_checks() if c.__name__ == "check_neighbors")
            marks = [] if is_one_of(estimator, QUICK["check_neighbors"]) else [pytest.mark.thorough]
            yield pytest.param(estimator, check, marks=marks, id=f"{estimator}-{check.__name__}")


@pytest.mark.quick_cases(every=5)
@pytest.mark.filterwarnings("ignore:Skipping check")
@pytest.mark.parametrize(("estimator", "check"), list(contract()))
def test_dp_contract(estimator, check):
    check(estimator)


# Other parameters may choose noise that needs no delta. A fit then spends less than it may.
WITHOUT_DELTA = [e for e in ESTIMATORS if e.get_params(deep=False).get("delta") == 0.0]


@pytest.mark.parametrize("name", ["check_cost_of_mechanisms", "check_statement"])
@pytest.mark.parametrize("estimator", WITHOUT_DELTA, ids=repr)
def test_charge_and_statement_agree_if_delta_is_allowed(estimator, name):
    check = next(c for c in dp_checks() if c.__name__ == name)
    check(clone(estimator).set_params(delta=1e-6))


@pytest.mark.parametrize("estimator", [e for e in FIRST_OF_CLASS if hasattr(e, "_statement")])
def test_a_statement_that_cannot_be_made_costs_nothing(estimator, monkeypatch):
    def fail(self, plan):
        raise ZeroDivisionError

    monkeypatch.setattr(type(estimator), "_statement", fail)
    accountant = PrivacyAccountant(1e3, 0.5)
    X, y = make_table(estimator)
    with pytest.raises(ZeroDivisionError):
        clone(estimator).set_params(accountant=accountant).fit(X, y)
    assert accountant.charges == []


def test_no_private_estimator_is_missing_here():
    names = {kind.__name__ for kind in _public.ESTIMATORS}
    assert names == {type(estimator).__name__ for estimator in ESTIMATORS}
    assert np.all([e.get_params()["accountant"] is None for e in ESTIMATORS])
