"""DPSGDClassifier: its limits, its ledger, its bad input and what it must not tell."""

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression, SGDClassifier

from skdp import BudgetExceededError, DPSGDClassifier, PrivacyAccountant
from skdp._losses import (
    HuberLoss,
    ModifiedHuberLoss,
    OneVersusRestLoss,
    SquaredHingeLoss,
    SquaredLoss,
)
from skdp.utils import ChunkedArray

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")

LOSSES = ("log_loss", "hinge", "squared_hinge", "modified_huber")
DELTA = 1e-5
# What delta adds to the audit's level must be less than the level.
AUDIT_DELTA = 1e-10


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


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        (SquaredHingeLoss(), np.array([0.0, 1.0] * 20)),
        (ModifiedHuberLoss(), np.array([0.0, 1.0] * 20)),
        (OneVersusRestLoss(ModifiedHuberLoss(), 3), np.arange(40) % 3),
        (SquaredLoss(), np.linspace(-2, 2, 40)),
        (HuberLoss(0.7), np.linspace(-2, 2, 40)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_residuals_are_derivatives(loss, y):
    scores = np.random.default_rng(0).normal(size=(40, *loss.weights_shape)) * 2
    step, residual = 1e-6, loss.residual(scores, y)
    for place in np.ndindex(scores.shape):
        moved = scores.copy()
        moved[place] += step
        numeric = (loss.value(moved, y) - loss.value(scores, y)) / step
        assert residual[place] == pytest.approx(numeric, abs=1e-4)
        steeper = abs(loss.residual(moved, y)[place] - residual[place])
        assert steeper <= loss.curvature_bound * step * (1 + 1e-6)


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
    """Tables of one shape: the same attributes but for the weights, the same lines printed."""
    lines, public = [], []
    for seed, scale in ((0, 1.0), (1, 1e6), (2, 0.0)):
        X, y = make_table(300, seed=seed)
        y[:2] = 0, 1
        model = DPSGDClassifier(2.0, verbose=1, **settings).fit(scale * X, y)
        lines.append(capsys.readouterr().out)
        names = [n for n in vars(model) if n.endswith("_") and n not in ("coef_", "intercept_")]
        public.append({name: str(getattr(model, name)) for name in names})
        assert np.isfinite(weights_of(model)).all()
    assert lines[0] == lines[1] == lines[2]
    assert public[0] == public[1] == public[2]
    assert 2 <= len(lines[0].splitlines()) <= 11
    last = lines[0].splitlines()[-1]
    assert "epsilon 2 of 2" in last and f"epoch {model.n_iter_} of {model.n_iter_}" in last
    assert "loss" not in lines[0]


def test_verbose_counts_epochs(capsys):
    X, y = make_table(200)
    DPSGDClassifier(max_iter=25, verbose=2).fit(X, y)
    assert len(capsys.readouterr().out.splitlines()) == 25
    DPSGDClassifier(max_iter=25).fit(X, y)
    assert capsys.readouterr().out == ""


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
        {"class_weight": "balanced"},
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
    assert not accountant.spends and not [n for n in vars(model) if n.endswith("_")]


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


@pytest.mark.parametrize("sampling", ["full", "poisson"])
def test_interrupt_midway(sampling, monkeypatch):
    X, y = make_table(200)
    accountant = PrivacyAccountant(10.0, 0.1)
    model = DPSGDClassifier(1.0, sampling=sampling, accountant=accountant).fit(X, y)
    assert len(accountant.spends) == 1

    def interrupt(self, taken):
        if taken == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("skdp.linear_model._dp_sgd._Progress.after_step", interrupt)
    before = weights_of(model)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y)
    # What was released stays; the run that was interrupted is charged.
    np.testing.assert_array_equal(weights_of(model), before)
    assert len(accountant.spends) == 2 and accountant.epsilon_spent == 2.0
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]
    assert len(accountant.spends) == 3 and accountant.epsilon_spent == 3.0
    assert accountant.verify()


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


