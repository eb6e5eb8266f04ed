"""The choice of tables: its scores and their sensitivity, its price, and what a fit makes of it."""

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from skdp import DPAdditiveClassifier, DPAdditiveRegressor, DPGridSearchCV, PrivacyAccountant
from skdp.accounting import ExponentialMechanism, Gaussian, get_epsilon
from skdp.base import TableShape
from skdp.gam import _descent
from skdp.gam._blocks import main_design
from skdp.gam._interaction_plan import (
    MIN_SIGNAL_FOR_CHOICE,
    InteractionFit,
    is_skewed,
    second_candidates,
)
from skdp.gam._plan import FitState, plan_additive
from skdp.gam._poisson_task import PoissonTask
from skdp.gam._tables import CHOICE_CELLS, TABLE_CELLS, InteractionScore, make_table, table_cells
from skdp.gam._tasks import BinaryTask, MultinomialTask, NumberTask
from skdp.mechanisms import ExponentialMechanism as Selection
from skdp.noise import RandomSource
from tests._guarantees import meet
from tests._private import Budget, Term, declared_columns, read_persons
from tests.gam.test_plan import (
    BOUNDS,
    CATEGORIES,
    drawn_noises,
    make_rows,
    odd_rows,
    released_before_noise,
    table_of,
    targets_of,
)

TASKS = [BinaryTask(), MultinomialTask(weights=(1.0, 0.5, 1.0)), NumberTask(clip=0.1)]
TASKS.append(PoissonTask(mean=0.3, clip=0.8))


def plan_of(task, guarantee, n=41, n_chosen=3):
    columns = declared_columns(["object"] * 3, BOUNDS, CATEGORIES, None)
    known = {"columns": columns, "n_rows": n, "n_bins": 8, "n_chosen": n_chosen}
    return InteractionFit(task=task, guarantee=guarantee, **known)


def frequencies_of(rng, shape):
    """Random margins, some of them with a rare or an empty cell."""
    margins = [rng.dirichlet(np.full(length, 0.5)) for length in shape]
    margins[0][-1] = 0.0
    return [margin / margin.sum() for margin in margins]


# Scores


@pytest.mark.parametrize("shape", [(8, 8), (3, 20), (2, 2), (5, 5, 5), (2, 3, 4)])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_brute_force_sensitivity_of_a_score(shape, n_outputs):
    """A row in each cell, beside none and beside another one, for random sums of residuals."""
    rng = np.random.default_rng(0)
    n, largest = 200, 0.0
    for _ in range(4):
        score = InteractionScore(frequencies_of(rng, shape), n)
        claimed = score.sensitivity
        residual = rng.normal(size=n_outputs)
        residual /= np.linalg.norm(residual)
        for scale in (0.0, 0.1, 30.0):
            sums = scale * rng.normal(size=(*shape, n_outputs))
            without = score.value(sums)
            values = []
            for cell in itertools.product(*map(range, shape)):
                added = sums.copy()
                added[cell] += residual
                values.append(score.value(added))
            moves = np.abs(np.array(values) - without)
            assert moves.max() <= claimed + 2.0 * score.rounding
            assert max(values) - min(values) <= 2.0 * claimed + 2.0 * score.rounding
            largest = max(largest, moves.max() / claimed)
    # With no other rows the score is that of the row's cell.
    assert largest > 0.999


def test_a_replaced_row_moves_a_score_by_twice_the_sensitivity():
    score = InteractionScore(frequencies_of(np.random.default_rng(1), (6, 5)), 100)
    ends = []
    for cell in itertools.product(range(6), range(5)):
        sums = np.zeros((6, 5, 1))
        sums[cell] = 1.0
        ends.append(score.value(10.0 * sums + sums) - score.value(10.0 * sums - sums))
    assert max(ends) == pytest.approx(2.0 * score.sensitivity)


