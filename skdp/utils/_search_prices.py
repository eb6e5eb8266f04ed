"""The charges of searches of other libraries, known before their first fit."""

import math
from dataclasses import dataclass
from numbers import Integral

from skdp.utils._known_callers import (
    INDEX_SPLITTERS,
    holds_private,
    is_estimator,
    is_frozen,
    is_private,
)

# Estimators that fit each private one inside them once.
FIT_ONCE = frozenset(
    "Pipeline FeatureUnion ColumnTransformer TransformedTargetRegressor VotingClassifier "
    "VotingRegressor SelectFromModel FixedThresholdClassifier FrozenEstimator SplitPipeline "
    "SplitFeatureUnion SplitColumnTransformer".split()
)


@dataclass(frozen=True)
class SearchPrice:
    """What a search will charge.

    Parameters
    ----------
    n_fits : int
    epsilon, delta : float
        Of these fits and of their scores.
    accountant : PrivacyAccountant
    is_exact : bool
        Whether it is that much. Otherwise it is at least that much.
    """

    n_fits: int
    epsilon: float
    delta: float
    accountant: object
    is_exact: bool

    def __str__(self):
        if self.is_exact:
            return (
                f"its {self.n_fits} fits and their scores charge epsilon {self.epsilon:.6g} in all"
            )
        return f"its fits and their scores charge epsilon {self.epsilon:.6g} or more"


@dataclass(frozen=True)
class _Runs:
    """How often a search fits the whole estimator inside it, and scores it."""

    n_fits: int
    n_scores: int
    is_exact: bool = True


def price_of_search(search, X):
    """Return what a search will charge, by its parameters and the shape of its table.

    Parameters
    ----------
    search : estimator
        One whose `fit` has begun.
    X : array-like or None
        Its table, of which the shape is looked at alone.

    Returns
    -------
    SearchPrice or None
        None if the charges are not known beforehand: without an accountant, with several, where
        charges do not add up plainly, or where candidates differ in epsilon, or are estimators.
    """
    # Other libraries have classes of the same names.
    names = {kind.__name__ for kind in type(search).__mro__ if _is_of_counted_package(kind)}
    count = next((count for name, count in COUNTS.items() if name in names), None)
    n_splits = None if count is None else _number_of_splits(search.cv, X)
    runs = None if n_splits is None else count(search, n_splits, X)
    if runs is None:
        return None
    params = {"": search.estimator, **search.estimator.get_params()}
    # What is frozen was paid when it was fitted.
    frozen = [name for name, part in params.items() if is_frozen(part)]
    paid = tuple(f"{name}__" if name else "" for name in frozen)
    parts = [part for name, part in params.items() if not name.startswith(paid)]
    private = list({id(part): part for part in parts if is_private(part)}.values())
    scoring = search.scoring
    scorers = list(scoring.values()) if isinstance(scoring, dict) else [scoring]
    scorers = [scorer for scorer in scorers if getattr(scorer, "releases_privately", False)]
    accountants = {id(part.accountant): part.accountant for part in (*private, *scorers)}
    accountant = next(iter(accountants.values()), None)
    if len(accountants) != 1 or getattr(accountant, "composition", None) != "basic":
        return None
    # How often others fit what is inside them may be a matter of the labels, as one against the
    # rest is, so it is not counted.
    outer = [part for part in parts if holds_private(part) and not is_private(part)]
    fits_once = all(type(part).__name__ in FIT_ONCE for part in outer)
    n_scores = runs.n_scores * (1 + bool(getattr(search, "return_train_score", False)))
    charged = [
        runs.n_fits * sum(getattr(part, name, 0.0) or 0.0 for part in private)
        + n_scores * sum(getattr(scorer, name, 0.0) or 0.0 for scorer in scorers)
        for name in ("epsilon", "delta")
    ]
    return SearchPrice(runs.n_fits, *charged, accountant, runs.is_exact and fits_once)


def _is_of_counted_package(kind):
    return kind.__module__.partition(".")[0] in COUNTED_PACKAGES


