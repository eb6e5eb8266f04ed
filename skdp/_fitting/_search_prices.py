"""Charges for other libraries' searches and validations, computed before their first fit."""

import math
from dataclasses import dataclass, replace
from itertools import islice, product
from numbers import Integral, Real

import numpy as np
from sklearn.model_selection import KFold

from skdp._fitting._members import refuses_parameters
from skdp._tools._classes import behaves_as
from skdp._tools._parts import (
    copy_parts,
    is_estimator,
    is_frozen,
    is_private,
    is_step,
    nested_parts,
    parts_of,
    set_copies,
)
from skdp._tools._scores_and_folds import INDEX_SPLITTERS
from skdp.utils._documents import count_of
from skdp.utils._rounding import format_rounded_up
from skdp.utils._validation import as_doubles

# Estimators that fit each private estimator inside them once.
FIT_ONCE = frozenset(
    "Pipeline FeatureUnion ColumnTransformer TransformedTargetRegressor VotingClassifier "
    "VotingRegressor SelectFromModel FixedThresholdClassifier FrozenEstimator SplitPipeline "
    "SplitFeatureUnion SplitColumnTransformer".split()
)
# Packages whose containers fit each of their parts at least once. A user-defined class may choose
# one of its estimators.
FIT_ALL = frozenset({"sklearn", "imblearn", "skdp"})
# Stacks fit their members once for all rows and once for each fold.
STACKS = frozenset({"StackingClassifier", "StackingRegressor"})
# Maximum number of settings in a search whose charges are computed one by one.
MAX_SETTINGS = 200
# Maximum number of candidates in a search whose parameters are checked.
MAX_CHECKED = 256
# Parameters of a private estimator that change its charge.
PRICES = ("epsilon", "delta", "accountant")


@dataclass(frozen=True)
class SearchPrice:
    """Total charge of a search or a validation.

    Parameters
    ----------
    n_fits : int
        Number of fits.
    epsilon, delta : float
        Sums over the fits and their scores.
    accountant : PrivacyAccountant
        Accountant that is charged.
    is_exact : bool
        True if these numbers are exact. Otherwise, they are lower bounds.
    """

    n_fits: int
    epsilon: float
    delta: float
    accountant: object
    is_exact: bool

    def __str__(self):
        epsilon = format_rounded_up(self.epsilon)
        if self.is_exact and not self.n_fits:
            return f"its scores charge epsilon {epsilon} in all"
        if self.is_exact:
            fits = count_of(self.n_fits, "fit")
            owner = "their"
            if self.n_fits == 1:
                owner = "its"
            return f"its {fits} and {owner} scores charge epsilon {epsilon} in all"
        return f"its fits and their scores charge epsilon {epsilon} or more"


@dataclass(frozen=True)
class _Charge:
    """Charge of one or several fits, which is a lower bound if `is_exact` is False."""

    epsilon: float = 0.0
    delta: float = 0.0
    n_fits: int = 0
    is_exact: bool = True

    def __add__(self, other):
        return _Charge(
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            self.n_fits + other.n_fits,
            self.is_exact and other.is_exact,
        )

    def times(self, factor, is_exact=True):
        """Return the charge of several runs, each with this charge.

        Parameters
        ----------
        factor : int
            Number of runs.
        is_exact : bool, default=True
            False if there may be more runs, so that the result is a lower bound.
        """
        return _Charge(
            factor * self.epsilon,
            factor * self.delta,
            factor * self.n_fits,
            is_exact and self.is_exact,
        )

    def as_lower_bound(self):
        """Return this charge as a lower bound, for fits that may charge more."""
        return replace(self, is_exact=False)


# Charge for fits about which nothing is known.
_UNKNOWN = _Charge(is_exact=False)


