"""Steps of scikit-learn before a release in which the number of rows is private."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.special
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler, SkewedChi2Sampler
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    SplineTransformer,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp import (
    DPGridSearchCV,
    DPHistogramTransformer,
    DPLogisticRegression,
    DPMeanTransformer,
    DPTableVectorizer,
    PrivacyAccountant,
)
from skdp.exceptions import RawDataWarning
from skdp.pipeline import check_pipeline, plan_pipeline, split_budget


def row_products(X):
    return np.multiply(X, np.arange(1.0, X.shape[1] + 1), order="C").sum(axis=1)[:, None]


row_products.__skdp_kind__ = "stateless"

TOGETHER = {
    "GaussianRandomProjection": GaussianRandomProjection(1, random_state=0),
    "SparseRandomProjection": SparseRandomProjection(1, random_state=0),
    "RBFSampler": RBFSampler(gamma=0.1, n_components=1, random_state=0),
    "SkewedChi2Sampler": SkewedChi2Sampler(n_components=1, random_state=0),
    "PolynomialCountSketch": PolynomialCountSketch(n_components=1, random_state=0),
    "Normalizer": Normalizer(),
    "Normalizer l1": Normalizer("l1"),
    "np.exp": FunctionTransformer(np.exp),
    "np.power": FunctionTransformer(partial(np.power, 2.0)),
}
ROW_WISE = {
    "Normalizer max": Normalizer("max"),
    "Binarizer": Binarizer(),
    "PolynomialFeatures": PolynomialFeatures(3),
    "SplineTransformer": SplineTransformer(knots=np.array([[-1.0] * 9, [0.0] * 9, [1.0] * 9])),
    "identity": FunctionTransformer(),
    "np.sqrt": FunctionTransformer(np.sqrt),
    "np.multiply": FunctionTransformer(partial(np.multiply, 2.5)),
    "expm1": FunctionTransformer(scipy.special.expm1),
    "declared": FunctionTransformer(row_products),
}


def by_person(**params):
    return PrivacyAccountant(10.0, 1e-3, unit="person", ledger="memory://", **params)


PRIVATE = {
    "unit='person'": lambda: DPMeanTransformer(bounds=(0, 1), accountant=by_person()),
    "count='noisy'": lambda: DPMeanTransformer(bounds=(0, 1), count="noisy"),
    "bins": lambda: DPHistogramTransformer(edges=[0, 1, 2], accountant=by_person()),
    "cells": lambda: DPTableVectorizer(bounds=(0, 1), accountant=by_person()),
    "a model": lambda: DPLogisticRegression(accountant=by_person()),
}


def wrapped(step):
    """The step in each place in which it can stand before another one."""
    yield step
    yield make_union("passthrough", step)
    yield make_pipeline(make_pipeline(Binarizer(), step))
    yield ColumnTransformer([("a", step, [0, 1]), ("b", "passthrough", [2])], sparse_threshold=0)
    yield FrozenEstimator(step)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("private", PRIVATE)
@pytest.mark.parametrize("name", TOGETHER)
def test_is_refused_where_the_number_of_rows_is_private(name, private):
    for step in wrapped(TOGETHER[name]):
        check = check_pipeline(make_pipeline(step, PRIVATE[private]()))
        assert not check.accepted
        assert [finding.problem for finding in check if finding.problem == "not row-wise"]
        assert "not_row_wise" in [part.kind for part in check.steps]


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("name", TOGETHER)
def test_is_accepted_where_the_number_of_rows_is_public(name):
    for step in wrapped(TOGETHER[name]):
        last = DPLogisticRegression(accountant=PrivacyAccountant(2.0, 1e-5, ledger="memory://"))
        assert check_pipeline(make_pipeline(step, last)).accepted
    # Nor does it matter behind the release.
    first = PRIVATE["unit='person'"]()
    assert check_pipeline(make_pipeline(first, TOGETHER[name])).accepted


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("private", PRIVATE)
@pytest.mark.parametrize("name", ROW_WISE)
def test_row_wise_steps_are_accepted(name, private):
    for step in wrapped(ROW_WISE[name]):
        assert check_pipeline(make_pipeline(step, PRIVATE[private]())).accepted


def fit_by_person(pipe, n_columns=3):
    """Fit a pipeline and return the messages of all RawDataWarnings."""
    X = np.random.default_rng(0).uniform(size=(60, n_columns))
    is_by_person = any(getattr(step, "accountant", None) for step in pipe)
    groups = {"groups": np.arange(60) // 2} if is_by_person else {}
    with config_context(enable_metadata_routing=True), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        pipe.fit(X, np.arange(60) % 2, **groups)
    return [str(w.message) for w in seen if issubclass(w.category, RawDataWarning)]


def fitted_inside(step):
    """The step with a fitted estimator, if it is frozen."""
    if isinstance(step, FrozenEstimator):
        step.estimator.fit(np.random.default_rng(0).uniform(size=(60, 3)))
    return step


@pytest.mark.quick_cases(cover="values")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("private", PRIVATE)
@pytest.mark.parametrize("name", [*TOGETHER, "Binarizer", "PolynomialFeatures", "np.sqrt"])
def test_a_fit_warns_exactly_where_the_check_finds_it(name, private):
    for step in wrapped((TOGETHER | ROW_WISE)[name]):
        pipe = make_pipeline(clone(fitted_inside(step)), PRIVATE[private]())
        messages = fit_by_person(pipe)
        assert len(messages) == (name in TOGETHER)
        assert not messages or "may round a row differently" in messages[0]
        assert check_pipeline(pipe).accepted is (name not in TOGETHER)


@pytest.mark.parametrize("name", TOGETHER)
def test_a_fit_is_refused_before_the_charge_if_its_owner_asks_for_it(name):
    accountant = by_person(on_raw_data="raise")
    pipe = make_pipeline(TOGETHER[name], DPMeanTransformer(bounds=(0, 1), accountant=accountant))
    with pytest.raises(ValueError, match="may round a row differently"):
        fit_by_person(pipe)
    assert not accountant.charges
    # It matters neither behind the release nor where the number of rows is public.
    first = DPMeanTransformer(bounds=(0, 1), accountant=accountant)
    assert not fit_by_person(make_pipeline(first, TOGETHER[name]))
    assert not fit_by_person(make_pipeline(TOGETHER[name], DPMeanTransformer(bounds=(0, 1))))


def test_plans_and_searches_refuse_it_before_the_charge():
    pipe = make_pipeline(TOGETHER["RBFSampler"], DPLogisticRegression())
    accountant = by_person()
    with pytest.raises(ValueError, match="'rbfsampler' may round a row"):
        split_budget(pipe, 1.0, 1e-6, accountant=accountant)
    with pytest.raises(ValueError, match="'rbfsampler' may round a row"):
        plan_pipeline(pipe, terms=accountant.config)
    search = DPGridSearchCV(pipe, {"dplogisticregression__C": [0.1, 1.0]}, accountant=accountant)
    assert not check_pipeline(search).accepted
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    with pytest.raises(ValueError, match="'rbfsampler' may round a row"):
        search.fit(X, y, groups=np.arange(60) // 2)
    assert accountant.epsilon_spent == 0.0
    plan_pipeline(pipe)
    assert check_pipeline(search.set_params(accountant=None)).accepted


def test_its_owner_may_declare_it_public():
    pipe = make_pipeline(TOGETHER["Normalizer"], PRIVATE["bins"]())
    check = check_pipeline(pipe, public_steps=["normalizer"])
    assert check.accepted
    assert [finding.problem for finding in check] == ["declared public"]


def dense(table):
    return table.toarray() if issparse(table) else table


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 9, 20, 300])
@pytest.mark.parametrize("name", ROW_WISE)
def test_a_row_alone_is_what_it_is_among_others(name, n_columns, layout):
    """The steps that are accepted are row-wise: tried, beside being read."""
    step = ROW_WISE[name]
    if name == "SplineTransformer":
        step = SplineTransformer(knots=np.repeat([[-1.0], [0.0], [1.0]], n_columns, axis=1))
    if name == "PolynomialFeatures" and n_columns > 20:
        step = PolynomialFeatures(1)
    rows = np.random.default_rng(n_columns).uniform(0.0, 1.0, size=(7, n_columns))
    for n_rows in (2, 3, 5, 257):
        X = np.array(np.resize(rows, (n_rows, n_columns)), order=layout)
        among = dense(step.fit(X).transform(X))
        for i in {0, 1, n_rows - 1}:
            own = dense(step.transform(X[i : i + 1].copy()))
            np.testing.assert_array_equal(own[0], among[i])
