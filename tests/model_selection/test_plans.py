"""Plans of searches: their splits, runs and releases, and what each row pays for."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.common import DifferentialPrivacyParameters
from dp_accounting.rdp import RdpAccountant
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from skdp import DPLogisticRegression, DPSGDClassifier
from skdp.accounting import (
    ApproximateDP,
    Gaussian,
    Guarantee,
    Neighbors,
    PoissonSampled,
    PureDP,
    RandomStopping,
    get_epsilon,
)
from skdp.base import DEFAULT_CONFIG
from skdp.mechanisms import ExponentialMechanism as ExponentialChoice
from skdp.model_selection import _runs as runs
from skdp.model_selection import bounded_score
from skdp.model_selection._candidates import Rows, make_candidate
from skdp.model_selection._plans import SearchTask, plan_runs
from skdp.model_selection._pricing import dominating_event, fitting_scale
from skdp.model_selection._splits import (
    Layout,
    Splits,
    check_cv,
    hold_out,
    make_disjoint_subsets,
    make_splits,
    take_fraction,
)
from skdp.model_selection._strategies import STRATEGIES, best_strategy, plan_search
from skdp.noise import RandomSource
from tests._attacks import epsilon_lower_bound
from tests._private import FitProgress, leaves, read_numeric_target, read_target
from tests.model_selection._scored import SCORES, Oracle, make_rows
from tests.model_selection.toys import NoisyVote

N, DELTA = 100, 1e-5


def make_table(n=N):
    return np.zeros((n, 1)), np.arange(n) % 2


def make_task(table=None, *, m=4, epsilon=1.0, delta=DELTA, refit=True, selection="exponential"):
    X, y = make_table() if table is None else table
    grid = [{"shift": float(i)} for i in range(m)]
    candidates = tuple(make_candidate(NoisyVote(), params, Rows(X, y)) for params in grid)
    return task_of(candidates, X.shape, epsilon, delta, selection=selection, refit=refit)


def task_of(candidates, shape, epsilon=1.0, delta=DELTA, **options):
    given = {"candidates": candidates, "shape": shape, "score": bounded_score("accuracy")}
    return SearchTask(**given, guarantee=Guarantee(epsilon=epsilon, delta=delta), **options)


def plan(task, strategy, cv=None, mean_runs=None):
    return plan_search(task, strategy, cv, None, mean_runs)


def independent_epsilon(event, delta):
    """epsilon by dp-accounting's privacy loss distributions; pure parts by randomized response."""
    total = pld.identity(1e-4)
    for part, count in leaves(event).items():
        if isinstance(part, Gaussian):
            one = pld.from_gaussian_mechanism(
                part.noise_multiplier, value_discretization_interval=1e-4
            )
        else:
            own = DifferentialPrivacyParameters(part.epsilon, getattr(part, "delta", 0.0))
            one = pld.from_privacy_parameters(own, value_discretization_interval=1e-4)
        total = total.compose(one.self_compose(count) if count > 1 else one)
    return total.get_epsilon_for_delta(delta)


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("m", [1, 4])
def test_one_row_is_hidden_in_the_scores_of_all_candidates(m, delta):
    made = plan(make_task(m=m, delta=delta), "holdout")
    times = m if delta == 0.0 else math.sqrt(m)
    # The choice needs the sensitivity of one candidate's score.
    assert made.noisy.sensitivity >= times * made.choice.sensitivity > 0.0


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("strategy", ["disjoint", "holdout", "cv"])
def test_the_worst_branch_fills_the_budget_and_no_branch_exceeds_it(strategy, refit):
    made = plan(make_task(refit=refit, selection="permute_and_flip"), strategy)
    costs = [independent_epsilon(record_path, DELTA) for record_path in made.record_paths]
    assert max(costs) == pytest.approx(1.0, abs=3e-3)
    assert max(costs) <= 1.0 + 1e-3


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_with_delta_0_the_epsilons_of_a_branch_add_up(strategy):
    made = plan(make_task(delta=0.0), strategy)
    costs = [get_epsilon(record_path, 0.0) for record_path in made.record_paths]
    assert max(costs) == pytest.approx(1.0, rel=2e-3) and max(costs) <= 1.0