@pytest.mark.parametrize("shape", [(8, 8), (4, 5, 6)])
def test_margins_have_no_score_and_noise_has_its_null_level(shape):
    rng = np.random.default_rng(2)
    frequencies = [np.full(length, 1.0 / length) for length in shape]
    n = 40_000
    score = InteractionScore(frequencies, n)
    cells = [rng.integers(0, length, n) for length in shape]
    residuals = rng.normal(size=n)
    sums = np.zeros((*shape, 1))
    np.add.at(sums[..., 0], tuple(cells), residuals)
    assert score.value(sums) == pytest.approx(math.sqrt(score.null_dof), rel=0.25)
    # A sum that depends on one axis only, over independent columns.
    main = np.zeros((*shape, 1))
    main += np.arange(shape[0]).reshape(-1, *(1 for _ in shape))
    assert score.value(main) <= score.rounding * 1e3


def state_of(plan, rows, targets, row_weights=None):
    """The state of a fit to rows whose bins and weights do not depend on them."""
    base = table_of(make_rows())
    terms = plan._count_cells(plan.columns, base, RandomSource(0))
    design = main_design(terms, plan.n_rows, 10.0, trend_fraction=0.3)
    shape = (design.size, plan.task.n_outputs)
    cells = replace(plan, n_rows=len(rows))._joint_codes(
        terms, table_of(rows), targets, row_weights
    )
    return FitState(
        terms=terms,
        cells=cells,
        design=design,
        baseline=np.zeros(plan.task.n_outputs),
        variance=None,
        n_rows=plan.n_rows,
        weights=5.0 * np.random.default_rng(3).normal(size=shape),
    )


