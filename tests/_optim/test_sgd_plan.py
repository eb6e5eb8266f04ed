"""What runs is what is charged, regime by regime, and each classic fault is caught."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
)
from dp_accounting.pld import PLDAccountant
from scipy.stats import beta as beta_law
from scipy.stats import kstest, norm

from skdp._optim._batches import FixedSizeBatches, PoissonBatches
from skdp._optim._clipped_sums import ClippedSums, sum_rounding
from skdp._optim._sgd_plan import SGDRun, plan_sgd, sum_sensitivity
from skdp.accounting import (
    Gaussian,
    Laplace,
    PoissonSampled,
    SampledWithoutReplacement,
    get_epsilon,
    zcdp_to_epsilon,
)
from skdp.noise import RandomSource
from tests._guarantees import meet, of_rows
from tests._private import BinaryLogisticLoss, HuberLoss, MultinomialLogisticLoss

DELTA = 1e-5
RELATIONS = ("add_remove", "replace_one")
REGIMES = [(DELTA, "full"), (DELTA, "poisson"), (0.0, "full"), (0.0, "without_replacement")]


def make_plan(
    sampling="full",
    delta=DELTA,
    *,
    epsilon=1.0,
    n_rows=500,
    batch_size=50,
    n_steps=20,
    n_columns=3,
    n_outputs=1,
    constant=0.3,
    clip=1.0,
    relation="add_remove",
):
    loss = HuberLoss() if n_outputs == 1 else MultinomialLogisticLoss(n_outputs)
    guarantee = meet(epsilon, delta, relation)
    problem = of_rows(loss, n_rows, n_columns, 1.0, guarantee, constant)
    return plan_sgd(problem, clip, sampling, batch_size, n_steps)


def with_noise_of(plan, factor):
    """Return a plan whose noise has another scale than was charged."""
    noise = replace(plan.noise, scale=factor * plan.noise.scale)
    return replace(plan, noise=noise)


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 8.0, 50.0])
@pytest.mark.parametrize(("delta", "sampling"), REGIMES)
def test_price_is_what_was_asked(delta, sampling, epsilon, relation):
    plan = make_plan(sampling, delta, epsilon=epsilon, relation=relation)
    cost = get_epsilon(plan.event, delta, relation=relation)
    assert 0.98 * epsilon < cost <= epsilon * (1 + 1e-12)
    assert plan.spent_after(plan.n_steps) == cost
    assert plan.spent_after(1) < cost


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize(("delta", "sampling"), REGIMES[:3])
def test_price_by_another_accountant(delta, sampling, epsilon, relation):
    """From the plan's sampler and noise and the clip of 1 alone, not from its event."""
    plan = make_plan(sampling, delta, epsilon=epsilon, relation=relation)
    moved = 1.0 if sampling == "poisson" else {"add_remove": 1.0, "replace_one": 2.0}[relation]
    if delta == 0.0:
        event = LaplaceDpEvent(plan.noise.scale / moved)
    else:
        event = GaussianDpEvent(plan.noise.scale / moved)
    if sampling == "poisson":
        event = PoissonSampledDpEvent(plan.batches.rate, event)
    kind = "ADD_OR_REMOVE_ONE" if relation == "add_remove" else "REPLACE_ONE"
    # A full-batch multiplier is over what neighbors move, whatever the relation.
    kind = kind if sampling == "poisson" else "ADD_OR_REMOVE_ONE"
    accountant = PLDAccountant(neighboring_relation=NeighboringRelation[kind])
    accountant.compose(event, plan.n_steps)
    assert accountant.get_epsilon(delta or 1e-12) == pytest.approx(epsilon, rel=2e-3)


def test_replacement_moves_a_sum_by_two_clips():
    for delta, sampling in REGIMES:
        one, two = (make_plan(sampling, delta, relation=r) for r in RELATIONS)
        # Of sampled batches it is that of one record, whatever the relation is.
        assert one.sensitivity == pytest.approx(1.0, rel=1e-6)
        assert two.sensitivity == pytest.approx(2.0 if sampling == "full" else 1.0, rel=1e-6)
        if sampling == "without_replacement":
            assert one.scale == two.scale
        assert two.scale >= one.scale
    full = make_plan("full", relation="replace_one")
    assert full.scale == pytest.approx(2 * make_plan("full").scale, rel=1e-9)


