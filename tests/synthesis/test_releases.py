"""A synthesizer is a function of its releases."""

import pickle

import numpy as np
import pandas as pd
import pytest

from skdp.synthesis import DPTableSynthesizer
from tests._replay import replayed

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")


def make_frame(seed, n_rows=300):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 40, n_rows) if seed else np.minimum(rng.poisson(3.0, n_rows), 40)
    return pd.DataFrame(
        {
            "a": a,
            "b": rng.normal(size=n_rows) + seed * a,
            "c": rng.choice(["x", "y", "z"], n_rows, p=[0.7, 0.2, 0.1][:: 1 if seed else -1]),
            "d": rng.random(n_rows) < a / 40,
        }
    )


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta", [1e-5, 0.0])
@pytest.mark.parametrize("target", [None, "d"])
def test_a_model_follows_from_its_releases(delta, target):
    params = {
        "delta": delta,
        "target": target,
        "bounds": {"a": (0, 40), "b": (-5, 50)},
        "categories": {"c": ["x", "y"]},
        "random_state": 0,
    }

    def fit(seed):
        return DPTableSynthesizer(3.0, **params).fit(make_frame(seed))

    one, other = replayed(lambda: fit(0), lambda: fit(1))
    assert [t.columns for t in one.tables_] == [t.columns for t in other.tables_]
    for first, second in zip(one.tables_, other.tables_, strict=True):
        assert np.array_equal(first.counts, second.counts)
    for first, second in zip(one.counts_, other.counts_, strict=True):
        assert np.array_equal(first, second)
    assert np.array_equal(one.scores_, other.scores_)
    pd.testing.assert_frame_equal(one.sample(200, 0), other.sample(200, 0))
    # Nothing else of the rows is in the model, such as the tables of pairs that were not chosen.
    assert vars(one).keys() == vars(other).keys()
    for name in vars(one):
        assert pickle.dumps(vars(one)[name]) == pickle.dumps(vars(other)[name]), name
    assert one.report()._repr_html_() == other.report()._repr_html_()