def utilities_of(plan, rows, targets, row_weights=None):
    state = state_of(plan, rows, targets, row_weights)
    bin_values = state.design.bin_values(state.weights)
    values = [bin_values[j] for j in range(3)]
    candidates = [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    return plan._utilities(state, candidates, values, 0.1)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_brute_force_sensitivity_of_utilities(task, relation):
    """Rows of all kinds through cells, residuals and sums of a fit."""
    plan = plan_of(task, meet(1.0, 1e-6, relation))
    base, targets = make_rows(), targets_of(task, 40)
    ends = (-1.0, 1.0) if isinstance(task, NumberTask) else range(max(task.n_outputs, 2))
    without, claimed = utilities_of(plan, base, targets)
    found = []
    for row in odd_rows()[::4]:
        rows = np.vstack([base, np.array([row], dtype=object)])
        for end in ends:
            found.append(utilities_of(plan, rows, np.append(targets, end))[0])
    others = found if relation == "replace_one" else [without]
    moves = [np.abs(a - b).max() for a in found for b in others]
    assert 0.3 * claimed < max(moves) <= claimed


@pytest.mark.parametrize("task", TASKS[1:], ids=repr)
def test_a_person_moves_utilities_by_what_a_row_does(task):
    plan = plan_of(task, meet(100.0, 1e-6), n=21)
    base, targets = make_rows(), targets_of(task, 40)
    ends = (-1.0, 1.0) if isinstance(task, NumberTask) else range(task.n_outputs)
    without, claimed = utilities_of(plan, base, targets, np.full(40, 0.5))
    moved = []
    for k, end in itertools.product((1, 2, 7, 500), ends):
        rows = np.vstack([base, np.array([odd_rows()[2]] * k, dtype=object)])
        ids = np.append(np.arange(40) // 2, np.full(k, 20))
        row_weights = read_persons(ids, len(rows)).row_weights
        y = np.append(targets, [end] * k)
        moved.append(np.abs(utilities_of(plan, rows, y, row_weights)[0] - without).max())
    assert max(moved) <= claimed
    by_size = np.reshape(moved, (4, -1)).max(axis=1)
    assert 0.0 < by_size.max() and by_size.min() > 0.9 * by_size.max()


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_brute_force_sensitivity_of_the_mean_square(task, relation, monkeypatch):
    """It is the squared clip under both relations, for rows and persons."""
    plan = plan_of(task, meet(1.0, 1e-6, relation))
    base, targets = make_rows(), targets_of(task, 40)
    ends = (-1.0, 1.0) if isinstance(task, NumberTask) else range(max(task.n_outputs, 2))

    def total_of(rows, y, row_weights=None):
        state = state_of(plan, rows, y, row_weights)
        run = partial(plan._residual_square, "first_scale", state, RandomSource(0))
        return float(released_before_noise(monkeypatch, run)[0])

    for k in (None, 7):
        weights = None if k is None else np.ones(40)
        without = total_of(base, targets, weights)
        values = [without] if relation == "add_remove" else []
        for row in odd_rows()[::5]:
            rows = np.vstack([base, np.array([row] * (k or 1), dtype=object)])
            for end in ends:
                y = np.append(targets, [end] * (k or 1))
                row_weights = None
                if k is not None:
                    ids = np.append(np.arange(40), np.full(k, 40))
                    row_weights = read_persons(ids, len(rows)).row_weights
                values.append(total_of(rows, y, row_weights))
        claimed = plan._square_mechanism("first_scale", plan.task.clip**2).sensitivity
        assert claimed == plan.task.clip**2
        assert max(values) - min(values) <= claimed
        # All residuals are clipped if the clip is small; a row then replaces an equal square.
        if relation == "add_remove":
            assert max(values) - min(values) > 0.9 * claimed


@pytest.mark.parametrize("shift, expected", [(0.0, False), (0.02, False), (-0.06, True)])
def test_a_moved_mean_shows_skewed_targets(shift, expected):
    """By the constant's weight, in units of a root mean square of .1."""
    state = state_of(plan_of(NumberTask(), meet(1.0, 1e-6)), make_rows(), np.zeros(40))
    weights = np.zeros_like(state.weights)
    weights[0] = shift / state.design.blocks[0].weight
    assert is_skewed(replace(state, weights=weights, variance=0.01)) is expected


# Tables


def term_of(j, counts, kind="label"):
    counts = np.array(counts, dtype=float)
    edges = np.arange(len(counts) - 2 * (kind == "label"))
    return Term(features=(j,), kinds=(kind,), edges=(edges,), counts=counts)


def test_labels_are_merged_by_value_and_published_one_by_one():
    counts = [*np.full(24, 100.0), 0.0, 0.0]
    values = np.array([*np.tile([0.0, 5.0, 1.0], 8), 0.0, 0.0])[:, np.newaxis]
    terms = [term_of(0, counts), term_of(1, [1000.0] * 12 + [0.0], "number")]
    table = make_table(terms, (0, 1), 36, 2400, [values, np.zeros((13, 1))])
    groups = table.groups[0]
    for group in range(groups[:24].max() + 1):
        members = values[:24][groups[:24] == group]
        # Equal counts, and no value between those of another group.
        assert 2 <= len(members) <= 6 and np.ptp(members) <= 1.0
    assert len(table.edges[0]) == 24 and table.term(terms, 2400).counts.shape == (26, 7)
    fitted = np.arange(float(table.size))[:, np.newaxis]
    expanded = table.expand(fitted)
    assert expanded.shape == (26, 7, 1)
    np.testing.assert_array_equal(expanded[0], expanded[3])
    # Without values the rarest labels share the cell of other values.
    table = make_table(terms, (0, 1), 36, 2400)
    assert len(table.edges[0]) == 6


@pytest.mark.parametrize(
    "signal, expected", [(0.0, 144), (5_000.0, 144), (20_000.0, 288), (1e9, 324)]
)
def test_cells_of_pairs_grow_with_the_signal(signal, expected):
    assert table_cells(2, signal) == expected
    assert table_cells(3, signal) == TABLE_CELLS[3]


def test_short_columns_keep_their_cells():
    terms = [term_of(0, [900.0, 50.0, 50.0, 0.0, 0.0]), term_of(1, [30.0] * 33 + [10.0], "number")]
    table = make_table(terms, (0, 1), TABLE_CELLS[2], 1000)
    assert table.shape[0] == 5 and table.shape[1] == 34
    hours = term_of(2, [42.0] * 24 + [0.0], "number")
    table = make_table([*terms, hours], (0, 2), TABLE_CELLS[2], 1000)
    assert table.shape == (5, 25)
    # A binary column beside a long one.
    narrow = term_of(0, [700.0, 300.0, 0.0], "number")
    terms[1] = term_of(1, [30.0] * 32 + [10.0], "number")
    table = make_table([narrow, terms[1]], (0, 1), CHOICE_CELLS[2], 1000)
    assert table.shape == (3, 32 + 1)


def test_long_lists_of_labels_make_small_tables():
    counts = [*np.arange(1000.0, 0.0, -1.0), 5.0, 5.0]
    terms = [term_of(j, counts) for j in range(3)]
    values = [np.random.default_rng(j).normal(size=(1002, 1)) for j in range(3)]
    for indices in ((0, 1), (0, 1, 2)):
        table = make_table(terms, indices, TABLE_CELLS[len(indices)], 10**6, values)
        assert math.prod(map(len, table.published)) <= 1 << 15
        assert table.size <= 1000
        term = table.term(terms, 10**6)
        assert term.counts.sum() == pytest.approx(
            math.prod(np.sum(counts) for _ in indices) / 1e6 ** (len(indices) - 1)
        )


def test_second_candidates():
    pairs = list(itertools.combinations(range(4), 2))
    found = second_candidates(pairs, [(0, 1), (0, 2)], range(4))
    assert (0, 1) not in found and (0, 3) in found
    assert {c for c in found if len(c) == 3} == {(0, 1, 2), (0, 1, 3), (0, 2, 3)}
    assert len(found) == len(set(found))


# Price


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-9])
@pytest.mark.parametrize("n_chosen", [1, 5])
def test_the_choice_is_within_the_guarantee(epsilon, delta, n_chosen):
    plan = plan_of(NumberTask(), meet(epsilon, delta), n=10**5, n_chosen=n_chosen)
    price = get_epsilon(plan_additive(plan).event, delta)
    assert 0.99 * epsilon < price <= epsilon
    # The choices cost no more than the fraction of the budget that they replace.
    alone = Budget(guarantee=meet(epsilon, delta)).multiplier
    assert alone <= plan.budget.multiplier <= 1.01 * alone
    assert math.fsum(plan.budget_fractions.values()) < 1.0


