"""What searches of other libraries charge is known of some classes alone."""

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingClassifier
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    cross_val_score,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import make_pipeline

from skdp import (
    BudgetExceededError,
    DPLogisticRegression,
    DPSGDClassifier,
    DPStandardScaler,
    PrivacyAccountant,
    RawDataWarning,
)
from skdp.model_selection import make_dp_scorer

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (120, 3))
y = (X[:, 0] > 0).astype(int)
FOLDS = KFold(3, shuffle=True, random_state=0)


def budget(epsilon, **config):
    return PrivacyAccountant(epsilon, 1e-2, ledger="memory://", **config)


def classifier(accountant, epsilon=0.1):
    return DPLogisticRegression(epsilon, delta=1e-7, data_norm=2.0, accountant=accountant)


def scorer(accountant):
    return make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)


def search(accountant, values=(0.1, 1.0), epsilon=0.05, **params):
    grid = {"C": list(values)}
    model = classifier(accountant, epsilon)
    return GridSearchCV(model, grid, scoring=scorer(accountant), cv=FOLDS, refit=False, **params)


def validate(estimator, accountant, X, y):
    return cross_val_score(estimator, X, y, scoring=scorer(accountant), cv=FOLDS)


# Tools that charge 0.9 to an accountant.
TOOLS = {
    "search": lambda a, X, y: search(a).fit(X, y),
    "validation": lambda a, X, y: validate(classifier(a, 0.2), a, X, y),
    "stack": lambda a, X, y: StackingClassifier(
        [("a", classifier(a, 0.2))], classifier(a), cv=FOLDS
    ).fit(X, y),
    "search in a pipeline": lambda a, X, y: make_pipeline(search(a)).fit(X, y),
}


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("by_index", [True, False])
def test_a_part_is_compared_with_what_it_can_still_charge(name, by_index):
    """Only the most expensive parts count: one by index, two if values choose the part."""
    total = 0.05 + 0.9 * (1 if by_index else 2)
    for epsilon, is_enough in ((total + 1e-9, True), (total - 0.01, False)):
        accountant = budget(epsilon, relation="replace_one")
        parts = accountant.disjoint("site", 3, by_index=by_index)
        classifier(accountant, 0.05).fit(X, y)
        for i, part in enumerate(parts):
            spent = accountant.epsilon_spent
            if is_enough or (not by_index and i == 0):
                TOOLS[name](part, X[i::3], y[i::3])
                continue
            with pytest.raises(BudgetExceededError, match=r"budget has 0\.89"):
                TOOLS[name](part, X[i::3], y[i::3])
            assert accountant.epsilon_spent == spent
        assert not is_enough or accountant.epsilon_spent == pytest.approx(total)


def test_disjoint_calls_of_a_learning_curve_count_once():
    def run(accountant):
        model = DPSGDClassifier(
            0.1,
            delta=1e-7,
            classes=[0, 1],
            max_iter=2,
            partial_fit_rows="disjoint",
            accountant=accountant,
        )
        learning_curve(
            model,
            X,
            y,
            train_sizes=[40, 80],
            scoring=scorer(accountant),
            cv=FOLDS,
            exploit_incremental_learning=True,
        )

    accountant = budget(1.5 + 1e-9)
    run(accountant)
    # Each fold has 4 scores and the charge of one call.
    assert accountant.epsilon_spent == pytest.approx(1.5)
    accountant = budget(1.4)
    with pytest.raises(BudgetExceededError, match="or more"):
        run(accountant)
    assert accountant.epsilon_spent == 0.0


class Choice(ClassifierMixin, BaseEstimator):
    """A class of the user that fits one of its estimators."""

    def __init__(self, first, second, use="first"):
        self.first = first
        self.second = second
        self.use = use

    def fit(self, X, y):
        self.model_ = clone(getattr(self, self.use)).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