def test_each_row_pays_for_all_folds_but_its_own():
    made = plan(make_task(refit=False), "cv", cv=5)
    (record_path,) = made.record_paths
    one = next(iter(made.runs.values())).event
    z = next(iter(leaves(one))).noise_multiplier
    scores = 1.0 / math.sqrt(2.0 * 0.1 * make_task().rho)
    expected = 1.0 / math.sqrt(4 * 4 / z**2 + 1.0 / scores**2)
    (found,) = [p.noise_multiplier for p in leaves(record_path) if isinstance(p, Gaussian)]
    assert found == pytest.approx(expected, rel=1e-9)


def test_parts_of_the_rows_pay_side_by_side():
    made = plan(make_task(refit=False, m=10), "disjoint")
    assert all(run.guarantee.epsilon == pytest.approx(1.0, rel=1e-2) for run in made.runs.values())
    assert made.plan().event == ApproximateDP(1.0, DELTA)
    alone = plan(make_task(refit=False, m=10), "holdout")
    assert all(run.guarantee.epsilon < 0.4 for run in alone.runs.values())


def test_random_stopping_costs_what_an_independent_accountant_says():
    event = RandomStopping(Gaussian(4.0), 10, 1.0)
    assert get_epsilon(event, DELTA, method="rdp") == pytest.approx(2.1534, abs=5e-5)
    made = plan(make_task(refit=False), "random_stopping", mean_runs=10)
    (stopped,) = leaves(made.plan().event)
    assert (stopped.mean, stopped.shape) == (10, 1.0)
    z = stopped.event.noise_multiplier
    orders = 1.0 + np.geomspace(0.5, 500.0, 1000)
    accountant = RdpAccountant(orders)
    gamma = 0.1
    selection = dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(z), 10, 1.0)
    accountant.compose(selection)
    assert accountant.get_epsilon(DELTA) == pytest.approx(1.0, abs=5e-3)
    # By hand: Papernot and Steinke (2022), theorem 2 with eta = 1.
    penalty = min((1 - 1 / b) * b / (2 * z * z) + math.log(1 / gamma) / b for b in orders)
    by_hand = min(
        a / (2 * z * z)
        + 2 * penalty
        + math.log(10) / (a - 1)
        + math.log1p(-1 / a)
        - (math.log(DELTA) + math.log(a)) / (a - 1)
        for a in orders
    )
    assert by_hand == pytest.approx(1.0, abs=5e-3)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("m", [3, 34])
def test_parts_pay_for_the_costliest_candidate(m):
    X, y = make_table(400)
    grid = [{"mechanism": "gradient"}] * (m - 1) + [{"mechanism": "objective"}]
    rows = Rows(X, y)
    candidates = tuple(make_candidate(DPLogisticRegression(), params, rows) for params in grid)
    made = plan(task_of(candidates, X.shape, refit=True), "disjoint")
    last = made.runs[m - 1, m - 1].event
    assert any(set(leaves(last)) <= set(leaves(record_path)) for record_path in made.record_paths)
    for run in made.runs.values():
        alone = independent_epsilon(run.event + dominating_event(made.refits), DELTA)
        assert alone <= 1.0 + 1e-3


