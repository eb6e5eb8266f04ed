"""Which strategy a search uses, and with which rows."""

import math

from skdp.model_selection._plans import plan_random_stopping, plan_runs
from skdp.model_selection._splits import Layout, Splits, hold_out, make_parts, make_splits

STRATEGIES = ("disjoint", "holdout", "cv", "random_stopping")
# An (epsilon, delta) statement has no Renyi divergence and no Gaussian parameter, random stopping
# no Gaussian parameter and no zero-concentrated one. At delta = 0 all is pure.
ABLE = {"zcdp": ("disjoint", "holdout", "cv"), "rdp": ("cv", "random_stopping"), "gdp": ("cv",)}
# Random stopping runs this many times per candidate on average, and this often at least: of a
# geometric number of runs few are far fewer than the mean.
RUNS_PER_CANDIDATE = 2
LEAST_RUNS = 50
# The constants of the model in `expected_shortfall`, from the table of docs/benchmarks/search.md:
# the loss of a model, how much of the loss of compared models shows in the choice, and what a
# candidate drawn at random loses.
LOSS = 0.12
TRANSFER = 0.2
SPREAD = 0.08
FOLDS = 5
# Of epsilon, what the published model and (times the root of the number of fits) a compared one
# get, with and without a refit.
EFFECTIVE = {
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
        One of `STRATEGIES`, or "auto" for that of `best_strategy`.
    cv : object
        As the user gave it.
    ids : ndarray or None
        As in `make_splits`.
    mean_runs : int or None
    composition : str, default="basic"
        How the accountant adds up.

    Raises
    ------
    ValueError
        If cv does not go with the strategy, or there are too few rows.
    """
    n_samples = task.shape[0]
    m = len(task.candidates)
    given = None if cv is None else make_splits(cv, n_samples, ids)
    if strategy == "auto":
        n_splits = None if given is None else len(given.train)
        strategy = best_strategy(task, n_splits=n_splits, composition=composition)
    several = strategy == "cv"
    splits = given or (make_splits(None, n_samples, ids) if several else hold_out(n_samples, ids))
    if len(splits.train) != 1 and not several:
        raise ValueError(
            f"strategy={strategy!r} tests on one part of the rows, but cv gives "
            f"{len(splits.train)}; leave cv=None, give one split, or use strategy='cv'"
        )
    layout = Layout.all_on_all(splits, m)
    if strategy == "disjoint":
        apart = Splits(tuple(make_parts(splits.train[0], m, ids)), splits.test * m, n_samples)
        layout = Layout(apart, tuple((i,) for i in range(m)))
    if strategy == "random_stopping":
        return plan_random_stopping(task, layout, mean_runs or default_mean_runs(m))
    return plan_runs(task, strategy, layout)


def default_mean_runs(m):
    """Return the mean number of runs for m candidates."""
    return max(LEAST_RUNS, RUNS_PER_CANDIDATE * m)


def best_strategy(task, *, n_splits=None, composition="basic"):
    """Return the strategy that `expected_shortfall` likes best.

    Parameters
    ----------
    task : SearchTask
    n_splits : int, default=None
        How many splits the user gave; several leave "cv" alone, one the others.
    composition : str, default="basic"
        How the accountant adds up: some ways have no price for what a strategy charges.

    Returns
    -------
    str
    """
    if n_splits is not None and n_splits > 1:
        return "cv"
    able = ABLE.get(composition, STRATEGIES) if task.guarantee.delta > 0.0 else STRATEGIES
    few_rows = len(task.candidates) > 0.75 * task.shape[0]
    unfit = {"disjoint": few_rows, "cv": n_splits == 1 or not task.refit}
    best = [strategy for strategy in able if not unfit.get(strategy)] or able
    return min(best, key=lambda strategy: expected_shortfall(strategy, task))


def expected_shortfall(strategy, task):
    r"""Return how far the published model is expected to fall short, in a rough public model.

    A model that n rows and epsilon teach d weights is taken to lose :math:`0.12 \sqrt{d / (n
    \epsilon)}` of accuracy, at most 1/2. Three losses are added to that of the published model:
    a fifth of the loss of the models that are compared, if another one is published; the cost of
    the noise of the choice; and for random stopping the loss from candidates that no run draws.

    Parameters
    ----------
    strategy : str
    task : SearchTask

    Returns
    -------
    float
    """
    (n, d), m, epsilon = task.shape, len(task.candidates), task.guarantee.epsilon
    published, compared = EFFECTIVE[strategy][task.refit]
    fits = {"holdout": m, "cv": m * (FOLDS - 1)}.get(strategy, 1)
    compared *= epsilon / (math.sqrt(fits) if task.guarantee.delta > 0.0 else fits)
    n_train = {"disjoint": 0.75 * n / m, "cv": (1.0 - 1.0 / FOLDS) * n}.get(strategy, 0.75 * n)
    n_test = n if strategy == "cv" else 0.25 * n

    def loss(rows, budget):
        return min(0.5, LOSS * math.sqrt(d / max(rows * budget, 1e-300)))

    total = math.log(m + 1.0) / max(n_test * 0.3 * epsilon, 1e-300)
    if task.refit:
        total += loss(n, published * epsilon) + TRANSFER * loss(n_train, compared)
    else:
        total += loss(n_train, compared)
    if strategy == "random_stopping":
        mean = default_mean_runs(m)
        total += SPREAD * math.log(mean + 1.0) / mean
    return total