def test_a_sum_moves_by_clips_and_by_the_rounding_of_both_sums():
    """With so many rows that rounding is no trifle beside the clip."""
    problem = of_rows(HuberLoss(), 10**7, 5, 1.0, constant=0.3)
    rounding = sum_rounding(5, 1, 0.7, problem.n_rows)
    assert rounding > 1e-6
    for rows in (1, 2):
        assert sum_sensitivity(problem, 0.7, rows, problem.n_rows) >= rows * 0.7 + 2.0 * rounding


def test_noise_of_the_full_batch_in_closed_form():
    plan, one = (make_plan("full", n_steps=steps, clip=0.7) for steps in (49, 1))
    assert isinstance(plan.step, Gaussian)
    assert plan.scale / plan.sensitivity >= plan.step.noise_multiplier
    # zCDP adds up to T / (2 z^2): T steps of z sqrt(T) cost what one of z costs.
    assert plan.scale == pytest.approx(7.0 * one.scale, rel=1e-9)
    rho = plan.n_steps / (2 * plan.step.noise_multiplier**2)
    assert 1.0 < zcdp_to_epsilon(rho, DELTA) < 1.2


def test_noise_of_the_pure_regime_in_closed_form():
    n, m, steps, clip, epsilon = 500, 50, 20, 0.7, 1.5
    plan = make_plan("without_replacement", 0.0, epsilon=epsilon, clip=clip)
    b = 2 * clip / (m * math.log(1 + (math.exp(epsilon / steps) - 1) * n / m))
    assert plan.noise.scale / m == pytest.approx(b, rel=1e-8)
    assert plan.noise.scale / m >= b
    assert isinstance(plan.step, SampledWithoutReplacement)


def worst_step_loss(plan, scale, relation):
    """Return the privacy loss of one step on its worst pair: all other gradients are -C.

    The record has gradient C, its neighbor is null or has -C; the law of the noisy sum is a
    mixture of two Laplace distributions on the line, and the ratio is largest at infinity.
    """
    share, clip = plan.batches.size / plan.batches.n_rows, plan.clip
    y = np.linspace(-200 * scale, 200 * scale, 4001)

    def log_density(offset):
        inside = np.log(share) - np.abs(y - offset) / scale
        return np.logaddexp(np.log1p(-share) - np.abs(y) / scale, inside)

    other = clip if relation == "add_remove" else 0.0
    loss = log_density(2 * clip) - log_density(other)
    return np.max(np.abs(loss))


@pytest.mark.parametrize("relation", RELATIONS)
def test_pure_regime_on_the_worst_pair(relation):
    ratios = []
    for batch_size in (5, 50, 250):
        for epsilon in (0.1, 5.0, 20.0):
            plan = make_plan(
                "without_replacement", 0.0, epsilon=epsilon, batch_size=batch_size, n_steps=10
            )
            claim = epsilon / plan.n_steps
            assert worst_step_loss(plan, plan.scale, relation) <= claim
            # The clip alone, taken for the replacement sensitivity, breaks the claim.
            ratios.append(worst_step_loss(plan, 0.5 * plan.scale, relation) / claim)
    assert max(ratios) > 2.0


def test_the_worst_pair_uses_up_the_claim_under_replacement():
    plan = make_plan("without_replacement", 0.0, epsilon=5.0, n_steps=10)
    assert worst_step_loss(plan, plan.scale, "replace_one") == pytest.approx(0.5, rel=1e-6)


