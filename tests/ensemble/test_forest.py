"""Random forests and one tree: sensitivities, the price of all stages, what they learn."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score

from skdp import (
    ChunkedArray,
    DPAdditiveClassifier,
    DPDecisionTreeClassifier,
    DPRandomForestClassifier,
    DPRandomForestRegressor,
    PrivacyAccountant,
    tabular_pipeline,
)
from skdp.accounting import gaussian_delta
from skdp.base import TableShape
from skdp.ensemble._forest import ForestFit, random_tree
from skdp.mechanisms import LaplaceMechanism
from skdp.noise import RandomSource
from tests._attacks import epsilon_lower_bound
from tests._guarantees import meet
from tests._private import (
    BinaryTask,
    FitState,
    MultinomialTask,
    NumberTask,
    PerturbedObjective,
    Residuals,
    Term,
    TreeFit,
    append_joint_terms,
    best_split,
    cell_reader,
    declared_columns,
    grow_tree,
    joint_design,
    main_design,
    read_persons,
    residual_grid,
    residual_sums,
)
from tests.gam.test_plan import drawn_noises, make_rows, odd_rows, table_of, targets_of

BOUNDS, CATEGORIES = {0: (-1.0, 1.0), 1: (0.0, 10.0)}, {2: ["red", "green", "blue"]}
DECLARED = {"bounds": BOUNDS, "categories": CATEGORIES}


def plan_of(task, guarantee, n=41, kind=ForestFit, **more):
    columns = declared_columns(["object"] * 3, BOUNDS, CATEGORIES, None)
    more |= {"n_trees": 4, "seed": 0} if kind is ForestFit else {}
    known = {"columns": columns, "n_rows": n, "n_bins": 8, "depth": 3}
    return kind(task=task, guarantee=guarantee, **known, **more)


def state_of(terms, cells="cells", n_rows=40):
    """The state of a fit after its bins, without rows."""
    return FitState(
        terms=terms,
        cells=cells,
        design=main_design(terms, n_rows),
        baseline=np.zeros(1),
        variance=None,
        n_rows=n_rows,
    )


@cache
def trees_of(kind):
    """The terms of some rows, and trees of them."""
    plan = plan_of(NumberTask(), meet(1e4, 1e-6))
    terms = plan._count_cells(plan.columns, table_of(make_rows()), RandomSource(0))
    if kind is ForestFit:
        return terms, plan._joint_terms(state_of(terms), None)
    rng = np.random.default_rng(0)
    return terms, [grow_tree(terms, [rng.normal(size=(len(t.counts), 1)) for t in terms], 3)]


def gradient_of(plan, rows, targets, weights, row_weights=None):
    """The gradient at the weights, and the squares of a row's features."""
    terms, trees = trees_of(type(plan))
    cells = plan._joint_codes(terms, table_of(rows), targets, row_weights)
    design = joint_design(main_design(terms, plan.n_rows), trees, plan.main_fraction)
    cells = append_joint_terms(cells, trees)
    size = (design.size, plan.task.n_outputs)
    weights = weights * np.random.default_rng(2).normal(size=size)
    step = residual_grid(plan.task.clip, plan.n_rows)
    return residual_sums(cells, design, Residuals(plan.task, 0.0), weights, step)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("kind", [ForestFit, TreeFit])
