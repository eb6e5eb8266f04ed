import numpy as np
import pytest

from skdp.utils._symmetric import pack_symmetric, unpack_symmetric


def test_packing_keeps_frobenius_norms():
    A = np.random.default_rng(0).normal(size=(5, 5))
    A = A + A.T
    assert np.linalg.norm(pack_symmetric(A)) == pytest.approx(np.linalg.norm(A), rel=1e-14)
    np.testing.assert_allclose(unpack_symmetric(pack_symmetric(A), 5), A, rtol=1e-15)
