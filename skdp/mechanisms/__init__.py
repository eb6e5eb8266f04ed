"""Mechanisms that add noise to values or choose a candidate, each with its privacy event."""

from skdp.mechanisms._gaussian import GammaNormMechanism, GaussianMechanism
from skdp.mechanisms._laplace import GeometricMechanism, LaplaceMechanism
from skdp.mechanisms._plan import JointMechanism, NoRelease
from skdp.mechanisms._randomized_response import RandomizedResponse
from skdp.mechanisms._selection import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from skdp.mechanisms._sensitivity import (
    bounded_sum_sensitivity,
    convert_sensitivity,
    histogram_sensitivity,
    sum_sensitivity,
)

__all__ = [
    "ExponentialMechanism",
    "GammaNormMechanism",
    "GaussianMechanism",
    "GeometricMechanism",
    "JointMechanism",
    "LaplaceMechanism",
    "NoRelease",
    "PermuteAndFlip",
    "RandomizedResponse",
    "ReportNoisyMax",
    "bounded_sum_sensitivity",
    "convert_sensitivity",
    "histogram_sensitivity",
    "sum_sensitivity",
]
