"""What additive models learn, what they say about it, and what changes it afterwards."""

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score

import skdp
from skdp import DPAdditiveClassifier, DPAdditiveRegressor, PrivacyAccountant
from tests.gam._rows import BOUNDS, CATEGORIES, classifier, make_table, two_classes


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(("delta", "least"), [(1e-6, 0.83), (0.0, 0.78)])
def test_curves_are_learned(delta, least):
    # Averages over fits: the spread of one is below 0.01.
    X, y = two_classes()
    other, labels = two_classes(seed=1)
    scores = [classifier(delta=delta).fit(X, y).decision_function(other) for _ in range(3)]
    assert np.mean([roc_auc_score(labels, score) for score in scores]) > least


@pytest.mark.thorough
def test_several_classes():
    X, score, rng = make_table(6000)
    y = np.digitize(score + rng.normal(size=6000), [-1.5, 1.5])
    for delta, least in ((1e-6, 0.6), (0.0, 0.5)):
        model = classifier(2.0, delta=delta).fit(X, y)
        assert model.score(X, y) > least
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        np.testing.assert_array_equal(
            model.classes_[probabilities.argmax(axis=1)], model.predict(X)
        )
        # A table of two columns may have been chosen.
        n_terms = len(model.shape_functions_)
        assert n_terms >= 3
        assert model.intercept_.shape == (3,) and model.explain(X).shape == (6000, n_terms, 3)


@pytest.mark.thorough
@pytest.mark.parametrize("epsilon, least", [(1.0, 0.6), (4.0, 0.75), (8.0, 0.75)])
def test_weights_of_many_classes_are_kept(epsilon, least):
    """Fits score .84, .94 and .95 with a spread of .01; with a tenth of their weights .25 to .6."""
    X, y = load_digits(return_X_y=True)
    model = DPAdditiveClassifier(epsilon, delta=1e-5, bounds=(0, 16), random_state=0).fit(X, y)
    assert model.score(X, y) > least


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 30.0])
def test_a_small_table_is_not_taken_for_chance_where_noise_is_little(epsilon):
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y, bounds = X[order], y[order], (X.min(axis=0), X.max(axis=0))
    model = DPAdditiveClassifier(epsilon, delta=1e-5, bounds=bounds, random_state=0)
    # Two thirds are of one class; without a bound on what is chance .62 at epsilon = 30.
    assert model.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.85