def bounded_range_pld(epsilon, interval):
    """The loss distribution of the largest privacy profile of a choice of bounded range.

    Dong, Durfee and Rogers (2020); the points between the grid's are connected by dp_accounting.
    """
    pmf = pytest.importorskip("dp_accounting.pld.pld_pmf")
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    steps = np.arange(-math.ceil(epsilon / interval), math.ceil(epsilon / interval) + 1)
    losses = np.clip(steps * interval, -epsilon, epsilon)
    deltas = math.exp(epsilon) * (1.0 - np.exp(0.5 * (losses - epsilon))) ** 2
    deltas /= math.exp(epsilon) - 1.0
    # At the ends of the range one of the two probabilities is 0.
    deltas[0] = -math.expm1(steps[0] * interval)
    return pld.PrivacyLossDistribution(
        pmf.create_pmf_pessimistic_connect_dots(interval, steps, deltas)
    )


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_price_by_dp_accounting(epsilon):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    plan = plan_of(NumberTask(), meet(epsilon, 1e-5), n=10**5, n_chosen=5)
    interval = 1e-4
    theirs = pld.identity()
    for event in plan.budget.event.events:
        if isinstance(event, Gaussian):
            one = pld.from_gaussian_mechanism(
                event.noise_multiplier, value_discretization_interval=interval
            )
        else:
            assert isinstance(event.event, ExponentialMechanism)
            one = bounded_range_pld(event.event.epsilon, interval).self_compose(event.count)
        theirs = theirs.compose(one)
    price = theirs.get_epsilon_for_delta(1e-5)
    assert get_epsilon(plan.budget.event, 1e-5) == pytest.approx(
        price, abs=1e-4 * max(epsilon, 1.0)
    )


def choices_of(monkeypatch, fit):
    """Return the epsilons of all choices of a fit."""
    found = []
    release = Selection.release

    def released(self, scores, **source):
        found.append(self.epsilon)
        return release(self, scores, **source)

    with monkeypatch.context() as patch:
        patch.setattr(Selection, "release", released)
        fit()
    return found


