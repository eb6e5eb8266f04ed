"""Tools that learn from labels or targets beside a private fit are named before its charge."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_matrix
from scipy.special import expm1, log1p
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLogisticRegression, DPRidge, DPStandardScaler, PrivacyAccountant, RawDataWarning
from skdp.model_selection import make_dp_scorer

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (90, 3))
y = (X[:, 0] > 0).astype(int)
target = np.abs(X[:, 0])
TWO = np.c_[y, 1 - y]
CONSTANT = np.c_[y, np.zeros_like(y)]


def classifier(accountant, **more):
    return DPLogisticRegression(0.1, delta=1e-6, data_norm=2.0, accountant=accountant, **more)


def regressor(accountant):
    return DPRidge(0.1, delta=1e-6, data_norm=2.0, target_bounds=(-1, 1), accountant=accountant)


def scaler(accountant):
    return DPStandardScaler(0.1, bounds=(-1, 1), accountant=accountant)


def labels(tool, labels, **more):
    return lambda accountant: tool(classifier(accountant, **more)).fit(X, labels)


def targets(regressor=regressor, **options):
    return lambda accountant: TransformedTargetRegressor(
        regressor(accountant), check_inverse=False, **options
    ).fit(X, target)


def scaled_targets(raw):
    return lambda accountant: TransformedTargetRegressor(
        raw, transformer=scaler(accountant), check_inverse=False
    ).fit(X, target)


def centered(v):
    return v - v.mean()


def doubled(v):
    return np.multiply(v, 2.0)


def halved(v):
    return np.multiply(v, 0.5)


doubled.__skdp_kind__ = halved.__skdp_kind__ = "stateless"
BEHIND = {"func": centered, "inverse_func": np.copy, "check_inverse": False}
SEEN = "can reveal the label of one row"
WARNED = {
    "one against the rest": (labels(OneVsRestClassifier, TWO), SEEN),
    "one against the rest, constant": (labels(OneVsRestClassifier, CONSTANT), SEEN),
    "one against the rest, declared": (labels(OneVsRestClassifier, TWO, classes=[0, 1]), SEEN),
    "one against the rest, sparse": (labels(OneVsRestClassifier, csr_matrix(TWO)), SEEN),
    "outputs": (labels(MultiOutputClassifier, TWO), SEEN),
    "outputs, constant": (labels(MultiOutputClassifier, CONSTANT), SEEN),
    "outputs in a list": (labels(MultiOutputClassifier, TWO.tolist()), SEEN),
    "outputs of a pipeline": (
        lambda a: MultiOutputClassifier(make_pipeline(scaler(a), classifier(a))).fit(X, TWO),
        SEEN,
    ),
    "chain": (labels(ClassifierChain, TWO), SEEN),
    "chain, constant": (labels(ClassifierChain, CONSTANT), SEEN),
    "a mean of targets": (targets(func=centered, inverse_func=np.copy), "func or inverse_func"),
    "an unknown inverse": (targets(func=np.tanh, inverse_func=centered), "func or inverse_func"),
    "a mean of targets in a pipeline": (
        lambda a: make_pipeline(scaler(a), TransformedTargetRegressor(regressor(a), **BEHIND)).fit(
            X, target
        ),
        "func or inverse_func",
    ),
    "a raw regressor": (scaled_targets(LinearRegression()), "LinearRegression in 'regressor'"),
    "the default regressor": (scaled_targets(None), "LinearRegression in 'regressor'"),
    "a raw step of the regressor": (
        targets(lambda a: make_pipeline(StandardScaler(), regressor(a))),
        "use DPStandardScaler",
    ),
}
PRIVATE = {
    "one against the rest": labels(OneVsRestClassifier, np.arange(90) % 3),
    "one column": labels(OneVsRestClassifier, TWO[:, :1]),
    "outputs": labels(MultiOutputClassifier, TWO, classes=[0, 1]),
    "outputs, constant": labels(MultiOutputClassifier, CONSTANT, classes=[0, 1]),
    "chain, constant": labels(ClassifierChain, CONSTANT, classes=[0, 1]),
    "outputs of a frozen model": lambda a: MultiOutputClassifier(
        FrozenEstimator(classifier(a).fit(X, y))
    ).fit(X, CONSTANT),
    "one output": labels(MultiOutputClassifier, TWO[:, :1]),
    "targets": lambda a: MultiOutputRegressor(regressor(a)).fit(X, np.c_[target, target]),
    "no function": targets(),
    "functions of scipy": targets(func=log1p, inverse_func=expm1),
    "functions that declare themselves": targets(func=doubled, inverse_func=halved),
    "a private scaler of targets": lambda a: TransformedTargetRegressor(
        regressor(a), transformer=scaler(a), check_inverse=False
    ).fit(X, target),
}


@pytest.mark.parametrize("name", WARNED)
def test_what_is_learned_from_targets_is_named_before_the_charge(name):
    fit, words = WARNED[name]
    for rule in ("warn", "raise"):
        accountant = PrivacyAccountant(10.0, 1e-2, ledger="memory://", on_raw_data=rule)
        kind = RawDataWarning if rule == "warn" else ValueError
        with warnings.catch_warnings(action="error", category=RawDataWarning):
            with pytest.raises(kind) as raised:
                fit(accountant)
        assert words in str(raised.value)
        assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("name", PRIVATE)
def test_what_is_private_is_not_named(name):
    accountant = PrivacyAccountant(10.0, 1e-2, ledger="memory://", on_raw_data="raise")
    PRIVATE[name](accountant)
    assert accountant.epsilon_spent > 0.0


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("classes", [None, [0, 1]])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("is_behind", [False, True])
def test_one_versus_one_divides_rows_only_by_more_than_two_labels(
    n_labels, classes, n_jobs, is_behind
):
    """With two labels, its single fit receives all rows, which is a fit like any other."""
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    model = OneVsOneClassifier(classifier(accountant, classes=classes), n_jobs=n_jobs)
    if is_behind:
        model = make_pipeline(scaler(accountant), model)
    with warnings.catch_warnings(record=True) as caught, parallel_config(backend="threading"):
        warnings.simplefilter("always")
        model.fit(X, np.arange(90) % n_labels)
    texts = [str(w.message) for w in caught if issubclass(w.category, RawDataWarning)]
    # Declared classes keep secret which labels occur.
    is_sound = n_labels == 2 and classes is None
    assert len(texts) == (not is_sound)
    assert all("exact number of rows of each label" in text for text in texts)


SPLITTERS = {
    "": KFold(2),
    "depend on their labels": StratifiedKFold(2),
    "depend on their groups (ignore this if the group of each row is public)": GroupKFold(2),
    "depend on their labels and groups": StratifiedGroupKFold(2),
}


@pytest.mark.parametrize("words", SPLITTERS)
def test_folds_are_named_by_the_values_that_they_read(words):
    accountant = PrivacyAccountant(100.0, 1e-2, ledger="memory://")
    score = make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        groups = np.arange(90) % 9
        folds = SPLITTERS[words]
        cross_val_score(classifier(accountant), X, y, groups=groups, cv=folds, scoring=score)
    texts = [str(w.message) for w in caught if issubclass(w.category, RawDataWarning)]
    assert len(texts) == bool(words)
    assert all(f"{words}:" in text for text in texts)
