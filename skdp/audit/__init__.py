"""What an attacker can learn from a fitted estimator."""

from skdp.audit._bounds import (
    epsilon_from_rates,
    gaussian_epsilon_from_rates,
    one_run_epsilon,
    one_run_gaussian_epsilon,
)

__all__ = [
    "epsilon_from_rates",
    "gaussian_epsilon_from_rates",
    "one_run_epsilon",
    "one_run_gaussian_epsilon",
]