@pytest.mark.parametrize("task", [BinaryTask(), NumberTask(), MultinomialTask(weights=(1.0,) * 3)])
def test_brute_force_sensitivity_of_a_gradient(task, kind):
    plan, other_plan = (
        plan_of(task, meet(1.0, 1e-6, relation), kind=kind)
        for relation in ("add_remove", "replace_one")
    )
    base, targets, added, replaced = make_rows(), targets_of(task, 40), [], []
    ends = (-1.0, 1.0) if isinstance(task, NumberTask) else range(max(task.n_outputs, 2))
    own = [(np.array([row], dtype=object), end) for row in odd_rows()[::7] for end in ends]
    for scale in (0.0, 1e3):
        without = gradient_of(plan, base, targets, scale)
        found = [
            gradient_of(plan, np.vstack([base, row]), np.append(targets, end), scale)
            for row, end in own
        ]
        added += [np.linalg.norm(one - without) for one in found]
        replaced += [np.linalg.norm(one - other) for one in found for other in found]
    # Sums are exact, so that not even the last bit is beyond the claim.
    claimed, of_two = (each._steps_noise(100, 1).sensitivity for each in (plan, other_plan))
    assert 0.97 * claimed < max(added) <= claimed * (1 + 2.0**-50)
    assert 0.6 * of_two < max(replaced) <= of_two * (1 + 2.0**-50)