@pytest.mark.thorough
def test_runs_with_sampled_batches_have_their_own_renyi_curve():
    rows = Rows(np.zeros((N, 3)), make_table()[1])
    model = DPSGDClassifier(batch_size=10, max_iter=2, fit_intercept=False)
    grid = [{"max_grad_norm": 0.5}, {"max_grad_norm": 1.0}]
    candidates = tuple(make_candidate(model, params, rows) for params in grid)
    made = plan(task_of(candidates, (N, 3)), "random_stopping", mean_runs=5)
    fitted, scored = (
        {type(p): p for p in leaves(record_path)} for record_path in made.record_paths
    )
    (sampled,) = leaves(fitted[RandomStopping].event)
    assert isinstance(sampled, PoissonSampled)
    assert scored[RandomStopping].event == made.noisy.event
    for record_path in made.record_paths:
        assert 0.99 < get_epsilon(record_path, DELTA) <= 1.0
    # The same by dp-accounting.
    steps = leaves(fitted[RandomStopping].event)[sampled]
    one = dp_event.PoissonSampledDpEvent(
        sampled.sampling_rate, dp_event.GaussianDpEvent(sampled.event.noise_multiplier)
    )
    accountant = RdpAccountant(np.r_[1.0 + np.geomspace(0.3, 9.0, 60), 11:64, 64:512:8])
    run = dp_event.SelfComposedDpEvent(one, steps)
    accountant.compose(dp_event.RepeatAndSelectDpEvent(run, 5, 1.0))
    assert accountant.get_epsilon(DELTA) == pytest.approx(
        get_epsilon(made.record_paths[0], DELTA), rel=0.02
    )


def test_random_stopping_of_approximate_runs_adds_the_mean_number_of_deltas():
    rows = Rows(np.zeros((N, 3)), make_table()[1])
    model = DPLogisticRegression(mechanism="objective")
    candidates = (make_candidate(model, {"C": 0.1}, rows),)
    made = plan(task_of(candidates, (N, 3)), "random_stopping", mean_runs=7)
    parts = {type(part): part for part in leaves(made.record_paths[0])}
    base, extra = parts[RandomStopping].event, parts[ApproximateDP]
    run = made.runs[0, 0].guarantee
    assert isinstance(base, PureDP) and base.epsilon >= run.epsilon * (1 - 1e-9)
    assert extra == ApproximateDP(0.0, 7 * run.delta)
    assert made.noisy.epsilon <= base.epsilon
    assert get_epsilon(made.record_paths[0], DELTA) <= 1.0
    # A group's delta grows by the runs' epsilon too, which the record_path does not know.
    assert made.plan().event == ApproximateDP(1.0, DELTA)


@pytest.mark.parametrize(
    "cv", [KFold(3), RepeatedKFold(n_splits=2, n_repeats=2, random_state=0),
           ShuffleSplit(3, test_size=0.4, random_state=0)]
)  # fmt: skip
def test_sensitivity_over_folds_by_brute_force(cv):
    splits = make_splits(cv, 20)
    layout = Layout(splits, (tuple(range(len(splits.train))),))
    score = bounded_score("accuracy")
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(50):
        right = rng.integers(0, 2, (len(splits.train), 20))

        def value(right):
            pairs = enumerate(splits.test)
            return layout.score(score, {(0, s): right[s, t].mean() for s, t in pairs}, 0)

        for row in range(20):
            other = right.copy()
            other[:, row] = 1 - right[0, row]
            right[:, row] = right[0, row]
            largest = max(largest, abs(value(right) - value(other)))
    claimed = layout.sensitivity(score, "replace_one")
    assert largest <= claimed
    assert largest > 0.99 * claimed


def test_the_scale_is_found_in_a_few_steps_where_the_cost_jumps_over_the_budget():
    task = make_task(m=1)
    tried = []

    def record_paths(scale):
        tried.append(scale)
        return (PureDP(0.3 * scale if scale < 0.7 else 3.0 * scale),)

    assert 0.7 * (1.0 - 2e-3) < fitting_scale(task, record_paths) < 0.7
    assert len(tried) < 20


def test_scores_of_curves_fill_the_budget():
    task = make_task(refit=False)
    splits = make_splits(3, N)
    made = plan_runs(task, "scores", Layout(splits, ((0, 1, 2),) * 4))
    assert independent_epsilon(made.plan().event, DELTA) == pytest.approx(1.0, abs=3e-3)