def product(n=4000, seed=0, n_classes=None):
    """Two columns that act together, one that acts alone, and two of noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 5))
    score = 2.0 * X[:, 0] * X[:, 1] + X[:, 2]
    if n_classes is None:
        return X, score + 0.2 * rng.normal(size=n)
    return X, np.digitize(score + 0.3 * rng.normal(size=n), np.linspace(-0.5, 0.5, n_classes - 1))


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("composition", ["basic", "gdp"])
@pytest.mark.parametrize("has_pairs", [True, False])
def test_all_noise_together_is_the_event(monkeypatch, composition, relation, has_pairs):
    """Gaussian noise and choices of both rounds, also where the first one chooses nothing."""
    accountant = PrivacyAccountant(4.0, 1e-5, relation=relation, composition=composition)
    model = DPAdditiveRegressor(
        4.0,
        delta=1e-5,
        bounds=(-1, 1),
        target_bounds=(-4, 4),
        interactions=3,
        accountant=accountant,
    )
    X, y = product()
    if not has_pairs:
        y = X[:, 2] + np.random.default_rng(0).normal(size=len(X))
    choices = []
    noises = drawn_noises(
        monkeypatch, lambda: choices.extend(choices_of(monkeypatch, lambda: model.fit(X, y)))
    )
    n_tables = len(model.shape_functions_) - 5
    assert (n_tables > 0) == has_pairs
    (charge,) = accountant.charges
    events = charge.event.events if composition == "basic" else (charge.event,)
    (gaussian,) = [event for event in events if isinstance(event, Gaussian)]
    total = math.fsum(steps / multiplier**2 for multiplier, steps in noises)
    assert 0.9999 < total * gaussian.noise_multiplier**2 <= 1.0
    planned = []
    for event in events:
        if event is not gaussian:
            repeated = [event.event] * event.count if hasattr(event, "count") else [event]
            planned.extend(one.epsilon for one in repeated)
    assert choices == planned[: len(choices)]
    if composition == "gdp":
        assert choices == planned == []
    else:
        assert len(choices) == 3
    assert get_epsilon(charge.event, 1e-5, relation=relation) <= 4.0


def test_noise_that_cannot_be_drawn_and_delta_0_are_refused_before_the_charge():
    X, y = product(200)
    accountant = PrivacyAccountant(10.0, 1e-3)
    terms = {"bounds": (-1, 1), "target_bounds": (-4, 4), "accountant": accountant}
    with pytest.raises(ValueError, match="needs delta > 0"):
        DPAdditiveRegressor(**terms, interactions=2, delta=0.0).fit(X, y)
    with pytest.raises(ValueError, match="too small"):
        DPAdditiveRegressor(1e-100, **terms, interactions=2, delta=1e-100).fit(X, y)
    assert accountant.charges == []


# Fits


def declared(kind, **params):
    if kind is DPAdditiveRegressor:
        params["target_bounds"] = (-4, 4)
    return {"bounds": (-1, 1), "random_state": 0} | params


@pytest.mark.parametrize("kind", [DPAdditiveClassifier, DPAdditiveRegressor])
def test_below_the_threshold_auto_is_no_choice(kind):
    X, y = product(3000, n_classes=2 if kind is DPAdditiveClassifier else None)
    shape = TableShape(n_rows=3000, n_columns=5, classes=[0, 1])
    for epsilon, expected in ((0.5, False), (8.0, True)):
        model = kind(epsilon, **declared(kind))
        plan = model.plan_fit(shape, meet(epsilon, 1e-6)).mechanism
        assert isinstance(plan, InteractionFit) is expected
        assert (plan.signal_to_noise >= MIN_SIGNAL_FOR_CHOICE) is expected
        if not expected:
            scores = [
                kind(epsilon, **declared(kind, interactions=value)).fit(X, y)._scores(X)
                for value in ("auto", 0)
            ]
            np.testing.assert_array_equal(*scores)
    pure = kind(8.0, **declared(kind), delta=0.0).plan_fit(shape, meet(8.0)).mechanism
    assert not isinstance(pure, InteractionFit)


@pytest.mark.parametrize("composition", ["basic", "gdp"])
def test_a_product_is_found_by_default(composition):
    X, y = product(6000)
    accountant = PrivacyAccountant(2.0, 1e-5, composition=composition)
    terms = {"bounds": (-1, 1), "target_bounds": (-4, 4), "delta": 1e-5}
    model = DPAdditiveRegressor(2.0, accountant=accountant, **terms).fit(X, y)
    assert (0, 1) in [shape.features for shape in model.shape_functions_]
    alone = DPAdditiveRegressor(2.0, interactions=0, **terms).fit(X, y)
    test = product(3000, seed=1)
    assert model.score(*test) > alone.score(*test) + 0.3
    parts = model.explain(X[:50])
    scores = np.clip(parts.sum(axis=1) + model.intercept_, -4, 4)
    np.testing.assert_allclose(scores, model.predict(X[:50]))
    has_choices = "chosen by the exponential mechanism" in model.privacy_.mechanism
    assert has_choices == (composition == "basic")


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_product_is_found_among_classes(n_classes):
    X, y = product(8000, n_classes=n_classes)
    params = {"bounds": (-1, 1), "delta": 1e-5}
    model = DPAdditiveClassifier(4.0, **params).fit(X, y)
    assert (0, 1) in [shape.features for shape in model.shape_functions_]
    alone = DPAdditiveClassifier(4.0, interactions=0, **params).fit(X, y)
    X, y = product(3000, seed=1, n_classes=n_classes)

    def auc(fitted):
        p = fitted.predict_proba(X)
        return roc_auc_score(y, p[:, 1] if n_classes == 2 else p, multi_class="ovr")

    assert auc(model) > auc(alone) + 0.04


def test_a_triple_is_found_after_its_pair():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(12_000, 6))
    y = 1.5 * X[:, 0] * (X[:, 1] > 0) * np.sign(X[:, 2]) + 0.2 * rng.normal(size=len(X))
    model = DPAdditiveRegressor(4.0, delta=1e-5, bounds=(-1, 1), target_bounds=(-3, 3)).fit(X, y)
    found = [shape.features for shape in model.shape_functions_[6:]]
    assert (0, 1, 2) in found and model.score(X, y) > 0.7
    triple = model.shape_functions_[6 + found.index((0, 1, 2))]
    assert triple.name == "x0 x x1 x x2" and triple.values.shape == triple.counts.shape
    assert triple.counts.sum() == pytest.approx(12_000, rel=0.05)
    edited = model.edit(triple.name, 0.0)
    assert edited.score(X, y) < model.score(X, y) - 0.2


def test_monotone_columns_are_in_no_table():
    X, y = product(6000)
    terms = {"bounds": (-1, 1), "target_bounds": (-4, 4), "delta": 1e-5}
    model = DPAdditiveRegressor(4.0, monotonic_cst={0: 1, 2: 1}, **terms).fit(X, y)
    tables = [shape.features for shape in model.shape_functions_[5:]]
    assert not {0, 2}.intersection(*([*table] for table in tables)) if tables else True
    assert np.all(np.diff(model.shape_functions_[2].values[:-1]) >= 0.0)
    # Two columns that may be in a table: one pair, and no second round.
    signs = {0: 1, 1: 1, 2: 1}
    plan = DPAdditiveRegressor(4.0, monotonic_cst=signs, interactions=5, **terms).plan_fit(
        TableShape(n_rows=6000, n_columns=5), meet(4.0, 1e-5)
    )
    fit = plan.mechanism
    assert fit.n_chosen == 1 and len(fit.selections) == 1


@pytest.mark.parametrize("per_person", [1, 3])
def test_steps_with_tables_shorten_rows_by_the_norm_of_all_features(monkeypatch, per_person):
    """In each step, the features of columns and of tables together have norm at most 1."""
    seen = []

    def recorded(cells, design, *args, **options):
        squares = np.zeros(len(cells.codes))
        column_cells = cells.column_cells()
        for block in design.blocks:
            of_rows = 0 if block.term < 0 else column_cells[block.term]
            squares += (np.atleast_2d(block.matrix) ** 2).sum(axis=1)[of_rows]
        seen.append((len(design.blocks), cells.row_weights, squares))
        return residual_sums(cells, design, *args, **options)

    residual_sums = _descent.residual_sums
    monkeypatch.setattr(_descent, "residual_sums", recorded)
    X, y = product()
    accountant, ids, epsilon = None, None, 4.0
    if per_person > 1:
        accountant = PrivacyAccountant(epsilon, 1e-5, unit="person")
        ids = np.arange(len(X)) // per_person
    terms = {"bounds": (-1, 1), "target_bounds": (-4, 4), "delta": 1e-5, "random_state": 0}
    model = DPAdditiveRegressor(epsilon, accountant=accountant, **terms).fit(X, y, groups=ids)
    assert len(model.shape_functions_) > 5
    assert len({n_blocks for n_blocks, _, _ in seen}) > 1
    for _, row_weights, squares in seen:
        norms = row_weights * np.sqrt(squares)
        if ids is not None:
            norms = np.bincount(ids, norms)
        assert 0.999 < norms.max() <= 1.0 < squares.max()


def test_persons_choose_too():
    X, y = product(8000)
    ids = np.arange(8000) // 2
    terms = {"bounds": (-1, 1), "target_bounds": (-4, 4), "delta": 1e-5}
    model = DPAdditiveRegressor(4.0, **terms).fit(X, y, groups=ids)
    assert (0, 1) in [shape.features for shape in model.shape_functions_]
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize("max_rows", [1, 3])
def test_groups_are_charged_gaussian_noise_alone(max_rows):
    accountant = PrivacyAccountant(
        4.0, 1e-5, unit="group" if max_rows > 1 else "row", max_rows=max_rows
    )
    X, y = product(6000)
    terms = {"bounds": (-1, 1), "target_bounds": (-4, 4), "delta": 1e-5}
    DPAdditiveRegressor(4.0, accountant=accountant, interactions=2, **terms).fit(X, y)
    assert isinstance(accountant.charges[0].event, Gaussian) == (max_rows > 1)


def test_nothing_to_find_costs_little():
    """Means of fits to a table whose columns add up; three tables would cost .06."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(16_000, 8))
    y = np.sin(3.0 * X[:, 0]) + 2.0 * np.abs(X[:, 1]) + X[:, 2] + rng.normal(size=len(X))
    terms = {"bounds": (-1, 1), "target_bounds": (-6, 8), "delta": 1e-5}
    scores = {"auto": [], 0: []}
    for value in scores:
        for _ in range(3):
            model = DPAdditiveRegressor(1.0, interactions=value, **terms).fit(X[:8000], y[:8000])
            scores[value].append(model.score(X[8000:], y[8000:]))
            assert value == 0 or len(model.shape_functions_) == 8
    assert np.mean(scores["auto"]) > np.mean(scores[0]) - 0.02