def test_partial_fit_needs_classes_that_agree():
    X, y = make_table(100)
    accountant = PrivacyAccountant(100.0, 0.1)
    model = DPSGDClassifier(accountant=accountant)
    with pytest.raises(ValueError, match="first call"):
        model.partial_fit(X, y)
    declared = DPSGDClassifier(classes=[0, 1], accountant=accountant)
    with pytest.raises(ValueError, match="differ"):
        declared.partial_fit(X, y, classes=[0, 1, 2])
    assert not accountant.spends
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
    assert len(accountant.spends) == 1 and model.n_features_in_ == 5


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
    assert model.n_partial_fits_ == 2 and len(accountant.spends) == 2


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
    assert [spend.part.index for spend in accountant.spends] == [0, 1, 2]
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
    names = {spend.part.partition for spend in accountant.spends}
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
    full = DPSGDClassifier().fit(X, y)
    assert full.sampling_ == "full" and full.batch_size_ == 400
    assert DPSGDClassifier(8.0).fit(X, y).alpha_ < full.alpha_
    batches = DPSGDClassifier(batch_size=50, max_iter=3).fit(X, y)
    assert (batches.sampling_, batches.batch_size_, batches.n_iter_) == ("poisson", 50, 3)
    assert "each of 24 steps" in batches.privacy_.sampler
    pure = DPSGDClassifier(delta=0.0, batch_size=50).fit(X, y)
    assert pure.sampling_ == "without_replacement" and "50 of 400" in pure.privacy_.sampler
    assert DPSGDClassifier(penalty=None).fit(X, y).alpha_ == 0.0
    wide = DPSGDClassifier(data_norm=10.0).fit(X, y)
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


def audit_bound(included, guesses, delta, level=1e-6):
    """Bound epsilon from below by one run with canaries (Steinke, Nasr and Jagielski 2023).

    Of k guesses by an (epsilon, 0)-DP mechanism the number that is right is dominated by a
    binomial with probability e^epsilon / (1 + e^epsilon); delta adds at most 2 k delta times the
    largest, over i, of P(right - i <= B < right) / i to a probability.
    """
    taken = guesses != 0
    k, right = taken.sum(), np.sum(guesses[taken] == np.where(included[taken], 1, -1))
    lower = 0.0
    for epsilon in np.arange(0.0, 20.0, 0.01):
        p = 1.0 / (1.0 + np.exp(-epsilon))
        i = np.arange(1, k + 1)
        near = binom.cdf(right - 1, k, p) - binom.cdf(right - 1 - i, k, p)
        tail = binom.sf(right - 1, k, p) + 2 * len(included) * delta * np.max(near / i, initial=0)
        if tail <= level:
            lower = epsilon
        else:
            break
    return lower


def canary_bound(sampling, epsilon, n_canaries=400):
    """Audit one run: each canary has a feature of its own and the wrong label."""
    rng = np.random.default_rng(0)
    included = rng.random(n_canaries) < 0.5
    X = np.diag(np.where(included, 1.0, 0.0)) * 100.0
    y = np.ones(n_canaries, dtype=int)
    model = DPSGDClassifier(
        epsilon,
        delta=AUDIT_DELTA,
        sampling=sampling,
        classes=[0, 1],
        fit_intercept=False,
        alpha=0.0,
    )
    model.set_params(max_iter=20, batch_size="auto" if sampling == "full" else 100)
    score = model.fit(X, y).coef_[0]
    guesses = np.zeros(n_canaries, dtype=int)
    order = np.argsort(score)
    guesses[order[: n_canaries // 4]], guesses[order[-n_canaries // 4 :]] = -1, 1
    return audit_bound(included, guesses, AUDIT_DELTA)


@pytest.mark.parametrize("sampling", ["full", "poisson"])
def test_one_run_audit_stays_below_the_claim(sampling):
    # The bound exceeds the claim with probability 1e-6 at most.
    assert canary_bound(sampling, 2.0) <= 2.0


def test_one_run_audit_finds_a_lack_of_noise():
    assert canary_bound("full", 1e4) > 2.0
