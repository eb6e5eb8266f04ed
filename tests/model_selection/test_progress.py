"""Callbacks hear of stages: never of rows, models or the number of runs."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import DPGridSearchCV
from skdp.model_selection import _runs as runs
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


def heard(strategy, refit=True, inner=None):
    estimator = NoisyVote() if inner is None else inner
    name = "shift" if inner is None else "noisyvote__shift"
    search = DPGridSearchCV(
        estimator, {name: [0.0, 1.0]}, strategy=strategy, delta=1e-6, refit=refit
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


def test_the_number_of_runs_is_not_told(monkeypatch):
    told = []
    for count in (1, 9):
        monkeypatch.setattr(runs, "_number_of_runs", lambda mean, stream, count=count: count)
        told.append(heard("random_stopping", refit=False))
    assert told[0] == told[1]


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
