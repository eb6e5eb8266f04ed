"""Where randomness comes from, and exact samplers on a grid."""

from skdp.noise._discrete import discrete_gaussian, discrete_laplace
from skdp.noise._norm import rounded_norm_noise
from skdp.noise._source import RandomSource, as_source

__all__ = [
    "RandomSource",
    "as_source",
    "discrete_gaussian",
    "discrete_laplace",
    "rounded_norm_noise",
]
