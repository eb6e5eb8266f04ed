"""Callbacks hear of stages: never of rows, models or the number of runs."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline

from skdp import DPGridSearchCV
from tests.model_selection.toys import NoisyVote

pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")


class Heard:
    """Notes all that a callback is told."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.told.append(("begin", context.task_name, context.max_subtasks))
        assert X is None and y is None and metadata is None and fitted_estimator is None

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.told.append(("end", context.task_name, hasattr(estimator, "privacy_")))
        assert X is None and y is None and metadata is None and fitted_estimator is None


def heard(strategy, refit=True, inner=None, **params):
    estimator = NoisyVote() if inner is None else inner
    name = "noisyvote__shift" if isinstance(estimator, Pipeline) else "shift"
    search = DPGridSearchCV(
        estimator, {name: [0.0, 1.0]}, strategy=strategy, delta=1e-6, refit=refit, **params
    )
    callback = Heard()
    search.set_callbacks(callback).fit(np.zeros((40, 1)), np.arange(40) % 2)
    return callback.told


@pytest.mark.parametrize("strategy", ["holdout", "random_stopping"])
def test_stages_are_told(strategy):
    assert heard(strategy) == [
        "setup",
        ("begin", "fit", 2),
        ("begin", "search", 0),
        ("end", "search", False),
        ("begin", "refit", 0),
        ("end", "refit", False),
        ("end", "fit", True),
        "teardown",
    ]


class CountedVote(NoisyVote):
    """Counts its fits."""

    __skdp_kind__ = "private"
    n_fits = 0

    def fit(self, X, y):
        type(self).n_fits += 1
        return super().fit(X, y)


def test_the_number_of_runs_is_not_told():
    """Eight equal numbers of runs have a probability of 2e-8."""
    told = []
    numbers = set()
    for _ in range(8):
        CountedVote.n_fits = 0
        told.append(heard("random_stopping", refit=False, inner=CountedVote(), mean_runs=10))
        numbers.add(CountedVote.n_fits)
    assert len(numbers) > 1
    assert all(each == told[0] for each in told)


def test_callbacks_inside_are_refused_and_not_called():
    pipe = make_pipeline(NoisyVote())
    if not hasattr(pipe, "set_callbacks"):
        pytest.skip("pipelines of this scikit-learn take no callbacks")
    callback = Heard()
    pipe.set_callbacks(callback)
    with pytest.raises(ValueError, match="learns"):
        heard("holdout", inner=pipe)
    assert not callback.told
    with pytest.raises(AssertionError):
        clone(pipe).fit(np.zeros((4, 1)), np.arange(4) % 2)