@dataclass(frozen=True)
class _Runs:
    """Runs of the estimator that a search tunes.

    Parameters
    ----------
    n_scored : int
        Number of scored fits per candidate, or of all candidates together.
    n_refits : int
        Number of fits that are not scored.
    is_exact : bool
        False if there may be more.
    n_candidates : int or None
        Number of candidates that a random search draws; None if all settings are tried.
    """

    n_scored: int
    n_refits: int = 0
    is_exact: bool = True
    n_candidates: int | None = None


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
        None if nothing is known, because there is no accountant, there are several, or charges do
        not simply add up.
    """
    if _count_runs_of(search) is None:
        return None
    accountant = _accountant_of(search)
    if accountant is None:
        return None
    charge = _charge_of_search(search, accountant, X)
    return _price(charge, accountant)


def price_of_container(container):
    """Return a lower bound on the charges of a container that fits a search among other parts.

    Parameters
    ----------
    container : object
        Pipeline, ensemble or other object whose `fit` has begun.

    Returns
    -------
    SearchPrice or None
        None if nothing is known, or if the container has no search and no stack.
    """
    if not is_step(container) or _count_runs_of(container) is not None:
        return None
    parts = (container, *nested_parts(container).values())
    if not any(_count_runs_of(part) is not None or _is_stack(part) for part in parts):
        return None
    accountant = _accountant_of(container)
    if accountant is None:
        return None
    charge = _charge_of_fit(container, accountant)
    return _price(charge.as_lower_bound(), accountant)


def price_of_validation(function, variables):
    """Return the price of a call of a function such as `cross_val_score`.

    The call is refused if the price exceeds the budget, so the price is a lower bound wherever it
    is not known exactly (`SearchPrice.is_exact`).

    Parameters
    ----------
    function : str
        Name of the function.
    variables : dict
        Local variables of its call.

    Returns
    -------
    SearchPrice or None
        None if nothing is known.
    """
    count = VALIDATIONS.get(function)
    estimator = variables.get("estimator")
    X = variables.get("X")
    n_splits = _number_of_splits(variables.get("cv"), X)
    if count is None or n_splits is None or not is_step(estimator):
        return None
    runs = count(variables, n_splits)
    scorers = _private_scorers(variables.get("scoring"))
    accountant = _common_accountant(estimator, scorers)
    if accountant is None:
        return None
    name = variables.get("param_name")
    settings = [{}]
    if name is not None:
        settings = [{name: value} for value in listed_values(variables.get("param_range"))]
    per_score = _charge_of_scores(scorers, accountant)
    is_curve = function in ("learning_curve", "validation_curve")
    # Training rows are scored, too.
    n_scores = 1 + (is_curve or variables.get("return_train_score") is True)
    total = _Charge()
    for setting in settings:
        changed = _with_setting(estimator, setting)
        fit = _charge_with_setting(changed, accountant)
        if variables.get("exploit_incremental_learning") and _has_disjoint_calls(changed):
            # By parallel composition, the calls of a fold cost as much as the most expensive one.
            total += fit.times(n_splits, is_exact=False)
            fit = _Charge()
        total += (fit + per_score.times(n_scores)).times(runs.n_scored, runs.is_exact)
    return _price(total, accountant)


def _has_disjoint_calls(estimator):
    """Return True if calls of `partial_fit` charge disjoint parts of the rows."""
    if not is_step(estimator):
        return False
    parts = (estimator, *nested_parts(estimator).values())
    return any(getattr(part, "partial_fit_rows", "any") == "disjoint" for part in parts)


def has_refused_candidates(value, variables):
    """Return True if a tool continues after a candidate's fits have refused their parameters.

    Neither such fits nor their scores charge anything. At most `MAX_CHECKED` candidates per search
    are checked.

    Parameters
    ----------
    value : object
        Search, or the container or model around it; None for no search.
    variables : dict
        Local variables of the call of a tool.
    """
    estimator = variables.get("estimator")
    if variables.get("param_name") is not None:
        name = variables["param_name"]
        candidates = [{name: v} for v in listed_values(variables.get("param_range"))]
        if _any_is_refused(estimator, candidates):
            return True
    values = [part for part in (value, estimator) if is_step(part)]
    searches = [part for value in values for part in (value, *nested_parts(value).values())]
    return any(
        _any_is_refused(getattr(search, "estimator", None), _combinations(search))
        for search in searches
        if _count_runs_of(search) is not None and not _raises_errors(search)
    )


def _raises_errors(search):
    """Return True if a search stops at the first error of a candidate."""
    error_score = getattr(search, "error_score", "raise")
    return isinstance(error_score, str) and error_score == "raise"


def _combinations(search):
    """Yield settings that a search may try, as dictionaries.

    Single values are first: only `MAX_CHECKED` settings are checked.
    """
    yield from _listed_settings(search)
    for grid in _grids(search):
        listed = {name: values for name, v in grid.items() if len(values := listed_values(v))}
        for values in product(*listed.values()):
            yield dict(zip(listed, values, strict=True))


def _any_is_refused(estimator, candidates):
    """Return True if the estimator refuses its parameters in one of the first candidates."""
    for candidate in islice(candidates, MAX_CHECKED):
        if not candidate:
            continue
        changed = _with_setting(estimator, candidate)
        if changed is not None and refuses_parameters(changed):
            return True
    return False


def _price(charge, accountant):
    """Return the `SearchPrice` of a search's total charge, for the message about its budget."""
    return SearchPrice(
        n_fits=charge.n_fits,
        epsilon=charge.epsilon,
        delta=charge.delta,
        accountant=accountant,
        is_exact=charge.is_exact,
    )


