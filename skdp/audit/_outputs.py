"""Clones that an auditor fits, and the statistics of a row that an attacker reads off a model."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from skdp._version import __version__
from skdp.base import DEFAULT_CONFIG, neighbors_of, relation_of
from skdp.ledger import Charge
from skdp.ledger._state import LedgerConfig, NotCopied
from skdp.utils._findings import muted_findings
from skdp.utils._labels import category_codes
from skdp.utils._values import FrozenValue

# Probabilities of 0 and 1 count as this and as one minus this.
LEAST_PROBABILITY = 1e-6


def accountants(estimator):
    """Return the accountants of an estimator, of those in it, and of the grids of a search.

    Those of other libraries are left out.
    """
    found = []
    for value in estimator.get_params().values():
        _replaced(value, found.append)
    return found


def _replaced(value, instead):
    """Return a parameter with another value for each accountant that it is or holds."""
    if type(value) is dict:
        return {name: _replaced(part, instead) for name, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replaced(part, instead) for part in value)
    return instead(value) if hasattr(value, "charge") and hasattr(value, "config") else value


def relation_in(estimator):
    """Return the relation of the estimator's accountant, add/remove without one."""
    return next(map(relation_of, accountants(estimator)), "add_remove")


def parameter(estimator, name):
    """Return a parameter of an estimator, or of the first nested one that has it; None without."""
    params = estimator.get_params().items()
    return next((v for n, v in params if n.rpartition("__")[2] == name and v is not None), None)


@dataclass(frozen=True)
class NullAccountant(NotCopied, FrozenValue):
    """An accountant without a ledger, with the relation and the unit of another one."""

    config: LedgerConfig

    def can_afford(self, event, **terms):
        return True

    def charge(self, event, *, label="", epsilon=None, delta=None, seeded=False):
        return Charge(label, event, epsilon, delta, seeded, "", __version__)


def without_accountant(estimator):
    """Return a clone that charges no ledger, because what an auditor fits is not released.

    Its noise is still that of the relation and the unit of its accountant.
    """
    estimator = clone(estimator)
    params = estimator.get_params()
    replaced = {name: _replaced(value, _null_accountant) for name, value in params.items()}
    return estimator.set_params(**{n: v for n, v in replaced.items() if v is not params[n]})


def shadow(estimator, seed=None):
    """Return a clone that charges no ledger and has another seed, if the estimator has one.

    If all shadows had the target's seed, their noise would be the target's and hide nothing.
    With `seed=None` each fit draws fresh noise.
    """
    estimator = without_accountant(estimator)
    held = [name for name, value in estimator.get_params().items() if value is not None]
    seeds = [name for name in held if name.rpartition("__")[2] == "random_state"]
    return estimator.set_params(**dict.fromkeys(seeds, seed))


def halves(n_rows, n_models, random):
    """Return masks of the rows of each model: half of the rows, each row in half of the models."""
    masks = np.zeros((n_models, n_rows), dtype=bool)
    for i in range(0, n_models, 2):
        masks[i, random.permutation(n_rows)[: n_rows // 2]] = True
        masks[i + 1 : i + 2] = ~masks[i]
    return masks


def _null_accountant(accountant):
    terms = replace(DEFAULT_CONFIG, **vars(neighbors_of(accountant)))
    return None if terms == DEFAULT_CONFIG else NullAccountant(terms)


@muted_findings()
def fit_persons(estimator, X, y, groups):
    """Fit an estimator to rows, and pass it the persons if it accepts them."""
    if groups is None:
        return estimator.fit(X, y)
    with config_context(enable_metadata_routing=True):
        routed = get_routing_for_object(estimator).consumes("fit", ["groups"])
        taken = {"groups": groups} if routed or has_fit_parameter(estimator, "groups") else {}
        return estimator.fit(X, y, **taken)


def per_row_statistic(estimator, X, y, access):
    """Return one number a row, which is larger if the model was fitted to the row.

    Parameters
    ----------
    estimator : fitted estimator
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    access : {"probabilities", "labels", "parameters"}
        "probabilities": the log-odds of the true class (Carlini et al. 2022), from
        `predict_proba` or, failing that, the margin of `decision_function`; minus the absolute
        error of a regressor. "labels": whether the predicted label is right. "parameters":
        minus the norm of the gradient of the row's logistic loss with respect to a linear
        model's coefficients (Nasr, Shokri and Houmansadr 2019); of the squared error for a
        regressor, less a factor.

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    y = np.asarray(y)
    if not is_classifier(estimator):
        if access == "labels":
            raise ValueError("access='labels' is for classifiers")
        error = np.abs(y - np.asarray(estimator.predict(X)))
        return -error if access == "probabilities" else -error * _gradient_scale(estimator, X)
    if access == "labels":
        return np.where(np.asarray(estimator.predict(X)) == y, 1.0, -1.0)
    if access == "probabilities":
        return _log_odds(estimator, X, y)
    return -_gradient_scale(estimator, X) * _residual_norm(estimator, X, y)


def _log_odds(estimator, X, y):
    # A label that is none of the model's classes has probability 0.
    codes = category_codes(y, np.asarray(estimator.classes_))
    rows = np.arange(len(codes))
    known = codes >= 0
    if hasattr(estimator, "predict_proba"):
        p = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        right = np.where(known, p[rows, codes], 0.0)
        return np.subtract(*np.log(np.maximum([right, p.sum(axis=1) - right], LEAST_PROBABILITY)))
    margins = np.array(estimator.decision_function(X), dtype=np.float64)
    if margins.ndim == 1:
        margins = np.column_stack([-margins / 2.0, margins / 2.0])
    right = np.where(known, margins[rows, codes], margins.min(axis=1))
    margins[rows[known], codes[known]] = -np.inf
    return right - margins.max(axis=1)


def _residual_norm(estimator, X, y):
    """Return the norm of the derivative of a row's logistic loss by the scores of the classes.

    With two classes it is the probability of the wrong one, with more the distance of the
    probabilities to the true class.
    """
    if len(estimator.classes_) <= 2 or not hasattr(estimator, "predict_proba"):
        return expit(-_log_odds(estimator, X, y))
    # A label that is none of the model's classes has no column.
    codes = category_codes(y, np.asarray(estimator.classes_))
    truth = codes[:, None] == np.arange(len(estimator.classes_))
    return np.linalg.norm(estimator.predict_proba(X) - truth, axis=1)


def _gradient_scale(estimator, X):
    final = estimator
    while not hasattr(final, "coef_"):
        inner = getattr(final, "best_estimator_", getattr(final, "estimator", None))
        if hasattr(final, "steps"):
            X = final[:-1].transform(X) if len(final) > 1 else X
            inner = final[-1]
        if inner is None:
            raise ValueError("access='parameters' needs a linear model with coef_")
        final = inner
    X = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    return np.sqrt(np.einsum("ij,ij->i", X, X) + float(np.any(getattr(final, "intercept_", 0.0))))