def test_scores_without_any_rows_of_their_columns_are_chosen_from_at_no_error():
    """Noisy counts of a column may all be at most 0; every score then has the sensitivity 0."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 30), rng.integers(0, 2, 30)]).astype(float)
    y = rng.integers(0, 2, 30)
    for seed in range(25):
        DPAdditiveClassifier(
            epsilon=0.05,
            delta=1e-6,
            categories=[[0, 1], [0, 1]],
            interactions=2,
            classes=[0, 1],
            random_state=seed,
        ).fit(X, y)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("options", [{"unit": "group", "max_rows": 2}, {"composition": "gdp"}, {}])
def test_a_search_plans_the_choice_that_its_fits_make(options):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)
    accountant = PrivacyAccountant(60.0, 1e-5, **options)
    model = DPAdditiveClassifier(bounds=(-1, 1), classes=[0, 1])
    search = DPGridSearchCV(
        model, {"n_bins": [8, 16]}, epsilon=50.0, delta=1e-6, accountant=accountant
    )
    search.fit(X, y)
    assert accountant.charges


@pytest.mark.parametrize(
    ("loss", "steps_per_root"), [("squared_error", [1.0, 1.0, 1.3]), ("poisson", [2.0, 2.0, 2.0])]
)
def test_fewer_steps_before_the_last_with_the_squared_loss(monkeypatch, loss, steps_per_root):
    schedules = []

    def recorded(gradient, schedule, start, radius, **options):
        if math.isfinite(radius):
            schedules.append(schedule)
        return descend(gradient, schedule, start, radius, **options)

    descend = _descent.descend
    monkeypatch.setattr(_descent, "descend", recorded)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(4000, 4))
    y = 3.0 + 2.0 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=4000)
    model = DPAdditiveRegressor(
        8.0, bounds=(-1, 1), target_bounds=(0, 6), interactions=3, loss=loss, random_state=0
    )
    model.fit(X, y)
    assert len(model.shape_functions_) > 4
    assert [schedule.steps_per_root for schedule in schedules] == steps_per_root
    one = replace(schedules[0], steps_per_root=1.0)
    two = replace(schedules[0], steps_per_root=2.0)
    assert 2 * one.n_steps <= two.n_steps <= 2 * one.n_steps + 1
