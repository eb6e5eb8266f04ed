"""The engine of noisy stochastic gradients: batches, sums of clipped gradients, noise.

Its mathematics is in ``docs/dp_sgd_engine.md``.
"""

from skdp._sgd._batches import FixedSizeBatches, FullBatches, PoissonBatches
from skdp._sgd._clipped_sums import ClippedSums, sum_rounding
from skdp._sgd._noise import GaussianNoise, LaplaceNoise

__all__ = [
    "ClippedSums",
    "FixedSizeBatches",
    "FullBatches",
    "GaussianNoise",
    "LaplaceNoise",
    "PoissonBatches",
    "sum_rounding",
]