def _accountant_of(search):
    """Return the only accountant of a search or container if its charges simply add up."""
    return _common_accountant(search, _scorers_in(search))


def _scorers_in(value):
    """Return the private scorers of the searches in an estimator."""
    parts = (value, *nested_parts(value).values())
    return [scorer for part in parts for scorer in _private_scorers(getattr(part, "scoring", None))]


def _private_scorers(scoring):
    """Return the private scorers in the value of a parameter `scoring`."""
    scorers = [scoring]
    if isinstance(scoring, dict):
        scorers = scoring.values()
    return [scorer for scorer in scorers if getattr(scorer, "releases_privately", False) is True]


def _common_accountant(value, scorers):
    """Return the accountant shared by all private estimators and scorers in a value, or None."""
    parts = [value, *nested_parts(value).values()]
    parts += [
        part
        for search in list(parts)
        for setting in _listed_settings(search)
        for candidate in setting.values()
        if is_step(candidate)
        for part in (candidate, *nested_parts(candidate).values())
    ]
    # A candidate may replace an estimator that has no accountant. Frozen estimators were charged
    # when they were fitted.
    charging = [part for part in parts if is_private(part)] + list(scorers)
    accountants = {id(part.accountant): part.accountant for part in charging}
    accountants = [a for a in accountants.values() if a is not None]
    if len(accountants) != 1 or getattr(accountants[0], "composition", None) != "basic":
        return None
    return accountants[0]


def _charge_of_fit(estimator, accountant):
    """Return a lower bound on the charges of one fit to a ledger."""
    if not is_step(estimator) or is_frozen(estimator):
        return _Charge()
    if is_private(estimator):
        if estimator.accountant is not accountant:
            return _UNKNOWN
        # An encoder with declared categories charges nothing.
        if getattr(estimator, "_may_release_nothing", False):
            return _Charge(n_fits=1, is_exact=False)
        return _Charge(*_amounts(estimator), n_fits=1)
    if not _fits_all_parts(estimator):
        return _UNKNOWN
    if _count_runs_of(estimator) is not None:
        return _charge_of_search(estimator, accountant, None)
    if _is_prefit(estimator):
        return _UNKNOWN
    if _is_stack(estimator):
        return _charge_of_stack(estimator, accountant)
    # Other containers may fit their estimators several times, perhaps depending on the labels, as
    # in one-against-rest. The total is then a lower bound.
    kind = type(estimator).__name__
    is_exact = kind in FIT_ONCE
    parts = list(parts_of(estimator))
    if kind in ("ColumnTransformer", "SplitColumnTransformer"):
        # The ColumnTransformer leaves out parts without columns.
        is_exact = False
        parts = [(name, part) for name, part in parts if _has_columns(estimator, name)]
    if getattr(estimator, "memory", None) is not None:
        # A transformer whose fit is in the cache is not fitted again.
        is_exact = False
        last = None
        if getattr(estimator, "steps", None):
            last = estimator.steps[-1][1]
        parts = [(name, part) for name, part in parts if part is last]
    total = sum((_charge_of_fit(part, accountant) for _, part in parts), _Charge())
    n_fits = 1 if total.n_fits else 0
    return _Charge(total.epsilon, total.delta, n_fits, is_exact and total.is_exact)


def _has_columns(transformer, name):
    """Return True if a part of a `ColumnTransformer` surely has columns, so that it is fitted."""
    for entry in transformer.transformers:
        if entry[0] == name:
            columns = entry[-1]
            if isinstance(columns, str | int):
                return True
            if not isinstance(columns, list | tuple | np.ndarray):
                return False
            # Columns can be selected by a mask.
            is_mask = all(isinstance(column, bool | np.bool_) for column in columns)
            if is_mask:
                return any(columns)
            return len(columns) > 0
    return False


