"""What plans cost, beside an independent composition, and the law and utility of the choice."""

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.common import DifferentialPrivacyParameters
from dp_accounting.rdp import RdpAccountant
from scipy.stats import chi2
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit

from skdp import DPLogisticRegression, DPSGDClassifier
from skdp.accounting import (
    ApproximateDP,
    Gaussian,
    Guarantee,
    PoissonSampled,
    PureDP,
    RandomStopping,
    get_epsilon,
)
from skdp.mechanisms import ExponentialMechanism as ExponentialChoice
from skdp.model_selection import bounded_score
from skdp.model_selection._candidates import Rows, make_candidate
from skdp.model_selection._plans import SearchTask, plan_runs
from skdp.model_selection._pricing import dominating_event, fitting_scale
from skdp.model_selection._splits import Layout, make_splits
from skdp.model_selection._strategies import STRATEGIES, best_strategy, plan_search
from tests._private import leaves
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
