"""A missing label is named as a missing target is, whatever holds the labels, before the charge."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdp
from skdp import PrivacyAccountant

N = 60
X = np.random.default_rng(0).uniform(size=(N, 2))
WORDS = np.where(np.arange(N) % 2, "yes", "no").astype(object)
WORDS[3] = None
NUMBERS = np.arange(N) % 2
SAME = r"Input y contains NaN.*Leave out rows without a target"

TARGETS = {
    "object": WORDS,
    "list": WORDS.tolist(),
    "object with NaN": pd.Series(WORDS, dtype=object).fillna(np.nan),
    "string": pd.Series(WORDS, dtype="string"),
    "category": pd.Series(WORDS, dtype="category"),
    "Int64": pd.Series(NUMBERS, dtype="Int64").mask(np.arange(N) == 3),
    "boolean": pd.Series(NUMBERS == 1, dtype="boolean").mask(np.arange(N) == 3),
    "float": np.where(np.arange(N) == 3, np.nan, NUMBERS),
    "date": np.where(np.arange(N) == 3, np.datetime64("NaT"), np.datetime64("2020-01-01")),
}
MODELS = {
    "logistic": skdp.DPLogisticRegression(),
    "additive": skdp.DPAdditiveClassifier(bounds=(0, 1)),
    "forest": skdp.DPRandomForestClassifier(bounds=(0, 1)),
    "naive Bayes": skdp.DPGaussianNB(bounds=(0, 1)),
    "svc": skdp.DPLinearSVC(),
    "sgd": skdp.DPSGDClassifier(),
    "search": skdp.DPGridSearchCV(skdp.DPLogisticRegression(), {"C": [0.1]}),
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("held", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_a_missing_label_is_named(name, held, declared):
    accountant = PrivacyAccountant(10.0, 0.1)
    model = MODELS[name]
    if declared:
        if name == "search":
            pytest.skip("a search declares the classes of its estimator")
        classes = ["no", "yes"] if held in ("object", "list", "string", "category") else [0, 1]
        model = type(model)(**model.get_params() | {"classes": classes})
    model.set_params(accountant=accountant)
    with pytest.raises(ValueError, match=SAME):
        model.fit(X, TARGETS[held])
    assert not accountant.charges
    if held in ("Int64", "float"):
        with pytest.raises(ValueError, match=SAME):
            skdp.DPRidge(target_bounds=(0, 1)).fit(X, TARGETS[held])


@pytest.mark.filterwarnings("ignore::skdp.exceptions.RawDataWarning")
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_cross_val_predict_with_declared_words_says_what_to_declare(method):
    y = np.where(np.arange(N) % 2, "yes", "no")
    accountant = PrivacyAccountant(10.0, 0.1)
    model = skdp.DPLogisticRegression(classes=["no", "yes"], accountant=accountant)
    cv = KFold(3, shuffle=True, random_state=0)
    with pytest.raises(ValueError, match=r"cross_val_predict .*classes=\[0, 1, \.\.\.\]"):
        cross_val_predict(model, X, y, cv=cv, method=method)
    assert not accountant.charges
    # As the message says.
    model.set_params(classes=[0, 1])
    assert len(cross_val_predict(model, X, y, cv=cv, method=method)) == N


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("strategy", ["disjoint", "holdout", "cv", "random_stopping"])
def test_the_chosen_candidate_has_the_first_rank(strategy):
    """Whatever the noisy scores say: the choice is a release of its own."""
    y = np.arange(N) % 2
    for _ in range(5):
        search = skdp.DPGridSearchCV(
            skdp.DPLogisticRegression(), {"C": [0.01, 0.1, 1.0]}, strategy=strategy, epsilon=0.1
        )
        search.fit(X, y)
        ranks = search.cv_results_["rank_test_score"]
        assert ranks[search.best_index_] == 1 and sorted(ranks)[0] == 1 and (ranks == 1).sum() == 1
        assert search.cv_results_["params"][int(np.argmin(ranks))] == search.best_params_


METHODS = ["predict_proba", "predict_log_proba", "decision_function"]


@pytest.mark.filterwarnings("ignore::skdp.exceptions.RawDataWarning")
@pytest.mark.parametrize("n_labels", [1, 2])
@pytest.mark.parametrize("kind", [skdp.DPLogisticRegression, skdp.DPAdditiveClassifier])
@pytest.mark.parametrize("is_in_pipeline", [False, True])
def test_cross_val_predict_needs_as_many_classes_as_y_has_labels(is_in_pipeline, kind, n_labels):
    """scikit-learn would raise `IndexError` after the charge of the first fold."""
    y = np.arange(N) % n_labels
    cv = KFold(3, shuffle=True, random_state=0)
    accountant = PrivacyAccountant(10.0, 0.1)
    classifier = kind(classes=[0, 1, 2], accountant=accountant)
    model = make_pipeline(StandardScaler(), classifier) if is_in_pipeline else classifier
    for method in METHODS:
        if hasattr(classifier, method):
            with pytest.raises(ValueError, match=rf"3 classes, and y holds {n_labels} \(declare"):
                cross_val_predict(model, X, y, cv=cv, method=method)
    assert not accountant.charges
    if not is_in_pipeline and n_labels == 2:
        assert len(cross_val_predict(model, X, y, cv=cv)) == N
        # As the message says.
        model.set_params(classes=[0, 1])
        assert len(cross_val_predict(model, X, y, cv=cv, method="predict_proba")) == N
        assert len(accountant.charges) == 6
