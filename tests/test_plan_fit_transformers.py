"""What transformers plan is what their fits charge and release."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.base import clone

from skdp import (
    DPPCA,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPMaxAbsScaler,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    DPTargetEncoder,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from skdp.accounting import Guarantee
from skdp.base import TableShape, guarantee_of
from tests import _public as public
from tests._estimators import BOUNDED_TRANSFORMERS, ESTIMATORS, takes

TRANSFORMERS = [each for each in ESTIMATORS if hasattr(each, "transform")] + [
    DPHistogramTransformer(delta=1e-6, edges_fraction=1.0),
    DPKBinsDiscretizer(strategy="uniform"),
    DPMeanTransformer(delta=1e-6, mechanism="laplace", bounds=(0, 1)),
    DPOneHotEncoder(categories=[0, 1, 2], other=9),
    DPPCA(delta=0.0, data_norm="auto"),
    DPSimpleImputer(delta=1e-6, strategy="most_frequent"),
    DPSimpleImputer(delta=1e-6, strategy="median"),
    DPSimpleImputer(strategy="constant"),
    DPTargetEncoder(categories=[0, 1, 2], classes=[0, 1, 2]),
]
ONE_OF_EACH = list({type(each): each for each in TRANSFORMERS}.values())
RELATIONS = ("add_remove", "replace_one")
N_ROWS, N_COLUMNS = 60, 3


def make_table():
    X = np.random.default_rng(0).integers(0, 3, size=(N_ROWS, N_COLUMNS)).astype(float)
    return X, (X[:, 0] > 0).astype(int)


def shape_of(X, y=None):
    classes = None if y is None else np.unique(y)
    kinds = ("number",) * X.shape[1]
    return TableShape(n_rows=X.shape[0], n_columns=X.shape[1], classes=classes, kinds=kinds)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=str)
def test_a_fit_charges_and_publishes_its_plan(estimator, relation):
    X, y = make_table()
    accountant = PrivacyAccountant(100.0, 0.5, relation=relation)
    estimator = clone(estimator).set_params(accountant=accountant)
    before = copy.copy(vars(estimator))
    plan = estimator.plan_fit(shape_of(X, y), guarantee_of(estimator))
    assert vars(estimator) == before
    assert not accountant.charges

    made = estimator.fit(X, y).transform(X)
    charged = [(spend.event, spend.epsilon, spend.delta) for spend in accountant.charges]
    nothing = plan.epsilon == 0.0
    assert charged == ([] if nothing else [(plan.event, plan.epsilon, plan.delta)])
    statement = estimator.privacy_
    assert (statement.epsilon, statement.delta) == (plan.epsilon, plan.delta)
    assert (statement.mechanism, statement.noise_scale, statement.sensitivity) == (
        plan.name,
        plan.scale,
        plan.sensitivity,
    )
    assert statement.sampler == getattr(plan, "sampler", "all rows, once")
    assert plan.sparse_output == hasattr(made, "tocsr")


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("estimator", ONE_OF_EACH, ids=str)
def test_a_plan_is_a_value(estimator):
    X, y = make_table()
    accountant = PrivacyAccountant(100.0, 0.5)
    estimator = clone(estimator).set_params(accountant=accountant)
    plan = estimator.plan_fit(shape_of(X, y), guarantee_of(estimator))
    with pytest.raises(FrozenInstanceError):
        plan.mechanism = None
    again = pickle.loads(pickle.dumps(plan))
    assert (again.event, again.epsilon, again.scale) == (plan.event, plan.epsilon, plan.scale)
    assert b"Accountant" not in pickle.dumps(plan)
    # What a fit must meet is said by the guarantee alone.
    half = Guarantee(epsilon=0.5 * plan.epsilon or 1.0, delta=plan.delta)
    other = clone(estimator).set_params(epsilon=7.0, accountant=None)
    if not isinstance(estimator, DPTargetEncoder | DPOneHotEncoder) or plan.delta:
        planned = other.plan_fit(shape_of(X, y), half)
        assert planned.epsilon == (half.epsilon if plan.epsilon else 0.0)


REFUSED = [
    (DPStandardScaler, {"bounds": (1, 0)}),
    (DPStandardScaler, {"bounds": (0, [1, 2])}),
    (DPStandardScaler, {"with_mean": 1}),
    (DPStandardScaler, {"with_mean": False, "with_std": False}),
    (DPStandardScaler, {"epsilon": 1e-60, "bounds": (0, 1)}),
    (DPMeanTransformer, {"bounds": {7: (0, 1)}}),
    (DPMeanTransformer, {"count": "known"}),
    (DPMeanTransformer, {"count": "noisy"}),
    (DPMeanTransformer, {"mechanism": "gaussian"}),
    (DPMeanTransformer, {"mechanism": "none"}),
    (DPMinMaxScaler, {"bounds": None}),
    (DPMinMaxScaler, {"clip": "yes"}),
    (DPMinMaxScaler, {"feature_range": (1, 1)}),
    (DPMinMaxScaler, {"quantile_range": "wide"}),
    (DPMinMaxScaler, {"quantile_range": (50, 10)}),
    (DPMaxAbsScaler, {"bounds": None}),
    (DPMaxAbsScaler, {"clip": "yes"}),
    (DPMaxAbsScaler, {"quantile": 0.0}),
    (DPMaxAbsScaler, {"quantile": "wide"}),
    (DPRobustScaler, {"with_centering": None}),
    (DPRobustScaler, {"with_centering": False, "with_scaling": False}),
    (DPRobustScaler, {"quantile_range": (25.0,)}),
    (DPQuantileTransformer, {"n_quantiles": 2}),
    (DPQuantileTransformer, {"output_distribution": "gamma"}),
    (DPQuantileTransformer, {"bounds": "found"}),
    (DPKBinsDiscretizer, {"n_bins": 1}),
    (DPKBinsDiscretizer, {"encode": "sparse"}),
    (DPKBinsDiscretizer, {"strategy": "kmeans"}),
    (DPKBinsDiscretizer, {"strategy": "uniform", "bounds": (0, 1)}),
    (DPKBinsDiscretizer, {"bounds": {0: (0, 1)}}),
    (DPHistogramTransformer, {"encode": "sparse"}),
    (DPHistogramTransformer, {"sparse_output": True, "encode": "density"}),
    (DPHistogramTransformer, {"unit_norm": 3}),
    (DPHistogramTransformer, {"edges_fraction": 0.0}),
    (DPHistogramTransformer, {"edges_fraction": 1.0, "encode": "density"}),
    (DPHistogramTransformer, {"edges_fraction": 0.5, "edges": "uniform"}),
    (DPHistogramTransformer, {"edges": [0.0, 1.0], "bounds": (0, 1)}),
    (DPHistogramTransformer, {"other": "x"}),
    (DPHistogramTransformer, {"categories": {5: [1, 2]}}),
    (DPOneHotEncoder, {}),
    (DPOneHotEncoder, {"categories": [[0, 1]]}),
    (DPOneHotEncoder, {"categories": [0, 1], "other": [3]}),
    (DPOneHotEncoder, {"categories": [0, 1], "min_frequency": -1}),
    (DPOneHotEncoder, {"categories": [0, 1], "sparse_output": None}),
    (DPTargetEncoder, {}),
    (DPTargetEncoder, {"categories": "ab"}),
    (DPTargetEncoder, {"categories": [0, 1, 2], "smooth": -1.0}),
    (DPTargetEncoder, {"categories": [0, 1, 2], "classes": [0]}),
    (DPTargetEncoder, {"categories": [0, 1, 2], "classes": [0, 5]}),
    (DPTargetEncoder, {"categories": [0, 1, 2], "target_bounds": (1, 0)}),
    (DPTargetEncoder, {"categories": [0, 1, 2], "target_bounds": (0, 1), "classes": [0, 1]}),
    (RandomizedResponseTransformer, {}),
    (RandomizedResponseTransformer, {"categories": [[0, 1]]}),
    (DPSimpleImputer, {"strategy": "mode"}),
    (DPSimpleImputer, {"strategy": "most_frequent"}),
    (DPSimpleImputer, {"strategy": "most_frequent", "categories": [0, 0]}),
    (DPSimpleImputer, {"strategy": "constant", "fill_value": np.nan}),
    (DPSimpleImputer, {"add_indicator": 1}),
    (DPPCA, {"n_components": 4}),
    (DPPCA, {"n_components": 0}),
    (DPPCA, {"data_norm": -1.0}),
    (DPPCA, {"center": [0.0]}),
    (DPTableVectorizer, {"numeric": "none"}),
]
# What every transformer refuses: bounds in the wrong order, and a budget of nothing. The bounds of
# the vectorizer are read together with the columns of a table.
REFUSED += [
    (kind, {"bounds": (3, 2)}) for kind in BOUNDED_TRANSFORMERS if kind is not DPTableVectorizer
]
REFUSED += [
    (kind, {"epsilon": 0.0})
    for kind in public.TRANSFORMERS
    if takes(kind, "epsilon") and not takes(kind, "bounds") and hasattr(kind, "plan_fit")
]


def test_no_transformer_is_missing_among_those_that_are_refused():
    planned = [kind for kind in public.TRANSFORMERS if hasattr(kind, "plan_fit")]
    assert not public.missing(planned, [kind for kind, _ in REFUSED])


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize(
    ("kind", "params"), REFUSED, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_a_plan_is_refused_where_a_fit_is(kind, params):
    X, y = make_table()
    accountant = PrivacyAccountant(1e6, 0.5)
    estimator = kind(**params, accountant=accountant)
    with pytest.raises(ValueError) as of_plan:
        estimator.plan_fit(shape_of(X, y), guarantee_of(estimator))
    with pytest.raises(ValueError) as of_fit:
        estimator.fit(X, y)
    assert str(of_plan.value) == str(of_fit.value)
    assert not accountant.charges


def test_labels_that_nobody_named_are_asked_for():
    shape = TableShape(n_rows=N_ROWS, n_columns=N_COLUMNS)
    encoder = DPTargetEncoder(categories=[0, 1, 2])
    with pytest.raises(ValueError, match="classes"):
        encoder.plan_fit(shape, Guarantee(epsilon=1.0))
    assert encoder.set_params(classes=[0, 1]).plan_fit(shape, Guarantee(epsilon=1.0)).epsilon == 1


@pytest.mark.parametrize("kind", [DPKBinsDiscretizer, DPHistogramTransformer, DPMeanTransformer])
def test_columns_are_found_by_name(kind):
    names = np.array(["a", "b"], dtype=object)
    shape = TableShape(n_rows=N_ROWS, n_columns=2, names=names)
    estimator = kind(bounds={"b": (0, 1), "a": (0, 2)})
    assert estimator.plan_fit(shape, Guarantee(epsilon=1.0)).epsilon == 1.0
    with pytest.raises(ValueError, match="no column"):
        estimator.plan_fit(TableShape(n_rows=N_ROWS, n_columns=2), Guarantee(epsilon=1.0))
