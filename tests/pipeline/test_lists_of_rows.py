"""NumPy infers the type of a list of rows from all of its cells, so one cell can change others."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.special
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, Normalizer

from skdp import DPLogisticRegression, DPStandardScaler, PrivacyAccountant, RawDataWarning
from skdp.model_selection import make_dp_scorer
from skdp.pipeline import split_budget, step_kind

rng = np.random.default_rng(0)
ROWS = rng.integers(1, 9, (40, 3)).tolist()
LABELS = [row[0] % 2 for row in ROWS]


def classifier(accountant):
    return DPLogisticRegression(
        0.1, delta=1e-6, data_norm=9.0, accountant=accountant, random_state=0
    )


def search(accountant):
    return GridSearchCV(
        make_pipeline(FunctionTransformer(np.exp2), classifier(accountant)),
        {},
        scoring=make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant),
        cv=KFold(2, shuffle=True, random_state=0),
    )


def declared(rows):
    return np.array(rows, dtype=float, order="C") ** 2


declared.__skdp_kind__ = "stateless"
AFFECTED = {
    "function": lambda a: make_pipeline(FunctionTransformer(np.exp), classifier(a)),
    "constant": lambda a: make_pipeline(
        FunctionTransformer(partial(np.power, 2), validate=True), classifier(a)
    ),
    "after a placeholder": lambda a: Pipeline(
        [("no", "passthrough"), ("f", FunctionTransformer(np.tanh)), ("model", classifier(a))]
    ),
    "union": lambda a: make_pipeline(
        make_union(FunctionTransformer(np.cbrt), Normalizer()), classifier(a)
    ),
    "search": search,
    "labels": lambda a: OneVsRestClassifier(
        make_pipeline(FunctionTransformer(np.log1p), classifier(a))
    ),
}
UNAFFECTED = {
    "no function": classifier,
    "identity": lambda a: make_pipeline(FunctionTransformer(None), classifier(a)),
    "doubles": lambda a: make_pipeline(Normalizer(), classifier(a)),
    "declared function": lambda a: make_pipeline(FunctionTransformer(declared), classifier(a)),
    "released before": lambda a: make_pipeline(
        DPStandardScaler(0.1, bounds=(0, 9), accountant=a, random_state=0),
        FunctionTransformer(np.tanh),
        classifier(a),
    ),
}


def warned(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(w.message) for w in caught if issubclass(w.category, RawDataWarning)]


@pytest.mark.parametrize("name", AFFECTED)
def test_a_function_of_a_list_is_warned_about_and_the_remedy_works(name):
    accountant = PrivacyAccountant(10.0, 1e-2)
    texts = warned(AFFECTED[name](accountant), ROWS, LABELS)
    assert len(texts) == 1
    assert "pass np.asarray(X, dtype=float)" in texts[0]
    assert not warned(AFFECTED[name](accountant), np.asarray(ROWS, dtype=float), LABELS)


@pytest.mark.parametrize("name", AFFECTED)
def test_a_function_of_a_list_can_be_refused_before_the_charge(name):
    accountant = PrivacyAccountant(10.0, 1e-2, on_raw_data="raise")
    with pytest.raises(ValueError, match="infers the type of a list"):
        AFFECTED[name](accountant).fit(ROWS, LABELS)
    assert accountant.epsilon_spent == 0


@pytest.mark.parametrize("name", UNAFFECTED)
def test_lists_whose_type_does_not_matter_are_accepted(name):
    assert not warned(UNAFFECTED[name](PrivacyAccountant(10.0, 1e-2)), ROWS, LABELS)


@pytest.mark.parametrize("is_union", [False, True])
def test_a_planned_pipeline_refuses_a_function_of_a_list(is_union):
    accountant = PrivacyAccountant(10.0, 1e-2)
    step = FunctionTransformer(np.exp)
    if is_union:
        step = make_union(step, DPStandardScaler(bounds=(0, 9)))
    model = DPLogisticRegression(data_norm=9.0)
    plan = split_budget(make_pipeline(step, model), 1.0, 1e-6, accountant)
    with pytest.raises(ValueError, match=r"functiontransformer.*pass np.asarray\(X, dtype=float\)"):
        plan.fit(ROWS, LABELS)
    assert accountant.epsilon_spent == 0
    plan.fit(np.asarray(ROWS, dtype=float), LABELS)
    assert accountant.epsilon_spent == 1.0


def test_lists_of_texts_are_accepted():
    accountant = PrivacyAccountant(10.0, 1e-2)
    model = make_pipeline(HashingVectorizer(n_features=8), classifier(accountant))
    assert not warned(model, ["a cat", "a dog"] * 20, [0, 1] * 20)


def test_known_functions_return_the_same_values_for_integers_and_floats():
    integers = np.arange(1, 7)
    n_compared = 0
    for library in (np, scipy.special):
        for name in dir(library):
            function = getattr(library, name)
            is_known = isinstance(function, np.ufunc) and (
                step_kind(FunctionTransformer(function)) == "stateless"
            )
            if not is_known:
                continue
            with np.errstate(all="ignore"):
                try:
                    values = [function(integers.astype(kind)) for kind in (int, float)]
                except TypeError:
                    # It refuses one of the types, so no value is published.
                    continue
            np.testing.assert_array_equal(*values, err_msg=name)
            n_compared += 1
    assert n_compared > 50