def _number_of_splits(cv, X):
    """Return the number of folds, None if it is not a matter of the number of rows alone."""
    if cv is None or isinstance(cv, Integral):
        return cv or 5
    if type(cv).__name__ not in INDEX_SPLITTERS and not hasattr(cv, "n_splits"):
        return None
    try:
        return cv.get_n_splits(X)
    except (AttributeError, TypeError, ValueError):
        return None


def _number_of_candidates(search):
    """Return how many candidates a grid or a random search tries, None if that is not known."""
    grid = getattr(search, "param_grid", getattr(search, "param_distributions", None))
    if not isinstance(grid, dict) or _changes_price(search, grid):
        return None
    n_candidates = math.prod(len(v) if hasattr(v, "__len__") else 1 for v in grid.values())
    if hasattr(search, "param_grid"):
        return n_candidates
    n_drawn = getattr(search, "n_iter", getattr(search, "n_candidates", None))
    if not isinstance(n_drawn, Integral):
        return None
    is_finite = all(hasattr(values, "__len__") for values in grid.values())
    return min(n_drawn, n_candidates) if is_finite else n_drawn


def _changes_price(search, grid):
    """Return True if candidates may differ in what they charge."""
    if any("epsilon" in name for name in grid):
        return True
    params = search.estimator.get_params()
    return any(
        is_estimator(params.get(name))
        or (isinstance(values, list | tuple) and any(map(is_estimator, values)))
        for name, values in grid.items()
    )


def _of_search(search, n_splits, X):
    n_candidates = _number_of_candidates(search)
    if n_candidates is None:
        return None
    n_scores = n_candidates * n_splits
    return _Runs(n_scores + bool(search.refit), n_scores)


def _of_halving(search, n_splits, X):
    # Later rounds have the fewer candidates: how many is a matter of the number of labels, too.
    runs = _of_search(search, n_splits, X)
    return None if runs is None else _Runs(runs.n_fits, runs.n_scores, is_exact=False)


def _of_optuna(search, n_splits, X):
    is_bounded = isinstance(search.n_trials, Integral) and search.timeout is None
    if not is_bounded or search.enable_pruning:
        return None
    if _changes_price(search, search.param_distributions):
        return None
    n_scores = search.n_trials * n_splits
    return _Runs(n_scores + bool(search.refit), n_scores)


def _of_rfecv(search, n_splits, X):
    n_features = _width(X)
    if n_features is None:
        return None
    step = search.step if search.step >= 1 else max(1, int(search.step * n_features))
    n_removed = n_features - min(search.min_features_to_select, n_features)
    n_scores = n_splits * (math.ceil(n_removed / int(step)) + 1)
    # At the end it eliminates once more, as far as the scores say, and fits what is left.
    return _Runs(n_scores + 2, n_scores, is_exact=False)


def _of_sequential(search, n_splits, X):
    n_features = _width(X)
    asked = search.n_features_to_select
    if n_features is None:
        return None
    is_exact = True
    n_rounds = asked
    if asked == "auto":
        # With a tolerance it stops by the scores.
        is_exact = search.tol is None
        n_rounds = n_features // 2 if is_exact else 1
    elif not isinstance(asked, Integral):
        n_rounds = int(n_features * asked)
    if search.direction == "backward" and asked != "auto":
        n_rounds = n_features - n_rounds
    n_scores = n_splits * sum(n_features - i for i in range(n_rounds))
    return _Runs(n_scores, n_scores, is_exact)


def _width(X):
    """Return the number of columns of a table, None if it has no shape."""
    shape = getattr(X, "shape", ())
    return shape[1] if len(shape) == 2 else None


# By the class, or one that it derives from, of these packages.
COUNTED_PACKAGES = ("sklearn", "optuna", "optuna_integration")
COUNTS = {
    "BaseSuccessiveHalving": _of_halving,
    "GridSearchCV": _of_search,
    "RandomizedSearchCV": _of_search,
    "OptunaSearchCV": _of_optuna,
    "RFECV": _of_rfecv,
    "SequentialFeatureSelector": _of_sequential,
}
