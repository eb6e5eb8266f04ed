"""Fits by several threads or processes of one machine release what one of them would."""

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config, register_parallel_backend
from joblib.parallel import ThreadingBackend
from scipy.sparse import csr_array
from sklearn.base import clone

from skdp import (
    DPPCA,
    ChunkedArray,
    DPAdditiveClassifier,
    DPGaussianNB,
    DPHistogramTransformer,
    DPLinearSVC,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPRidge,
    DPSGDClassifier,
    DPStandardScaler,
    DPTargetEncoder,
    PrivacyAccountant,
)
from tests.test_containers import leaves

N, D = 3000, 4
ESTIMATORS = [
    DPStandardScaler(bounds="auto"),
    DPHistogramTransformer(edges="uniform", bounds=(0, 1)),
    DPPCA(data_norm=2.0),
    DPRidge(target_bounds=(0, 1), mechanism="sufficient_statistics"),
    DPLogisticRegression(C=0.1),
    DPLogisticRegression(C=0.1, mechanism="gradient", classes=[0, 1, 2]),
    DPLinearSVC(C=0.1, mechanism="output"),
    DPSGDClassifier(max_iter=2, batch_size=N // 3),
    DPGaussianNB(bounds=(0, 1)),
    DPOneHotEncoder(categories=[0, 1], min_frequency=2),
    DPTargetEncoder(categories=[0, 1], classes=[0, 1]),
]
SPARSE = (DPLogisticRegression, DPLinearSVC, DPSGDClassifier)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(N, D)) + 0.0
    return X, (X[:, 0] + rng.integers(0, 2, size=N) > 1).astype(int), np.arange(N) // 3


def files(X, folder, heights=(700, 1, 0, 1600, 699)):
    paths = [folder / f"{number}.npy" for number in range(len(heights))]
    for path, part in zip(paths, np.split(X, np.cumsum(heights)[:-1]), strict=True):
        np.save(path, part)
    return ChunkedArray(paths)


def fitted(estimator, X, y, groups, n_jobs, **settings):
    with parallel_config(n_jobs=n_jobs, **settings):
        return clone(estimator).set_params(random_state=0).fit(X, y, groups=groups)


def values(model):
    """Return what is published but the ledger's record of it."""
    return {k: v for k, v in vars(model).items() if k[-1] == "_" and k != "privacy_"}


def check_the_same(one, other):
    assert list(leaves(one)) == list(leaves(other))


@pytest.mark.quick_cases(every=22)
@pytest.mark.parametrize("by_person", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_threads_release_what_one_would(estimator, by_person, table, short_sums, tmp_path):
    X, y, groups = table
    tables = [X, files(X, tmp_path), ChunkedArray(np.split(X, 2))]
    if isinstance(estimator, SPARSE):
        tables.append(csr_array(X))
    if by_person and isinstance(estimator, DPSGDClassifier):
        estimator = clone(estimator).set_params(batch_size=N // 9)
    for held in tables:
        alone = fitted(estimator, held, y, groups if by_person else None, 1)
        assert not short_sums
        for n_jobs in (2, 3):
            check_the_same(fitted(estimator, held, y, groups if by_person else None, n_jobs), alone)
        assert short_sums
        short_sums.clear()


class Processes(ThreadingBackend):
    """Threads that call unpickled copies, as processes do, and keep what was sent."""

    supports_sharedmem = uses_threads = False
    sent: ClassVar[list] = []
    # Before joblib 1.5 it has another name.
    take = ThreadingBackend.submit if hasattr(ThreadingBackend, "submit") else None

    def submit(self, func, callback=None):
        self.sent.append(pickle.dumps(func))
        take = self.take or super().apply_async
        return take(pickle.loads(self.sent[-1]), callback)

    if take is None:
        apply_async = submit


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_processes_are_sent_paths_and_neither_accountant_nor_noise(
    estimator, table, short_sums, tmp_path
):
    X, y, _ = table
    register_parallel_backend("copies", Processes)
    Processes.sent.clear()
    held = files(X, tmp_path)
    accountant = PrivacyAccountant(10.0, 0.1, ledger=str(tmp_path / "ledger.db"))
    kept = clone(estimator).set_params(accountant=accountant)
    model = fitted(kept, held, y, None, 2, backend="copies")
    assert Processes.sent and len(accountant.charges) == 1
    for word in (b"ccountant", b"ledger", b"oise", b"RandomSource", X[5:9].tobytes()):
        assert not any(word in each for each in Processes.sent)
    check_the_same(values(model), values(fitted(estimator, held, y, None, 1)))
    # What is in memory stays in this process.
    Processes.sent.clear()
    short_sums.clear()
    fitted(estimator, X, y, None, 2, backend="copies")
    assert short_sums and not Processes.sent


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("backend", ["threading", "copies"])
def test_tables_of_words_are_cut_as_those_of_numbers(backend, table, short_sums, tmp_path):
    X, y, groups = table
    words = pd.DataFrame(X).add_prefix("c")
    words["c1"] = pd.array(np.where(X[:, 1], "yes", "no"), dtype="string")
    words.to_parquet(tmp_path / "words.parquet", row_group_size=700)
    register_parallel_backend("copies", Processes)
    lists = [[0, 1], ["no", "yes"], [0, 1], [0, 1]]
    for estimator in (
        DPAdditiveClassifier(bounds=(0, 1)),
        DPOneHotEncoder(categories=lists, min_frequency=2),
        DPHistogramTransformer(edges="uniform", bounds=(0, 1), categories={"c1": ["no", "yes"]}),
    ):
        Processes.sent.clear()
        for own in (None, groups):
            model = fitted(estimator, tmp_path, y, own, 2, backend=backend)
            check_the_same(values(model), values(fitted(estimator, words, y, own, 1)))
        assert short_sums and bool(Processes.sent) == (backend == "copies")


@pytest.mark.thorough
def test_processes_release_what_one_would(table, few_values_for_threads, tmp_path):
    """With processes of joblib's own, whose modules are as they are."""
    X, y, _ = table
    estimator, held = ESTIMATORS[3], files(X, tmp_path)
    model = fitted(estimator, held, y, None, 2, backend="loky")
    check_the_same(model, fitted(estimator, held, y, None, 1))


@pytest.mark.thorough
def test_processes_are_sent_no_factors(table, short_sums, tmp_path):
    """What is found of a row in the time that it takes to read it is not sent with each sum."""
    X, y, _ = table
    register_parallel_backend("copies", Processes)
    for estimator in (DPLogisticRegression(data_norm=2.0), DPSGDClassifier(batch_size=N)):
        Processes.sent.clear()
        fitted(estimator, files(X, tmp_path), y, None, 2, backend="copies")
        # Factors of the largest part take 12,800 bytes, codes of classes 1,600.
        assert Processes.sent and max(map(len, Processes.sent)) < 8_000
