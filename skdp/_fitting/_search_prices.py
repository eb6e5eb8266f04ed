"""Total charges of searches of other libraries, computed before their first fit."""

import math
from dataclasses import dataclass
from numbers import Integral

from skdp._fitting._known_callers import (
    INDEX_SPLITTERS,
    holds_private,
    is_estimator,
    is_frozen,
    is_private,
)

# Estimators that fit each private estimator inside them once.
FIT_ONCE = frozenset(
    "Pipeline FeatureUnion ColumnTransformer TransformedTargetRegressor VotingClassifier "
    "VotingRegressor SelectFromModel FixedThresholdClassifier FrozenEstimator SplitPipeline "
    "SplitFeatureUnion SplitColumnTransformer".split()
)


@dataclass(frozen=True)
class SearchPrice:
    """Total charge of a search.

    Parameters
    ----------
    n_fits : int
        Number of fits.
    epsilon, delta : float
        Sums over the fits and their scores.
    accountant : PrivacyAccountant
        Accountant that is charged.
    is_exact : bool
        True if these numbers are exact; otherwise they are lower bounds.
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
    """Number of fits and of scores of the estimator that a search tunes."""

    n_fits: int
    n_scores: int
    is_exact: bool = True


def price_of_search(search, X):
    """Return the total charge of a search, from its parameters and the shape of its table.

    Parameters
    ----------
    search : estimator
        Search whose `fit` has begun.
    X : array-like or None
        Table of the search, of which only the shape is used.

    Returns
    -------
    SearchPrice or None
        None if the total is unknown: without an accountant, with several accountants, if charges
        do not simply add up, or if candidates differ in epsilon or are estimators.
    """
    # Classes of other libraries may have the same names.
    class_names = {cls.__name__ for cls in type(search).__mro__ if _is_of_counted_package(cls)}
    count_runs = None
    for name, function in RUN_COUNTS.items():
        if name in class_names:
            count_runs = function
            break
    if count_runs is None:
        return None
    n_splits = _number_of_splits(search.cv, X)
    if n_splits is None:
        return None
    runs = count_runs(search, n_splits, X)
    if runs is None:
        return None
    params = {"": search.estimator, **search.estimator.get_params()}
    # Frozen estimators were charged when they were fitted.
    frozen = [name for name, value in params.items() if is_frozen(value)]
    frozen_prefixes = tuple(f"{name}__" if name else "" for name in frozen)
    estimators = [v for name, v in params.items() if not name.startswith(frozen_prefixes)]
    private = list({id(value): value for value in estimators if is_private(value)}.values())
    scoring = search.scoring
    scorers = list(scoring.values()) if isinstance(scoring, dict) else [scoring]
    scorers = [scorer for scorer in scorers if getattr(scorer, "releases_privately", False)]
    accountants = {id(value.accountant): value.accountant for value in (*private, *scorers)}
    accountant = next(iter(accountants.values()), None)
    if len(accountants) != 1 or getattr(accountant, "composition", None) != "basic":
        return None
    # Other containers may fit their estimators several times, maybe depending on the labels, as
    # one-against-rest does. The total is then a lower bound.
    containers = [value for value in estimators if holds_private(value) and not is_private(value)]
    fits_once = all(type(container).__name__ in FIT_ONCE for container in containers)
    # An encoder of declared categories charges nothing.
    charged = [value for value in private if not getattr(value, "_may_release_nothing", False)]
    n_scores = runs.n_scores * (1 + bool(getattr(search, "return_train_score", False)))
    totals = {}
    for name in ("epsilon", "delta"):
        per_fit = sum(getattr(value, name, 0.0) or 0.0 for value in charged)
        per_score = sum(getattr(scorer, name, 0.0) or 0.0 for scorer in scorers)
        totals[name] = runs.n_fits * per_fit + n_scores * per_score
    return SearchPrice(
        n_fits=runs.n_fits,
        epsilon=totals["epsilon"],
        delta=totals["delta"],
        accountant=accountant,
        is_exact=runs.is_exact and fits_once and len(charged) == len(private),
    )


def price_of_container(container):
    """Return a lower bound of the charges of a container that fits a search among other parts.

    Parameters
    ----------
    container : object
        Pipeline, ensemble or other object whose `fit` has begun.

    Returns
    -------
    SearchPrice or None
        None if the container has no search of known price, or may fit its parts several times.
    """
    if not _fits_each_part(container):
        return None
    searches = []
    models = []
    # Names of parts whose own parts are in their price, or are not fitted.
    closed = []
    params = container.get_params()
    # A name comes before the names of its parts.
    for name in sorted(params):
        part = params[name]
        if not is_estimator(part) or any(name.startswith(f"{outer}__") for outer in closed):
            continue
        if is_private(part):
            models.append(part)
        elif not _fits_each_part(part):
            searches.append(price_of_search(part, None))
        else:
            continue
        closed.append(name)
    searches = [price for price in searches if price is not None]
    if not searches:
        return None
    accountant = searches[0].accountant
    # Other models may charge nothing, or have been charged with their plan.
    prices = [price for price in searches if price.accountant is accountant] + [
        model
        for model in models
        if model.accountant is accountant and not getattr(model, "_may_release_nothing", False)
    ]
    return SearchPrice(
        n_fits=sum(price.n_fits for price in searches),
        epsilon=sum(price.epsilon or 0.0 for price in prices),
        delta=sum(getattr(price, "delta", 0.0) or 0.0 for price in prices),
        accountant=accountant,
        is_exact=False,
    )


def _fits_each_part(container):
    """Return True for a container that fits each of its parts once in any case."""
    is_container = is_estimator(container) and type(container).__name__ in FIT_ONCE
    # A ColumnTransformer leaves out parts without columns, a selection a fitted model.
    is_other = type(container).__name__ in ("ColumnTransformer", "SplitColumnTransformer")
    is_fitted = is_frozen(container) or getattr(container, "prefit", False) is True
    return is_container and not (is_other or is_fitted)


def _is_of_counted_package(cls):
    return cls.__module__.partition(".")[0] in COUNTED_PACKAGES


def _number_of_splits(cv, X):
    """Return the number of folds; None if it depends on more than the number of rows."""
    if cv is None or isinstance(cv, Integral):
        return cv or 5
    if type(cv).__name__ not in INDEX_SPLITTERS and not hasattr(cv, "n_splits"):
        return None
    try:
        return cv.get_n_splits(X)
    except (AttributeError, TypeError, ValueError):
        return None


def _number_of_candidates(search):
    """Return the number of candidates of a grid or random search; None if unknown."""
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
    """Return True if candidates may charge different amounts."""
    if any("epsilon" in name for name in grid):
        return True
    params = search.estimator.get_params()
    return any(
        is_estimator(params.get(name))
        or (isinstance(values, list | tuple) and any(map(is_estimator, values)))
        for name, values in grid.items()
    )


def _count_search(search, n_splits, X):
    n_candidates = _number_of_candidates(search)
    if n_candidates is None:
        return None
    n_scores = n_candidates * n_splits
    return _Runs(n_scores + bool(search.refit), n_scores)


def _count_halving(search, n_splits, X):
    # A lower bound: the number of candidates in later rounds also depends on the number of labels.
    runs = _count_search(search, n_splits, X)
    return None if runs is None else _Runs(runs.n_fits, runs.n_scores, is_exact=False)


def _count_optuna(search, n_splits, X):
    is_bounded = isinstance(search.n_trials, Integral) and search.timeout is None
    if not is_bounded or search.enable_pruning:
        return None
    if _changes_price(search, search.param_distributions):
        return None
    n_scores = search.n_trials * n_splits
    return _Runs(n_scores + bool(search.refit), n_scores)


def _count_rfecv(search, n_splits, X):
    n_features = _width(X)
    if n_features is None:
        return None
    step = search.step if search.step >= 1 else max(1, int(search.step * n_features))
    n_removed = n_features - min(search.min_features_to_select, n_features)
    n_scores = n_splits * (math.ceil(n_removed / int(step)) + 1)
    # A lower bound: at the end it eliminates again, by the scores, and fits the remaining columns.
    return _Runs(n_scores + 2, n_scores, is_exact=False)


def _count_sequential(search, n_splits, X):
    n_features = _width(X)
    n_selected = search.n_features_to_select
    if n_features is None:
        return None
    is_exact = True
    n_rounds = n_selected
    if n_selected == "auto":
        # With a tolerance the scores decide when it stops.
        is_exact = search.tol is None
        n_rounds = n_features // 2 if is_exact else 1
    elif not isinstance(n_selected, Integral):
        n_rounds = int(n_features * n_selected)
    if search.direction == "backward" and n_selected != "auto":
        n_rounds = n_features - n_rounds
    n_scores = n_splits * sum(n_features - i for i in range(n_rounds))
    return _Runs(n_scores, n_scores, is_exact)


def _width(X):
    """Return the number of columns of a table; None if it has no shape."""
    shape = getattr(X, "shape", ())
    return shape[1] if len(shape) == 2 else None


# Packages whose searches are counted, by the top-level module of their classes.
COUNTED_PACKAGES = ("sklearn", "optuna", "optuna_integration")
# Function that counts the runs, by the name of a search's class or of one of its base classes.
RUN_COUNTS = {
    "BaseSuccessiveHalving": _count_halving,
    "GridSearchCV": _count_search,
    "RandomizedSearchCV": _count_search,
    "OptunaSearchCV": _count_optuna,
    "RFECV": _count_rfecv,
    "SequentialFeatureSelector": _count_sequential,
}
