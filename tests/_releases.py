"""What an estimator hands to its mechanism, and how far it moves between neighbors."""

from functools import cache

import numpy as np
from sklearn.base import clone

from skdp import PrivacyAccountant
from skdp.mechanisms import GammaNormMechanism, GaussianMechanism


@cache
def _accountant(relation):
    return PrivacyAccountant(1e9, 0.5, relation=relation, dataset=f"neighbors, {relation}")


def record_releases(monkeypatch):
    """Return a list that collects (mechanism, exact values, released values) of each release."""
    records = []
    for mechanism in (GaussianMechanism, GammaNormMechanism):
        release = mechanism.release

        def recorded(self, values, release=release, **source):
            released = release(self, values, **source)
            records.append((self, np.array(values), np.array(released)))
            return released

        monkeypatch.setattr(mechanism, "release", recorded)
    return records


def moved_over_claimed(monkeypatch, estimators, tables, relation):
    """Return the distance of two tables' exact statistics over the stated sensitivity."""
    with monkeypatch.context() as patch:
        records = record_releases(patch)
        for estimator, table in zip(estimators, tables, strict=True):
            fitted = clone(estimator).set_params(accountant=_accountant(relation)).fit(*table)
    (first, one_values, _), (second, other_values, _) = records
    # The sensitivities of tables of n and n - 1 rows differ by what is allowed for rounding.
    claimed = min(first.sensitivity, second.sensitivity)
    assert fitted.privacy_.sensitivity == second.sensitivity
    return np.linalg.norm(one_values - other_values) / claimed
