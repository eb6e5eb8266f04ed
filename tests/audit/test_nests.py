"""An audit treats a nest of containers as it treats a single estimator.

An honest estimator is called a violation with a probability of at most 4e-6 an audit, that is
8e-4 for the 200 of the full set and 5e-5 for the dozen of the fast one.
"""

import warnings

import pytest

from skdp.audit import audit_epsilon
from skdp.exceptions import PrivacyViolationWarning
from tests.audit._nests import LEAKS, LEDGERS, make_case, make_leak, subjects

CONFIDENCE = 1.0 - 4e-6


def verdict(case, n_fits, confidence=CONFIDENCE):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyViolationWarning)
        return audit_epsilon(
            case.nest, case.X, case.y, n_fits=n_fits, confidence=confidence, **case.options()
        )


@pytest.mark.slow
@pytest.mark.parametrize("relation", LEDGERS)
@pytest.mark.parametrize("name", subjects("add_remove"))
def test_no_honest_nest_is_called_a_violation(name, relation):
    """Ten of the two hundred. From 120 fits what separates the worlds wholly certifies 1.4."""
    for seed in range(10):
        found = verdict(make_case(name, relation, seed), 120)
        assert not found.violation, (seed, str(found))


@pytest.mark.slow
def test_leaky_copies_are_found_in_nests():
    missed = []
    for number, leak in enumerate(LEAKS):
        case, n_fits = make_leak(number)
        if not verdict(case, n_fits).violation:
            missed.append((number, leak[0], leak[2]))
    assert len(LEAKS) == 20 and len(missed) <= 1, missed
