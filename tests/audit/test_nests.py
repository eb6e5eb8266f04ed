"""An audit treats a nest of containers as it treats a single estimator.

An honest estimator is called a violation with a probability of at most 1e-6 an audit, that is
2e-4 for the 200 of the full set and 4e-6 for those of the fast one.
"""

import itertools
import time
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp import DPMeanTransformer
from skdp.audit import audit_epsilon
from skdp.exceptions import PrivacyViolationWarning
from tests.audit._nests import LEAKS, LEDGERS, make_case, make_leak, no_noise, subjects

CONFIDENCE = 1.0 - 1e-6
# Worlds that are told apart in all of them certify above 0.1, of a removal alone, too.
N_FITS = 54


def verdict(case, n_fits=N_FITS, confidence=CONFIDENCE):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyViolationWarning)
        return audit_epsilon(
            case.nest, case.X, case.y, n_fits=n_fits, confidence=confidence, **case.options()
        )


@pytest.mark.slow
@pytest.mark.parametrize("relation", LEDGERS)
@pytest.mark.parametrize("name", subjects("add_remove"))
def test_no_honest_nest_is_called_a_violation(name, relation):
    """Ten of the two hundred, and one of the same nests without noise, by as many fits.

    As little as 0.1 is claimed: what separates two worlds wholly is found to be above it.
    """
    for seed in range(10):
        found = verdict(make_case(name, relation, seed))
        assert not found.violation, (seed, str(found))
    assert verdict(make_case(name, relation, 0, change=no_noise)).violation


@pytest.mark.slow
def test_leaky_copies_are_found_in_nests():
    missed = []
    for number, leak in enumerate(LEAKS):
        case, n_fits = make_leak(number)
        if not verdict(case, n_fits, confidence=0.999).violation:
            missed.append((number, leak[0], leak[2]))
    assert len(LEAKS) == 20 and len(missed) <= 1, missed


@pytest.mark.thorough
def test_an_honest_and_a_leaky_nest():
    """Both in one, so that neither a blind audit nor one that always warns passes."""
    assert not verdict(make_case("mean", "add_remove", 2)).violation
    shared_noise, _ = make_leak(15)
    assert verdict(shared_noise).violation


MEAN = DPMeanTransformer(40.0, bounds=(-1, 1))
X, Y = -np.ones((30, 1)), np.arange(30) % 2
CANARY = {"method": "two_worlds", "canary": ([1.0], 1)}
NESTS = {
    "bare": MEAN,
    "pipeline": Pipeline([("a", Pipeline([("m", MEAN)]))]),
    "union": FeatureUnion([("m", MEAN)]),
    "columns": ColumnTransformer([("m", MEAN, [0])]),
    "remainder": ColumnTransformer([], remainder=MEAN),
    "all": ColumnTransformer([("u", FeatureUnion([("p", Pipeline([("m", MEAN)]))]), [0])]),
    "meta": OneVsRestClassifier(Pipeline([("m", MEAN), ("d", DummyClassifier())])),
}


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("nest", NESTS)
def test_the_number_of_rows_is_public_in_a_nest(nest):
    """A bound above a claim is judged again with tables of one size where a part states privacy.

    The claim is far below the truth, so that there is such a bound.
    """
    with pytest.warns(PrivacyViolationWarning):
        found = audit_epsilon(NESTS[nest], X, Y, epsilon=0.01, delta=0.0, n_fits=20, **CANARY)
    assert found.attack.endswith("tables of one size")
    # The first test is evaluated on 20 more fits, unless the fits that chose it are convincing.
    assert found.runs in (60, 80)


def test_a_test_that_tables_of_two_sizes_decide_is_not_evaluated():
    mean = DPMeanTransformer(1e6, bounds=(-1, 1))
    with pytest.warns(PrivacyViolationWarning):
        found = audit_epsilon(mean, X, Y, epsilon=0.01, delta=0.0, n_fits=20, **CANARY)
    assert found.attack.endswith("tables of one size") and found.runs == 60


class Clock(DPMeanTransformer):
    """Says when it was fitted, and whether in an even turn."""

    turns = itertools.count()

    def fit(self, X, y=None):
        super().fit(X, y)
        self.fitted_at_, self.is_odd_ = time.perf_counter(), next(self.turns) % 2
        return self


def test_the_clock_does_not_tell_the_worlds_apart():
    clock = FeatureUnion([("m", Clock(0.02, bounds=(-1, 1)))])
    options = CANARY | {"replacement": ([-1.0], 1), "relation": "replace_one"}
    found = audit_epsilon(
        clock, X, Y, epsilon=0.05, delta=0.0, n_fits=50, confidence=CONFIDENCE, **options
    )
    assert not found.violation


class CountsAlone(BaseEstimator):
    """Shows the number of rows, and is not of skdp."""

    def fit(self, X, y=None):
        self.n_rows_ = len(X)
        return self

    def transform(self, X):
        return X


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::skdp.exceptions.RawDataWarning")
def test_what_the_number_of_rows_decides_is_left_out_in_a_nest():
    nest = ColumnTransformer([("n", CountsAlone(), [0])], remainder=FeatureUnion([("m", MEAN)]))
    wide = np.hstack([X, X])
    found = audit_epsilon(
        FeatureUnion([("nest", nest)]),
        wide,
        Y,
        method="two_worlds",
        canary=([1.0, -1.0], 1),
        epsilon=0.3,
        delta=0.0,
        n_fits=60,
        confidence=CONFIDENCE,
    )
    assert not found.violation and found.runs == 120
