"""Which strategy a search uses, and with which rows."""

import math

from skdp.model_selection._plans import Layout, plan_random_stopping, plan_runs
from skdp.model_selection._splits import Splits, hold_out, make_parts, make_splits

__all__ = ["STRATEGIES", "best_strategy", "expected_shortfall", "plan_search"]

STRATEGIES = ("disjoint", "holdout", "cv", "random_stopping")
# Random stopping runs this many times per candidate on average.
RUNS_PER_CANDIDATE = 1
# The constants of the model in `expected_shortfall`.
LOSS, SPREAD, FOLDS = 0.12, 0.02, 5


def plan_search(task, strategy, cv, groups, mean_runs):
    """Return the plan of a search.

    Parameters
    ----------
    task : SearchTask
    strategy : str
        One of `STRATEGIES`.
    cv : object
        As the user gave it.
    groups : array-like or None
    mean_runs : int or None

    Raises
    ------
    ValueError
        If cv does not go with the strategy, or there are too few rows.
    """
    n_samples, m = task.shape[0], len(task.candidates)
    if strategy == "cv":
        splits = make_splits(cv, n_samples, groups)
        return plan_runs(task, strategy, Layout(splits, (tuple(range(len(splits.train))),) * m))
    splits = hold_out(n_samples) if cv is None else make_splits(cv, n_samples, groups)
    if len(splits.train) != 1:
        raise ValueError(
            f"strategy={strategy!r} tests on one part of the rows, but cv gives "
            f"{len(splits.train)}; leave cv=None, give one split, or use strategy='cv'"
        )
    if strategy == "random_stopping":
        runs = default_mean_runs(m) if mean_runs is None else mean_runs
        return plan_random_stopping(task, splits, runs)
    if strategy == "disjoint":
        parts = make_parts(splits.train[0], m)
        apart = Splits(tuple(parts), splits.test * m, n_samples)
        return plan_runs(task, strategy, Layout(apart, tuple((i,) for i in range(m))))
    return plan_runs(task, strategy, Layout(splits, ((0,),) * m))


def default_mean_runs(m):
    """Return the mean number of runs for m candidates."""
    return max(1, RUNS_PER_CANDIDATE * m)


def best_strategy(shape, m, epsilon, delta, *, refit, n_splits=None, additive=False):
    """Return the strategy that `expected_shortfall` likes best.

    Parameters
    ----------
    shape : tuple of (int, int)
    m : int
        The number of candidates.
    epsilon, delta : float
    refit : bool
    n_splits : int, default=None
        How many splits the user gave; several leave "cv" alone, one the others.
    additive : bool, default=False
        Whether the accountant adds up at one Renyi order, or Gaussian parameters, where an
        (epsilon, delta) statement has no price.

    Returns
    -------
    str
    """
    if n_splits is not None and n_splits > 1:
        return "cv"
    able = [s for s in STRATEGIES if not (additive and s in ("disjoint", "holdout"))]
    if n_splits == 1 and len(able) > 2:
        able.remove("cv")
    if m > 0.75 * shape[0] and "disjoint" in able:
        able.remove("disjoint")
    if refit is False and "cv" in able:
        able.remove("cv")
    return min(able, key=lambda s: expected_shortfall(s, shape, m, epsilon, delta, refit))


def expected_shortfall(strategy, shape, m, epsilon, delta, refit=True):
    r"""Return how far the published model is expected to fall short, in a rough public model.

    A model that n rows and epsilon teach d weights is taken to lose :math:`0.12 \sqrt{d / (n
    \epsilon)}` of accuracy, at most 1/2. To the loss of the published model come the loss of the
    models that are compared, if another one is published, what the noise of the
    choice costs, ``ln(m) / (n_test epsilon_choice)``, and for random stopping what is lost by
    candidates that no run draws.

    Parameters
    ----------
    strategy : str
    shape : tuple of (int, int)
    m : int
    epsilon, delta : float
    refit : bool, default=True

    Returns
    -------
    float
    """
    n, d = shape
    n_train = {"disjoint": 0.75 * n / m, "cv": (1.0 - 1.0 / FOLDS) * n}.get(strategy, 0.75 * n)
    n_test = n if strategy == "cv" else 0.25 * n
    fits = {"disjoint": 1, "holdout": m, "cv": m * (FOLDS - 1), "random_stopping": 9}[strategy]
    left = 0.5 if refit else 1.0
    if delta > 0.0 or strategy == "random_stopping":
        fits, left, final = math.sqrt(fits), math.sqrt(left), math.sqrt(0.5)
    else:
        final = 0.5
    one = epsilon * left / fits

    def loss(rows, budget):
        return min(0.5, LOSS * math.sqrt(d / max(rows * budget, 1e-300)))

    choice = one if strategy == "random_stopping" else 0.25 * epsilon
    total = math.log(m + 1.0) / (n_test * choice)
    total += loss(n, epsilon * final) + loss(n_train, one) if refit else loss(n_train, one)
    if strategy == "random_stopping":
        mean = default_mean_runs(m)
        total += SPREAD * math.log(mean + 1.0) / mean
    return total

