"""Privacy accounting: events, what they cost, and the noise that a budget buys."""

from skdp.accounting._accountant import PrivacyAccountant
from skdp.accounting._advanced import advanced_epsilon
from skdp.accounting._bounds import get_delta, get_epsilon, trade_off
from skdp.accounting._calibrate import calibrate
from skdp.accounting._chain import Record, chain_end, next_record
from skdp.accounting._conversions import (
    convert_relation,
    rdp_to_delta,
    rdp_to_epsilon,
    zcdp_to_delta,
    zcdp_to_epsilon,
)
from skdp.accounting._costs import gdp, rdp, zcdp
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
from skdp.accounting._guarantee import Guarantee, Neighbours
from skdp.accounting._interchange import from_dp_accounting, to_dp_accounting
from skdp.accounting._ledger import Ledger, open_ledger, register_ledger
from skdp.accounting._report import BudgetReport
from skdp.accounting._reservation import Allowance, PlannedCharge, Reservation, plan_event
from skdp.accounting._state import Draw, Part, Spend

__all__ = [
    "ZCDP",
    "Allowance",
    "ApproximateDP",
    "BudgetReport",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Draw",
    "Event",
    "ExponentialMechanism",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Ledger",
    "Neighbours",
    "NonPrivate",
    "Part",
    "PlannedCharge",
    "PoissonSampled",
    "PrivacyAccountant",
    "PureDP",
    "RandomStopping",
    "RandomizedResponse",
    "Record",
    "Repeated",
    "Reservation",
    "SampledWithoutReplacement",
    "Spend",
    "advanced_epsilon",
    "calibrate",
    "chain_end",
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
    "next_record",
    "open_ledger",
    "plan_event",
    "rdp",
    "rdp_to_delta",
    "rdp_to_epsilon",
    "register_ledger",
    "to_dp_accounting",
    "trade_off",
    "zcdp",
    "zcdp_to_delta",
    "zcdp_to_epsilon",
]
