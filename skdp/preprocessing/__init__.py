"""Transformers with differential privacy."""

from skdp.preprocessing._one_hot_encoder import DPOneHotEncoder
from skdp.preprocessing._randomized_response import RandomizedResponseTransformer
from skdp.preprocessing._standard_scaler import DPStandardScaler

__all__ = ["DPOneHotEncoder", "DPStandardScaler", "RandomizedResponseTransformer"]
