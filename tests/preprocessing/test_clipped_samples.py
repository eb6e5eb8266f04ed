"""A scaler's transform counts what is beyond the bounds as the bound, each row by itself."""

import numpy as np
import pytest

from skdp import DPKBinsDiscretizer, DPMeanTransformer, DPQuantileTransformer
from tests._public import TRANSFORMERS

# A mean is subtracted from what there is; beyond its outermost quantiles a quantile transformer
# tells nothing apart, and no more does one of bins.
OTHERS = (DPKBinsDiscretizer, DPMeanTransformer, DPQuantileTransformer)
SCALERS = [
    kind
    for kind in TRANSFORMERS
    if "bounds" in kind().get_params() and hasattr(kind, "inverse_transform")
    if kind not in OTHERS
]

X = np.random.default_rng(0).uniform([-1, 2], [1, 30], size=(400, 2))
WILD = [[-1e300, 2.0], [1e12, 1e9], [0.5, -7.0], [0.0, 10.0]]
TAME = [[-1.0, 2.0], [1.0, 30.0], [0.5, 2.0], [0.0, 10.0]]


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("bounds", [{0: (-1, 1), 1: (2, 30)}, "auto"])
def test_samples_are_clipped_to_the_bounds(scaler, bounds):
    fitted = scaler(bounds=bounds, random_state=0).fit(X)
    tame = np.clip(TAME if bounds != "auto" else WILD, *fitted.bounds_)
    assert np.array_equal(fitted.transform(WILD), fitted.transform(tame))
    assert np.array_equal(fitted.transform(WILD)[3:], fitted.transform(WILD[3:]))
    back = fitted.inverse_transform(fitted.transform(WILD))
    assert np.allclose(back, tame, rtol=1e-6, atol=1e-6)
