"""A value plus noise, a choice plus noise; each mechanism knows its own event."""

from skdp.mechanisms._gamma_norm import GammaNormMechanism
from skdp.mechanisms._gaussian import GaussianMechanism
from skdp.mechanisms._laplace import LaplaceMechanism

__all__ = ["GammaNormMechanism", "GaussianMechanism", "LaplaceMechanism"]
