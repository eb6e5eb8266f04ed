"""DPSGDClassifier: its limits, its ledger, its bad input and what it must not tell."""

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression, SGDClassifier

from skdp import BudgetExceededError, ChunkedArray, DPSGDClassifier, PrivacyAccountant

LOSSES = ("log_loss", "hinge", "squared_hinge", "modified_huber")
DELTA = 1e-5


def make_table(n=1000, d=5, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ rng.normal(size=(d, n_classes)) * 4 + rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


def weights_of(model):
    return np.column_stack([model.coef_, model.intercept_])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("alpha", [1e-2, 1e-3])
def test_without_noise_the_optimum_of_logistic_regression(alpha, n_classes):
    X, y = make_table(n_classes=n_classes)
    model = DPSGDClassifier(1e10, alpha=alpha, max_grad_norm=10.0).fit(X, y)
    optimum = LogisticRegression(C=1 / (alpha * len(y)), tol=1e-10, max_iter=10_000).fit(X, y)
    one, other = weights_of(model), weights_of(optimum)
    if n_classes > 2:
        # The softmax does not change if all intercepts do.
        one[:, -1] -= one[:, -1].mean()
        other[:, -1] -= other[:, -1].mean()
    np.testing.assert_allclose(one, other, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "modified_huber"])
def test_without_noise_no_worse_than_sgd(loss, n_classes):
    X, y = make_table(n_classes=n_classes)
    alpha = 1e-2
    model = DPSGDClassifier(1e10, alpha=alpha, max_grad_norm=30.0, loss=loss).fit(X, y)
    peer = SGDClassifier(loss=loss, alpha=alpha, tol=None, max_iter=200, average=True)
    peer.set_params(random_state=0, learning_rate="invscaling", eta0=0.1).fit(X, y)

    def objective(fitted):
        scores = fitted.decision_function(X).reshape(len(y), -1)
        signs = np.where(y[:, None] == np.arange(n_classes), 1, -1)[:, -scores.shape[1] :]
        z = signs * scores
        value = {"hinge": np.maximum(1 - z, 0), "squared_hinge": np.maximum(1 - z, 0) ** 2}
        value["modified_huber"] = np.where(z < -1, -4 * z, value["squared_hinge"])
        return value[loss].sum() / len(y) + 0.5 * alpha * np.sum(fitted.coef_**2)

    assert objective(model) <= objective(peer) + 1e-3


def test_weighted_classes_by_rows_repeated():
    X, y = make_table()
    repeated = np.concatenate([np.arange(len(y)), *2 * [np.flatnonzero(y == 1)]])
    settings = {"alpha": 1e-2, "max_grad_norm": 30.0}
    weighted = DPSGDClassifier(1e10, class_weight={1: 3.0}, **settings).fit(X, y)
    # The mean is over rows, not over weights: the penalty counts less.
    share = len(repeated) / len(y)
    plain = DPSGDClassifier(1e10, **settings | {"alpha": 1e-2 / share})
    plain.fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weights_of(weighted), weights_of(plain), atol=1e-3)


def test_containers_and_dtypes_hold_the_same_rows(tmp_path):
    X, y = make_table()
    X = np.where(np.abs(X) < 0.2, 0.0, X).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    tables = {
        "float32": X,
        "float64": X.astype(np.float64),
        "csr": csr_array(X),
        "memmap": np.load(tmp_path / "rows.npy", mmap_mode="r"),
        "chunks": ChunkedArray([X[:300], X[300:]]),
    }
    for settings in ({}, {"sampling": "poisson", "max_iter": 2}):
        model = DPSGDClassifier(random_state=0, **settings)
        fits = {name: clone(model).fit(table, y) for name, table in tables.items()}
        for fitted in fits.values():
            # Rounding may move a sum over an edge of the grid, 2**-20 of the noise.
            np.testing.assert_allclose(fitted.coef_, fits["float64"].coef_, atol=1e-3)
            assert fitted.score(X, y) == pytest.approx(fits["float64"].score(X, y), abs=0.01)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize(
    "settings",
    [
        {"delta": DELTA},
        {"delta": DELTA, "sampling": "poisson"},
        {"delta": 0.0},
        {"delta": 0.0, "sampling": "without_replacement"},
        {"delta": DELTA, "batch_size": 100, "max_iter": 2, "optimizer": "adam"},
        {"delta": DELTA, "optimizer": "sgd", "learning_rate": "linear", "average": False},
    ],
    ids=str,
)
def test_settings_and_output_do_not_depend_on_values(settings, capsys):
    """Tables of one shape: the same attributes but for the weights, the same lines printed.

    With automatic settings and centered rows, the penalty depends on noisy class frequencies.
    """
    released = {"coef_", "intercept_"}
    if settings == {"delta": DELTA}:
        released |= {"alpha_", "eta0_", "momentum_"}
    lines, public = [], []
    for seed, scale in ((0, 1.0), (1, 1e6), (2, 0.0)):
        X, y = make_table(300, seed=seed)
        y[:2] = 0, 1
        model = DPSGDClassifier(2.0, verbose=1, **settings).fit(scale * X, y)
        lines.append(capsys.readouterr().out)
        names = [n for n in vars(model) if n.endswith("_") and n not in released]
        public.append({name: str(getattr(model, name)) for name in names})
        assert np.isfinite(weights_of(model)).all()
    assert lines[0] == lines[1] == lines[2]
    assert public[0] == public[1] == public[2]
    assert 3 <= len(lines[0].splitlines()) <= 12
    last = lines[0].splitlines()[-1]
    assert "epsilon 2 of 2" in last and f"epoch {model.n_iter_} of {model.n_iter_}" in last
    assert "loss" not in lines[0]