def _fits_all_parts(estimator):
    """Return True for a known container that fits every part, and for a counted search."""
    # A user-defined class may be derived from a known one, with a different `fit`.
    owner = next((cls for cls in type(estimator).__mro__ if "fit" in vars(cls)), object)
    package = owner.__module__.partition(".")[0]
    is_counted = package in COUNTED_PACKAGES and _count_runs_of(estimator) is not None
    return package in FIT_ALL or is_counted


def _amounts(charging):
    """Return epsilon and delta of an estimator or scorer.

    A value that no fit accepts counts as 0, because the fit refuses it before its charge.
    """
    amounts = []
    for name in ("epsilon", "delta"):
        value = getattr(charging, name, 0.0)
        if not isinstance(value, Real) or not 0.0 <= value < math.inf:
            value = 0.0
        amounts.append(float(value))
    return amounts


def _charge_of_scores(scorers, accountant):
    """Return the charge of one score by each private scorer that has the accountant."""
    charges = (_Charge(*_amounts(s)) for s in scorers if s.accountant is accountant)
    return sum(charges, _Charge())


def _is_prefit(estimator):
    """Return True if the fit of a container fits none of its models again."""
    return (
        getattr(estimator, "prefit", False) is True
        or getattr(estimator, "fit_base_estimators", True) is False
    )


def _is_stack(estimator):
    """Return True for a stack of scikit-learn, which fits its members once more for each fold."""
    return type(estimator).__name__ in STACKS and type(estimator).__module__.startswith("sklearn.")


def _charge_of_stack(stack, accountant):
    """Return a lower bound on the charge of one fit of a stack."""
    final = _charge_of_fit(stack.final_estimator, accountant)
    if isinstance(stack.cv, str):
        return final.as_lower_bound()
    n_splits = _number_of_splits(stack.cv, None) or 0
    members = [part for name, part in parts_of(stack) if name != "final_estimator"]
    charges = sum((_charge_of_fit(part, accountant) for part in members), _Charge())
    total = charges.times(1 + n_splits) + final
    return _Charge(total.epsilon, total.delta, 1, is_exact=False)


def _count_runs_of(search):
    """Return the function that counts the runs of a search; None for other objects."""
    # Classes in other libraries may have the same names.
    names = {
        (cls.__module__.partition(".")[0], cls.__name__)
        for cls in type(search).__mro__
        if cls.__module__.partition(".")[0] in COUNTED_PACKAGES
    }
    for (package, name), function in RUN_COUNTS.items():
        if any(n == name and (package in ("", p)) for p, n in names):
            return function
    return None


def _charge_of_search(search, accountant, X):
    """Return a lower bound on the charges of a search."""
    n_splits = _number_of_splits(getattr(search, "cv", None), X)
    if n_splits is None:
        return _UNKNOWN
    runs = _count_runs_of(search)(search, n_splits, X)
    n_scores = 1 + (getattr(search, "return_train_score", False) is True)
    scorers = _private_scorers(getattr(search, "scoring", None))
    per_score = _charge_of_scores(scorers, accountant).times(n_scores)
    fits = _charges_of_settings(search, accountant)
    cheapest = min((fit for fit, _ in fits), key=lambda fit: fit.epsilon, default=_UNKNOWN)
    n_settings = sum(count for _, count in fits)
    is_exact = runs.is_exact
    if runs.n_candidates is None:
        total = _Charge()
        for fit, count in fits:
            total += (fit + per_score).times(count * runs.n_scored)
    else:
        # The cheapest candidates are taken; each one occurs as often as there are settings for it.
        total = _Charge()
        n_left = runs.n_candidates
        is_listed = n_settings >= n_left
        is_exact = is_exact and len(fits) == 1
        for fit, count in sorted(fits, key=lambda pair: pair[0].epsilon):
            n_drawn = n_left
            if is_listed:
                n_drawn = min(count, n_left)
            total += (fit + per_score).times(n_drawn * runs.n_scored)
            n_left -= n_drawn
    # If charges differ, it is unknown which candidate is refitted.
    differs = len({(fit.epsilon, fit.delta) for fit, _ in fits}) > 1
    total += cheapest.times(runs.n_refits, is_exact=not differs)
    if is_exact:
        return total
    return total.as_lower_bound()


