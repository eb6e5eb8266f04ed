"""Running what a plan holds, once it is charged."""

from dataclasses import replace
from functools import partial

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

from skdp.accounting import Allowance
from skdp.model_selection._candidates import Rows, silence
from skdp.model_selection._rehearsal import rehearse
from skdp.noise import uniform_integers
from skdp.utils._values import FrozenValue


class Outcome(FrozenValue):
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


class SearchRun(FrozenValue):
    """What the fits of a search share.

    Parameters
    ----------
    plan : SearchPlan
    rows : Rows
        All of them.
    n_jobs : int or None
        How many fits run at a time.
    source : RandomSource, default=None
        None before the charge.
    spend : Spend, default=None
        The charge; None without an accountant.
    """

    plan: object
    rows: Rows
    n_jobs: int | None
    source: object = None
    spend: object = None

    @classmethod
    def prepared(cls, plan, rows, n_jobs):
        """Return those of a plan, once every one has read its rows."""
        if n_jobs is not None:
            n_jobs = min(effective_n_jobs(int(n_jobs)), len(plan.runs))
        rehearse(plan, rows)
        # A cell may be one that no pickle holds: what sending it raises is raised here.
        with silence():
            sent = tuple(plan.runs.values()), rows, plan.task.score
            Parallel(n_jobs=n_jobs)([delayed(len)(sent)])
        return cls(plan, rows, n_jobs)

    def charged(self, fit):
        """Charge the plan, as a part of a private fit."""
        # In this order: a spend is there once it was charged.
        return replace(self, source=fit.charge(self.plan), spend=fit.spend)

    @property
    def allow(self):
        """What makes an allowance of a planned charge, on the charge of the search."""
        return partial(Allowance, terms=self.rows.terms, spend=self.spend, steps=self.plan.releases)

    def seeds(self, fit):
        """Return for each private step of a fit a seed, or None unless the search is seeded."""
        steps = (step for step in fit.pipeline.steps if "random_state" in step.params)
        names = [step.parameter("random_state") for step in steps]
        if not self.source.seeded:
            return dict.fromkeys(names)
        return {name: int(uniform_integers(2**31, 1, self.source.stream())[0]) for name in names}

    def fit(self, numbers, keep=False):
        """Make some of the plan's runs, in parallel.

        Parameters
        ----------
        numbers : list of (int, int)
            Of candidates and of splits.
        keep : bool, default=False
            Whether to return the models.

        Returns
        -------
        list of (float, estimator or None)
            Raw scores and models.
        """
        splits, fits = self.plan.layout.splits, [self.plan.runs[number] for number in numbers]
        score = self.plan.task.score
        shared = {"rows": self.rows, "allow": self.allow, "score": score, "keep": keep}
        with silence():
            return Parallel(n_jobs=self.n_jobs)(
                delayed(_fit_and_score)(fit, splits.train[s], splits.test[s], seeds, **shared)
                for fit, (_, s), seeds in zip(fits, numbers, map(self.seeds, fits), strict=True)
            )


def _fit_and_score(fit, train, test, seeds, *, rows, allow, score, keep):
    with silence():
        model = fit.fitted(rows.take(train), allow, seeds)
        tested = rows.take(test)
        raw = score.value(model, tested.X, tested.y, **tested.shared)
    return raw, model if keep else None


def run_plan(run, progress):
    """Run a plan that was charged.

    Parameters
    ----------
    run : SearchRun
    progress : FitProgress

    Returns
    -------
    Outcome
    """
    plan = run.plan
    with progress.stage("search"):
        outcome = (_stop_at_random if plan.mean_runs else _choose)(run)
    if plan.refits:
        fit = plan.refits[outcome.best]
        with progress.stage("refit"), silence():
            outcome = replace(outcome, model=fit.fitted(run.rows, run.allow, run.seeds(fit)))
    return outcome


def _choose(run):
    """Fit every candidate on its splits, choose by the raw scores and release noisy ones."""
    plan = run.plan
    numbers, m = list(plan.runs), len(plan.layout.of_candidate)
    keep = not plan.refits and len(numbers) == m
    results = run.fit(numbers, keep)
    values = {number: raw for number, (raw, _) in zip(numbers, results, strict=True)}
    raw = np.array([plan.layout.score(plan.task.score, values, i) for i in range(m)])
    best = plan.choice.release(raw, random_state=run.source)
    noisy = plan.noisy.release(raw, random_state=run.source)
    return Outcome(best, noisy, results[best][1] if keep else None)


def _stop_at_random(run):
    """Keep the best of a geometric number of runs by its noisy score, and nothing else."""
    plan = run.plan
    m = len(plan.layout.of_candidate)
    count = _number_of_runs(plan.mean_runs, run.source.stream())
    drawn = uniform_integers(m, count, run.source.stream()).tolist()
    results = run.fit([(i, 0) for i in drawn], not plan.refits)
    noisy = [plan.noisy.release(raw, random_state=run.source) for raw, _ in results]
    kept = int(np.argmax(noisy))
    scores = np.full(m, np.nan)
    scores[drawn[kept]] = noisy[kept]
    return Outcome(drawn[kept], scores, results[kept][1])


def _number_of_runs(mean, stream):
    """Draw the number of trials up to the first success of probability 1 / mean, exactly."""
    count = 1
    while uniform_integers(mean, 1, stream)[0]:
        count += 1
    return count
