"""Standard errors of an additive model's values, and explanations of its scores."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.gam._descent import Schedule, descend
from skdp.gam._standard_errors import IterateDrift, noise_gain
from tests._private import BAND_WIDTH, GaussianNoise

N = 4000


def make_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.uniform(17, 90, size=N),
            "job": pd.array(rng.choice(["works", "studies", "retired"], size=N), dtype="string"),
        },
        index=[f"p{i}" for i in range(N)],
    )
    score = 0.05 * (table["age"] - 50) + 1.5 * (table["job"] == "works").to_numpy(dtype=float)
    return table, score.to_numpy() + rng.logistic(size=N)


DECLARED = {"bounds": {"age": (17, 90)}, "categories": {"job": ["works", "studies", "retired"]}}


@pytest.fixture(scope="module")
def fitted():
    table, score = make_table()
    return DPAdditiveClassifier(1.0, **DECLARED, random_state=0).fit(table, score > 0)


def test_gain_is_that_of_the_steps():
    """The standard deviation of a linear filter is the norm of its responses to single steps."""
    schedule = Schedule(loss_smoothness=3.0, l2_reg_strength=0.1, penalty_to_noise=5.0)
    curvatures = np.array([0.0, 0.3, 2.5])
    stronger = 0.4

    def mean_of(impulse_step):
        drift = IterateDrift(schedule)
        step = iter(range(schedule.n_steps))

        def gradient(weights):
            drift.add(weights)
            return curvatures * weights + float(next(step) == impulse_step)

        mean, _ = descend(gradient, schedule, np.zeros(3), np.inf, penalty=lambda _: stronger)
        return mean, drift.value

    responses = [mean_of(step) for step in range(schedule.n_steps)]
    means, drifts = (np.linalg.norm(values, axis=0) for values in zip(*responses, strict=True))
    half = schedule.n_steps // 2
    last = Schedule(loss_smoothness=3.0, l2_reg_strength=stronger, penalty_to_noise=5.0)
    schedules = [schedule] * half + [last] * (schedule.n_steps - half)
    averaged = np.zeros(schedule.n_steps)
    averaged[-schedule.n_averaged :] = 1.0 / schedule.n_averaged
    np.testing.assert_allclose(noise_gain(curvatures, schedules, of_iterates=averaged), means)
    coefficients = IterateDrift(schedule).coefficients()
    np.testing.assert_allclose(
        noise_gain(curvatures, schedules, of_lookaheads=coefficients), drifts
    )
    assert coefficients.sum() == pytest.approx(0.0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_of_all_kinds_have_standard_errors(n_classes):
    table, score = make_table()
    y = np.digitize(score, [-1.0, 1.0][: n_classes - 1])
    model = DPAdditiveClassifier(1.0, interactions=[("age", "job")], **DECLARED).fit(table, y)
    for shape in model.shape_functions_:
        assert shape.standard_errors.shape == shape.values.shape
        assert (shape.standard_errors >= 0.0).all()
    edited = model.edit("age", 0.0)
    assert edited.shape_functions_[0].standard_errors is None
    assert edited.shape_functions_[1].standard_errors is not None


def test_without_steps_there_are_none():
    table, score = make_table()
    model = DPAdditiveClassifier(1.0, delta=0.0, **DECLARED).fit(table, score > 0)
    assert all(shape.standard_errors is None for shape in model.shape_functions_)


def test_they_are_in_units_of_the_target():
    table, score = make_table()
    errors = []
    for unit in (1.0, 1000.0):
        model = DPAdditiveRegressor(
            1.0, target_bounds=(-8 * unit, 8 * unit), **DECLARED, random_state=0
        )
        model.fit(table, unit * np.clip(score, -8, 8))
        errors.append(model.shape_functions_[0].standard_errors / unit)
    np.testing.assert_allclose(*errors, rtol=1e-3)


def test_bands_cover_the_values_without_noise(monkeypatch):
    """Of all cells of some fits; docs/benchmarks/bands.py measures it on real tables."""
    table, score = make_table()
    add = GaussianNoise.add

    def values_of(seed, model=DPAdditiveClassifier):
        return model(1.0, **DECLARED, random_state=seed).fit(table, score > 0).shape_functions_

    distances = []
    for seed in range(6):
        noisy = values_of(seed)
        with monkeypatch.context() as patch:
            patch.setattr(GaussianNoise, "add", lambda self, values, _: add(self, values, 0))
            exact = values_of(seed)
        for shape, target in zip(noisy, exact, strict=True):
            cells = slice(0, 3) if shape.kinds == ("label",) else slice(0, -1)
            scaled = (shape.values - target.values) / shape.standard_errors
            distances.append(scaled[cells])
    covered = np.mean(np.abs(np.concatenate(distances)) <= BAND_WIDTH)
    assert covered >= 0.85
    # Bands are of the size of the noise: they are not wide for the sake of coverage.
    assert np.sqrt(np.mean(np.concatenate(distances) ** 2)) > 0.2


def test_explanation_is_an_array_with_names(fitted):
    table, _ = make_table()
    explanation = fitted.explain(table[:9])
    array = np.asarray(explanation)
    assert type(array) is np.ndarray and explanation.names == ["age", "job"]
    assert explanation.shape == array.shape == (9, 2) and len(explanation) == 9
    assert explanation.dtype == array.dtype and explanation.ndim == 2
    np.testing.assert_array_equal([*explanation], array)
    np.testing.assert_array_equal(explanation[2:4, 1], array[2:4, 1])
    np.testing.assert_array_equal(explanation + 1.0, array + 1.0)
    np.testing.assert_array_equal(np.concatenate([explanation, explanation])[:9], array)
    np.testing.assert_allclose(
        explanation.sum(axis=1) + fitted.intercept_, fitted.decision_function(table[:9])
    )
    assert (explanation[:, 1] == 0.0).dtype == bool
    for other in (pickle.loads(pickle.dumps(explanation)), copy.deepcopy(explanation)):
        np.testing.assert_array_equal(other, array)
        assert other.names == explanation.names


def test_explanation_is_shown(fitted):
    table, _ = make_table()
    explanation = fitted.explain(table[:9])
    lines = repr(explanation).splitlines()
    assert lines[0] == "What 2 terms add to the scores of 9 rows, the first 5 shown"
    assert len(lines) == 7 and lines[2].startswith("p0") and "job" in lines[2]
    assert "object at 0x" not in repr(explanation)
    assert explanation._repr_html_().startswith('<div class="skdp-document">')


def test_values_are_in_the_selected_container(fitted):
    polars = pytest.importorskip("polars")
    table, _ = make_table()
    model = copy.copy(fitted)
    assert type(model.explain(table[:3]).values) is np.ndarray
    with config_context(transform_output="pandas"):
        frame = model.explain(table[:3]).values
    assert list(frame.columns) == ["age", "job"] and list(frame.index) == ["p0", "p1", "p2"]
    assert model.set_output(transform="polars") is model
    assert isinstance(model.explain(table[:3]).values, polars.DataFrame)
    assert isinstance(model.set_output().explain(table[:3]).values, polars.DataFrame)
    assert clone(model)._sklearn_output_config == {"transform": "polars"}
    with pytest.raises(ValueError, match="transform"):
        model.set_output(transform="table")


def test_explanation_of_several_classes():
    table, score = make_table()
    model = DPAdditiveClassifier(1.0, **DECLARED).fit(table, np.digitize(score, [-1.0, 1.0]))
    explanation = model.explain(table[:3])
    frame = explanation.to_pandas()
    assert explanation.shape == (3, 2, 3) and list(frame.columns)[:2] == ["age: 0", "age: 1"]
    np.testing.assert_array_equal(frame.to_numpy().reshape(3, 2, 3), explanation)
    assert "class" in repr(explanation).splitlines()[1]
