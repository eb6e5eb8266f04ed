"""Privacy accounting: events, their privacy cost, and the calibration of noise."""

from skdp.accounting._advanced import advanced_epsilon
from skdp.accounting._bounds import get_delta, get_epsilon, trade_off
from skdp.accounting._calibrate import calibrate
from skdp.accounting._conversions import (
    convert_relation,
    rdp_to_delta,
    rdp_to_epsilon,
    zcdp_to_delta,
    zcdp_to_epsilon,
)
from skdp.accounting._events import (
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
from skdp.accounting._gaussian import (
    gaussian_delta,
    gaussian_noise_multiplier,
    gdp_to_delta,
    gdp_to_epsilon,
)
from skdp.accounting._guarantee import Guarantee, Neighbors
from skdp.accounting._interchange import from_dp_accounting, to_dp_accounting
from skdp.accounting._laws import gdp, rdp, zcdp

__all__ = [
    "ZCDP",
    "ApproximateDP",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "ExponentialMechanism",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Neighbors",
    "NonPrivate",
    "PoissonSampled",
    "PureDP",
    "RandomStopping",
    "RandomizedResponse",
    "Repeated",
    "SampledWithoutReplacement",
    "advanced_epsilon",
    "calibrate",
    "convert_relation",
    "event_from_json",
    "from_dp_accounting",
    "gaussian_delta",
    "gaussian_noise_multiplier",
    "gdp",
    "gdp_to_delta",
    "gdp_to_epsilon",
    "get_delta",
    "get_epsilon",
    "rdp",
    "rdp_to_delta",
    "rdp_to_epsilon",
    "to_dp_accounting",
    "trade_off",
    "zcdp",
    "zcdp_to_delta",
    "zcdp_to_epsilon",
]
