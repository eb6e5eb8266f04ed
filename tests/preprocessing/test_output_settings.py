"""What scikit-learn's output settings refuse, they refuse before the charge."""

import sys
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from skdp import (
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPSimpleImputer,
    DPTableVectorizer,
    DPTargetEncoder,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from tests._estimators import completed
from tests._public import TRANSFORMERS

LABELS = [0, 1, 2]
# Transformers that need no special parameters here are not listed.
LISTED = [
    DPKBinsDiscretizer(encode="onehot"),
    DPHistogramTransformer(sparse_output=True),
    DPOneHotEncoder(categories=LABELS, min_frequency=2),
    DPOneHotEncoder(epsilon=20.0, delta=1e-3),
    DPHistogramTransformer(categories=LABELS),
    DPKBinsDiscretizer(encode="onehot-dense"),
    DPKBinsDiscretizer(encode="ordinal"),
    DPOneHotEncoder(epsilon=20.0, delta=1e-3, sparse_output=False),
    DPQuantileTransformer(),
    DPSimpleImputer(add_indicator=True),
    DPSimpleImputer(strategy="most_frequent", categories=LABELS),
    DPTargetEncoder(categories=LABELS),
    RandomizedResponseTransformer(categories=LABELS),
]
# That of tables is in pipeline/test_table_vectorizer.py.
CASES = completed(LISTED, [kind for kind in TRANSFORMERS if kind is not DPTableVectorizer])


def transformed(estimator, container, by):
    """Return the output, or what was raised; and what was charged."""
    X = np.random.default_rng(0).integers(0, 3, size=(60, 3)).astype(float)
    accountant = PrivacyAccountant(100.0, 0.5)
    estimator = clone(estimator).set_params(accountant=accountant)
    setting = nullcontext()
    if by == "estimator":
        estimator.set_output(transform=container)
    else:
        setting = config_context(transform_output=container)
    with setting:
        try:
            output = estimator.fit_transform(X, X[:, 0] > 0)
        except (ValueError, ImportError, AttributeError) as error:
            output = error
    return output, len(accountant.charges)


def is_sparse(estimator):
    return hasattr(transformed(estimator, "default", "estimator")[0], "tocsr")


def test_transformers_of_both_kinds_are_tried():
    n_sparse = sum(map(is_sparse, CASES))
    assert 4 <= n_sparse <= len(CASES) - 15


@pytest.mark.quick_cases(every=11)
@pytest.mark.parametrize("by", ["estimator", "configuration"])
@pytest.mark.parametrize("container", ["default", "pandas", "polars"])
@pytest.mark.parametrize("estimator", CASES, ids=str)
def test_the_output_is_made_or_nothing_was_charged(estimator, container, by):
    if container != "default":
        pytest.importorskip(container)
    output, n_charges = transformed(estimator, container, by)
    if container != "default" and is_sparse(estimator):
        assert "sparse" in str(output) and n_charges == 0
        return
    assert n_charges == 1
    module = "scipy.sparse" if hasattr(output, "tocsr") else "numpy"
    assert type(output).__module__.startswith(module if container == "default" else container)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize(
    ("container", "by"), [("pandas", "estimator"), ("polars", "configuration")]
)
@pytest.mark.parametrize("estimator", CASES, ids=str)
def test_a_missing_library_is_missed_before_the_charge(estimator, container, by, monkeypatch):
    monkeypatch.setitem(sys.modules, container, None)
    output, n_charges = transformed(estimator, container, by)
    # Older scikit-learn asks the missing module for its frames.
    assert isinstance(output, ImportError | ValueError | AttributeError) and n_charges == 0


def test_an_estimator_without_output_settings_is_not_asked():
    class Plain(DPKBinsDiscretizer, auto_wrap_output_keys=None):
        """Returns arrays whatever is set."""

    X = np.random.default_rng(0).uniform(size=(60, 2))
    with config_context(transform_output="pandas"):
        Plain(bounds=(0, 1), encode="onehot").fit(X)
        with pytest.raises(ValueError, match="sparse"):
            DPKBinsDiscretizer(bounds=(0, 1), encode="onehot").fit(X)
