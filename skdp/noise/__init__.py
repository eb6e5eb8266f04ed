"""Where randomness comes from, and exact samplers."""

from skdp.noise._discrete import LARGEST_SCALE as LARGEST_SCALE
from skdp.noise._discrete import discrete_gaussian as discrete_gaussian
from skdp.noise._discrete import discrete_laplace as discrete_laplace
from skdp.noise._discrete import geometric as geometric
from skdp.noise._exact import bernoulli_exp as bernoulli_exp
from skdp.noise._exact import truthful as truthful
from skdp.noise._integers import choose_by_distance as choose_by_distance
from skdp.noise._integers import random_order as random_order
from skdp.noise._integers import uniform_integers as uniform_integers
from skdp.noise._norm import rounded_norm_noise as rounded_norm_noise
from skdp.noise._source import Door as Door
from skdp.noise._source import RandomSource as RandomSource
from skdp.noise._source import SourceLike as SourceLike
from skdp.noise._source import as_source as as_source
