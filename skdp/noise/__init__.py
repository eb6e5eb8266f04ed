"""Sources of randomness, and exact samplers."""

from skdp.noise._discrete import LARGEST_SCALE, discrete_gaussian, discrete_laplace, geometric
from skdp.noise._exact import bernoulli_exp, truthful
from skdp.noise._integers import choose_by_distance, random_order, uniform_integers
from skdp.noise._norm import rounded_norm_noise
from skdp.noise._source import NoiseGuard, RandomSource, SourceLike, as_source

__all__ = [
    "LARGEST_SCALE",
    "NoiseGuard",
    "RandomSource",
    "SourceLike",
    "as_source",
    "bernoulli_exp",
    "choose_by_distance",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "random_order",
    "rounded_norm_noise",
    "truthful",
    "uniform_integers",
]
