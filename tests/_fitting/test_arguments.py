"""A refused fit leaves nothing fitted, whatever refuses it, and costs nothing."""

import copy

import numpy as np
import pytest
from sklearn.base import clone

from skdp import DPSGDClassifier, DPSGDRegressor, PrivacyAccountant, RandomizedResponseTransformer
from skdp.base import fitted_names
from skdp.exceptions import BudgetExceededError
from tests._estimators import FIRST_OF_CLASS
from tests._tables import make_table
from tests.test_containers import leaves

REFUSED = {
    "weights": lambda model, X, y: model.fit(X, y, sample_weight=np.ones(len(X))),
    "an unknown argument": lambda model, X, y: model.fit(X, y, weights=np.ones(len(X))),
    "no table": lambda model, X, y: model.fit(),
    "a parameter": lambda model, X, y: model.set_params(epsilon=-1.0).fit(X, y),
    "a table of one dimension": lambda model, X, y: model.fit(X[:, 0], y),
    "ids of other rows": lambda model, X, y: model.fit(X, y, groups=np.arange(len(X) - 1)),
    "the budget": lambda model, X, y: model.fit(X, y),
}


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("estimator", FIRST_OF_CLASS, ids=lambda each: type(each).__name__)
def test_a_refused_fit_leaves_nothing_fitted(estimator):
    X, y = make_table(estimator)
    model = clone(estimator).set_params(random_state=0).fit(X, y, sample_weight=None)
    known = list(leaves(clone(estimator).set_params(random_state=0).fit(X, y)))
    assert list(leaves(model)) == known, "None is a weight"
    for name, refused in REFUSED.items():
        if name == "the budget" and isinstance(model, RandomizedResponseTransformer):
            continue
        accountant = PrivacyAccountant(1e-9, 0.0)
        fitted = copy.deepcopy(model).set_params(accountant=accountant)
        with pytest.raises((TypeError, ValueError, BudgetExceededError)):
            refused(fitted, X, y)
        assert fitted_names(fitted) == [], name
        assert accountant.charges == [], name


@pytest.mark.parametrize(
    "model",
    [DPSGDClassifier(classes=[0, 1], max_iter=1), DPSGDRegressor(target_bounds=(0, 1), max_iter=1)],
    ids=str,
)
def test_a_refused_partial_fit_leaves_the_model_as_it_was(model):
    X = np.random.default_rng(0).uniform(size=(60, 2))
    y = (X[:, 0] > 0.5).astype(int)
    model.set_params(random_state=0).partial_fit(X, y, sample_weight=None)
    before = list(leaves(model))
    for more in ({"sample_weight": np.ones(60)}, {"weights": np.ones(60)}):
        with pytest.raises(TypeError, match="weight"):
            model.partial_fit(X, y, **more)
        assert list(leaves(model)) == before
