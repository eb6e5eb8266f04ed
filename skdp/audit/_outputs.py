"""Clones that an audit fits, and the row statistics that an attacker computes from a model."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from skdp._data._labels import category_codes
from skdp._fitting._findings import muted_findings
from skdp._version import __version__
from skdp.base import DEFAULT_CONFIG, neighbors_of, relation_of
from skdp.ledger import Charge
from skdp.ledger._state import LedgerConfig, NotCopied
from skdp.utils._values import FrozenValue

# Minimum of a probability and of the sum of the other probabilities, so log-odds are finite.
MIN_PROBABILITY = 1e-6


def accountants(estimator):
    """Return the accountants of an estimator, its nested estimators and the grids of a search.

    Accountants of other libraries are left out.
    """
    results = []
    for value in estimator.get_params().values():
        _replace_accountants(value, results.append)
    return results


def _replace_accountants(value, replacement):
    """Return a parameter value with each accountant replaced by `replacement(accountant)`."""
    if type(value) is dict:
        return {name: _replace_accountants(part, replacement) for name, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replace_accountants(part, replacement) for part in value)
    if hasattr(value, "charge") and hasattr(value, "config"):
        return replacement(value)
    return value


def relation_in(estimator):
    """Return the relation of the estimator's accountant, or "add_remove" if it has none."""
    return next(map(relation_of, accountants(estimator)), "add_remove")


def parameter(estimator, name):
    """Return the first value that is not None of a parameter with this name, or None.

    Nested estimators are searched, too: canaries must suit the private estimator in a pipeline, and
    the name of its step is unknown.
    """
    for full_name, value in estimator.get_params().items():
        if full_name.rpartition("__")[2] == name and value is not None:
            return value
    return None


@dataclass(frozen=True)
class NullAccountant(NotCopied, FrozenValue):
    """An accountant without a ledger that has the relation and the unit of another one."""

    config: LedgerConfig

    def can_afford(self, event, **params):
        """Return True: there is no budget."""
        return True

    def charge(self, event, *, label="", epsilon=None, delta=None, seeded=False):
        return Charge(label, event, epsilon, delta, seeded, "", __version__)


def without_accountant(estimator):
    """Return a clone that charges no ledger, because an audit releases no fit.

    Its noise still depends on the relation and the unit of its accountant.
    """
    estimator = clone(estimator)
    changed = {}
    for name, value in estimator.get_params().items():
        new_value = _replace_accountants(value, _null_accountant)
        if new_value is not value:
            changed[name] = new_value
    return estimator.set_params(**changed)


def shadow(estimator, seed=None):
    """Return a clone that charges no ledger and, if the estimator has a seed, has another one.

    With the seed of the target, all shadow models would have the same noise as the target, and the
    noise would protect nothing. With `seed=None`, each fit draws fresh noise.
    """
    estimator = without_accountant(estimator)
    seeds = {}
    for name, value in estimator.get_params().items():
        if value is not None and name.rpartition("__")[2] == "random_state":
            seeds[name] = seed
    return estimator.set_params(**seeds)


