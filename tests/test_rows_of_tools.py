"""Tools in which the rows of a private fit depend on other rows, or repeat, in less usual ways."""

import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLogisticRegression, PrivacyAccountant, RawDataWarning, dp_cross_validate
from skdp.model_selection import DPGridSearchCV, dp_cross_val_score, make_dp_scorer
from skdp.stats import dp_mean

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (60, 3))
y = (X[:, 0] > 0).astype(int)
FOLDS = KFold(3, shuffle=True, random_state=0)


def classifier(accountant, **params):
    return DPLogisticRegression(0.1, delta=1e-6, data_norm=2.0, accountant=accountant, **params)


def score(accountant):
    return make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)


def warnings_of(function):
    """Return the texts of the `RawDataWarning` of a call, and the epsilon that it charges."""
    accountant = PrivacyAccountant(100.0, 1e-2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(accountant)
    texts = [str(w.message) for w in caught if issubclass(w.category, RawDataWarning)]
    return texts, accountant.epsilon_spent


def refusal_of(function):
    accountant = PrivacyAccountant(100.0, 1e-2)
    with pytest.raises(ValueError) as caught:
        function(accountant)
    assert accountant.epsilon_spent == 0.0
    return str(caught.value)


@pytest.mark.parametrize("side", [0, 1])
def test_a_negative_index_repeats_the_row_that_it_names(side):
    train, test = np.arange(40), np.arange(50, 60)
    fold = [train, test]
    fold[side] = np.append(fold[side], fold[side][-1] - 60)
    cv = [tuple(fold), (train, test)]

    def validate(a):
        return cross_val_score(classifier(a), X, y, scoring=score(a), cv=cv)

    def search(a):
        return GridSearchCV(classifier(a), {}, scoring=score(a), cv=cv).fit(X, y)

    assert "list rows more than once" in refusal_of(validate)
    assert "list rows more than once" in refusal_of(search)


def test_negative_indices_of_different_rows_are_accepted():
    cv = [(np.arange(40), np.arange(-10, 0))]
    texts, _ = warnings_of(lambda a: cross_val_score(classifier(a), X, y, scoring=score(a), cv=cv))
    assert texts == []


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda member, a: VotingClassifier([("c", member)]),
        lambda member, a: StackingClassifier([("c", member)], classifier(a), cv=FOLDS),
    ],
)
def test_encoded_labels_are_silent_if_all_declared_labels_occur(wrap, is_behind):
    def fit(a, classes, target=y):
        model = wrap(classifier(a, classes=classes), a)
        return (make_pipeline(model) if is_behind else model).fit(X, target)

    assert warnings_of(lambda a: fit(a, [0, 1]))[0] == []
    # Without declared classes, the labels that occur are public.
    assert warnings_of(lambda a: fit(a, None))[0] == []
    # One row with the label 0 would change the labels of all others.
    assert "declares 2 classes, and y holds 1" in refusal_of(
        lambda a: fit(a, [0, 1], np.ones(len(y), dtype=int))
    )


@pytest.mark.skipif(
    "base_estimator" not in ClassifierChain._parameter_constraints,
    reason=f"scikit-learn {sklearn.__version__} has no base_estimator",
)
@pytest.mark.parametrize("params", [{"cv": 3}, {}])
def test_the_former_name_of_the_estimator_of_a_chain_is_known(params):
    target = np.c_[y, 1 - y]
    classes = [0, 1] if params else None

    def fit(a, name):
        return ClassifierChain(**{name: classifier(a, classes=classes)}, **params).fit(X, target)

    former, _ = warnings_of(lambda a: fit(a, "base_estimator"))
    present, _ = warnings_of(lambda a: fit(a, "estimator"))
    assert former == present
    assert len(former) == 1


class KeywordClass(ClassifierMixin, BaseEstimator):
    """It takes its estimators as **kwargs, which `get_params` does not return."""

    def __init__(self, **parts):
        self.parts = parts

    def fit(self, X, y):
        self.parts["model"].fit(self.parts["scaler"].fit_transform(X), y)
        return self


def test_parts_in_keyword_arguments_are_found():
    texts, _ = warnings_of(
        lambda a: KeywordClass(model=classifier(a), scaler=StandardScaler()).fit(X, y)
    )
    assert len(texts) == 1
    assert "StandardScaler" in texts[0]


def minimize(loss):
    scipy.optimize.brute(lambda C: loss(C[0]), ((0.1, 1.0),), Ns=2, finish=None)


def test_an_optimizer_of_scipy_is_a_study():
    def by_raw_score(a):
        minimize(lambda C: -classifier(a, C=C).fit(X, y).score(X, y))

    def by_validation(a):
        minimize(lambda C: -cross_val_score(classifier(a, C=C), X, y, cv=FOLDS).mean())

    def by_private_score(a):
        minimize(lambda C: -score(a)(classifier(a, C=C).fit(X, y), X, y))

    assert len(warnings_of(by_raw_score)[0]) == 1
    assert len(warnings_of(by_validation)[0]) == 1
    assert warnings_of(by_private_score)[0] == []


def test_resampling_of_scipy_is_refused():
    def bootstrap(a):
        def statistic(rows):
            return dp_mean(rows, 0.1, bounds=(-1, 1), accountant=a)

        scipy.stats.bootstrap((X[:, 0],), statistic, n_resamples=2, vectorized=False)

    def fit_bootstrap(a):
        def statistic(rows):
            return classifier(a).fit(X[rows], y[rows]).coef_[0, 0]

        scipy.stats.bootstrap((np.arange(60),), statistic, n_resamples=2, vectorized=False)

    assert "again and again" in refusal_of(bootstrap)
    assert "again and again" in refusal_of(fit_bootstrap)


@pytest.mark.parametrize(
    "run",
    [
        lambda model, a: dp_cross_validate(model, X, y, accountant=a),
        lambda model, a: dp_cross_val_score(model, X, y, accountant=a),
        lambda model, a: DPGridSearchCV(model, {}, accountant=a).fit(X, y),
    ],
)
def test_a_frozen_estimator_has_nothing_to_validate(run):
    model = FrozenEstimator(classifier(PrivacyAccountant(1.0, 1e-2)).fit(X, y))
    assert "dp_evaluate" in refusal_of(lambda a: run(model, a))