@pytest.mark.thorough
@pytest.mark.parametrize("selection", ["exponential", "permute_and_flip"])
def test_the_choice_follows_its_exact_law(selection):
    made = plan(make_task(selection=selection), "holdout")
    scores = np.array([0.5, 0.48, 0.53, 0.4])
    exponents = made.choice.epsilon * scores / made.choice.sensitivity
    if selection == "exponential":
        weights = np.exp(exponents - exponents.max())
        law = weights / weights.sum()
    else:
        law = permute_and_flip_law(np.exp(exponents - exponents.max()))
    draws = 20_000
    counts = np.bincount([made.choice.release(scores) for _ in range(draws)], minlength=4)
    statistic = np.sum((counts - draws * law) ** 2 / (draws * law))
    # False alarms in 1e-6 of runs.
    assert statistic < chi2.ppf(1 - 1e-6, 3)


def permute_and_flip_law(accepted):
    """By recursion over who is left."""
    if len(accepted) == 0:
        return np.zeros(0)
    law, n = np.zeros(len(accepted)), len(accepted)
    for i in range(n):
        law[i] += accepted[i] / n
        rest = np.delete(np.arange(n), i)
        if len(rest):
            law[rest] += (1 - accepted[i]) / n * permute_and_flip_law(accepted[rest])
    return law


def test_the_choice_falls_short_by_its_bound_at_most():
    # Chaudhuri, Monteleoni and Sarwate (2011): with probability 1 - beta at most
    # 2 ln(m / beta) / epsilon rows, here half of it, as counts are monotonic.
    beta, n, m = 0.05, 1000, 20
    choice = ExponentialChoice(0.5, bounded_score("accuracy").sensitivity(n), True)
    scores = np.linspace(0.7, 0.8, m)
    bound = choice.scale * math.log(m / beta)
    assert bound == pytest.approx(choice.expected_error(1 - beta, m))
    assert bound == pytest.approx(math.log(m / beta) / (0.5 * n), rel=1e-9)
    short = np.array([scores.max() - scores[choice.release(scores)] for _ in range(4000)])
    assert np.mean(short > bound) < beta


def test_auto_is_a_function_of_public_numbers():
    def task(m, refit=True):
        return task_of((None,) * m, (30_000, 100), refit=refit)

    assert best_strategy(task(1000)) == "random_stopping"
    assert best_strategy(task(20)) == "disjoint"
    assert best_strategy(task(3), n_splits=5) == "cv"
    assert best_strategy(task(3, refit=False)) != "cv"


@pytest.mark.parametrize("m", [3, 20, 1000])
def test_auto_takes_what_the_accountant_can_price(m):
    def best(composition, delta=DELTA):
        task = task_of((None,) * m, (500, 5), delta=delta, refit=True)
        return best_strategy(task, composition=composition)

    assert best("gdp") == "cv"
    assert best("rdp") in ("cv", "random_stopping")
    assert best("zcdp") in ("disjoint", "holdout", "cv")
    assert best("gdp", delta=0.0) == best("basic", delta=0.0)


# Splits depend on row numbers and a public seed alone.


@pytest.mark.parametrize(
    ("cv", "fits"),
    [
        (None, 5),
        (3, 3),
        (KFold(4), 4),
        (RepeatedKFold(n_splits=2, n_repeats=3, random_state=0), 6),
        (ShuffleSplit(2, random_state=0), 2),
        (LeaveOneOut(), 20),
        (TimeSeriesSplit(3), 3),
        (PredefinedSplit([0, 1] * 10), 2),
        ([(range(10), range(10, 20)), (np.arange(20) > 4, np.arange(20) <= 4)], 2),
    ],
)
def test_allowed_splits(cv, fits):
    splits = make_splits(cv, 20)
    assert len(splits.train) == len(splits.test) == fits
    for train, test in zip(splits.train, splits.test, strict=True):
        assert not set(train) & set(test)