def assert_batches_are_those_of_the_event(plan, n_steps=4000):
    """Inclusion with the event's probability, independently, so that sizes are binomial.

    Two normal approximations at 5 standard deviations: a false alarm has probability 1e-6.
    """
    event, n = plan.step, plan.batches.n_rows
    assert isinstance(event, PoissonSampled)
    rate = event.sampling_rate
    sizes, counts = np.empty(n_steps), np.zeros(n)
    for step, rows in enumerate(plan.batches.draw(n_steps, RandomSource(3).stream())):
        sizes[step] = len(rows)
        counts[rows] += 1
    variance = n * rate * (1 - rate)
    assert abs(sizes.mean() - n * rate) < 5 * math.sqrt(variance / n_steps)
    assert abs(sizes.var() / variance - 1) < 5 * math.sqrt(2 / n_steps)
    assert np.max(np.abs(counts - n_steps * rate)) < 6.5 * math.sqrt(n_steps * rate)


def test_poisson_event_has_poisson_batches():
    plan = make_plan("poisson")
    assert isinstance(plan.batches, PoissonBatches)
    assert_batches_are_those_of_the_event(plan)


def test_shuffled_batches_are_caught():
    shuffled = replace(make_plan("poisson"), batches=FixedSizeBatches(500, 50))
    with pytest.raises(AssertionError):
        assert_batches_are_those_of_the_event(shuffled)


def noisy_means(plan, X, y, loss, weights):
    sums = plan.sums(X, y, loss)
    means = plan.noisy_means(lambda rows: sums.sums(weights, rows), RandomSource(5))
    return np.array(list(means))


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanByActualSize(SGDRun):
    def noisy_means(self, next_sum, source):
        batches = self.batches.draw(self.n_steps, source.stream())
        noises = self.noise.draw(self.n_steps, source.stream())
        for rows, noise in zip(batches, noises, strict=True):
            total = next_sum(rows)
            yield self.noise.add(total, noise) / max(1, len(rows))


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseByBatchTwice(SGDRun):
    def noisy_means(self, next_sum, source):
        batches = self.batches.draw(self.n_steps, source.stream())
        noises = self.noise.draw(self.n_steps, source.stream())
        size = self.batches.expected_size
        for rows, noise in zip(batches, noises, strict=True):
            total = next_sum(rows)
            alone = self.noise.add(np.zeros_like(total), noise)
            yield total / size + alone / size**2


@dataclass(frozen=True, kw_only=True, eq=False)
class OneNoiseForAllClasses(SGDRun):
    def noisy_means(self, next_sum, source):
        for mean in super().noisy_means(next_sum, source):
            yield np.broadcast_to(mean[:1], mean.shape)


def mutated(plan, kind):
    return kind(**{name: getattr(plan, name) for name in plan.__dataclass_fields__})


def assert_divided_by_the_expected_size(plan):
    """Without noise to speak of, the mean gradient of equal rows follows the batch's size."""
    n, d = plan.problem.n_rows, plan.problem.n_columns
    X, y = np.ones((n, d)), np.zeros(n)
    weights = np.full(plan.problem.n_features, 100.0)
    means = noisy_means(plan, X, y, BinaryLogisticLoss(), weights)
    sizes = np.linalg.norm(means, axis=1) * plan.batches.expected_size / plan.clip
    assert np.std(sizes) > 0.5 * math.sqrt(plan.batches.expected_size)
    assert np.max(np.abs(sizes - np.round(sizes))) < 1e-3


def test_sums_are_divided_by_the_expected_size():
    plan = with_noise_of(make_plan("poisson"), 1e-7)
    assert_divided_by_the_expected_size(plan)
    with pytest.raises(AssertionError):
        assert_divided_by_the_expected_size(mutated(plan, MeanByActualSize))