def test_columns_that_tell_nothing_are_not_believed():
    """Noise of 200 cells and the rows' own; all kept, R² is -.25."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (1500, 20)), rng.beta(2, 5, 1500)
    terms = {"bounds": (-1, 1), "target_bounds": (0, 1), "delta": 1e-5}
    fits = [DPAdditiveRegressor(2.0, **terms, random_state=seed).fit(X, y) for seed in range(8)]
    other, targets = rng.uniform(-1, 1, (3000, 20)), rng.beta(2, 5, 3000)
    # The mean of ten fits is -.020, with a spread of a fit of .013.
    assert np.mean([fit.score(other, targets) for fit in fits]) > -0.03


def test_probabilities_are_calibrated():
    X, y = two_classes(20_000)
    model = classifier(4.0).fit(X, y)
    other, score, _ = make_table(20_000, seed=1)
    p, truth = model.predict_proba(other)[:, 1], expit(score)
    # Sums of curves are not the truth's in the clipped loss's units: it is 0.025 off at most.
    for low in np.arange(0.0, 1.0, 0.1):
        inside = (p >= low) & (p < low + 0.1)
        assert truth[inside].mean() == pytest.approx(p[inside].mean(), abs=0.04)


def test_regression_and_its_bounds():
    X, score, rng = make_table(8000)
    y = score + 0.3 * rng.normal(size=8000)
    terms = {"bounds": BOUNDS, "categories": CATEGORIES, "target_bounds": (-5.0, 5.0)}
    model = DPAdditiveRegressor(2.0, **terms).fit(X, y)
    assert model.score(X, y) > 0.9
    narrow = DPAdditiveRegressor(2.0, **terms | {"target_bounds": (0.0, 1.0)}).fit(X, y)
    assert narrow.predict(X).min() >= 0.0 and narrow.predict(X).max() <= 1.0
    # Targets are clipped, so that a single one has no more say than another.
    far = np.where(np.arange(8000) == 0, 1e300, y)
    seeded = DPAdditiveRegressor(2.0, random_state=0, **terms)
    one, two = (clone(seeded).fit(X, t).predict(X) for t in (np.clip(far, -5, 5), far))
    np.testing.assert_array_equal(one, two)


def two_columns_together(n=6000):
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.uniform(-1, 1, size=(n, 2)), rng.integers(0, 3, size=n)])
    return X, X[:, 0] * X[:, 1] + 0.3 * (X[:, 2] == 1) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("interactions", [1, [(1, 0)]])
def test_a_pair_is_found_and_learned(interactions):
    X, y = two_columns_together()
    terms = {"bounds": BOUNDS, "categories": CATEGORIES, "target_bounds": (-1.5, 1.5)}
    alone = DPAdditiveRegressor(4.0, interactions=0, **terms).fit(X, y)
    model = DPAdditiveRegressor(4.0, interactions=interactions, **terms).fit(X, y)
    assert model.score(X, y) > alone.score(X, y) + 0.4
    pair = model.shape_functions_[-1]
    assert pair.name == "x0 x x1" and pair.features == (0, 1)
    assert pair.values.shape == tuple(map(len, pair.edges)) == pair.counts.shape
    parts = model.explain(X)
    assert parts.shape == (len(y), 4)
    np.testing.assert_allclose(
        np.clip(parts.sum(axis=1) + model.intercept_, -1.5, 1.5), model.predict(X)
    )


@pytest.mark.thorough
def test_pairs_of_labels_and_with_delta_0():
    X, y = two_classes(3000)
    model = classifier(4.0, delta=0.0, interactions=[("a", "c")])
    with pytest.raises(ValueError, match="no column"):
        model.fit(X, y)
    model.set_params(interactions=[(0, 2), (2, 1)]).fit(X, y)
    assert [shape.features for shape in model.shape_functions_[3:]] == [(0, 2), (1, 2)]
    for interactions in (3, "x", [(0, 0)], [(0, 1, 2)], [(0, 2), (2, 0)], -1, 2.5):
        accountant = PrivacyAccountant(10.0, 1e-3)
        with pytest.raises(ValueError):
            model.set_params(interactions=interactions, accountant=accountant).fit(X, y)
        assert accountant.charges == []
    with pytest.raises(ValueError, match="monotonic_cst"):
        classifier(interactions=[(0, 1)], monotonic_cst={0: 1}).fit(X, y)
    assert len(classifier(interactions="auto").fit(X, y).shape_functions_) == 3
    # Enough rows for a choice, which needs a positive delta.
    numbers = {"bounds": BOUNDS, "categories": CATEGORIES, "target_bounds": (0, 1)}
    regressor = DPAdditiveRegressor(4.0, delta=0.0, interactions="auto", **numbers)
    assert len(regressor.fit(X, y).shape_functions_) == 3


@pytest.mark.thorough
def test_columns_of_a_small_table_are_not_lost_in_noise():
    # n mu is 27, and a count's noise is larger than n: one bin a column would give an AUC of 1/2.
    # A fit's has a mean of 0.616 and a spread of 0.052: below 0.57 falls the mean of 40 less than
    # once in 1e7.
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 6))
    y = (X[:, :4].sum(axis=1) + rng.normal(size=3000) > 2.0).astype(int)
    scores = []
    for seed in range(40):
        model = DPAdditiveClassifier(0.1, bounds=(0, 1), random_state=seed).fit(X[:1000], y[:1000])
        scores.append(roc_auc_score(y[1000:], model.decision_function(X[1000:])))
    assert np.mean(scores) > 0.57


def test_terms_add_up_to_the_score():
    X, y = two_classes()
    model = classifier().fit(X, y)
    parts = model.explain(X)
    np.testing.assert_allclose(parts.sum(axis=1) + model.intercept_, model.decision_function(X))
    for shape in model.shape_functions_:
        assert abs(np.average(shape.values, weights=shape.counts)) < 1e-9
        assert shape.counts.min() >= 0.0
    assert model.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_monotone_curves(sign):
    X, y = two_classes()
    model = classifier(monotonic_cst={0: sign}).fit(X, y)
    steps = np.diff(model.shape_functions_[0].values[:-1])
    assert (sign * steps >= 0).all()
    # The other columns' curves are those of the same release.
    one, two = (
        classifier(monotonic_cst=cst, random_state=0).fit(X, y) for cst in (None, [1, 0, None])
    )
    np.testing.assert_array_equal(one.shape_functions_[1].values, two.shape_functions_[1].values)
    with pytest.raises(ValueError, match="two classes"):
        classifier(monotonic_cst={0: 1}).fit(X, np.arange(len(y)) % 3)


def test_an_edit_is_a_copy():
    X, y = two_classes()
    model = classifier().fit(X, y)
    before = model.decision_function(X)
    without = model.edit("x0", 0.0)
    np.testing.assert_array_equal(model.decision_function(X), before)
    np.testing.assert_allclose(
        without.decision_function(X), before - model.explain(X)[:, 0], atol=1e-9
    )
    assert without.feature_importances_[0] == 0.0 and without.privacy_ is model.privacy_
    assert model.edit(1, model.shape_functions_[1].values).predict(X).shape == y.shape
    for term, values in (("nothing", 0.0), (7, 0.0), (0, [1.0, 2.0]), (0, "a")):
        with pytest.raises(ValueError):
            model.edit(term, values)


def test_class_weights_shift_the_answer():
    X, y = two_classes()
    share = [
        classifier(4.0, class_weight={1: weight}).fit(X, y).predict(X).mean()
        for weight in (0.2, 1.0, 5.0)
    ]
    assert share[0] < share[1] < share[2]


def test_a_pickle_predicts_the_same():
    X, y = two_classes()
    model = classifier(accountant=PrivacyAccountant(10.0, 1e-3)).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.slow
def test_a_pickle_predicts_the_same_in_another_process(tmp_path):
    X, y = two_classes(500)
    model = classifier().fit(X, y)
    (tmp_path / "model").write_bytes(pickle.dumps((model, X)))
    script = "import pickle, sys; model, X = pickle.load(open('model', 'rb')); "
    script += "sys.stdout.buffer.write(pickle.dumps((model.predict_proba(X), model.explain(X))))"
    command = [sys.executable, "-c", script]
    environment = os.environ | {"PYTHONPATH": str(Path(skdp.__file__).parents[1])}
    result = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    for found, own in zip(
        pickle.loads(result.stdout), (model.predict_proba(X), model.explain(X)), strict=True
    ):
        np.testing.assert_array_equal(found, own)


class Recorder:
    """A callback of scikit-learn that asks for everything."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        self.told.append(context.max_subtasks)

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, y, metadata, fitted_estimator):
        assert X is y is metadata is fitted_estimator is None

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        assert X is y is fitted_estimator is None
        self.told.append(metadata)


