"""A value plus noise, a choice plus noise; each mechanism knows its own event."""

from skdp.mechanisms._gaussian import GammaNormMechanism as GammaNormMechanism
from skdp.mechanisms._gaussian import GaussianMechanism as GaussianMechanism
from skdp.mechanisms._laplace import GeometricMechanism as GeometricMechanism
from skdp.mechanisms._laplace import LaplaceMechanism as LaplaceMechanism
from skdp.mechanisms._plan import JointMechanism as JointMechanism
from skdp.mechanisms._plan import NoRelease as NoRelease
from skdp.mechanisms._randomized_response import RandomizedResponse as RandomizedResponse
from skdp.mechanisms._selection import ExponentialMechanism as ExponentialMechanism
from skdp.mechanisms._selection import PermuteAndFlip as PermuteAndFlip
from skdp.mechanisms._selection import ReportNoisyMax as ReportNoisyMax
from skdp.mechanisms._sensitivity import bounded_sum_sensitivity as bounded_sum_sensitivity
from skdp.mechanisms._sensitivity import convert_sensitivity as convert_sensitivity
from skdp.mechanisms._sensitivity import histogram_sensitivity as histogram_sensitivity
from skdp.mechanisms._sensitivity import sum_sensitivity as sum_sensitivity