def test_an_int_is_shuffled_by_a_public_seed():
    cv = check_cv(5)
    assert type(cv) is KFold and cv.shuffle and cv.random_state == 0
    one, two = (make_splits(5, 30) for _ in range(2))
    np.testing.assert_array_equal(one.test[0], two.test[0])


class LabelledFolds(KFold):
    """Could look at anything."""


@pytest.mark.parametrize(
    "cv",
    [
        GroupKFold(3),
        StratifiedKFold(3),
        StratifiedShuffleSplit(3),
        LabelledFolds(3),
        "kfold",
        1,
        True,
        0.5,
        [],
        [([0, 1], [1, 2])],
        [([0, 0], [1, 2])],
        [([0, 1], [20])],
        [([0, 1], [])],
        [([0.5], [1])],
        [([0], [1], [2])],
        PredefinedSplit([0, 1]),
    ],
)
def test_other_splits_are_refused(cv):
    with pytest.raises(ValueError):
        make_splits(cv, 20)


def test_each_row_is_in_all_folds_but_its_own():
    ways = make_splits(5, 23).memberships
    assert len(ways) == 5
    assert all(len(train) == 4 and len(test) == 1 for train, test in ways)


def test_parts_are_disjoint_and_of_one_size():
    parts = make_disjoint_subsets(np.arange(5, 28), 4)
    assert {len(part) for part in parts} == {5}
    assert len(set(np.concatenate(parts))) == 20
    with pytest.raises(ValueError, match="disjoint"):
        make_disjoint_subsets(np.arange(3), 4)


def test_a_quarter_is_held_out():
    splits = hold_out(100)
    assert (splits.train_sizes, splits.test_sizes) == ((75,), (25,))
    assert hold_out(2).test_sizes == (1,)
    with pytest.raises(ValueError):
        hold_out(1)


def layout_of(cv, n_samples=40, m=2):
    splits = make_splits(cv, n_samples)
    return Layout(splits, (tuple(range(len(splits.train))),) * m)


def apart(m):
    rows = np.arange(4 * m)
    parts = make_disjoint_subsets(rows, m)
    test = np.arange(4 * m, 4 * m + 10)
    return Layout(Splits(tuple(parts), (test,) * m, 4 * m + 10), tuple((i,) for i in range(m)))


@pytest.mark.parametrize("m", [3, 50])
def test_each_candidate_with_rows_of_its_own_has_a_pattern(m):
    patterns = apart(m).patterns()
    assert len(patterns) == m + 1
    assert {runs for runs, scored in patterns if not scored} == {((i, i),) for i in range(m)}
    assert ((), True) in patterns


@pytest.mark.parametrize("cv", [KFold(4), LeaveOneOut()])
def test_rows_that_pay_the_same_are_one_pattern(cv):
    layout = layout_of(cv)
    ((runs, scored),) = layout.patterns()
    assert scored and len(runs) == 2 * (len(layout.splits.train) - 1)


@pytest.mark.parametrize(
    "cv", [KFold(4), LeaveOneOut(), TimeSeriesSplit(4), ShuffleSplit(40, random_state=0)]
)
def test_some_pattern_covers_every_row(cv):
    layout = layout_of(cv, m=1)
    sizes = layout.splits.train_sizes
    patterns = [(sorted(sizes[s] for _, s in runs), scored) for runs, scored in layout.patterns()]
    for train, test in layout.splits.memberships:
        needed = sorted(sizes[s] for s in train)
        assert any(
            scored >= bool(test) and all(needed.count(n) <= had.count(n) for n in needed)
            for had, scored in patterns
        )


# Is a record in the table? From the choice, the noisy scores and the coefficients together.


N_ROWS, TOTAL = 24, 1.0


