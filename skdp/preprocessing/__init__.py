"""Transformers with differential privacy."""

from skdp.preprocessing._histogram_transformer import (
    DPHistogramTransformer as DPHistogramTransformer,
)
from skdp.preprocessing._kbins_discretizer import DPKBinsDiscretizer as DPKBinsDiscretizer
from skdp.preprocessing._mean_transformer import DPMeanTransformer as DPMeanTransformer
from skdp.preprocessing._one_hot_encoder import DPOneHotEncoder as DPOneHotEncoder
from skdp.preprocessing._quantile_scalers import DPMaxAbsScaler as DPMaxAbsScaler
from skdp.preprocessing._quantile_scalers import DPMinMaxScaler as DPMinMaxScaler
from skdp.preprocessing._quantile_scalers import DPRobustScaler as DPRobustScaler
from skdp.preprocessing._quantile_transformer import DPQuantileTransformer as DPQuantileTransformer
from skdp.preprocessing._randomized_response import (
    RandomizedResponseTransformer as RandomizedResponseTransformer,
)
from skdp.preprocessing._standard_scaler import DPStandardScaler as DPStandardScaler
from skdp.preprocessing._target_encoder import DPTargetEncoder as DPTargetEncoder
