"""What the plans of all mechanisms share: public constants and the price of a fit."""

from dataclasses import dataclass

from skdp.accounting import Event

__all__ = ["EXPECTED_WEIGHTS_NORM", "ROWS_MOVED", "FitCost"]

# The rows' gradients by which neighbours' sums differ.
ROWS_MOVED = {"add_remove": 1, "replace_one": 2}

# The norm of weights, times data_norm, for which C="auto" balances regularisation against noise;
# chosen with the benchmarks' tables in view, see docs/benchmarks/utility.md.
EXPECTED_WEIGHTS_NORM = 10.0


@dataclass(frozen=True)
class FitCost:
    """The price of a fit and the noise that it is the price of.

    Parameters
    ----------
    name : str
        What is done, in words.
    event : Event
    epsilon, delta : float
        The fit is (epsilon, delta)-DP.
    scale : float
        The scale of the noise on a sum of gradients.
    sensitivity : float
        The L2 sensitivity of that sum.
    """

    name: str
    event: Event
    epsilon: float
    delta: float
    scale: float
    sensitivity: float
