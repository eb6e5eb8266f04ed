"""Attacks on fitted estimators: certified lower bounds on epsilon, and inference of secrets."""

from skdp.audit._bounds import (
    epsilon_from_rates,
    gaussian_epsilon_from_rates,
    one_run_epsilon,
    one_run_gaussian_epsilon,
    success_bound,
)
from skdp.audit._epsilon import EpsilonAudit, audit_epsilon
from skdp.audit._membership import MembershipInference, membership_inference
from skdp.audit._reconstruction import Reconstruction, differencing, linear_reconstruction

__all__ = [
    "EpsilonAudit",
    "MembershipInference",
    "Reconstruction",
    "audit_epsilon",
    "differencing",
    "epsilon_from_rates",
    "gaussian_epsilon_from_rates",
    "linear_reconstruction",
    "membership_inference",
    "one_run_epsilon",
    "one_run_gaussian_epsilon",
    "success_bound",
]