def outputs(made, y, n_runs):
    """Return what searches publish, and functions of it, a row each."""
    rows = []
    X = np.zeros((N_ROWS, 1))
    for _ in range(n_runs):
        terms = replace(DEFAULT_CONFIG, relation=made.task.guarantee.relation)
        run = runs.SearchRun(made, Rows(X, y, terms=terms), None, RandomSource())
        outcome = runs.run_search(run, FitProgress(None))
        scores = np.nan_to_num(outcome.scores, nan=-1.0)
        coef, off = outcome.model.coef_[0], (scores[outcome.best] - 0.5) ** 2
        rows.append([outcome.best, *scores, off, coef, *scores * np.sign(coef)])
    return np.array(rows)


def certified(first, second, confidence=1.0 - 1e-6):
    """The epsilon that a learned linear test certifies on the half that it did not see."""
    half = len(first) // 2
    scale = np.vstack([first, second]).std(axis=0) + 1e-12
    center = np.vstack([first, second]).mean(axis=0)
    first, second = (first - center) / scale, (second - center) / scale
    labels = np.repeat([1, 0], half)
    test = LogisticRegression().fit(np.vstack([first[:half], second[:half]]), labels)
    seen = [test.decision_function(part[:half]) for part in (first, second)]
    new = [test.decision_function(part[half:]) for part in (first, second)]
    best, chosen = -1.0, None
    for threshold in np.quantile(np.concatenate(seen), np.linspace(0.02, 0.98, 33)):
        for sign in (1, -1):
            counts = [int(np.sum(sign * s > sign * threshold)) for s in seen[::sign]]
            bound = epsilon_lower_bound(counts[0], half, counts[1], half)
            if bound > best:
                best, chosen = bound, (threshold, sign)
    threshold, sign = chosen
    counts = [int(np.sum(sign * s > sign * threshold)) for s in new[::sign]]
    size = len(first) - half
    return epsilon_lower_bound(counts[0], size, counts[1], size, confidence=confidence)


def neighbors(made, role):
    """Return two label vectors that differ in one record, trained on or scored."""
    splits = made.layout.splits
    row = (splits.train[0] if role == "train" else splits.test[0])[0]
    y = np.arange(N_ROWS) % 2
    one, two = y.copy(), y.copy()
    one[row], two[row] = 0, 1
    return one, two


def audit(strategy, role, n_runs=300, mutate=None):
    task = make_task((np.zeros((N_ROWS, 1)), np.arange(N_ROWS) % 2), m=2, epsilon=TOTAL, delta=0.0)
    changed = Neighbors(relation="replace_one")
    task = replace(task, guarantee=replace(task.guarantee, neighbors=changed))
    made = plan(task, strategy, mean_runs=2 if strategy == "random_stopping" else None)
    made = made if mutate is None else mutate(made)
    tables = neighbors(made, role)
    return certified(*(outputs(made, y, n_runs) for y in tables))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("strategy", "role"),
    [
        ("disjoint", "train"),
        ("holdout", "test"),
        ("random_stopping", "test"),
        *(
            pytest.param(strategy, role, marks=pytest.mark.slow)
            for strategy, role in (
                ("disjoint", "test"),
                ("holdout", "train"),
                ("cv", "test"),
                ("random_stopping", "train"),
            )
        ),
    ],
)
def test_what_a_search_publishes_tells_no_more_than_it_claims(strategy, role):
    # False alarms in 1e-6 of runs, if the search is as private as it says.
    assert audit(strategy, role) < TOTAL


class Raw:
    """Releases scores as they are."""

    scale, delta = 1.0, 0.0

    def release(self, values, *, random_state=None):
        return np.asarray(values)


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ["holdout", "random_stopping"])
def test_raw_scores_are_found(strategy):
    assert audit(strategy, "test", 300, lambda made: replace(made, noisy=Raw())) > TOTAL


