"""Every spend of an ordinary scikit-learn workflow is in the ledger, whoever ran it."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skdp import (
    BudgetExceededError,
    DPLogisticRegression,
    DPStandardScaler,
    LedgerError,
    PrivacyAccountant,
)
from skdp.mechanisms import GaussianMechanism

CV = KFold(2, shuffle=True, random_state=0)
GRID = {"dplogisticregression__C": [0.03, 0.1]}


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 3))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def make_private_pipeline(accountant, **params):
    return make_pipeline(
        DPStandardScaler(epsilon=0.3, bounds=(-1, 1), accountant=accountant),
        DPLogisticRegression(epsilon=0.5, delta=1e-6, accountant=accountant),
        **params,
    )


def counted(accountant):
    """Return the numbers of scalers and classifiers in the ledger, after checking the sum."""
    labels = [spend.label for spend in accountant.charges]
    scalers, classifiers = (labels.count(c.__name__) for c in (DPStandardScaler, Classifier))
    assert scalers + classifiers == len(labels)
    assert accountant.epsilon_spent == pytest.approx(0.3 * scalers + 0.5 * classifiers, rel=1e-15)
    assert accountant.delta_spent == pytest.approx(1e-6 * classifiers, rel=1e-15)
    accountant.verify()
    return scalers, classifiers


Classifier = DPLogisticRegression


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_grid_search_books_all_five_fits(table, path, backend, n_jobs):
    accountant = PrivacyAccountant(4.0, 1e-5, ledger=path)
    search = GridSearchCV(
        make_private_pipeline(accountant), GRID, cv=CV, n_jobs=n_jobs, error_score="raise"
    )
    with joblib.parallel_config(backend=backend):
        search.fit(*table)
    assert counted(accountant) == (5, 5)
    assert accountant.epsilon_spent == 4.0
    assert search.best_estimator_[-1].accountant is accountant


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_cross_validation_books_every_fold(table, path, backend, n_jobs):
    accountant = PrivacyAccountant(10.0, 1e-4, ledger=path)
    with joblib.parallel_config(backend=backend):
        cross_val_score(make_private_pipeline(accountant), *table, cv=CV, n_jobs=n_jobs)
    assert counted(accountant) == (2, 2)


def test_a_grid_search_beyond_the_budget_stops_at_the_cap(table):
    accountant = PrivacyAccountant(2.0, 1e-5)
    search = GridSearchCV(make_private_pipeline(accountant), GRID, cv=CV, error_score="raise")
    with pytest.raises(BudgetExceededError):
        search.fit(*table)
    assert accountant.epsilon_spent <= 2.0
    assert not hasattr(search, "best_estimator_")


def test_clones_share_the_budget(table):
    accountant = PrivacyAccountant(10.0, 1e-4)
    pipeline = make_private_pipeline(accountant)
    clone(pipeline).fit(*table)
    clone(clone(pipeline)).fit(*table)
    clone(pipeline[-1]).fit(*table)
    assert counted(accountant) == (2, 3)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.RawDataWarning")
def test_a_cached_step_is_released_once(table, path, tmp_path):
    accountant = PrivacyAccountant(10.0, 1e-4, ledger=path)
    pipeline = make_private_pipeline(accountant, memory=str(tmp_path / "cache"))
    first = pipeline.fit(*table)[0].mean_
    second = clone(pipeline).fit(*table)[0].mean_
    np.testing.assert_array_equal(first, second)
    assert counted(accountant) == (1, 2)


def test_a_frozen_step_is_not_charged_again(table):
    accountant = PrivacyAccountant(10.0, 1e-4)
    X, y = table
    scaler = DPStandardScaler(epsilon=0.3, bounds=(-1, 1), accountant=accountant).fit(X)
    classifier = DPLogisticRegression(epsilon=0.5, delta=1e-6, accountant=accountant)
    pipeline = make_pipeline(FrozenEstimator(scaler), classifier)
    cross_val_score(pipeline, X, y, cv=CV)
    assert counted(accountant) == (1, 2)


def fit_clone(pipeline, table):
    return clone(pipeline).fit(*table)[-1].coef_


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pools_of_processes_book_every_fit_with_noise_of_their_own(table, path, method):
    accountant = PrivacyAccountant(10.0, 1e-4, ledger=path)
    pipeline = make_private_pipeline(accountant)
    fit_clone(pipeline, table)
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        results = list(pool.map(fit_clone, [pipeline] * 6, [table] * 6))
    assert counted(accountant) == (7, 7)
    assert len({result.tobytes() for result in results}) == 6


def test_threads_book_every_fit_with_noise_of_their_own(table, path):
    accountant = PrivacyAccountant(10.0, 1e-4, ledger=path)
    pipeline = make_private_pipeline(accountant)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(fit_clone, [pipeline] * 8, [table] * 8))
    assert counted(accountant) == (8, 8)
    assert len({result.tobytes() for result in results}) == 8


def test_a_model_works_where_its_ledger_is_not(table, path):
    accountant = PrivacyAccountant(10.0, 1e-4, ledger=path)
    X, y = table
    model = make_private_pipeline(accountant).fit(X, y)
    expected = model.predict(X)
    script = (
        "import pickle, sys\n"
        "from skdp import LedgerError\n"
        "model, X, y = pickle.loads(sys.stdin.buffer.read())\n"
        "predicted = model.predict(X)\n"
        "print(model[-1].privacy_.epsilon)\n"
        "try: model.fit(X, y)\n"
        "except LedgerError as error: print('refused:', error)\n"
        "sys.stdout.flush()\n"
        "sys.stdout.buffer.write(predicted.tobytes())\n"
    )
    pickled = pickle.dumps((model, X, y))
    path.rename(path.with_name("elsewhere.db"))
    output = subprocess.run(
        [sys.executable, "-c", script], input=pickled, capture_output=True, check=True
    ).stdout
    statement, refusal, predicted = output.split(b"\n", 2)
    assert statement == b"0.5"
    assert refusal.startswith(b"refused: there is no ledger")
    assert predicted == expected.tobytes()
    with pytest.raises(LedgerError):
        model.fit(X, y)
    assert not os.path.exists(path)


def test_a_crash_after_the_charge_leaves_it_charged(table, path, monkeypatch):
    accountant = PrivacyAccountant(10.0, 1e-4, ledger=path)

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(GaussianMechanism, "release", interrupted)
    model = DPLogisticRegression(epsilon=0.5, delta=1e-6, mechanism="output", accountant=accountant)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*table)
    assert counted(accountant) == (0, 1)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_one_seed_gives_noise_of_its_own_to_every_release(table):
    X, y = table
    many = np.zeros((len(X), 6))
    scaler = DPStandardScaler(bounds=(-1, 1), random_state=0).fit(many)
    assert len(set(scaler.mean_)) == 6
    labels = np.arange(len(X)) % 4
    model = DPLogisticRegression(C=1e-9, mechanism="output", random_state=0)
    model.fit(np.zeros((len(X), 3)), labels)
    noise = model.coef_ / model.privacy_.noise_scale
    assert len(np.unique(noise.round(6))) == noise.size