def _charges_of_settings(search, accountant):
    """Return the distinct charges of a fit in a search, with the number of settings of each.

    Parameters that cannot change a charge affect only the numbers of settings.

    Returns
    -------
    list of (_Charge, int)
    """
    estimator = getattr(search, "estimator", None)
    charges = []
    for grid in _grids(search):
        relevant, n_others, is_known = _relevant_values(estimator, grid)
        n_settings = math.prod(len(values) for values in relevant.values())
        if n_settings > MAX_SETTINGS or not is_known:
            # A drawn parameter may change the charge.
            charges.append((_UNKNOWN, n_settings * n_others))
            continue
        for values in product(*relevant.values()):
            changed = _with_setting(estimator, dict(zip(relevant, values, strict=True)))
            charges.append((_charge_with_setting(changed, accountant), n_others))
    return charges


def _charge_with_setting(changed, accountant):
    """Return the charge of a fit of the result of `_with_setting`; None has an unknown charge."""
    if changed is None:
        return _UNKNOWN
    return _charge_of_fit(changed, accountant)


def _relevant_values(estimator, grid):
    """Return the listed values of the parameters that may change a charge.

    Returns
    -------
    relevant : dict of str to sequence
    n_others : int
        Number of combinations of the values of other parameters.
    is_known : bool
        False if such a parameter has a distribution instead of a list.
    """
    params = {}
    if is_estimator(estimator):
        params = estimator.get_params()
    relevant = {}
    n_others = 1
    is_known = True
    for name, values in grid.items():
        listed = listed_values(values)
        holder = params.get(name.rpartition("__")[0], estimator)
        is_of_private = is_private(holder)
        if is_of_private and name.rpartition("__")[2] not in PRICES:
            n_others *= max(len(listed), 1)
        elif len(listed):
            relevant[name] = listed
        else:
            is_known = False
    return relevant, n_others, is_known


def _grids(search):
    """Return the grids of a search: dictionaries of parameters to listed values or distributions.

    Without a grid that can be read, the result is one empty dictionary. Sums over grids then have
    one setting: the search's estimator, unchanged.
    """
    for name in ("param_grid", "param_distributions", "search_spaces"):
        grids = getattr(search, name, None)
        if grids is not None:
            return dicts_of_grids(grids) or [{}]
    return [{}]


def dicts_of_grids(grids):
    """Return the dictionaries in the grid, or the sequence of grids, that a search was given.

    Elements of other types are left out, so the result may be empty.
    """
    if not isinstance(grids, list | tuple):
        grids = [grids]
    dicts = []
    for grid in grids:
        if isinstance(grid, tuple) and grid:
            # skopt accepts a number of draws along with a grid.
            grid = grid[0]
        if isinstance(grid, dict):
            dicts.append(grid)
    return dicts


def _listed_settings(search):
    """Return the listed values of a search, each as a setting of one parameter.

    One value at a time is enough to find every estimator among the values (`_common_accountant`),
    or a value that is refused in any combination (`_combinations`), without their product.
    """
    return [
        {name: value}
        for grid in _grids(search)
        for name, values in grid.items()
        for value in listed_values(values)
    ]


def listed_values(values):
    """Return the values in a list, an array or a categorical distribution; () for others."""
    for name in ("choices", "categories"):
        values = getattr(values, name, values)
    if isinstance(values, list | tuple | np.ndarray):
        return values
    return ()


def _with_setting(estimator, setting):
    """Return a copy of an estimator with other parameters; None if it has no such parameters."""
    if not setting:
        return estimator
    changed = copy_parts(estimator)
    try:
        return set_copies(changed, setting)
    except (TypeError, ValueError, AttributeError):
        return None


def _number_of_splits(cv, X):
    """Return the number of folds; None if that depends on more than the number of rows."""
    if cv is None or isinstance(cv, Integral):
        return int(cv or 5)
    if isinstance(cv, list | tuple):
        return len(cv)
    if not (behaves_as(cv, INDEX_SPLITTERS) or hasattr(cv, "n_splits")):
        return None
    try:
        return cv.get_n_splits(X)
    except (AttributeError, TypeError, ValueError):
        return None