@pytest.mark.parametrize("kind", [ForestFit, TreeFit])
def test_a_person_with_rows_in_many_leaves_moves_a_gradient_by_what_a_row_does(kind):
    plan = plan_of(NumberTask(), meet(1.0, 1e-6), n=21, kind=kind)
    claimed, base = plan._steps_noise(100, 1).sensitivity, make_rows()
    targets = targets_of(NumberTask(), 40)
    without = gradient_of(plan, base, targets, 1e3, np.full(40, 0.5))
    for own in ([odd_rows()[0]], [odd_rows()[0]] * 50, odd_rows()):
        rows = np.vstack([base, np.array(own, dtype=object)])
        ids = np.append(np.arange(40) // 2, np.full(len(own), 20))
        y = np.append(targets, np.ones(len(own)))
        moved = gradient_of(plan, rows, y, 1e3, read_persons(ids, len(ids)).row_weights) - without
        assert 0.0 < np.linalg.norm(moved) <= claimed * (1 + 2.0**-50)


@pytest.mark.parametrize("kind", [ForestFit, TreeFit])
def test_a_row_is_in_one_leaf_of_each_tree(kind):
    terms, trees = trees_of(kind)
    rows = np.array(odd_rows(), dtype=object)
    cells = cell_reader(terms)(table_of(rows), slice(0, len(rows)))
    for tree in trees:
        for i, leaf in enumerate(tree.cells(cells)):
            place, tests = 0, []
            for _ in range(3):
                tests.append(place)
                side = tree.sides[place][cells[tree.columns[place]][i]]
                place = 2 * place + 1 + side
            assert leaf == place - 7 and side in (0, 1)
            # No side on the way has fewer rows than what bounds the leaf's count.
            assert tree.most_counts[leaf] <= min(terms[tree.columns[t]].counts.sum() for t in tests)


def estimators(delta):
    n_trees = {"n_estimators": 20}
    return [
        (DPRandomForestClassifier(2.0, delta=delta, **DECLARED, **n_trees), 4),
        (DPRandomForestRegressor(2.0, delta=delta, target_bounds=(0, 1), **DECLARED, **n_trees), 4),
        (DPDecisionTreeClassifier(2.0, delta=delta, **DECLARED), 5),
    ]


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_all_gaussian_noise_together_is_the_event(relation, monkeypatch):
    X = make_rows(400)
    for model, n_releases in estimators(1e-6):
        accountant = PrivacyAccountant(10.0, 0.1, relation=relation)
        model.set_params(accountant=accountant)
        noises = drawn_noises(monkeypatch, lambda m=model: m.fit(X, X[:, 0] > 0))
        assert len(noises) == n_releases
        (spend,) = accountant.charges
        total = math.fsum(steps / multiplier**2 for multiplier, steps in noises)
        assert 0.999999 < total * spend.event.noise_multiplier**2 <= 1.0
        assert gaussian_delta(spend.event.noise_multiplier, 2.0) <= 1e-6


def test_all_parts_of_epsilon_together_are_what_is_charged(monkeypatch):
    """Of perturbed objectives the epsilon that they are made for: `tests/gam` has their price."""
    X, parts = make_rows(400), []

    def kept(self, gradient, source):
        parts.append(self.epsilon)
        return np.zeros((self.size // self.task.n_outputs, self.task.n_outputs))

    def released(self, values, **source):
        parts.append(self.epsilon)
        return release(self, values, **source)

    release = LaplaceMechanism.release
    monkeypatch.setattr(PerturbedObjective, "run", kept)
    monkeypatch.setattr(LaplaceMechanism, "release", released)
    for model, n_releases in estimators(0.0):
        parts.clear()
        model.fit(X, X[:, 0] > 0)
        assert len(parts) == n_releases and 1.999 < math.fsum(parts) <= 2.0


def test_the_structure_follows_from_the_seed_and_the_bins_alone():
    X = np.random.default_rng(0).integers(0, 3, (300, 2))
    fits = [
        DPRandomForestClassifier(
            categories=[0, 1, 2], n_estimators=5, structure_seed=seed, random_state=noise
        ).fit(X, X[:, 0] == 1)
        for seed, noise in ((0, 0), (0, 1), (1, 0), (0, None))
    ]
    sides = [np.concatenate([tree.sides for tree in model.trees_]) for model in fits]
    np.testing.assert_array_equal(sides[0], sides[1])
    assert not np.array_equal(sides[0], sides[2])
    # The noise is another, whatever the seed of the structure.
    values = [np.concatenate([tree.values for tree in model.trees_]) for model in fits]
    assert not np.isclose(values[0], values[1]).any() and not np.isclose(values[0], values[3]).any()


@pytest.mark.parametrize("kind", [ForestFit, TreeFit])
def test_tests_are_made_of_releases_alone(kind, monkeypatch):
    """They are the same without rows, targets and noise, but for what the curves have of them."""
    terms, _ = trees_of(kind)
    plan = plan_of(NumberTask(), meet(1.0, 1e-6), kind=kind)
    design = main_design(terms, plan.n_rows)
    curves, seen = np.random.default_rng(3).normal(size=(design.size, 1)), []

    def released(
        self, cells, design, residuals, source, *, budget_fraction, start, variance, **steps
    ):
        assert start is None and variance is None
        seen.append((cells, residuals.task, source, budget_fraction))
        return curves, None

    monkeypatch.setattr(kind, "_descent", released)
    trees = plan._joint_terms(state_of(terms, n_rows=plan.n_rows), "source")
    if kind is ForestFit:
        expected = trees_of(kind)[1]
    else:
        tables = design.bin_values(curves)
        expected = [grow_tree(terms, [tables[j] for j in range(3)], 3)]
    for tree, other in zip(trees, expected, strict=True):
        np.testing.assert_array_equal(tree.columns, other.columns)
        np.testing.assert_array_equal(tree.sides, other.sides)
    # The rows, their clipped residuals and the charge's noise are handed on as they are.
    handed = [("cells", plan.task, "source", plan.budget_fractions.get("first_steps"))]
    assert seen == ([] if kind is ForestFit else handed)


def test_without_noise_it_is_least_squares_on_the_leaves():
    X = np.random.default_rng(0).integers(0, 3, (400, 3))
    # Residuals that nothing clips.
    y = 0.1 * (X[:, 0] * X[:, 1] == 2) - 0.1 * (X[:, 2] == 1)
    model = DPRandomForestRegressor(
        3e3, categories=[0, 1, 2], target_bounds=(-1, 1), n_estimators=8, max_depth=2
    ).fit(X, y)
    leaves = [np.equal.outer(tree.cells(X.T), np.arange(4)) for tree in model.trees_]
    cells = [np.equal.outer(X[:, j], np.arange(3)) for j in range(3)]
    exact = LinearRegression().fit(np.hstack([*leaves, *cells]), y)
    expected = exact.predict(np.hstack([*leaves, *cells]))
    assert np.std(expected) > 0.02
    np.testing.assert_allclose(model.predict(X), expected, atol=5e-3)


def parity(n, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 4))
    return X, (X[:, 1] * X[:, 3] > 0).astype(int)


def test_products_are_learned_where_no_column_tells_anything_alone():
    (X, y), (test, truth) = parity(8000), parity(2000, seed=1)

    def auc_of(model):
        return roc_auc_score(truth, model.fit(X, y).predict_proba(test)[:, 1])

    # The spread of a fit's is about .01; that of a guess about .013.
    assert auc_of(DPRandomForestClassifier(1.0, bounds=(-1, 1), n_estimators=100)) > 0.85
    assert auc_of(DPAdditiveClassifier(1.0, bounds=(-1, 1), interactions=0)) < 0.6


def two_classes(n, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(17, 90, n).astype(float),
            "job": rng.choice(["a", "b", "c"], n),
            "since": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), "D"),
        }
    )
    score = 3.0 * (abs(X["age"] - 50) < 15) * (X["job"] == "c") + 1.0 * (X["job"] == "a")
    y = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(1.0 - score)), "yes", "no")
    X.loc[::9, "age"] = np.nan
    return X, y


