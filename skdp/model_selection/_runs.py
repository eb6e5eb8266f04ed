"""Running what a plan holds, once it is charged."""

import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from joblib import parallel_config
from sklearn.utils.parallel import Parallel, delayed

from skdp.model_selection._candidates import take_rows, training_table
from skdp.noise import uniform_integers

__all__ = ["Outcome", "SearchRun", "run_plan"]


@dataclass(frozen=True)
class Outcome:
    """What a search releases.

    Parameters
    ----------
    best : int
        The chosen candidate.
    scores : ndarray of shape (n_candidates,)
        Noisy scores, NaN where none is released.
    model : estimator or None
        The published one.
    """

    best: int
    scores: np.ndarray
    model: object


@dataclass(frozen=True)
class SearchRun:
    """What the fits of a search share.

    Parameters
    ----------
    X, y : array-like
    params : dict
        Further arguments of fit.
    score : BoundedScore
    terms : Terms
    spend : Spend or None
    source : RandomSource
    n_jobs : int or None
    """

    X: object
    y: object
    params: dict
    score: object
    terms: object
    spend: object
    source: object
    n_jobs: int | None

    def seeds(self, fit):
        """Return a seed for each private step of a fit, None unless the search is seeded."""
        if not self.source.seeded:
            return None
        return [int(uniform_integers(2**31, 1, self.source.stream())[0]) for _ in fit.charges]

    def fit(self, fits, splits, releases, keep):
        """Fit plans on splits, in parallel.

        Parameters
        ----------
        fits : list of FitPlan
        splits : list of (ndarray, ndarray)
        releases : int
        keep : bool
            Whether to return the models.

        Returns
        -------
        list of (float, estimator or None)
            Raw scores and models.
        """
        shared = self.score, self.terms, self.spend, releases, self.params, keep
        with _silence():
            return Parallel(n_jobs=self.n_jobs)(
                delayed(_fit_and_score)(fit, self.X, self.y, rows, self.seeds(fit), *shared)
                for fit, rows in zip(fits, splits, strict=True)
            )

    def refit(self, fit, releases):
        """Fit on all rows."""
        with _silence():
            table = self.X, self.y
            return fit.fitted(table, self.terms, self.spend, releases, self.seeds(fit), self.params)


@contextmanager
def _silence():
    """Keep the warnings of fits, and joblib's progress, which would count them.

    What a warning says can be private, and so can the number of warnings.
    """
    with warnings.catch_warnings(), parallel_config(verbose=0):
        warnings.simplefilter("ignore")
        yield


def run_plan(plan, run, stages):
    """Run a plan that was charged.

    Parameters
    ----------
    plan : SearchPlan
    run : SearchRun
    stages : Stages

    Returns
    -------
    Outcome
    """
    with stages.stage("search"):
        best, scores, model = (_stop_at_random if plan.mean_runs else _choose)(plan, run)
    if plan.refits:
        with stages.stage("refit"):
            model = run.refit(plan.refits[best], plan.releases)
    return Outcome(best, scores, model)


def _choose(plan, run):
    """Fit every candidate on its splits, choose by the raw scores and release noisy ones."""
    splits, m = plan.layout.splits, len(plan.layout.of_candidate)
    numbers = list(plan.runs)
    keep = not plan.refits and len(numbers) == m
    rows = [(splits.train[s], splits.test[s]) for _, s in numbers]
    results = run.fit(list(plan.runs.values()), rows, plan.releases, keep)
    values = {number: raw for number, (raw, _) in zip(numbers, results, strict=True)}
    raw = np.array([plan.layout.score(run.score, values, i) for i in range(m)])
    best = plan.choice.release(raw, random_state=run.source)
    noisy = plan.noisy.release(raw, random_state=run.source)
    return best, noisy, results[best][1] if keep else None


def _stop_at_random(plan, run):
    """Keep the best of a geometric number of runs by its noisy score, and nothing else."""
    splits, m = plan.layout.splits, len(plan.layout.of_candidate)
    count = _number_of_runs(plan.mean_runs, run.source.stream())
    drawn = uniform_integers(m, count, run.source.stream())
    fits = [plan.runs[int(i), 0] for i in drawn]
    rows = [(splits.train[0], splits.test[0])] * count
    results = run.fit(fits, rows, plan.releases, not plan.refits)
    noisy = [plan.noisy.release(raw, random_state=run.source) for raw, _ in results]
    kept = int(np.argmax(noisy))
    scores = np.full(m, np.nan)
    scores[drawn[kept]] = noisy[kept]
    return int(drawn[kept]), scores, results[kept][1]


def _number_of_runs(mean, stream):
    """Draw the number of trials up to the first success of probability 1 / mean, exactly."""
    count = 1
    while uniform_integers(mean, 1, stream)[0]:
        count += 1
    return count


def _fit_and_score(fit, X, y, rows, seeds, score, terms, spend, releases, params, keep):
    train, test = rows
    table, params = training_table(X, y, train, params)
    with _silence():
        model = fit.fitted(table, terms, spend, releases, seeds, params)
        raw = score.value(model, take_rows(X, test), take_rows(y, test))
    return raw, model if keep else None