# The functions below count the runs of one candidate (`_Runs.n_scored`) and the refits of a search.


def _refits(search):
    return int(bool(getattr(search, "refit", True)))


def _count_grid(search, n_splits, X):
    return _Runs(n_splits, _refits(search))


def _count_random(search, n_splits, X):
    """Count the settings that `RandomizedSearchCV` draws; a grid of lists may have fewer."""
    n_drawn = search.n_iter
    if not isinstance(n_drawn, Integral):
        return _Runs(0, 0, is_exact=False)
    # Lists are drawn without replacement.
    grids = _grids(search)
    if all(isinstance(v, list | tuple | np.ndarray) for grid in grids for v in grid.values()):
        n_settings = sum(math.prod(map(len, grid.values())) for grid in grids)
        n_drawn = min(n_drawn, n_settings)
    return _Runs(n_splits, _refits(search), n_candidates=int(n_drawn))


def _count_halving_grid(search, n_splits, X):
    """Count the fits of the first round only."""
    # The number of candidates in later rounds also depends on the number of labels.
    return _Runs(n_splits, _refits(search), is_exact=False)


def _count_halving_random(search, n_splits, X):
    """Count the candidates of the first round only; see `_count_halving_grid`."""
    n_candidates = search.n_candidates
    if not isinstance(n_candidates, Integral):
        # This is the number for the largest possible round. The smallest round may depend on the
        # labels.
        largest = search.max_resources
        if largest == "auto" and search.resource == "n_samples":
            largest = _height(X)
        n_candidates = 1
        if isinstance(largest, Integral) and isinstance(search.min_resources, Integral):
            n_candidates = max(1, largest // search.min_resources)
    grids = _grids(search)
    if all(isinstance(v, list | tuple | np.ndarray) for grid in grids for v in grid.values()):
        n_candidates = min(n_candidates, sum(math.prod(map(len, g.values())) for g in grids))
    return _Runs(n_splits, _refits(search), is_exact=False, n_candidates=int(n_candidates))


def _count_optuna(search, n_splits, X):
    """Count the trials; a timeout or pruning may end them early."""
    is_bounded = isinstance(search.n_trials, Integral) and search.timeout is None
    if not is_bounded or search.enable_pruning:
        return _Runs(0, 0, is_exact=False)
    return _Runs(n_splits, _refits(search), n_candidates=int(search.n_trials))


def _count_bayes(search, n_splits, X):
    """Count the settings of `BayesSearchCV`: for each space, `n_iter` or the space's own number."""
    spaces = search.search_spaces
    if not isinstance(spaces, list | tuple) or not spaces:
        spaces = [spaces]
    n_trials = [space[1] if isinstance(space, tuple) else search.n_iter for space in spaces]
    if not all(isinstance(n, Integral) for n in n_trials):
        return _Runs(0, 0, is_exact=False)
    return _Runs(n_splits, _refits(search), n_candidates=int(sum(n_trials)))


def _count_genetic(search, n_splits, X):
    """Count the first population only."""
    # Identical individuals in the first population share a score.
    is_cached = getattr(search, "use_cache", True) is not False
    n_first = 1 if is_cached else search.population_size
    return _Runs(n_splits, _refits(search), is_exact=False, n_candidates=int(n_first))


def _count_rfecv(search, n_splits, X):
    """Count the scored fits of all sizes of the set of features, from all columns to the fewest.

    Each fold begins with all columns and removes `step` of them, a number or a fraction, until
    `min_features_to_select` are left.
    """
    n_features = _width(X)
    if n_features is None:
        return _Runs(n_splits, 1, is_exact=False)
    step = search.step
    if step < 1:
        step = max(1, int(step * n_features))
    n_removed = n_features - min(search.min_features_to_select, n_features)
    n_scores = n_splits * (math.ceil(n_removed / int(step)) + 1)
    # This is a lower bound: at the end, the search eliminates again, by the scores, and fits the
    # remaining columns.
    return _Runs(n_scores, 2, is_exact=False)


def _count_sequential(search, n_splits, X):
    """Count the scored fits of a search that adds or removes one feature per round.

    Round i has a candidate for each of the `n_features - i` features that are not yet added (or
    removed), and each candidate is fitted once per fold.
    """
    n_features = _width(X)
    n_selected = search.n_features_to_select
    if n_features is None:
        return _Runs(n_splits, 0, is_exact=False)
    is_exact = True
    n_rounds = n_selected
    if n_selected == "auto":
        # With a tolerance, the scores determine when it stops.
        is_exact = search.tol is None
        n_rounds = 1
        if is_exact:
            n_rounds = n_features // 2
    elif not isinstance(n_selected, Integral):
        n_rounds = int(n_features * n_selected)
    if search.direction == "backward" and n_selected != "auto":
        n_rounds = n_features - n_rounds
    n_scores = n_splits * sum(n_features - i for i in range(n_rounds))
    return _Runs(n_scores, 0, is_exact)


def _count_sequential_of_mlxtend(search, n_splits, X):
    """Count the rounds of a forward search without options; other searches have one round."""
    n_features = _width(X)
    # Without folds, each fit is scored on its own rows.
    n_folds = n_splits if search.cv else 1
    n_rounds = search.k_features
    if isinstance(n_rounds, tuple) and n_rounds:
        # The search's fit turns a single number into a range.
        n_rounds = max(n_rounds)
    is_simple = search.forward and not search.floating and not search.fixed_features
    if n_features is None or not isinstance(n_rounds, Integral) or not is_simple:
        return _Runs(n_folds, 0, is_exact=False)
    n_scores = n_folds * sum(n_features - i for i in range(n_rounds))
    return _Runs(n_scores, 0, is_exact=False)


def _height(X):
    """Return the number of rows of a table; None if it is unknown."""
    shape = getattr(X, "shape", None)
    if shape and isinstance(shape[0], Integral):
        return shape[0]
    return None


def _width(X):
    """Return the number of columns of a table; None if it has no shape."""
    shape = getattr(X, "shape", ())
    return shape[1] if len(shape) == 2 else None


# Packages whose searches are counted, by the top-level module of their classes.
COUNTED_PACKAGES = (
    "sklearn",
    "optuna",
    "optuna_integration",
    "skopt",
    "sklearn_genetic",
    "mlxtend",
)
# Function that counts the runs, by the package ("" for any) and the name of a search's class or of
# a base class.
RUN_COUNTS = {
    ("sklearn", "HalvingGridSearchCV"): _count_halving_grid,
    ("sklearn", "HalvingRandomSearchCV"): _count_halving_random,
    ("sklearn", "GridSearchCV"): _count_grid,
    ("sklearn", "RandomizedSearchCV"): _count_random,
    ("", "OptunaSearchCV"): _count_optuna,
    ("skopt", "BayesSearchCV"): _count_bayes,
    ("sklearn_genetic", "GASearchCV"): _count_genetic,
    ("sklearn", "RFECV"): _count_rfecv,
    ("sklearn", "SequentialFeatureSelector"): _count_sequential,
    ("mlxtend", "SequentialFeatureSelector"): _count_sequential_of_mlxtend,
}


# The functions below count the runs of one setting of a validation.


def _count_folds(variables, n_splits):
    return _Runs(n_splits)


def _count_sizes(variables, n_splits):
    """Count the fits of a learning curve: one per fold and distinct size of the training set."""
    sizes = np.unique(as_doubles(variables.get("train_sizes")))
    gaps = np.diff(sizes)
    is_fraction = len(sizes) and sizes[-1] <= 1.0
    cv = variables.get("cv")
    if is_fraction and len(gaps):
        # With few rows, close fractions give the same number of rows, which is fitted only once.
        is_counted = cv is None or isinstance(cv, Integral) or type(cv) is KFold
        n_rows = 0
        if is_counted:
            n_rows = _height(variables.get("X")) or 0
        # Each fit receives at least half of the rows.
        if gaps.min() * n_rows / 2 < 1:
            return _Runs(n_splits, is_exact=False)
    return _Runs(n_splits * len(sizes))


def _count_permutations(variables, n_splits):
    return _Runs(n_splits * (1 + int(variables.get("n_permutations") or 0)))


# Function that counts the runs, by the name of scikit-learn's function.
VALIDATIONS = {
    "cross_validate": _count_folds,
    "cross_val_score": _count_folds,
    "cross_val_predict": _count_folds,
    "validation_curve": _count_folds,
    "learning_curve": _count_sizes,
    "permutation_test_score": _count_permutations,
}