@pytest.mark.parametrize(
    "model", [DPRandomForestClassifier(n_estimators=30), DPDecisionTreeClassifier(max_depth=3)]
)
def test_raw_tables_are_learned(model):
    """The best score there is has an AUC of 0.70; the spread of a fit's is below 0.015."""
    (X, y), (test, truth) = two_classes(8000), two_classes(3000, seed=1)
    pipe = tabular_pipeline(model, epsilon=2.0)
    assert len(pipe) == 1
    chances = pipe.fit(X, y).predict_proba(test)
    assert roc_auc_score(truth == "yes", chances[:, 1]) > 0.6
    assert set(pipe[0].shape_functions_[1].edges[0]) == {"a", "b", "c"}
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)


def test_with_delta_zero_numbers_are_cut_near_the_middle_of_their_rows():
    counts = np.append(np.full(40, 25.0), 7.0)
    term = Term(features=(0,), kinds=("number",), edges=(np.linspace(0, 1, 41),), counts=counts)
    one_bin = replace(term, edges=(np.array([0.0, 1.0]),), counts=np.array([9.0, 0.0]))
    rng, firsts = np.random.RandomState(0), {}
    for cuts in (None, (0.25, 0.75)):
        trees = [random_tree([term], 3, rng, cuts) for _ in range(200)]
        firsts[cuts] = np.concatenate([(tree.sides[:, :-1] == 0).sum(axis=1) for tree in trees])
        assert random_tree([one_bin], 1, rng, cuts).sides.shape == (1, 2)
    assert set(firsts[0.25, 0.75]) == {*range(10, 31)} and set(firsts[None]) == {*range(1, 40)}


def test_chunks_and_their_table_are_one():
    X, y = parity(3000)
    parts, terms = ChunkedArray(np.array_split(X, 4)), {"bounds": (-1, 1), "random_state": 0}
    one, other = (
        DPRandomForestRegressor(n_estimators=10, target_bounds=(0, 1), **terms).fit(T, y)
        for T in (X, parts)
    )
    np.testing.assert_array_equal(one.predict(X), other.predict(parts))


@pytest.mark.parametrize(("epsilon", "n_trees"), [(0.1, 5), (1.0, 20), (9.0, 180), (90.0, 300)])
def test_how_many_trees_follows_from_public_numbers(epsilon, n_trees):
    model = DPRandomForestClassifier(classes=[0, 1], **DECLARED)
    shape = TableShape(n_rows=10_000, n_columns=3)
    assert model.plan_fit(shape, meet(epsilon, 0.0)).mechanism.n_trees == n_trees
    assert model.plan_fit(shape, meet(epsilon, 1e-6)).mechanism.n_trees == 300
    model.set_params(n_estimators=7)
    assert model.plan_fit(shape, meet(epsilon, 0.0)).mechanism.n_trees == 7


