import math
import pickle

import numpy as np
import pytest

from skdp.accounting import (
    ZCDP,
    ApproximateDP,
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
    Repeated,
    SampledWithoutReplacement,
    event_from_json,
)

EVENTS = [
    Gaussian(1.5),
    Laplace(0.2),
    DiscreteGaussian(2.0, sensitivity=3),
    DiscreteLaplace(4.0, sensitivity=2),
    RandomizedResponse(0.2),
    RandomizedResponse(1.0, num_categories=7),
    ExponentialMechanism(0.5),
    PureDP(0.0),
    ApproximateDP(0.3, 1e-7),
    ZCDP(0.01),
    ZCDP(0.01, 1e-9),
    NonPrivate(),
    PoissonSampled(0.01, Gaussian(1.0)),
    PoissonSampled(0.5, Gaussian(1.0) + Gaussian(2.0) * 3),
    SampledWithoutReplacement(1000, 10, Laplace(1.0)),
    RandomStopping(Gaussian(4.0), mean=10),
    RandomStopping(Gaussian(4.0), mean=10, shape=math.inf),
    Composed(()),
    PoissonSampled(0.01, Gaussian(1.0)) * 1000 + Laplace(0.2) + NonPrivate(),
    Repeated(Gaussian(0.1), 0),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.to_json()[:60])
def test_json_and_pickle_round_trip(event):
    text = event.to_json()
    assert event_from_json(text) == event
    assert event_from_json(text).to_json() == text
    assert hash(event_from_json(text)) == hash(event)
    assert pickle.loads(pickle.dumps(event)) == event
    assert " " not in text


def test_json_is_canonical():
    expected = '{"count":3,"event":{"noise_multiplier":0.1,"type":"Gaussian"},"type":"Repeated"}'
    assert (Gaussian(0.1) * 3).to_json() == expected


def test_numbers_are_normalized():
    assert Gaussian(2) == Gaussian(2.0) == Gaussian(np.float32(2.0)) == Gaussian(np.int64(2))
    assert Gaussian(2).to_json() == Gaussian(2.0).to_json()
    assert PureDP(-0.0).to_json() == PureDP(0.0).to_json()
    assert Gaussian(1.0) * np.int64(3) == 3 * Gaussian(1.0)


def test_sums_are_flat_and_products_counted():
    a, b, c = Gaussian(1.0), Laplace(1.0), PureDP(0.1)
    assert (a + b) + c == a + (b + c) == Composed((a, b, c))
    assert a * 1 is a
    assert Composed([a, b]) == Composed((a, b))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian(0.0),
        lambda: Gaussian(-1.0),
        lambda: Gaussian(math.nan),
        lambda: Gaussian(math.inf),
        lambda: Gaussian("wide"),
        lambda: Gaussian(True),
        lambda: Laplace(0.0),
        lambda: DiscreteGaussian(1.0, sensitivity=0),
        lambda: DiscreteGaussian(1.0, sensitivity=1.5),
        lambda: RandomizedResponse(1.0, num_categories=1),
        lambda: ApproximateDP(1.0, 1.5),
        lambda: ApproximateDP(1.0, math.nan),
        lambda: ZCDP(-0.1),
        lambda: PoissonSampled(1.1, Gaussian(1.0)),
        lambda: PoissonSampled(-0.1, Gaussian(1.0)),
        lambda: PoissonSampled(math.nan, Gaussian(1.0)),
        lambda: PoissonSampled(0.1, 1.0),
        lambda: PoissonSampled(0.1, ZCDP(0.1)),
        lambda: PoissonSampled(0.1, PoissonSampled(0.1, Gaussian(1.0))),
        lambda: PoissonSampled(0.1, Gaussian(1.0) + Laplace(1.0)),
        lambda: PoissonSampled(0.1, RandomStopping(Gaussian(1.0), 3)),
        lambda: SampledWithoutReplacement(10, 11, Gaussian(1.0)),
        lambda: SampledWithoutReplacement(0, 0, Gaussian(1.0)),
        lambda: RandomStopping(Gaussian(1.0), mean=0.5),
        lambda: RandomStopping(Gaussian(1.0), mean=2, shape=-1.0),
        lambda: RandomStopping(Gaussian(1.0), mean=math.inf),
        lambda: Gaussian(1.0) * -1,
        lambda: Gaussian(1.0) * 1.5,
        lambda: Gaussian(1.0) * True,
        lambda: Composed((Gaussian(1.0), "x")),
        lambda: Composed(3),
        lambda: event_from_json("{"),
        lambda: event_from_json("[]"),
        lambda: event_from_json('{"type":"Event"}'),
        lambda: event_from_json('{"type":"Gaussian"}'),
        lambda: event_from_json('{"type":"Gaussian","noise_multiplier":NaN}'),
        lambda: event_from_json('{"type":"Gaussian","noise_multiplier":1,"more":1}'),
        lambda: event_from_json(None),
    ],
)
def test_bad_input_is_a_value_error(make):
    with pytest.raises(ValueError):
        make()


def test_events_do_not_multiply_each_other():
    with pytest.raises(TypeError):
        Gaussian(1.0) * Gaussian(1.0)
    with pytest.raises(TypeError):
        Gaussian(1.0) + 1
