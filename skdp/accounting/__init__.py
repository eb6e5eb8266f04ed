"""Privacy accounting: events, what they cost, and the noise that a budget buys."""

from ._accountant import PrivacyAccountant
from ._advanced import advanced_epsilon
from ._bounds import delta, epsilon, trade_off
from ._calibrate import calibrate
from ._conversions import (
    convert_relation,
    rdp_to_delta,
    rdp_to_epsilon,
    zcdp_to_delta,
    zcdp_to_epsilon,
)
from ._events import (
    ZCDP,
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    NonPrivate,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RandomStopping,
    Repeated,
    SampledWithoutReplacement,
    event_from_json,
)
from ._gaussian import gaussian_delta, gaussian_noise_multiplier, gdp_to_delta, gdp_to_epsilon
from ._interchange import from_dp_accounting, to_dp_accounting
from ._leaf import gdp, zcdp
from ._rdp import rdp
from ._report import BudgetReport
from ._state import Spend

__all__ = [
    "ZCDP",
    "ApproximateDP",
    "BudgetReport",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "ExponentialMechanism",
    "Gaussian",
    "Laplace",
    "NonPrivate",
    "PoissonSampled",
    "PrivacyAccountant",
    "PureDP",
    "RandomStopping",
    "RandomizedResponse",
    "Repeated",
    "SampledWithoutReplacement",
    "Spend",
    "advanced_epsilon",
    "calibrate",
    "convert_relation",
    "delta",
    "epsilon",
    "event_from_json",
    "from_dp_accounting",
    "gaussian_delta",
    "gaussian_noise_multiplier",
    "gdp",
    "gdp_to_delta",
    "gdp_to_epsilon",
    "rdp",
    "rdp_to_delta",
    "rdp_to_epsilon",
    "to_dp_accounting",
    "trade_off",
    "zcdp",
    "zcdp_to_delta",
    "zcdp_to_epsilon",
]
