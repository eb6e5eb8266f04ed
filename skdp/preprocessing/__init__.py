"""Transformers with differential privacy."""

from skdp.preprocessing._histogram_transformer import DPHistogramTransformer
from skdp.preprocessing._kbins_discretizer import DPKBinsDiscretizer
from skdp.preprocessing._mean_transformer import DPMeanTransformer
from skdp.preprocessing._one_hot_encoder import DPOneHotEncoder
from skdp.preprocessing._quantile_scalers import DPMaxAbsScaler, DPMinMaxScaler, DPRobustScaler
from skdp.preprocessing._quantile_transformer import DPQuantileTransformer
from skdp.preprocessing._randomized_response import RandomizedResponseTransformer
from skdp.preprocessing._standard_scaler import DPStandardScaler
from skdp.preprocessing._target_encoder import DPTargetEncoder

__all__ = [
    "DPHistogramTransformer",
    "DPKBinsDiscretizer",
    "DPMaxAbsScaler",
    "DPMeanTransformer",
    "DPMinMaxScaler",
    "DPOneHotEncoder",
    "DPQuantileTransformer",
    "DPRobustScaler",
    "DPStandardScaler",
    "DPTargetEncoder",
    "RandomizedResponseTransformer",
]