@pytest.mark.parametrize(
    "odd",
    [
        {"n_estimators": 0},
        {"n_estimators": 4001},
        {"max_depth": 0},
        {"max_depth": 13},
        {"structure_seed": -1},
        {"structure_seed": None},
        {"verbose": -1},
    ],
)
def test_odd_parameters_charge_nothing(odd):
    accountant = PrivacyAccountant(1.0, 0.1)
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    with pytest.raises(ValueError, match=next(iter(odd))):
        DPRandomForestClassifier(accountant=accountant, **odd).fit(X, X[:, 0] > 0)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("kind", [DPRandomForestClassifier, DPDecisionTreeClassifier])
def test_what_cannot_be_drawn_is_refused_before_the_charge(kind):
    accountant, y = PrivacyAccountant(1.0, 0.0), np.arange(200) % 2
    refused = 0
    for epsilon in np.geomspace(1e-12, 1e-6, 13):
        model = kind(epsilon, delta=0.0, categories=[0, 1], accountant=accountant)
        spent = accountant.epsilon_spent
        try:
            model.fit(y[:, None], y)
        except ValueError:
            refused += 1
            assert accountant.epsilon_spent == spent
    assert 0 < refused < 13


def test_random_cuts_leave_rows_on_both_sides():
    terms, _ = trees_of(ForestFit)
    draws = np.random.RandomState(0)
    for _ in range(20):
        tree = random_tree(terms, 2, draws)
        for j, sides in zip(tree.columns, tree.sides, strict=True):
            n_bins = len(terms[j].counts) - 1
            if "label" not in terms[j].kinds and n_bins > 1:
                assert sides[0] == 0 and sides[n_bins - 1] == 1
                assert (np.diff(sides[:n_bins]) >= 0).all()


def test_a_tree_is_cut_where_curves_differ():
    terms, _ = trees_of(ForestFit)
    curves = [np.zeros((len(term.counts), 1)) for term in terms]
    curves[0][3:-1], curves[2][1] = 1.0, -3.0
    gain, sides = best_split(terms[0], terms[0].counts, curves[0])
    np.testing.assert_array_equal(sides[:-1], np.arange(len(sides) - 1) >= 3)
    part = terms[0].counts[3:-1].sum() / terms[0].counts.sum()
    assert gain == pytest.approx(part * (1 - part), rel=1e-6)
    tree = grow_tree(terms, curves, 2)
    # A label's side is that of its value, and the branches are cut by the other column.
    np.testing.assert_array_equal(tree.columns, [2, 0, 0])
    assert (tree.sides[0][: len(terms[2].counts)] == (np.arange(5) != 1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPRandomForestClassifier, DPDecisionTreeClassifier])
def test_a_distinguisher_gets_no_more_than_epsilon(kind):
    """A row against another, by its score; the fast one is that of the contract."""
    n, fits = 30, 600
    rows = np.zeros((n, 1))
    rows[-1] = 1.0
    y = np.append(np.tile([0, 1], n // 2)[:-1], 1)
    other, labels = rows.copy(), y.copy()
    other[-1], labels[-1] = 0.0, 0
    accountant = PrivacyAccountant(1e9, 0.5, relation="replace_one")
    for delta in (0.0, 1e-5):
        model = kind(
            1.0, delta=delta, categories=[0, 1], classes=[0, 1], max_depth=1, accountant=accountant
        )
        if kind is DPRandomForestClassifier:
            model.set_params(n_estimators=3)
        seen = [
            np.array([model.fit(*table).decision_function([[1.0]])[0] for _ in range(fits)])
            for table in ((rows, y), (other, labels))
        ]
        # Wrong with a probability of 1e-4 each even if the claim were attained.
        threshold = np.median(np.concatenate(seen))
        hits, false = (int(np.sum(values > threshold)) for values in seen)
        certified = epsilon_lower_bound(hits, fits, false, fits, delta=delta, confidence=0.9999)
        assert certified <= 1.0
