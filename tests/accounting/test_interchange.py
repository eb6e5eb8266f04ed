import pytest

from skdp.accounting import (
    ZCDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    NonPrivate,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RandomStopping,
    SampledWithoutReplacement,
    from_dp_accounting,
    get_epsilon,
    to_dp_accounting,
)

dp_accounting = pytest.importorskip("dp_accounting")

EVENTS = [
    Gaussian(2.0) * 3 + Laplace(0.5),
    DiscreteLaplace(4.0, 3),
    RandomizedResponse(0.5, 4),
    ZCDP(0.25),
    NonPrivate(),
    PoissonSampled(0.25, Gaussian(2.0)) * 7,
    SampledWithoutReplacement(100, 10, Gaussian(2.0)),
    RandomStopping(Gaussian(4.0), 10.0, 0.5),
    Composed(()),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.to_json())
def test_round_trip(event):
    back = from_dp_accounting(to_dp_accounting(event))
    if isinstance(event, RandomizedResponse):
        assert back.epsilon == pytest.approx(event.epsilon, rel=1e-12)
        assert back.num_categories == event.num_categories
    else:
        assert back == event


def test_their_accountant_agrees():
    event = PoissonSampled(0.05, Gaussian(1.5)) * 50 + Laplace(0.3) + RandomizedResponse(0.1) * 3
    accountant = dp_accounting.pld.PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=1e-3
    )
    theirs = PoissonSampled(0.05, Gaussian(1.5)) * 50 + Laplace(0.3)
    accountant.compose(to_dp_accounting(theirs))
    assert get_epsilon(theirs, 1e-5) <= accountant.get_epsilon(1e-5) * (1 + 1e-4)
    assert get_epsilon(theirs, 1e-5) >= accountant.get_epsilon(1e-5) * (1 - 1e-3)
    assert get_epsilon(event, 1e-5) > get_epsilon(theirs, 1e-5)


def test_without_replacement_states_the_replacement_sensitivity():
    theirs = to_dp_accounting(SampledWithoutReplacement(100, 10, Gaussian(2.0)))
    assert theirs.event.noise_multiplier == 1.0


@pytest.mark.parametrize("event", [PureDP(1.0), ExponentialMechanism(1.0), DiscreteGaussian(2.0)])
def test_no_counterpart(event):
    with pytest.raises(ValueError, match="no counterpart"):
        to_dp_accounting(event)


def test_theirs_without_counterpart():
    with pytest.raises(ValueError, match="no counterpart"):
        from_dp_accounting(dp_accounting.UnsupportedDpEvent())
    assert from_dp_accounting(dp_accounting.GaussianDpEvent(0.0)) == NonPrivate()
