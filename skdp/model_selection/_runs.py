"""Running what a plan holds: up to its charge, for the errors that are no release, and then on."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from skdp.ledger import Allowance
from skdp.model_selection._candidates import Rows
from skdp.noise import uniform_integers
from skdp.pipeline._forms import form_of_table
from skdp.pipeline._instances import is_estimator, of_skdp
from skdp.pipeline._parameters import PublicTable, check_parameters
from skdp.pipeline._steps import find_steps
from skdp.pipeline._trial import silence, trial_of
from skdp.utils._dask import Run
from skdp.utils._values import FrozenValue


def rehearse(plan, rows):
    """Do what each private step of a search's fits does before its charge, for what it raises.

    Nothing is released, and nothing is kept. First `check_candidate` checks all parameters and
    the target by what is public. Then the rows are read: by every private step that stands
    before all others, and by the steps behind these the columns that bypass them. Each candidate
    reads all rows, planned for as many as its smallest training set has.

    Parameters
    ----------
    plan : SearchPlan
    rows : Rows

    Raises
    ------
    ValueError
        Whatever a step raises before it charges; or if so many scores cannot be released.
    """
    plan.noisy.check_size(plan.released_together)
    train = plan.layout.splits.train
    # A table whose rows cannot be taken by number is refused here, before the charge.
    rows.take(train[0])
    for candidate, splits in enumerate(plan.layout.of_candidate):
        smallest = min(splits, key=lambda s: len(train[s]))
        _try(plan.runs[candidate, smallest], rows, len(train[smallest]))


def check_candidate(fit, rows, n_units):
    """Check every step's parameters, and y against them, with what is public of the table.

    Parameters
    ----------
    fit : FitPlan
        Of the candidate.
    rows : Rows
    n_units : int
        The number of rows, or of persons, that the fit is planned for.

    Raises
    ------
    ValueError
        If a step would refuse a parameter or the target; the message names the step.
    """
    model = fit.model(partial(Allowance, config=rows.terms, plan_charge=None))
    form = replace(form_of_table(rows.X), n_rows=n_units, n_columns=rows.n_columns)
    check_parameters(model, PublicTable(form=form, has_target=True, y=rows.y))


def _try(fit, rows, n_units):
    check_candidate(fit, rows, n_units)
    steps = find_steps(fit.pipeline.pipe, rows.n_columns)
    # Of somebody else's it is not known whether they write into the rows that they are given.
    if any(is_estimator(step.estimator) and not of_skdp(step.estimator) for step in steps):
        rows = rows.take(np.arange(rows.n_units))
    for step in steps:
        if isinstance(step.estimator, FrozenEstimator):
            check_is_fitted(step.estimator)
    model = fit.model(partial(Allowance, config=rows.terms, plan_charge=None))
    private = {step.name for step in fit.pipeline.steps}
    with silence(), parallel_config("sequential"):
        rows.fit(trial_of(model, steps, private, n_units))


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class SearchRun(FrozenValue):
    """What the fits of a search share.

    Parameters
    ----------
    plan : SearchPlan
    rows : Rows
        All of them.
    n_jobs : int or None
        How many fits run at a time.
    source : RandomSource
    spend : Charge, default=None
        The charge; None without an accountant.
    """

    plan: object
    rows: Rows
    n_jobs: int | None
    source: object
    spend: object = None

    @classmethod
    def charged(cls, plan, rows, n_jobs, fit):
        """Charge a plan as a part of a private fit, once every one has read its rows."""
        if n_jobs is not None:
            n_jobs = min(effective_n_jobs(int(n_jobs)), len(plan.runs))
        rehearse(plan, rows)
        # A cell may be one that no pickle holds: what sending it raises is raised here.
        with silence():
            sent = tuple(plan.runs.values()), rows, plan.task.score
            _parallel(rows, n_jobs)([delayed(len)(sent)])
        # In this order: a spend is there once it was charged.
        return cls(plan, rows, n_jobs, fit.charge(plan), fit.ledger_entry)

    @property
    def allow(self):
        """What makes an allowance of a planned charge, on the charge of the search."""
        return partial(
            Allowance, config=self.rows.terms, plan_charge=self.spend, steps=self.plan.releases
        )

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
        splits = self.plan.layout.splits
        fits = [self.plan.runs[number] for number in numbers]
        shared = {"rows": self.rows, "allow": self.allow, "keep": keep}
        shared |= {"score": self.plan.task.score, "run": Run()}
        with silence():
            return _parallel(self.rows, self.n_jobs)(
                delayed(_fit_and_score)(fit, splits.train[s], splits.test[s], seeds, **shared)
                for fit, (_, s), seeds in zip(fits, numbers, map(self.seeds, fits), strict=True)
            )


def _parallel(rows, n_jobs):
    """Return what makes calls in parallel; where workers have the rows, these or threads do.

    Another process would have no client of theirs.
    """
    backend, _ = get_active_backend()
    stays = getattr(rows.X, "workers", None) and "Dask" not in type(backend).__name__
    return Parallel(n_jobs=effective_n_jobs(n_jobs), require="sharedmem" if stays else None)


def _fit_and_score(fit, train, test, seeds, *, rows, allow, score, keep, run):
    with silence(), Run(run):
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
    numbers = list(plan.runs)
    m = len(plan.layout.of_candidate)
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
