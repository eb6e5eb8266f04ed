"""What an attacker can learn from a fitted estimator."""

from skdp.audit._bounds import (
    epsilon_from_rates,
    gaussian_epsilon_from_rates,
    one_run_epsilon,
    one_run_gaussian_epsilon,
)
from skdp.audit._epsilon import EpsilonAudit, audit_epsilon
from skdp.audit._membership import MembershipInference, membership_inference

__all__ = [
    "EpsilonAudit",
    "MembershipInference",
    "audit_epsilon",
    "epsilon_from_rates",
    "gaussian_epsilon_from_rates",
    "membership_inference",
    "one_run_epsilon",
    "one_run_gaussian_epsilon",
]