def test_callbacks_are_told_steps_and_epsilon(capsys):
    pytest.importorskip("sklearn.callback")
    X, y = two_classes(3000)
    recorder = Recorder()
    model = classifier(verbose=1).set_callbacks(recorder).fit(X, y)
    _, *steps, run, whole, last = recorder.told
    spent = [step["epsilon"] for step in steps]
    assert len(spent) >= 10 and spent == sorted(spent) and last == "teardown"
    assert whole == run == steps[-1] == {"epsilon": pytest.approx(1.0), "delta": 1e-6}
    # How many steps the search for an optimum takes depends on the rows: nobody is told.
    recorder.told.clear()
    capsys.readouterr()
    model.set_params(delta=0.0).fit(X, y)
    assert recorder.told == [None, {"epsilon": 1.0, "delta": 0.0}, "teardown"]
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_steps_are_shown(capsys):
    X, y = two_classes(500)
    classifier(verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert 5 <= len(lines) <= 12 and lines[-1].endswith("epsilon 1 of 1 at delta 1e-06")
    classifier().fit(X, y)
    assert capsys.readouterr().out == ""


def test_nothing_warns_of_the_data():
    X, y = two_classes(300)
    X[0] = 1e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier().fit(X, y).predict_proba(X)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        *((1e-3, 1e-6), (1.0, 1e-6), (1e10, 1e-6), (1e-3, 0.0), (1.0, 0.0)),
        pytest.param(1e10, 0.0, marks=pytest.mark.slow),
    ],
)
def test_odd_tables_never_fail_after_the_charge(epsilon, delta):
    rng = np.random.default_rng(6)
    wide = rng.normal(size=(2, 30)) * 10.0 ** rng.integers(-300, 300, size=(2, 30))
    tables = [wide, np.full((3, 2), np.nan), np.full((1, 1), 7.0), np.zeros((40, 3))]
    for X in tables:
        y = np.arange(len(X)) % 2
        for model in (
            DPAdditiveClassifier(epsilon, delta=delta, classes=[0, 1]),
            DPAdditiveClassifier(epsilon, delta=delta, classes=[0, 1, 2]),
            DPAdditiveRegressor(epsilon, delta=delta, target_bounds=(0, 1e6)),
        ):
            model.set_params(interactions=2 if delta and X.shape[1] > 1 else 0)
            answers = model.fit(X, y).explain(X)
            assert np.isfinite(answers).all() and np.isfinite(model.feature_importances_).all()


