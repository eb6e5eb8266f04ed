"""Choice of a search's strategy and of the rows to which each candidate is fitted."""

import math

from skdp.model_selection._plans import plan_random_stopping, plan_runs
from skdp.model_selection._splits import (
    Layout,
    Splits,
    hold_out,
    make_disjoint_subsets,
    make_splits,
)

STRATEGIES = ("disjoint", "holdout", "cv", "random_stopping")
# Strategies whose charge each composition can account for, if delta > 0. An (epsilon, delta) claim
# has no Renyi divergence and no Gaussian (mu) parameter; random stopping has neither a mu nor a
# zCDP parameter. With delta = 0 all charges are pure, and every strategy works.
STRATEGIES_BY_COMPOSITION = {
    "zcdp": ("disjoint", "holdout", "cv"),
    "rdp": ("cv", "random_stopping"),
    "gdp": ("cv",),
}
# Mean number of runs of random stopping per candidate, and the minimum of the mean, since a
# geometric number of runs is often much smaller than its mean.
RUNS_PER_CANDIDATE = 2
MIN_MEAN_RUNS = 50
# Constants of the model in `expected_shortfall`, tuned on the table of docs/benchmarks/search.md.
# Loss of accuracy in a fit, times sqrt(n * epsilon / d).
LOSS_CONSTANT = 0.12
# Fraction of the compared models' loss that affects the choice, if a different model is published.
TRANSFER_FRACTION = 0.2
# Loss of accuracy with a candidate drawn at random.
RANDOM_CANDIDATE_LOSS = 0.08
# Number of folds that "cv" is assumed to use.
ASSUMED_FOLDS = 5
# Fractions of epsilon that the published model and a compared model receive, with and without a
# refit. A compared model's fraction still has to be divided by the number of fits, or by the square
# root of that number.
EPSILON_FRACTIONS = {
    "disjoint": {True: (0.5, 0.5), False: (1.0, 1.0)},
    "holdout": {True: (0.3, 0.15), False: (0.45, 0.45)},
    "cv": {True: (0.3, 0.1), False: (0.35, 0.35)},
    "random_stopping": {True: (0.5, 0.03), False: (0.35, 0.1)},
}


def plan_search(task, strategy, cv, ids, mean_runs, composition="basic"):
    """Return the plan of a search.

    Parameters
    ----------
    task : SearchTask
    strategy : str
        One of `STRATEGIES`, or "auto" for the result of `best_strategy`.
    cv : object
        Parameter of the search, see `check_cv`.
    ids : ndarray or None
        As in `make_splits`.
    mean_runs : int or None
    composition : str, default="basic"
        Composition of the accountant.

    Raises
    ------
    ValueError
        If cv does not suit the strategy, or there are too few rows.
    """
    strategy, layout = plan_layout(task, strategy, cv, ids, composition)
    if strategy == "random_stopping":
        mean_runs = mean_runs or default_mean_runs(len(task.candidates))
        return plan_random_stopping(task, layout, mean_runs)
    return plan_runs(task, strategy, layout)


def plan_layout(task, strategy, cv, ids, composition="basic"):
    """Return the strategy of a search and the `Layout` of its candidates and splits.

    Only the number of the task's candidates is used. Parameters and errors are those of
    `plan_search`.
    """
    n_samples = task.shape[0]
    m = len(task.candidates)
    splits = None
    if cv is not None:
        splits = make_splits(cv, n_samples, ids)
    if strategy == "auto":
        if splits is None:
            n_splits = None
        else:
            n_splits = len(splits.train)
        strategy = best_strategy(task, n_splits=n_splits, composition=composition)
    if splits is None:
        if strategy == "cv":
            splits = make_splits(None, n_samples, ids)
        else:
            splits = hold_out(n_samples, ids)
    if len(splits.train) != 1 and strategy != "cv":
        raise ValueError(
            f"strategy={strategy!r} uses one split, but cv gives {len(splits.train)} splits: leave "
            "cv=None, give one split, or use strategy='cv'"
        )
    layout = Layout.all_on_all(splits, m)
    if strategy == "disjoint":
        train = tuple(make_disjoint_subsets(splits.train[0], m, ids))
        layout = Layout(Splits(train, splits.test * m, n_samples), tuple((i,) for i in range(m)))
    return strategy, layout


def default_mean_runs(m):
    """Return the default mean number of runs of random stopping for m candidates."""
    return max(MIN_MEAN_RUNS, RUNS_PER_CANDIDATE * m)


def best_strategy(task, *, n_splits=None, composition="basic"):
    """Return the strategy with the smallest `expected_shortfall`.

    Parameters
    ----------
    task : SearchTask
    n_splits : int, default=None
        Number of splits given by the user. More than one split requires "cv"; exactly one split
        excludes it.
    composition : str, default="basic"
        Composition of the accountant, which may be unable to account for a strategy.

    Returns
    -------
    str
    """
    if n_splits is not None and n_splits > 1:
        return "cv"
    possible = STRATEGIES
    if task.guarantee.delta > 0.0:
        possible = STRATEGIES_BY_COMPOSITION.get(composition, STRATEGIES)
    excluded = set()
    if len(task.candidates) > 0.75 * task.shape[0]:
        excluded.add("disjoint")
    if n_splits == 1 or not task.refit:
        excluded.add("cv")
    suitable = [strategy for strategy in possible if strategy not in excluded] or possible
    return min(suitable, key=lambda strategy: expected_shortfall(strategy, task))


def expected_shortfall(strategy, task):
    r"""Return a strategy's expected loss of accuracy under a rough model, from public quantities.

    A fit of d weights to n rows is assumed to lose :math:`0.12 \sqrt{d / (n \epsilon)}` of
    accuracy, at most 1/2. Three terms are added to the loss of the published model: a fifth of the
    loss of the compared models, if another model is published; the effect of noise on the choice;
    and, for random stopping, the loss from candidates that no run draws.

    Parameters
    ----------
    strategy : str
    task : SearchTask

    Returns
    -------
    float
    """
    n, d = task.shape
    # Rows that are single values, such as texts, have no number of columns.
    if d is None:
        d = 1
    m = len(task.candidates)
    epsilon = task.guarantee.epsilon
    published, compared = EPSILON_FRACTIONS[strategy][task.refit]
    n_fits = 1
    n_train = 0.75 * n
    n_test = 0.25 * n
    if strategy == "disjoint":
        n_train = 0.75 * n / m
    elif strategy == "holdout":
        n_fits = m
    elif strategy == "cv":
        n_fits = m * (ASSUMED_FOLDS - 1)
        n_train = (1.0 - 1.0 / ASSUMED_FOLDS) * n
        n_test = n
    # The fits on one row compose by zCDP with delta > 0; otherwise their epsilons add up.
    compared *= epsilon / (math.sqrt(n_fits) if task.guarantee.delta > 0.0 else n_fits)

    def loss(n_rows, budget):
        return min(0.5, LOSS_CONSTANT * math.sqrt(d / max(n_rows * budget, 1e-300)))

    total = math.log(m + 1.0) / max(n_test * 0.3 * epsilon, 1e-300)
    if task.refit:
        total += loss(n, published * epsilon) + TRANSFER_FRACTION * loss(n_train, compared)
    else:
        total += loss(n_train, compared)
    if strategy == "random_stopping":
        mean = default_mean_runs(m)
        total += RANDOM_CANDIDATE_LOSS * math.log(mean + 1.0) / mean
    return total
