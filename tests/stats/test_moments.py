"""What one row moves in the sums of which means and variances are made."""

import itertools
import math

import numpy as np
import pytest

from skdp.base import TableShape
from skdp.stats._moments import SENSITIVITY, _centered_sums, plan_moments
from tests._guarantees import meet


@pytest.mark.parametrize("n_moments", [1, 2])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_brute_force_sensitivity(relation, n_moments):
    grid = np.linspace(-1.2, 1.2, 121)[:, None]
    rows = [_centered_sums(row[None], -1.0, 1.0, n_moments)[:, 0] for row in grid]
    # One row's sums hold u^2 - 1/2; a missing row contributes nothing.
    if relation == "add_remove":
        moves = rows
    else:
        moves = [a - b for a, b in itertools.combinations(rows, 2)]
    l1, l2 = SENSITIVITY[relation, n_moments]
    largest_l1 = max(np.abs(move).sum() for move in moves)
    largest_l2 = max(np.linalg.norm(move) for move in moves)
    assert 0.999 * l1 < largest_l1 <= l1 * (1 + 1e-12)
    assert 0.999 * l2 < largest_l2 <= l2 * (1 + 1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_sensitivity_grows_with_the_features(relation, delta):
    l1, l2 = SENSITIVITY[relation, 2]
    for d in (1, 10):
        shape = TableShape(n_rows=1000, n_columns=d)
        plan = plan_moments(shape, meet(1.0, delta, relation), n_moments=2)
        expected = l1 * d if delta == 0.0 else l2 * math.sqrt(d)
        assert expected < plan.sensitivity < expected * (1 + 1e-6)