def assert_noise_has_the_scale(plan):
    """The noise on a mean of null gradients: its standard deviation and its independence.

    About 3e4 values: 6 standard deviations of the estimates.
    """
    n, shape = plan.problem.n_rows, (plan.problem.loss_spec.n_outputs, plan.problem.n_features)
    X, y = np.zeros((n, plan.problem.n_columns)), np.zeros(n, dtype=int)
    means = noisy_means(plan, X, y, _ZeroLoss(plan.problem.loss_spec.n_outputs), np.zeros(shape))
    noise = means.reshape(len(means), -1) * plan.batches.expected_size / plan.scale
    if isinstance(plan.step, Laplace):
        noise /= math.sqrt(2.0)
    spread = 6.0 * math.sqrt(6.0 / noise.size)
    assert abs(noise.var() - 1.0) < spread
    correlation = noise.T @ noise / len(noise) - np.eye(noise.shape[1])
    assert np.max(np.abs(correlation)) < 6.0 * math.sqrt(6.0 / len(noise))


class _ZeroLoss:
    def __init__(self, n_outputs):
        self.weights_shape = (n_outputs,)

    def relative_weights(self, y):
        return 1.0

    def residual(self, scores, y):
        return np.zeros_like(scores)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize(("delta", "sampling"), REGIMES[:3])
def test_noise_has_the_scale_that_is_charged(delta, sampling):
    plan = make_plan(sampling, delta, n_steps=2000, n_outputs=4, n_rows=60, batch_size=20)
    assert_noise_has_the_scale(plan)
    for kind in (NoiseByBatchTwice, OneNoiseForAllClasses):
        if plan.batches.expected_size > 1:
            with pytest.raises(AssertionError):
                assert_noise_has_the_scale(mutated(plan, kind))


def assert_law_of_the_noise(plan):
    """Kolmogorov's test of 2e4 draws against the law that is charged, at a level of 1e-6."""
    sigma = plan.step.noise_multiplier * plan.sensitivity
    draws = np.concatenate(list(plan.noise.draw(20_000, RandomSource(11).stream())))
    assert kstest(draws * plan.noise.step / sigma, "norm").pvalue > 1e-6


def test_law_of_the_noise():
    plan = make_plan("full", n_columns=1, constant=0.0)
    assert_law_of_the_noise(plan)
    with pytest.raises(AssertionError):
        assert_law_of_the_noise(with_noise_of(plan, 0.5))


def two_worlds_bound(plan, draws=100_000, level=1e-6):
    """Bound mu of one step from below by telling apart sums that differ by the clip.

    Full batch and one weight. Half of the draws choose a threshold, the others bound both error
    rates (Clopper and Pearson 1934); a mu-GDP test has power at most
    Phi(Phi^-1(alpha) + mu) (Dong, Roth and Su 2022).
    """
    worlds = []
    for number, moved in enumerate((0.0, plan.clip)):
        stream = RandomSource(number).stream()
        values = np.full(draws, moved)
        noise = np.fromiter((x[0] for x in plan.noise.draw(draws, stream)), np.int64, draws)
        worlds.append(plan.noise.add(values, noise))
    threshold = 0.5 * plan.clip
    alpha, beta = np.mean(worlds[0] > threshold), np.mean(worlds[1] <= threshold)
    high = [beta_law.ppf(1 - level / 2, k * draws + 1, draws - k * draws) for k in (alpha, beta)]
    return norm.ppf(1 - high[1]) - norm.ppf(high[0])


def test_two_worlds():
    # A false alarm has probability 1e-6.
    plan = make_plan("full", epsilon=8.0, n_steps=4, n_columns=1, constant=0.0)
    claim = 1.0 / plan.step.noise_multiplier
    assert 0.9 * claim < two_worlds_bound(plan) <= claim
    assert two_worlds_bound(with_noise_of(plan, 0.5)) > claim


EXTREMES = (0.0, 1e-300, 1e-3, 1.0, 1e6, 1e200)


def random_rows(rng, n, d):
    rows = rng.normal(size=(n, d)) * rng.choice(EXTREMES, size=(n, 1))
    rows[rng.random(n) < 0.1] = 0.0
    return rows


