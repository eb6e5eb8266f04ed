"""Transformers with differential privacy."""

from skdp.preprocessing._histogram_transformer import DPHistogramTransformer
from skdp.preprocessing._kbins_discretizer import DPKBinsDiscretizer
from skdp.preprocessing._mean_transformer import DPMeanTransformer
from skdp.preprocessing._randomized_response import RandomizedResponseTransformer
from skdp.preprocessing._standard_scaler import DPStandardScaler

__all__ = [
    "DPHistogramTransformer",
    "DPKBinsDiscretizer",
    "DPMeanTransformer",
    "DPStandardScaler",
    "RandomizedResponseTransformer",
]
