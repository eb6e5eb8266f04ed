import math

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given, settings
from scipy.special import ndtr, ndtri

from skdp.accounting import (
    ZCDP,
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RandomStopping,
    SampledWithoutReplacement,
    event_from_json,
    get_delta,
    get_epsilon,
    rdp,
    trade_off,
)

EXAMPLES = settings(max_examples=25, deadline=None, derandomize=True)
SLACK = 1e-3  # of relative order: ten times the default tolerance
relations = st.sampled_from(["add_remove", "replace_one"])
deltas = st.floats(-14, -1).map(lambda x: 10.0**x)
sigmas = st.floats(0.4, 30.0)
rates = st.floats(0.001, 1.0)
small = st.floats(0.01, 3.0)

additive = st.one_of(
    sigmas.map(Gaussian),
    small.map(Laplace),
    st.builds(DiscreteGaussian, st.floats(0.5, 20.0), st.integers(1, 3)),
    st.builds(DiscreteLaplace, st.floats(0.5, 20.0), st.integers(1, 3)),
)
pure = st.one_of(
    small.map(PureDP),
    small.map(ExponentialMechanism),
    st.builds(RandomizedResponse, small, st.integers(2, 6)),
)
sampled = st.one_of(
    st.builds(PoissonSampled, rates, st.one_of(additive, pure)),
    st.builds(
        lambda m, event: SampledWithoutReplacement(100, m, event), st.integers(1, 99), additive
    ),
)
with_curve = st.one_of(additive, pure, sampled)
leaf = st.one_of(
    with_curve,
    st.floats(0.001, 1.0).map(ZCDP),
    st.builds(ApproximateDP, small, st.floats(0.0, 1e-4)),
    st.builds(RandomStopping, additive, st.floats(1.0, 50.0), st.floats(-0.5, 3.0)),
)
composed = st.lists(st.tuples(leaf, st.integers(1, 20)), min_size=1, max_size=3).map(
    lambda items: Composed(tuple(event * count for event, count in items))
)
curves = st.lists(st.tuples(with_curve, st.integers(1, 20)), min_size=1, max_size=2).map(
    lambda items: Composed(tuple(event * count for event, count in items))
)


def no_more(first, second):
    return first <= second * (1 + SLACK) + SLACK * 1e-2


@pytest.mark.thorough
@EXAMPLES
@given(composed)
def test_json(event):
    assert event_from_json(event.to_json()) == event


@EXAMPLES
@given(sigmas, st.floats(1.05, 3.0), rates, st.integers(1, 300), deltas, relations)
def test_more_noise_never_costs_more(sigma, factor, q, steps, d, relation):
    less = get_epsilon(PoissonSampled(q, Gaussian(sigma * factor)) * steps, d, relation=relation)
    assert no_more(
        less, get_epsilon(PoissonSampled(q, Gaussian(sigma)) * steps, d, relation=relation)
    )


@EXAMPLES
@given(sigmas, rates, st.floats(0.1, 0.95), st.integers(1, 300), deltas, relations)
def test_monotone_in_the_rate(sigma, q, factor, steps, d, relation):
    less = get_epsilon(PoissonSampled(q * factor, Gaussian(sigma)) * steps, d, relation=relation)
    assert no_more(
        less, get_epsilon(PoissonSampled(q, Gaussian(sigma)) * steps, d, relation=relation)
    )


@pytest.mark.thorough
@EXAMPLES
@given(composed, leaf, deltas, relations)
def test_one_release_more_never_costs_less(event, more, d, relation):
    assert no_more(
        get_epsilon(event, d, relation=relation), get_epsilon(event + more, d, relation=relation)
    )


@EXAMPLES
@given(composed, deltas, st.floats(1.1, 10.0), relations)
def test_monotone_in_delta(event, d, factor, relation):
    larger = get_epsilon(event, min(1.0, d * factor), relation=relation)
    assert no_more(larger, get_epsilon(event, d, relation=relation))


@EXAMPLES
@given(st.lists(leaf, min_size=2, max_size=4), deltas, relations, st.randoms())
def test_order_does_not_matter(events, d, relation, random):
    shuffled = list(events)
    random.shuffle(shuffled)
    first = get_epsilon(Composed(tuple(events)), d, relation=relation)
    assert first == get_epsilon(Composed(tuple(shuffled)), d, relation=relation)


@EXAMPLES
@given(curves, deltas, relations)
def test_epsilon_of_delta_is_the_identity(event, d, relation):
    eps = get_epsilon(event, d, relation=relation)
    assume(1e-3 < eps < 200.0)
    back = get_epsilon(event, min(1.0, get_delta(event, eps, relation=relation)), relation=relation)
    assert back == pytest.approx(eps, rel=5 * SLACK, abs=SLACK)