def largest_move(plan, loss, make_targets, sums_of, relation, trials=120):
    """Brute force: the largest distance of the sums of neighbors over the sensitivity."""
    rng = np.random.default_rng(0)
    n, d, shape = plan.problem.n_rows, plan.problem.n_columns, (*loss.weights_shape, -1)
    order = 1 if plan.norm == "l1" else 2
    largest = 0.0
    for _ in range(trials):
        X, y = random_rows(rng, n, d), make_targets(rng, n)
        weights = rng.normal(size=plan.problem.size).reshape(shape) * rng.choice([0.1, 10.0, 1e4])
        other, targets = X.copy(), y.copy()
        one = sums_of(plan, X, y, loss, weights, None)
        if relation == "replace_one":
            other[0], targets[0] = random_rows(rng, 1, d)[0], make_targets(rng, 1)[0]
            two = sums_of(plan, other, targets, loss, weights, None)
        else:
            two = sums_of(plan, X, y, loss, weights, np.arange(1, n))
        largest = max(largest, np.linalg.norm((one - two).ravel(), order))
    return largest / plan.sensitivity


def sums_as_they_are(plan, X, y, loss, weights, rows):
    return plan.sums(X, y, loss).sums(weights, rows)


def sums_clipped_as_a_whole(plan, X, y, loss, weights, rows):
    loose = ClippedSums(X, y, loss, constant=plan.problem.constant, clip=1e20)
    total = loose.sums(weights, rows)
    return total * min(1.0, plan.clip * plan.problem.n_rows / np.linalg.norm(total))


def sums_clipped_without_the_intercept(plan, X, y, loss, weights, rows):
    X, y = (X, y) if rows is None else (X[rows], y[rows])
    X = np.clip(X, -1e100, 1e100)
    norms = np.linalg.norm(X, axis=1)
    scores = X @ weights[..., :-1].T + plan.problem.constant * weights[..., -1]
    residual = loss.residual(np.clip(scores, -1e6, 1e6), y)
    residual *= np.minimum(1.0, plan.clip / np.maximum(np.abs(residual) * norms, 1e-300))
    return np.append(residual @ X, plan.problem.constant * residual.sum())


LOSSES = [
    (BinaryLogisticLoss(), lambda rng, n: rng.integers(2, size=n).astype(float)),
    (MultinomialLogisticLoss(3), lambda rng, n: rng.integers(3, size=n)),
    (HuberLoss(), lambda rng, n: rng.normal(size=n) * 1e3),
]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [DELTA, 0.0])
@pytest.mark.parametrize(("loss", "make_targets"), LOSSES, ids=["binary", "softmax", "squared"])
def test_no_neighbor_moves_a_sum_further(loss, make_targets, delta, relation):
    size = math.prod(loss.weights_shape)
    plan = make_plan("full", delta, n_rows=12, n_outputs=size, relation=relation)
    moved = largest_move(plan, loss, make_targets, sums_as_they_are, relation)
    assert 0.5 < moved <= 1.0


@pytest.mark.parametrize("wrong", [sums_clipped_as_a_whole, sums_clipped_without_the_intercept])
def test_wrong_clips_are_caught(wrong):
    plan = make_plan("full", n_rows=12, constant=30.0)
    loss, make_targets = LOSSES[0] if wrong is not sums_clipped_as_a_whole else LOSSES[2]
    assert largest_move(plan, loss, make_targets, wrong, "add_remove") > 1.5


def test_words_say_which_rows_are_used():
    words = {make_plan(sampling, delta).stages[0].reads for delta, sampling in REGIMES}
    assert words == {
        "all rows, in each of 20 steps",
        "each row with probability 0.1, independently, in each of 20 steps",
        "50 of 500 rows without replacement, in each of 20 steps",
    }
    assert "Laplace" in make_plan("full", 0.0).name and "Gaussian" in make_plan("full").name


@pytest.mark.parametrize("sampling", ["full", "without_replacement"])
def test_an_epsilon_that_no_noise_can_serve_is_refused(sampling):
    with pytest.raises(ValueError, match="too small"):
        make_plan(sampling, 0.0, epsilon=1e-30)
    # delta alone pays for finite noise.
    assert math.isfinite(make_plan("full", epsilon=1e-30).scale)
