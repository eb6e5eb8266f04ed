"""The likelihood of rows, and attacks on membership by it."""

import numpy as np
import pandas as pd
import pytest

from skdp.audit import membership_inference
from skdp.synthesis import DPTableSynthesizer

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")


def make_frame(n_rows):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 8, n_rows)
    return pd.DataFrame(
        {"a": a, "b": (a + rng.integers(0, 2, n_rows)) % 8, "c": rng.random(n_rows)}
    )


def synthesizer(epsilon):
    return DPTableSynthesizer(epsilon, bounds={"a": (0, 7), "b": (0, 7), "c": (0, 1)})


def test_the_likelihood_is_that_of_the_model():
    frame = make_frame(4000)
    model = synthesizer(50.0).fit(frame)
    independent = frame.assign(b=np.random.default_rng(1).permutation(frame["b"]))
    assert model.score(frame) > model.score(independent) + 0.5
    assert abs(model.score(model.sample(4000, 0)) - model.score(frame)) < 0.6
    scores = model.score_samples(frame)
    assert np.array_equal(scores[:7], model.score_samples(frame.iloc[:7]))
    # The probabilities of all cells of one column add up to 1.
    one = DPTableSynthesizer(50.0, bounds=(0, 7), random_state=0).fit(frame[["a"]])
    cells = pd.DataFrame({"a": range(8)})
    assert abs(np.exp(one.score_samples(cells)).sum() - 1.0) < 0.01


def test_wrong_rows_are_refused():
    model = synthesizer(5.0).fit(make_frame(500))
    with pytest.raises(ValueError, match="numbers"):
        model.score_samples(make_frame(5).assign(a="x"))


def test_members_are_not_found_at_small_epsilon():
    frame = make_frame(300)
    attack = membership_inference(
        synthesizer(0.5), frame, np.zeros(300), attack="loss", random_state=0
    )
    assert abs(attack.auc.value - 0.5) < 0.15
    with pytest.raises(ValueError, match="likelihood"):
        membership_inference(synthesizer(0.5), frame, np.zeros(300), access="parameters")