def test_a_class_of_the_user_may_fit_one_of_its_estimators():
    accountant = budget(0.6 + 1e-9)
    model = Choice(classifier(accountant), classifier(accountant))
    validate(model, accountant, X, y)
    assert accountant.epsilon_spent == pytest.approx(0.6)


@pytest.mark.parametrize("columns", [[False] * 3, np.zeros(3, dtype=bool), []])
def test_a_part_without_columns_has_no_price(columns):
    accountant = budget(0.6 + 1e-9)
    scale = DPStandardScaler(0.3, bounds=(-1, 1), accountant=accountant)
    columns = ColumnTransformer([("scale", scale, columns)], remainder="passthrough")
    validate(make_pipeline(columns, classifier(accountant)), accountant, X, y)
    assert accountant.epsilon_spent == pytest.approx(0.6)


# A refused candidate charges neither fits nor scores. Errors and NaN scores are reported.
@pytest.mark.filterwarnings("ignore")
def test_refused_candidates_have_no_price():
    accountant = budget(0.45 + 1e-9)
    search(accountant, (-1.0, 1.0)).fit(X, y)
    assert accountant.epsilon_spent == pytest.approx(0.45)
    for more in ({"error_score": "raise"}, {"values": (0.1, 1.0)}):
        accountant = budget(0.45 + 1e-9)
        with pytest.raises(BudgetExceededError):
            search(accountant, **{"values": (-1.0, 1.0)} | more).fit(X, y)
        assert accountant.epsilon_spent == 0.0


@pytest.mark.filterwarnings("ignore")
def test_refused_values_of_a_validation_curve_have_no_price():
    accountant = budget(0.9 + 1e-9)
    validation_curve(
        classifier(accountant),
        X,
        y,
        param_name="C",
        param_range=[-1.0, 1.0],
        scoring=scorer(accountant),
        cv=FOLDS,
    )
    assert accountant.epsilon_spent == pytest.approx(0.9)


@pytest.mark.parametrize(
    "spaces, n_trials",
    [
        ({"C": (0.1, 1.0)}, 2),
        ([{"C": (0.1, 1.0)}, {"C": (1.0, 2.0)}], 4),
        ([({"C": (0.1, 1.0)}, 1), {"C": (1.0, 2.0)}], 3),
    ],
)
def test_each_space_of_a_bayesian_search_has_its_own_trials(spaces, n_trials):
    skopt = pytest.importorskip("skopt", reason="scikit-optimize is not installed")
    accountant = budget(0.05 * 3 * n_trials - 0.01)
    model = classifier(accountant, 0.05)
    bayes = skopt.BayesSearchCV(model, spaces, n_iter=2, cv=FOLDS, refit=False, random_state=0)
    with pytest.raises(BudgetExceededError, match=f"charge epsilon {0.15 * n_trials:g} "):
        bayes.fit(X, y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("n_folds", [1, 3])
@pytest.mark.parametrize("refit", [False, True])
def test_a_warning_states_the_number_and_the_cost_of_the_fits(n_folds, refit):
    # Rounding to the nearest number of six digits would print less than the cost.
    epsilon = 0.123456149
    accountant = budget(9.0)
    folds = ShuffleSplit(n_folds, test_size=0.3, random_state=0)
    search = GridSearchCV(classifier(accountant, epsilon), {"C": [1.0]}, cv=folds, refit=refit)
    with pytest.warns(RawDataWarning) as caught:
        search.fit(X, y)
    (text,) = {str(warning.message) for warning in caught if "charge epsilon" in str(warning)}
    stated = re.search(
        r"its (\d+) (fits?) and (its|their) scores charge epsilon (\S+) in all", text
    )
    n_fits = n_folds + refit
    words = ("fit", "its") if n_fits == 1 else ("fits", "their")
    assert stated.groups()[:3] == (str(n_fits), *words)
    assert float(stated[4]) >= accountant.epsilon_spent * (1.0 - 1e-9)
    assert len(accountant.charges) == n_fits