def halves(n_rows, n_models, random):
    """Return masks of the rows of each model: half of the rows, each row in half of the models."""
    masks = np.zeros((n_models, n_rows), dtype=bool)
    for i in range(0, n_models, 2):
        masks[i, random.permutation(n_rows)[: n_rows // 2]] = True
        masks[i + 1 : i + 2] = ~masks[i]
    return masks


def _null_accountant(accountant):
    """Return a `NullAccountant` like the accountant, or None if it has the default config."""
    neighbors = neighbors_of(accountant)
    terms = replace(
        DEFAULT_CONFIG,
        relation=neighbors.relation,
        unit=neighbors.unit,
        max_rows=neighbors.max_rows,
    )
    if terms == DEFAULT_CONFIG:
        return None
    return NullAccountant(terms)


@muted_findings()
def fit_persons(estimator, X, y, groups):
    """Return an estimator fitted to rows, with the persons if its `fit` accepts `groups`."""
    if groups is None:
        return estimator.fit(X, y)
    with config_context(enable_metadata_routing=True):
        routed = get_routing_for_object(estimator).consumes("fit", ["groups"])
        if routed or has_fit_parameter(estimator, "groups"):
            return estimator.fit(X, y, groups=groups)
        return estimator.fit(X, y)


def per_row_statistic(estimator, X, y, access):
    """Return one number per row, which tends to be larger if the model was fitted to the row.

    Parameters
    ----------
    estimator : fitted estimator
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    access : {"probabilities", "labels", "parameters"}
        "probabilities": the log-odds of the true class (Carlini et al. 2022), from
        `predict_proba` or, failing that, the margin of `decision_function`; minus the absolute
        error of a regressor; the log-likelihood of a synthesizer. "labels": 1 if the predicted
        label is correct, else -1. "parameters":
        minus the norm of the gradient of the row's logistic loss with respect to a linear
        model's coefficients (Nasr, Shokri and Houmansadr 2019); for a regressor, the gradient of
        the squared error is used, up to a factor.

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    y = np.asarray(y)
    if not hasattr(estimator, "predict") and hasattr(estimator, "score_samples"):
        if access != "probabilities":
            raise ValueError(
                f"access must be 'probabilities' for {type(estimator).__name__}, which has a "
                f"likelihood only, got {access!r}"
            )
        return np.asarray(estimator.score_samples(X))
    if not is_classifier(estimator):
        if access == "labels":
            raise ValueError(f"access='labels' needs a classifier, got {type(estimator).__name__}")
        error = np.abs(y - np.asarray(estimator.predict(X)))
        if access == "probabilities":
            return -error
        return -error * _gradient_scale(estimator, X)
    if access == "labels":
        return np.where(np.asarray(estimator.predict(X)) == y, 1.0, -1.0)
    if access == "probabilities":
        return _log_odds(estimator, X, y)
    return -_gradient_scale(estimator, X) * _residual_norm(estimator, X, y)


def _log_odds(estimator, X, y):
    """Return the log-odds of the true class of each row, or the margin of its score."""
    # A label that is not one of the model's classes has probability 0.
    codes = category_codes(y, np.asarray(estimator.classes_))
    rows = np.arange(len(codes))
    is_known = codes >= 0
    if hasattr(estimator, "predict_proba"):
        p = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        correct = np.where(is_known, p[rows, codes], 0.0)
        return np.subtract(*np.log(np.maximum([correct, p.sum(axis=1) - correct], MIN_PROBABILITY)))
    margins = np.array(estimator.decision_function(X), dtype=np.float64)
    if margins.ndim == 1:
        margins = np.column_stack([-margins / 2.0, margins / 2.0])
    correct = np.where(is_known, margins[rows, codes], margins.min(axis=1))
    margins[rows[is_known], codes[is_known]] = -np.inf
    return correct - margins.max(axis=1)


def _residual_norm(estimator, X, y):
    """Return the norm of the gradient of each row's logistic loss with respect to class scores.

    With two classes it is the probability of the wrong class. With more classes, it is the distance
    between the probabilities and the one-hot encoded label.
    """
    if len(estimator.classes_) <= 2 or not hasattr(estimator, "predict_proba"):
        return expit(-_log_odds(estimator, X, y))
    # A label that is not one of the model's classes has no column.
    codes = category_codes(y, np.asarray(estimator.classes_))
    truth = codes[:, None] == np.arange(len(estimator.classes_))
    return np.linalg.norm(estimator.predict_proba(X) - truth, axis=1)


def _gradient_scale(estimator, X):
    """Return the norm of each row as the final linear model sees it, including the intercept."""
    final = estimator
    while not hasattr(final, "coef_"):
        inner = getattr(final, "best_estimator_", getattr(final, "estimator", None))
        if hasattr(final, "steps"):
            if len(final) > 1:
                X = final[:-1].transform(X)
            inner = final[-1]
        if inner is None:
            raise ValueError(
                "access='parameters' needs a linear model with coef_, got "
                f"{type(estimator).__name__}"
            )
        final = inner
    if hasattr(X, "todense"):
        X = X.todense()
    X = np.asarray(X, dtype=np.float64)
    return np.sqrt(np.einsum("ij,ij->i", X, X) + float(np.any(getattr(final, "intercept_", 0.0))))
