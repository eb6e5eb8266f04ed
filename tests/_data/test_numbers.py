"""Small functions of numbers: sums that are not exceeded, packed matrices, rounded texts."""

import numpy as np
import pandas as pd
import pytest

from skdp import DPStandardScaler, PrivacyAccountant
from skdp._data._symmetric import pack_symmetric, unpack_symmetric
from tests._private import format_rounded_up


def test_packing_keeps_frobenius_norms():
    A = np.random.default_rng(0).normal(size=(5, 5))
    A = A + A.T
    assert np.linalg.norm(pack_symmetric(A)) == pytest.approx(np.linalg.norm(A), rel=1e-14)
    np.testing.assert_allclose(unpack_symmetric(pack_symmetric(A), 5), A, rtol=1e-15)


def test_amounts_are_rounded_up_but_for_the_error_of_a_sum():
    assert format_rounded_up(0.1, 0.1 + 0.2, 1e-300, 0.0, np.inf) == "0.1, 0.3, 1e-300, 0, inf"
    assert format_rounded_up(1.0 / 3.0) == "0.333334"


def test_arrays_of_one_number_are_no_numbers():
    """Old versions of NumPy convert them."""
    accountant = PrivacyAccountant(1.0, 0.0)
    frame = pd.DataFrame({"x": [np.array([0.5])] * 10})
    with pytest.raises((TypeError, ValueError), match="column 'x' contains"):
        DPStandardScaler(bounds=(0, 1), accountant=accountant).fit(frame)
    assert accountant.epsilon_spent == 0.0