def test_verbose_counts_epochs(capsys):
    X, y = make_table(200)
    DPSGDClassifier(max_iter=25, verbose=2).fit(X, y)
    assert len(capsys.readouterr().out.splitlines()) == 1 + 25
    DPSGDClassifier(max_iter=25).fit(X, y)
    assert capsys.readouterr().out == ""


class Recorder:
    """A callback of scikit-learn that asks for everything, and to stop."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        self.told.append(("setup", context.max_subtasks))

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, y, metadata, fitted_estimator):
        assert X is y is metadata is fitted_estimator is None
        self.told.append(("begin", context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        assert X is y is fitted_estimator is None
        self.told.append((context.task_name, context.task_id, metadata))
        return True


def test_callbacks_are_told_epochs_and_epsilon():
    pytest.importorskip("sklearn.callback")
    others = {}
    for seed, sampling in ((0, "full"), (1, "poisson"), (2, "poisson")):
        X, y = make_table(200, seed=seed)
        recorder = Recorder()
        model = DPSGDClassifier(max_iter=3, sampling=sampling).set_callbacks(recorder)
        clone(model).fit(X, y)
        epochs = [one for one in recorder.told if one[0] == "epoch"]
        assert [number for _, number, _ in epochs] == [0, 1, 2]
        spent = [metadata["epsilon"] for _, _, metadata in epochs]
        assert spent == sorted(spent) and spent[0] > 0 and spent[2] == pytest.approx(1, rel=1e-2)
        begun = [("setup", None), ("begin", "fit", None), ("begin", "run", 3)]
        assert recorder.told[:3] == begun and recorder.told[-1] == "teardown"
        assert recorder.told.count(("begin", "epoch", 0)) == 3
        whole = {"epsilon": pytest.approx(1.0), "delta": 1e-6}
        assert recorder.told[-3:-1] == [("run", 0, whole), ("fit", 0, whole)]
        assert recorder.told == others.setdefault(sampling, recorder.told)


def test_a_callback_that_fails_leaves_the_ledger_right():
    pytest.importorskip("sklearn.callback")

    class Failing(Recorder):
        def __init__(self, place):
            super().__init__()
            self.place = place

        def setup(self, estimator, context):
            if self.place == "setup":
                raise RuntimeError

        def on_fit_task_end(self, estimator, context):
            raise RuntimeError

    X, y = make_table(200)
    for place, charges in (("setup", 0), ("epoch", 1)):
        accountant = PrivacyAccountant(10.0, 0.1)
        model = DPSGDClassifier(max_iter=3, accountant=accountant).set_callbacks(Failing(place))
        with pytest.raises(RuntimeError):
            model.fit(X, y)
        assert len(accountant.charges) == charges
        assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize(
    "settings",
    [
        {"max_iter": 0},
        {"max_iter": 1.5},
        {"batch_size": 101},
        {"batch_size": 0},
        {"sampling": "full", "batch_size": 10},
        {"sampling": "shuffled"},
        {"sampling": "poisson", "delta": 0.0},
        {"sampling": "without_replacement"},
        {"loss": "log"},
        {"penalty": "l1"},
        {"alpha": -1.0},
        {"alpha": "small"},
        {"max_grad_norm": 0.0},
        {"max_grad_norm": 1e60},
        {"momentum": 1.0},
        {"optimizer": "lbfgs"},
        {"learning_rate": "adaptive"},
        {"eta0": 0.0},
        {"power_t": -1.0},
        {"average": 10},
        {"projection_radius": -1.0},
        {"data_norm": 0.0},
        {"intercept_scaling": float("nan")},
        {"class_weight": "even"},
        {"class_weight": {7: 1.0}},
        {"class_weight": {0: -1.0}},
        {"partial_fit_rows": "new"},
        {"verbose": -1},
        {"classes": [0]},
        {"classes": [1, 2]},
        {"epsilon": 1e-90, "delta": 0.0},
    ],
    ids=str,
)
def test_bad_settings_charge_nothing(settings):
    X, y = make_table(100)
    accountant = PrivacyAccountant(100.0, 0.1)
    model = DPSGDClassifier(accountant=accountant, **settings)
    with pytest.raises(ValueError):
        model.fit(X, y)
    with pytest.raises(ValueError):
        model.partial_fit(X, y, classes=settings.get("classes", [0, 1]))
    assert not accountant.charges and not [n for n in vars(model) if n.endswith("_")]


@pytest.mark.quick_cases(every=8)
@pytest.mark.parametrize("delta", [DELTA, 0.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_odd_tables_are_fitted_and_stay_finite(loss, delta):
    X, _ = make_table(50)
    tables = [
        X[:1],
        np.zeros((20, 3)),
        np.full((20, 3), 1e300),
        X * np.logspace(-300, 300, 50)[:, None],
        csr_array((20, 3)),
    ]
    for table in tables:
        for epsilon, settings in ((1e-6, {}), (1.0, {"eta0": 1e50, "alpha": 1e50}), (1e4, {})):
            model = DPSGDClassifier(epsilon, delta=delta, loss=loss, classes=[0, 1, 2])
            model.set_params(**settings).fit(table, np.zeros(table.shape[0], dtype=int))
            assert np.isfinite(weights_of(model)).all()


@pytest.mark.parametrize("delta", [DELTA, 0.0])
def test_absent_classes_are_fitted_like_others(delta):
    X, y = make_table(200)
    model = DPSGDClassifier(delta=delta, classes=[0, 1, 5]).fit(X, y)
    assert model.coef_.shape == (3, 5) and list(model.classes_) == [0, 1, 5]
    assert model.predict_proba(X).shape == (200, 3)


def test_partial_fit_goes_on_from_what_was_released():
    X, y = make_table(2000)
    settings = {"alpha": 1e-2, "max_grad_norm": 10.0}
    model = DPSGDClassifier(1e10, **settings).partial_fit(X, y, classes=[0, 1])
    whole = DPSGDClassifier(1e10, **settings).fit(X, y)
    np.testing.assert_allclose(weights_of(model), weights_of(whole), atol=1e-3)
    still = model.set_params(max_iter=1, eta0=1e-50, average=False)
    before = weights_of(model)
    still.partial_fit(X[:100], y[:100])
    np.testing.assert_allclose(weights_of(still), before, rtol=1e-12)
    assert still.n_partial_fits_ == 2 and "call 2 of partial_fit" in still.privacy_.sampler


def test_partial_fit_takes_one_class_at_a_time():
    X, y = make_table(600)
    model = DPSGDClassifier(2.0, classes=[0, 1])
    for label in (0, 1):
        model.partial_fit(X[y == label], y[y == label])
    assert np.isfinite(weights_of(model)).all()


def test_partial_fit_checks_values_whatever_the_setting():
    X, y = make_table(100)
    accountant = PrivacyAccountant(100.0, 0.1)
    model = DPSGDClassifier(classes=[0, 1], accountant=accountant).partial_fit(X, y)
    released = weights_of(model)
    with config_context(assume_finite=True), pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.where(X == X[3], np.nan, X), y)
    assert len(accountant.charges) == 1
    np.testing.assert_array_equal(weights_of(model), released)


def test_partial_fit_needs_classes_that_agree():
    X, y = make_table(100)
    accountant = PrivacyAccountant(100.0, 0.1)
    model = DPSGDClassifier(accountant=accountant)
    with pytest.raises(ValueError, match="first call"):
        model.partial_fit(X, y)
    declared = DPSGDClassifier(classes=[0, 1], accountant=accountant)
    with pytest.raises(ValueError, match="differ"):
        declared.partial_fit(X, y, classes=[0, 1, 2])
    assert not accountant.charges
    model.partial_fit(X, y, classes=[1, 0])
    released = weights_of(model)
    for arguments, match in (
        ((X, y, [0, 1, 2]), "differ"),
        ((X[:, :-1], y), "features"),
        ((X, y + 1), "not among"),
    ):
        with pytest.raises(ValueError, match=match):
            model.partial_fit(*arguments)
    np.testing.assert_array_equal(weights_of(model), released)
    assert len(accountant.charges) == 1 and model.n_features_in_ == 5


def test_calls_on_any_rows_add_up():
    X, y = make_table(300)
    accountant = PrivacyAccountant(2.0, 0.1)
    model = DPSGDClassifier(0.75, classes=[0, 1], accountant=accountant)
    for _ in range(2):
        model.partial_fit(X, y)
    assert accountant.epsilon_spent == 1.5
    released = weights_of(model)
    with pytest.raises(BudgetExceededError):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(weights_of(model), released)
    assert model.n_partial_fits_ == 2 and len(accountant.charges) == 2


@pytest.mark.parametrize(("relation", "worst"), [("add_remove", 0.75), ("replace_one", 1.5)])
def test_calls_on_disjoint_rows_are_parts(relation, worst):
    X, y = make_table(300)
    accountant = PrivacyAccountant(2.0, 0.1, relation=relation)
    model = DPSGDClassifier(
        0.75, classes=[0, 1], partial_fit_rows="disjoint", accountant=accountant
    )
    for part in range(3):
        model.partial_fit(X[part::3], y[part::3])
        assert model.accountant is accountant
    assert accountant.epsilon_spent == worst
    assert [spend.part.index for spend in accountant.charges] == [0, 1, 2]
    assert "declared disjoint" in model.privacy_.sampler


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_starts_a_partition_of_its_own(copied):
    """Two copies may see one row in different calls, so that their parts must not be matched."""
    X, y = make_table(300)
    accountant = PrivacyAccountant(10.0, 0.1)
    model = DPSGDClassifier(
        0.5, classes=[0, 1], partial_fit_rows="disjoint", accountant=accountant
    ).partial_fit(X[:100], y[:100])
    other = copied(model)
    model.set_params(epsilon=1.0).partial_fit(X[100:200], y[100:200])
    other.set_params(epsilon=2.0).partial_fit(X[200:], y[200:])
    model.set_params(epsilon=2.0).partial_fit(X[200:], y[200:])
    names = {spend.part.partition for spend in accountant.charges}
    assert len(names) == 2
    # Rows from 200 on were used by both, for 2 each.
    assert accountant.epsilon_spent >= 4.0


def test_a_new_fit_ends_a_partition():
    X, y = make_table(200)
    accountant = PrivacyAccountant(10.0, 0.1)
    model = DPSGDClassifier(1.0, partial_fit_rows="disjoint", accountant=accountant)
    model.partial_fit(X, y, classes=[0, 1]).fit(X, y).partial_fit(X, y)
    assert accountant.epsilon_spent == 3.0 and model.n_partial_fits_ == 1


def test_probabilities():
    X, y = make_table(300, n_classes=3)
    for loss in LOSSES:
        for targets in (y, y > 0):
            model = DPSGDClassifier(5.0, loss=loss).fit(X, targets)
            if loss in ("hinge", "squared_hinge"):
                assert not hasattr(model, "predict_proba")
                continue
            probabilities = model.predict_proba(X)
            np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
            np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities)
            best = model.classes_[probabilities.argmax(axis=1)]
            assert np.mean(best == model.predict(X)) > 0.9
    model.coef_[:], model.intercept_[:] = 0.0, -5.0
    np.testing.assert_allclose(model.predict_proba(X)[:, 0], 1.0)


def test_automatic_settings_follow_what_is_public():
    X, y = make_table(400)
    full = DPSGDClassifier(random_state=0).fit(X, y)
    assert full.sampling_ == "full" and full.batch_size_ == 400
    assert DPSGDClassifier(8.0).fit(X, y).alpha_ < full.alpha_
    batches = DPSGDClassifier(batch_size=50, max_iter=3).fit(X, y)
    assert (batches.sampling_, batches.batch_size_, batches.n_iter_) == ("poisson", 50, 3)
    assert "each of 24 steps" in batches.privacy_.sampler
    pure = DPSGDClassifier(delta=0.0, batch_size=50).fit(X, y)
    assert pure.sampling_ == "without_replacement" and "50 of 400" in pure.privacy_.sampler
    assert DPSGDClassifier(penalty=None).fit(X, y).alpha_ == 0.0
    wide = DPSGDClassifier(data_norm=10.0, random_state=0).fit(X, y)
    assert wide.max_grad_norm_ == pytest.approx(10 * full.max_grad_norm_)
    assert wide.eta0_ == pytest.approx(full.eta0_ / 100)


def test_settings_scale_with_the_rows():
    """Rows ten times as long under ten times the data_norm: the same predictions."""
    X, y = make_table(2000)
    one = DPSGDClassifier(2.0, random_state=0).fit(X, y)
    ten = DPSGDClassifier(2.0, random_state=0, data_norm=10.0).fit(10 * X, y)
    np.testing.assert_allclose(one.coef_, 10 * ten.coef_, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(one.intercept_, ten.intercept_, rtol=1e-2, atol=1e-2)


def test_digits_by_softmax():
    X, y = load_digits(return_X_y=True)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = [DPSGDClassifier(4.0, delta=DELTA).fit(X, y).score(X, y) for _ in range(3)]
    assert np.mean(scores) > 0.9


def test_unscaled_rows_still_teach_something():
    X, y = make_classification(4000, 20, class_sep=2.0, random_state=0)
    model = DPSGDClassifier(1.0, data_norm=8.0).fit(X, y)
    assert model.score(X, y) > 0.85
