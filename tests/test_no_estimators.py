"""What is passed as an estimator but is none is refused by name, before anything is charged."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp import (
    DPCalibratedClassifierCV,
    DPGaussianNB,
    DPGridSearchCV,
    DPStandardScaler,
    DPTunedThresholdClassifierCV,
    PrivacyAccountant,
)
from skdp.audit import audit_epsilon, membership_inference
from skdp.model_selection import (
    dp_cross_val_score,
    dp_cross_validate,
    dp_learning_curve,
    dp_validation_curve,
)
from skdp.pipeline import check_pipeline, plan_pipeline, split_budget

X = np.random.default_rng(0).random((60, 2))
Y = X[:, 0] > X[:, 1]


def search(estimator, accountant):
    return DPGridSearchCV(estimator, {}, accountant=accountant).fit(X, Y)


def validation_curve(estimator, accountant, name="bounds", values=((0, 1),)):
    return dp_validation_curve(
        estimator, X, Y, param_name=name, param_range=values, accountant=accountant
    )


#: Functions of an estimator and an accountant.
USES = {
    "search": search,
    "scores": lambda e, a: dp_cross_val_score(e, X, Y, accountant=a),
    "validation": lambda e, a: dp_cross_validate(e, X, Y, accountant=a),
    "learning curve": lambda e, a: dp_learning_curve(e, X, Y, accountant=a),
    "validation curve": validation_curve,
    "threshold": lambda e, a: DPTunedThresholdClassifierCV(e, accountant=a).fit(X, Y),
    "calibration": lambda e, a: DPCalibratedClassifierCV(e, accountant=a).fit(X, Y),
    "audit": lambda e, _: audit_epsilon(e, n_fits=20),
    "membership": lambda e, _: membership_inference(e, X, Y, n_shadow=8),
}


@pytest.mark.parametrize(
    "value",
    [None, 3, "DPGaussianNB", (), [DPGaussianNB()], {}, DPGaussianNB],
    ids=["None", "number", "name", "tuple", "list", "dict", "class"],
)
@pytest.mark.parametrize("name", USES)
def test_what_is_no_estimator_is_named(name, value):
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises((ValueError, TypeError), match="estimator"):
        USES[name](value, accountant)
    assert not accountant.charges


@pytest.mark.parametrize("step", [(0, 1), "mean", 3])
def test_a_step_that_is_no_estimator_is_named_by_a_search(step):
    accountant = PrivacyAccountant(10.0, 1e-3)
    pipe = Pipeline([("scaler", step), ("model", DPGaussianNB(bounds=(0, 1)))])
    grid = {"scaler__bounds": [(0, 1), (0, 2)]}
    with pytest.raises(ValueError, match="scaler must be an estimator"):
        DPGridSearchCV(pipe, grid, accountant=accountant).fit(X, Y)
    pipe.set_params(scaler=DPStandardScaler())
    with pytest.raises(ValueError, match="scaler must be an estimator"):
        DPGridSearchCV(pipe, grid | {"scaler": [step]}, accountant=accountant).fit(X, Y)
    with pytest.raises(ValueError, match="scaler must be an estimator"):
        deeper = {"scaler": [step], "scaler__part__bounds": [(0, 1)]}
        DPGridSearchCV(pipe, deeper, accountant=accountant).fit(X, Y)
    assert not accountant.charges


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("name", None), ("name", 3), ("name", ("bounds",)), ("values", 3), ("values", "auto")],
)
def test_wrong_settings_of_a_validation_curve_are_named(parameter, value):
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match="param_name|param_range"):
        validation_curve(DPGaussianNB(), accountant, **{parameter: value})
    assert not accountant.charges


@pytest.mark.parametrize("terms", [3, "row", PrivacyAccountant(1.0, 0.0)])
def test_wrong_terms_of_a_plan_are_named(terms):
    pipe = Pipeline([("scaler", DPStandardScaler(bounds=(0, 1))), ("model", DPGaussianNB())])
    with pytest.raises(ValueError, match="terms must be"):
        plan_pipeline(pipe, 100, 2, terms=terms)


#: Values of `steps`, `transformer_list` and `transformers` that do not list named parts, and that
#: `get_params` of scikit-learn accepts.
WRONG_PARTS = ["zz", 0, None, [DPStandardScaler()], [(0, DPStandardScaler())], [None]]
CONTAINERS = {
    "steps": Pipeline([("a", DPStandardScaler(bounds=(0, 1)))]),
    "transformer_list": FeatureUnion([("a", DPStandardScaler(bounds=(0, 1)))]),
    "transformers": ColumnTransformer([("a", DPStandardScaler(bounds=(0, 1)), [0, 1])]),
}


@pytest.mark.parametrize("parts", WRONG_PARTS, ids=repr)
@pytest.mark.parametrize("parameter", CONTAINERS)
@pytest.mark.parametrize("use", ["split", "check", "search", "scores"])
def test_parts_of_a_container_that_are_no_list_are_named(use, parameter, parts):
    accountant = PrivacyAccountant(10.0, 1e-3)
    pipe = Pipeline([("inner", CONTAINERS[parameter]), ("model", DPGaussianNB(bounds=(0, 1)))])
    pipe = clone(pipe)
    with pytest.raises(ValueError, match=f"{parameter} must be a list of"):
        if use == "split":
            split = split_budget(pipe, 1.0, 1e-6, accountant)
            split.set_params(**{f"inner__{parameter}": parts}).fit(X, Y)
        pipe.set_params(**{f"inner__{parameter}": parts})
        if use == "check":
            check_pipeline(pipe)
        elif use == "search":
            search(pipe, accountant)
        else:
            dp_cross_val_score(pipe, X, Y, accountant=accountant)
    assert not accountant.charges