@pytest.mark.thorough
@EXAMPLES
@given(composed, deltas, relations)
def test_auto_is_the_least(event, d, relation):
    auto = get_epsilon(event, d, relation=relation)
    for method in ("basic", "advanced", "zcdp", "rdp", "pld"):
        try:
            other = get_epsilon(event, d, relation=relation, method=method)
        except ValueError:
            assert method == "pld"
            continue
        assert auto <= other


pure_runs = st.builds(
    lambda event, count, mean, shape: RandomStopping(event * count, mean, shape),
    pure,
    st.integers(1, 5),
    st.floats(1.0, 50.0),
    st.sampled_from([-0.5, 0.0, 1.0, 3.0, math.inf]),
)
counts = st.floats(0.0, 12.0).map(lambda x: int(10.0**x))
anything = st.lists(st.tuples(st.one_of(with_curve, pure_runs), counts), min_size=1, max_size=3)
anything = anything.map(lambda items: Composed(tuple(event * count for event, count in items)))


@pytest.mark.thorough
@settings(EXAMPLES, max_examples=60)
@given(anything, st.one_of(deltas, st.just(1e-200)), relations, st.sampled_from([1, 1, 2, 3]))
def test_pld_is_never_above_rdp(event, d, relation, size):
    options = {"relation": relation, "group_size": size}
    eps = get_epsilon(event, d, method="rdp", **options)
    if "shape=inf" in repr(event):
        # A Poisson number of runs has no loss distribution, unless its runs release nothing.
        try:
            pld_epsilon = get_epsilon(event, d, method="pld", **options)
        except ValueError as error:
            assert "no privacy loss distribution is known" in str(error)
            return
    else:
        pld_epsilon = get_epsilon(event, d, method="pld", **options)
    assert pld_epsilon <= eps * (1 + 1e-12)
    if size == 1 and eps < 300.0:
        delta_ = get_delta(event, eps, method="rdp", **options)
        assert get_delta(event, eps, method="pld", **options) <= delta_ * (1 + 1e-12)


@pytest.mark.parametrize(
    "event",
    [
        RandomStopping(ExponentialMechanism(0.2), mean=4.0, shape=0.5) * 9,
        RandomStopping(RandomizedResponse(0.3, 3) * 5, mean=20.0),
        PureDP(1e-6) * 10**10,
        Gaussian(1e-40) + PureDP(0.1),
        ExponentialMechanism(0.1) * 50,
        PoissonSampled(1e-3, Gaussian(1.0)) * 10**11,
    ],
)
def test_pld_is_no_more_than_rdp_where_it_has_no_price_or_a_loose_pair(event):
    rdp_price = get_epsilon(event, 1e-5, method="rdp")
    assert rdp_price < math.inf
    assert get_epsilon(event, 1e-5, method="pld") <= rdp_price
    delta_ = get_delta(event, 1.0, method="rdp")
    assert get_delta(event, 1.0, method="pld") <= delta_


@EXAMPLES
@given(leaf, st.floats(1.05, 60.0), st.floats(1.05, 3.0), relations)
def test_renyi_divergence_grows_with_the_order(event, order, factor, relation):
    assume(not isinstance(event, RandomStopping))  # its bound need not be monotone
    low, high = (rdp(event, x, relation=relation) for x in (order, order * factor))
    assert low <= high * (1 + 1e-9) + 1e-12


@settings(EXAMPLES, max_examples=8)
@given(leaf, deltas, relations, st.integers(2, 4))
def test_groups_cost_more(event, d, relation, k):
    one = get_epsilon(event, d, relation=relation)
    group = get_epsilon(event, d, relation=relation, group_size=k)
    assert no_more(one, group)
    assert no_more(group, get_epsilon(event, d, relation=relation, group_size=k + 1))


@EXAMPLES
@given(sigmas, st.floats(0.001, 0.999))
def test_trade_off_of_a_gaussian(sigma, alpha):
    truth = ndtr(-ndtri(alpha) - 1 / sigma)
    found = trade_off(Gaussian(sigma), alpha)
    assert truth - 1e-4 <= found <= truth + 1e-12


def test_trade_off_ends():
    assert trade_off(Laplace(1.0), 0.0) == pytest.approx(1.0, abs=1e-9)
    assert trade_off(Laplace(1.0), 1.0) == 0.0
    assert trade_off(PureDP(math.log(3.0)), 0.1) == pytest.approx(0.7)
