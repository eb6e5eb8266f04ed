import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from skdp.audit import differencing, linear_reconstruction
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.stats import dp_sum

RNG = np.random.default_rng(0)
N_PERSONS, N_COUNTS = 100, 500
SECRETS = RNG.integers(0, 2, N_PERSONS)
GROUPS = RNG.integers(0, 2, size=(N_COUNTS, N_PERSONS))
COUNTS = (GROUPS @ SECRETS).astype(float)


@pytest.mark.parametrize("queries", [GROUPS, csr_array(GROUPS), GROUPS.tolist()])
def test_exact_counts_give_back_every_bit(queries):
    found = linear_reconstruction(queries, COUNTS)
    assert found.success(SECRETS) == 1.0 and found.n_answers == N_COUNTS
    assert "500 answers" in str(found)


def test_nearly_right_counts_give_back_nearly_every_bit():
    """Dinur and Nissim 2003: errors below the root of the number of persons do not protect."""
    noisy = COUNTS + RNG.normal(0.0, 0.2 * np.sqrt(N_PERSONS), N_COUNTS)
    assert linear_reconstruction(GROUPS, noisy).success(SECRETS) > 0.9


def test_private_counts_keep_to_the_bound():
    """Of 100 fair bits, told with p <= .74: above 90 with a probability below 1e-4."""
    mechanism = GaussianMechanism(1.0, 1e-5, sensitivity=np.sqrt(N_COUNTS))
    found = linear_reconstruction(GROUPS, mechanism.release(COUNTS))
    assert found.success(SECRETS) <= 0.9


def test_other_secrets_than_bits():
    ages = RNG.uniform(0, 100, N_PERSONS)
    found = linear_reconstruction(GROUPS, GROUPS @ ages, bounds=(0, 100))
    assert found.success(ages, tolerance=1e-6) == 1.0
    assert ((found.estimates >= 0) & (found.estimates <= 100)).all()


def test_bad_answers():
    with pytest.raises(ValueError, match="one per query"):
        linear_reconstruction(GROUPS, COUNTS[:-1])
    with pytest.raises(ValueError, match="NaN"):
        linear_reconstruction(GROUPS, np.where(COUNTS == COUNTS[0], np.nan, COUNTS))
    with pytest.raises(ValueError, match="found no optimum"):
        linear_reconstruction(GROUPS, COUNTS, bounds=(1, 0))


def test_two_exact_sums_tell_a_value_and_private_ones_do_not():
    incomes = RNG.uniform(0, 100, 50)
    found = differencing(np.sum, incomes, persons=[3, 7])
    np.testing.assert_allclose(found.estimates, incomes[[3, 7]])
    assert found.success(incomes[[3, 7]], tolerance=1e-6) == 1.0 and found.n_answers == 4
    private = differencing(lambda rows: dp_sum(rows, 1.0, bounds=(0, 100)), incomes)
    # The noise of two sums has a standard deviation of 200: within 1 with a chance below 1 %,
    # four or more of fifty with one below 1e-3.
    assert private.success(incomes, tolerance=1.0) < 0.1


def test_frames_are_cut_by_rows():
    frame = pd.DataFrame({"income": [1.0, 2.0, 4.0], "town": ["a", "b", "b"]})
    found = differencing(lambda rows: rows["income"].sum(), frame)
    np.testing.assert_allclose(found.estimates, [1.0, 2.0, 4.0])
    mechanism = LaplaceMechanism(0.01, sensitivity=1.0)
    noisy = differencing(lambda rows: mechanism.release(float(len(rows))), frame, persons=[0])
    assert len(noisy.estimates) == 1
