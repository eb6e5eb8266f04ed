"""Quantiles between bounds that are a few doubles apart."""

import numpy as np
import pytest

from skdp import DPQuantileTransformer


@pytest.mark.parametrize(
    "low, high", [(0.29999999999999993, 0.30000000000000004), (1.7e18, 1.7e18 + 2048)]
)
def test_quantiles_are_in_order_and_rows_are_transformed_alone(low, high):
    x = np.linspace(low, high, 3000).reshape(-1, 1)
    for _ in range(5):
        fitted = DPQuantileTransformer(5.0, bounds=(low, high)).fit(x)
        assert (np.diff(fitted.quantiles_, axis=0) >= 0).all()
        together = fitted.transform(x)[::97, 0]
        assert np.array_equal(together, [fitted.transform(row[None])[0, 0] for row in x[::97]])
