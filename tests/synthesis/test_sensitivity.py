"""Sensitivity of each stage of a fit, by brute force over neighboring tables."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest

from skdp.accounting import Guarantee, Neighbors
from skdp.exceptions import SeededNoiseWarning
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.noise import RandomSource
from skdp.synthesis import DPTableSynthesizer
from tests._persons import persons_of

N_ROWS = 40
BOUNDS = {"age": (0, 60), "income": (0.0, 10.0)}
CATEGORIES = {"color": ["red", "green", "blue"]}
UNITS = ["rows", "replaced rows", "persons", "replaced persons"]


def make_table(seed=0, n_rows=N_ROWS):
    rng = np.random.default_rng(seed)
    income = rng.exponential(3.0, n_rows) * (rng.random(n_rows) < 0.7)
    income[rng.random(n_rows) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "age": rng.integers(-5, 70, n_rows),
            "income": income,
            "color": rng.choice(["red", "green", "blue", "pink", None], n_rows),
            "is_ill": rng.random(n_rows) < 0.4,
        }
    )


def synthesizer(**params):
    return DPTableSynthesizer(
        bounds=BOUNDS, categories=CATEGORIES, target="is_ill", workload=[("age", "color")], **params
    )


class Releases:
    """The exact values of the releases of several runs, all of which get the same results.

    The results are those of a first run, so that groups and chosen tables are the same for all.
    """

    def __init__(self):
        self.results, self.mechanisms, self.exact, self.n_made = [], [], [], 0

    def replacing(self, release):
        def replaced(mechanism, values, *, random_state=None):
            self.exact.append(np.array(values, dtype=float))
            self.n_made += 1
            if self.n_made > len(self.results):
                self.results.append(release(mechanism, values, random_state=random_state))
                self.mechanisms.append(mechanism)
            assert mechanism.scale == self.mechanisms[self.n_made - 1].scale
            return self.results[self.n_made - 1]

        return replaced

    def run(self, plan, rows, persons=None):
        """Return the exact values that the stages of a run add noise to."""
        self.exact, self.n_made = [], 0
        options = {} if persons is None else {"persons": persons}
        with (
            mock.patch.object(
                GaussianMechanism, "release", self.replacing(GaussianMechanism.release)
            ),
            mock.patch.object(
                LaplaceMechanism, "release", self.replacing(LaplaceMechanism.release)
            ),
            pytest.warns(SeededNoiseWarning),
        ):
            plan.run(rows, RandomSource(1), **options)
        return self.exact


def read(table):
    return synthesizer()._read_table(table)


def plan_for(unit, delta, table):
    relation = "replace_one" if unit.startswith("replaced") else "add_remove"
    neighbors = Neighbors(relation=relation, unit="person" if "persons" in unit else "row")
    guarantee = Guarantee(epsilon=3.0, delta=delta, neighbors=neighbors)
    shape = read(table).shape
    return synthesizer().plan_fit(shape, guarantee).mechanism


def neighbor(table, ids, unit, rng):
    """Return a table that differs in one row, or in all rows of one person, and its ids."""
    others = make_table(seed=rng.integers(2**31))
    if "persons" in unit:
        is_changed = ids == rng.choice(ids)
    else:
        is_changed = np.arange(len(table)) == rng.integers(len(table))
    if unit.startswith("replaced"):
        changed = table.copy()
        changed[is_changed] = others[is_changed]
        return changed, ids
    return table[~is_changed].reset_index(drop=True), ids[~is_changed]


def distances(unit, delta, n_neighbors):
    """Return each stage's largest distance between neighbors, over the claimed sensitivity."""
    table = make_table()
    ids = np.repeat(np.arange(N_ROWS // 2), 2)[np.random.default_rng(3).permutation(N_ROWS)]
    by_person = "persons" in unit
    plan = plan_for(unit, delta, table)
    if by_person:
        plan = plan_for(unit, delta, table.iloc[: N_ROWS // 2])
    releases = Releases()
    persons = persons_of(ids) if by_person else None
    exact = releases.run(plan, read(table).rows, persons)
    largest = np.zeros(len(exact))
    rng = np.random.default_rng(4)
    for _ in range(n_neighbors):
        changed, changed_ids = neighbor(table, ids, unit, rng)
        persons = persons_of(changed_ids) if by_person else None
        others = releases.run(plan, read(changed).rows, persons)
        assert len(others) == len(exact)
        for i, mechanism in enumerate(releases.mechanisms):
            difference = (exact[i] - others[i]).ravel()
            norm = 1 if isinstance(mechanism, LaplaceMechanism) else 2
            distance = np.linalg.norm(difference, norm) / mechanism.sensitivity
            largest[i] = max(largest[i], distance)
    return largest, releases, plan, exact


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta", [1e-5, 0.0])
@pytest.mark.parametrize("unit", UNITS)
def test_no_stage_moves_by_more_than_its_sensitivity(unit, delta):
    largest, releases, plan, _ = distances(unit, delta, n_neighbors=25)
    # Without a tolerance: the exact values are whole numbers, or multiples of 2**-26.
    assert (largest <= 1.0).all()
    n_columns, n_tables = 4, len(releases.mechanisms) - 5
    assert n_tables >= 4
    if unit == "rows":
        # The bounds are reached: those of a categorical column, of all scores but those that
        # a row hardly changes, and of tables.
        assert largest[2:4].min() > 0.99 and largest[n_columns + 1 :].min() > 0.99
        assert largest[n_columns] > 0.9
    spent = sum(
        (m.sensitivity / m.scale) ** (1 if delta == 0.0 else 2) for m in releases.mechanisms
    )
    budget = 3.0 if delta == 0.0 else plan.budget.multiplier**-2
    assert 0.999 * budget < spent <= budget


@pytest.mark.thorough
@pytest.mark.parametrize("unit", UNITS)
def test_no_stage_moves_by_more_than_its_sensitivity_on_many_neighbors(unit):
    largest, _, _, _ = distances(unit, 1e-5, n_neighbors=1000)
    assert (largest <= 1.0).all()


@pytest.mark.parametrize("unit", ["rows", "persons"])
def test_exact_values_lie_on_the_grid_of_counts(unit):
    _, _, _, exact = distances(unit, 1e-5, n_neighbors=1)
    step = 2.0**-26 if unit == "persons" else 1.0
    for values in exact:
        assert np.array_equal(values, np.rint(values / step) * step)


def test_extreme_rows_move_nothing_further():
    """One row that holds all that is unusual: infinite sums, bounds, gaps, unknown labels."""
    table = make_table()
    plan = plan_for("rows", 1e-5, table)
    releases = Releases()
    exact = releases.run(plan, read(table).rows)
    for age, income, color in [
        (-(2**40), 1e300, "x" * 1000),
        (2**40, -1e300, None),
        (0, 0.0, "red"),
        (60, np.nan, "pink"),
        (30, 5e-324, "blue"),
    ]:
        extreme = pd.DataFrame({"age": [age], "income": [income], "color": [color], "is_ill": True})
        larger = pd.concat([table, extreme], ignore_index=True)
        others = releases.run(plan, read(larger).rows)
        for mechanism, before, after in zip(releases.mechanisms, exact, others, strict=True):
            assert np.linalg.norm((after - before).ravel()) <= mechanism.sensitivity