def test_all_steps_spend_all_also_where_labels_are_found(capsys):
    X = pd.DataFrame({"s": pd.Series(["a", "b"] * 200, dtype="string")})
    model = DPAdditiveClassifier(verbose=1).fit(X, np.arange(400) % 2)
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert "epsilon 1 of 1 at delta 1e-06" in last and model.privacy_.epsilon == 1.0


@pytest.mark.parametrize("values", [np.arange(3.0), [np.nan, 0.0], "high", None])
def test_an_edit_of_another_shape_is_refused(values):
    X = np.arange(600)[:, None] % 3
    model = DPAdditiveClassifier(categories=[0, 1, 2], classes=[0, 1, 2]).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="numbers of shape"):
        model.edit(0, values)
    with pytest.raises(ValueError, match="term must be an index"):
        model.edit(True, 0.0)
    assert not model.edit(0, 0.0).shape_functions_[0].values.any()


class Secret:
    def __float__(self):
        raise RuntimeError("a secret")


def test_a_cell_tells_nothing_by_its_error():
    X = np.array([[1.0], [2.0], [Secret()]] * 20, dtype=object)
    with pytest.raises(ValueError, match="column 0 contains") as error:
        DPAdditiveClassifier(bounds=(0, 3)).fit(X, np.arange(60) % 2)
    assert error.value.__cause__ is None and "secret" not in str(error.value)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 2 has such strings")
def test_missing_strings_have_their_own_cell():
    column = np.array(["a", np.nan] * 2000, dtype=np.dtypes.StringDType(na_object=np.nan))
    model = DPAdditiveClassifier(epsilon=50.0, categories=[["a"]])
    model.fit(column[:, None], np.arange(4000) % 2)
    a, other, missing = model.shape_functions_[0].counts
    assert a > 1500 and missing > 1500 and other < 500