def test_parts_of_a_search_hang_on_ids_alone():
    ids = np.array([f"person {i}" for i in range(300)])
    rest = np.flatnonzero(np.arange(300) != 17)
    ways = {
        "hold-out": lambda ids: hold_out(len(ids), ids).train,
        "parts": lambda ids: make_disjoint_subsets(np.arange(len(ids)), 4, ids),
        "shares": lambda ids: [take_fraction(np.arange(len(ids)), s, ids) for s in (0.2, 0.6, 1.0)],
    }
    for make in ways.values():
        whole, without = make(ids), make(ids[rest])
        for one, other in zip(whole, without, strict=True):
            assert set(ids[one]) - {ids[17]} == set(ids[rest][other])
    smaller, larger, all_of_them = ways["shares"](ids)
    assert set(smaller) < set(larger) < set(all_of_them) and len(all_of_them) == 300
    assert sorted(np.concatenate(ways["parts"](ids))) == list(range(300))
    with pytest.raises(ValueError, match="too few persons"):
        make_disjoint_subsets(np.arange(3), 50, ids)


LABELS_OF_OTHER_TYPES = [2**64, -(10**30), 2**63, 0.5, np.longdouble(1) / 3, None, "a", 1j, np.nan]


@pytest.mark.parametrize("score", SCORES, ids=lambda s: s.name)
def test_a_label_of_any_type_moves_a_score_by_no_more_than_its_sensitivity(score):
    X, _ = make_rows(np.random.default_rng(4), 40)
    labels = X[:, 0].astype(int).tolist()
    read = read_target if score.of_labels else read_numeric_target
    containers = (list, column_of_objects, lambda y: pd.Series(y, dtype=object).astype("category"))
    for container, odd in itertools.product(containers, LABELS_OF_OTHER_TYPES):
        values = []
        for first in (labels[0], odd):
            try:
                y = read(None, container([first, *labels[1:]]), 40)
            except (ValueError, TypeError):
                continue
            values.append(score.value(Oracle(), X, y))
        assert np.ptp(values) <= score.sensitivity(40, "replace_one"), odd
    if score.name == "accuracy":
        assert score.value(Oracle(), X, column_of_objects(labels)) == 1.0


def column_of_objects(values):
    return np.array([*values, None], dtype=object)[:-1]


# What a statement says of splits.


N_SPLIT = 60


SPLITTERS = {
    "folds": 3,
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "shuffled": ShuffleSplit(4, test_size=0.3, random_state=0),
    "time": TimeSeriesSplit(3),
    "left out": LeaveOneOut(),
    "predefined": PredefinedSplit(np.arange(N_SPLIT) % 4 - 1),
    "listed": [(np.arange(20), np.arange(30, 50)), (np.arange(10, 40), np.arange(50, 60))],
    "one": [(np.arange(40), np.arange(40, N_SPLIT))],
    "one and none": [(np.arange(40), np.arange(50, N_SPLIT))],
}


@pytest.mark.parametrize("fractions", [(1.0,), (0.5, 1.0)])
@pytest.mark.parametrize("name", SPLITTERS)
def test_the_sampler_counts_the_splits_that_each_row_is_in(name, fractions):
    splits = make_splits(SPLITTERS[name], N_SPLIT)
    train = [take_fraction(rows, share) for share in fractions for rows in splits.train]
    nested = Splits(tuple(train), splits.test * len(fractions), N_SPLIT)
    trained = np.zeros(N_SPLIT, dtype=int)
    scored = np.zeros(N_SPLIT, dtype=int)
    for rows in nested.train:
        trained[rows] += 1
    for rows in nested.test:
        scored[rows] += 1
    text = str(nested.describe())
    if len(train) == 1:
        expected = "each row in the training set or in the test set"
        expected += ", or in neither" if np.any(trained + scored == 0) else ""
    else:
        ranges = [
            f"{counts.min()}" if np.ptp(counts) == 0 else f"{counts.min()} to {counts.max()}"
            for counts in (trained, scored)
        ]
        expected = (
            f"of the {len(train)} fits, each row is used for training in {ranges[0]} and for "
            f"scoring in {ranges[1]}"
        )
    assert text == expected
    assert nested.describe().of_persons == expected.replace("row", "person")
