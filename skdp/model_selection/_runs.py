"""Execution of a search: a dry run before the charge, then the fits and the release."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from sklearn.frozen import FrozenEstimator
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from skdp._data._dask import Run
from skdp.ledger import Allowance
from skdp.model_selection._candidates import Rows
from skdp.noise import uniform_integers
from skdp.pipeline._fit_params import check_fit_params, params_of_steps
from skdp.pipeline._forms import form_of_table
from skdp.pipeline._instances import is_estimator, of_skdp
from skdp.pipeline._parameters import PublicTable, check_parameters
from skdp.pipeline._steps import find_steps
from skdp.pipeline._trial import make_dry_run, suppress_fit_output
from skdp.utils._validation import check_n_jobs
from skdp.utils._values import FrozenValue


def dry_run(search, rows):
    """Raise the errors that a private step of any fit of the search would raise before its charge.

    Nothing is released and nothing is stored. First `check_candidate` checks all parameters and the
    target against public information. Then every private step that no other private step precedes
    reads the rows. Later steps read only the columns that bypass those steps. Each candidate reads
    all rows, but plans for the size of its smallest training set.

    Parameters
    ----------
    search : SearchFit
    rows : Rows

    Raises
    ------
    ValueError
        If a step raises an error before its charge, or if there are too many scores to release.
    """
    search.noisy.check_size(search.released_together)
    train = search.layout.splits.train
    # A table that cannot be indexed by row raises an error here, before the charge.
    rows.take(train[0])
    for candidate, splits in enumerate(search.layout.candidate_splits):
        smallest = min(splits, key=lambda s: len(train[s]))
        _dry_run_candidate(search.runs[candidate, smallest], rows, len(train[smallest]))
        # A search inside a candidate splits the rows that it is fitted to.
        if _holds_search(search.runs[candidate, smallest]):
            for split in splits:
                units = train[split]
                check_candidate(search.runs[candidate, split], rows.take(units), len(units))
    for fit in filter(_holds_search, search.refits):
        check_candidate(fit, rows, rows.n_units)


def _holds_search(fit):
    """Return True if a fit runs a search."""
    pipe = fit.pipeline.pipe
    parts = (pipe, *pipe.get_params().values())
    return any(is_estimator(part) and hasattr(part, "_candidate_params") for part in parts)


def check_candidate(fit, rows, n_units):
    """Check the parameters of every step and of its fit, and y; the values of X are not read.

    Parameters
    ----------
    fit : CandidateFit
        Plan of a fit of the candidate.
    rows : Rows
    n_units : int
        Number of rows, or of persons, for which the fit is planned.

    Raises
    ------
    ValueError
        If a step refuses a parameter or the target; the message names the step.
    """
    # There is no charge yet: these checks precede it.
    model = fit.model(partial(Allowance, config=rows.terms, plan_charge=None))
    form = replace(form_of_table(rows.X), n_rows=n_units, n_columns=rows.n_columns)
    with rows.routing():
        groups = rows.fit_params.get("groups")
        steps = params_of_steps(model, rows.fit_params)
        check_fit_params(steps, ids=groups, n_rows=len(rows.y), terms=rows.terms)
        table = PublicTable(
            form=form,
            has_target=True,
            y=rows.y,
            groups=groups,
            step_params={step.name: step.params for step in steps},
        )
        check_parameters(model, table)


def _dry_run_candidate(fit, rows, n_units):
    """Run the private steps of a fit up to their charge, to raise their errors."""
    check_candidate(fit, rows, n_units)
    steps = find_steps(fit.pipeline.pipe, rows.n_columns)
    # Third-party estimators may write into the table that they receive, so they get a copy.
    if any(is_estimator(step.estimator) and not of_skdp(step.estimator) for step in steps):
        rows = rows.take(np.arange(rows.n_units))
    for step in steps:
        if isinstance(step.estimator, FrozenEstimator):
            check_is_fitted(step.estimator)
    model = fit.model(partial(Allowance, config=rows.terms, plan_charge=None))
    private = {step.name for step in fit.pipeline.steps}
    with suppress_fit_output(), parallel_config("sequential"):
        rows.fit(make_dry_run(model, steps, private, n_units))


@dataclass(frozen=True)
class Outcome(FrozenValue):
    """The released result of a search.

    Parameters
    ----------
    best : int
        Index of the chosen candidate.
    scores : ndarray of shape (n_candidates,)
        Noisy scores, NaN for candidates whose score is not released.
    model : estimator or None
        The published model, None if none is published yet.
    """

    best: int
    scores: np.ndarray
    model: object


@dataclass(frozen=True)
class SearchRun(FrozenValue):
    """A charged search: its fits, rows, source of noise and charge.

    Parameters
    ----------
    search : SearchFit
    rows : Rows
        All rows of the search.
    n_jobs : int or None
        Number of fits that run at a time.
    source : RandomSource
    charge : Charge, default=None
        The charge in the ledger; None without an accountant.
    """

    search: object
    rows: Rows
    n_jobs: int | None
    source: object
    charge: object = None

    @classmethod
    def charge_search(cls, search, rows, n_jobs, fit):
        """Return the run of a search after a dry run of all candidates and the charge."""
        check_n_jobs(n_jobs)
        if n_jobs is not None:
            n_jobs = min(effective_n_jobs(int(n_jobs)), len(search.runs))
        dry_run(search, rows)
        # A table may contain objects that cannot be pickled. Sending them raises an error here,
        # before the charge.
        with suppress_fit_output():
            sent = tuple(search.runs.values()), rows, search.task.score
            _parallel(rows, n_jobs)([delayed(len)(sent)])
        source = fit.charge(search.plan())
        search = search.with_denominators(rows.y, source, rows.persons)
        return cls(search, rows, n_jobs, source, fit.ledger_entry)

    @property
    def allow(self):
        """Function that turns a planned charge into an allowance on the charge of the search."""
        return partial(
            Allowance, config=self.rows.terms, plan_charge=self.charge, steps=self.search.releases
        )

    def seeds(self, fit):
        """Return a dict from the `random_state` of each private step to its seed.

        All seeds are None if the search itself is not seeded.
        """
        names = [
            step.parameter("random_state")
            for step in fit.pipeline.steps
            if "random_state" in step.params
        ]
        if not self.source.seeded:
            return dict.fromkeys(names)
        return {name: int(uniform_integers(2**31, 1, self.source.stream())[0]) for name in names}

    def fit(self, numbers, return_models=False):
        """Return the scores of some runs of the search, fitted in parallel.

        Parameters
        ----------
        numbers : list of (int, int)
            Runs, as (candidate, split).
        return_models : bool, default=False
            Also return the fitted models.

        Returns
        -------
        list of (float or ndarray, estimator or None)
            Raw scores and models. The score of pooled metrics is a vector.
        """
        splits = self.search.layout.splits
        fits = [self.search.runs[number] for number in numbers]
        seeds = [self.seeds(fit) for fit in fits]
        dask_run = Run()
        calls = [
            delayed(_fit_and_score)(
                fit,
                splits.train[split],
                splits.test[split],
                fit_seeds,
                rows=self.rows,
                allow=self.allow,
                score=self.search.task.score,
                return_model=return_models,
                dask_run=dask_run,
            )
            for fit, (_, split), fit_seeds in zip(fits, numbers, seeds, strict=True)
        ]
        with suppress_fit_output():
            return _parallel(self.rows, self.n_jobs)(calls)


def _parallel(rows, n_jobs):
    """Return a `Parallel` for fits, which uses only threads or dask if dask workers hold the rows.

    Another process would have no client of the dask cluster.
    """
    backend, _ = get_active_backend()
    needs_threads = getattr(rows.X, "workers", None) and "Dask" not in type(backend).__name__
    require = None
    if needs_threads:
        require = "sharedmem"
    return Parallel(n_jobs=effective_n_jobs(n_jobs), require=require)


def _fit_and_score(fit, train, test, seeds, *, rows, allow, score, return_model, dask_run):
    """Return the raw score of one fit, a float or a vector, and the model or None.

    `train` and `test` are indices of rows, or of persons if the privacy unit is the person.
    """
    with suppress_fit_output(), Run(dask_run):
        model = fit.fitted(rows.take(train), allow, seeds)
        test_rows = rows.take(test)
        raw = score.value(model, test_rows.X, test_rows.y, **test_rows.score_params)
    return raw, model if return_model else None


def run_search(run, progress):
    """Return the outcome of a charged search.

    Parameters
    ----------
    run : SearchRun
    progress : FitProgress

    Returns
    -------
    Outcome
    """
    search = run.search
    with progress.stage("search"):
        if search.mean_runs:
            outcome = _random_number_of_runs(run)
        else:
            outcome = _choose(run)
    if search.refits:
        fit = search.refits[outcome.best]
        with progress.stage("refit"), suppress_fit_output():
            outcome = replace(outcome, model=fit.fitted(run.rows, run.allow, run.seeds(fit)))
    return outcome


def _choose(run):
    """Return the outcome of a choice by raw scores; only noisy scores are released."""
    search = run.search
    numbers = list(search.runs)
    m = len(search.layout.candidate_splits)
    # Without a refit, the chosen candidate's fit is published if there is only one.
    publishes_fit = not search.refits and len(numbers) == m
    results = run.fit(numbers, return_models=publishes_fit)
    values = {number: raw for number, (raw, _) in zip(numbers, results, strict=True)}
    raw = np.array([search.layout.score(search.task.score, values, i) for i in range(m)])
    best = search.choice.release(raw, random_state=run.source)
    noisy = search.noisy.release(raw, random_state=run.source)
    return Outcome(best, noisy, results[best][1] if publishes_fit else None)


def _random_number_of_runs(run):
    """Return the outcome of a geometric number of runs, the run with the best noisy score.

    The number of runs and the other scores stay secret.
    """
    search = run.search
    m = len(search.layout.candidate_splits)
    count = _number_of_runs(search.mean_runs, run.source.stream())
    drawn = uniform_integers(m, count, run.source.stream()).tolist()
    # A search with a random number of runs has one split, number 0.
    results = run.fit([(candidate, 0) for candidate in drawn], return_models=not search.refits)
    noisy = [search.noisy.release(raw, random_state=run.source) for raw, _ in results]
    best_run = int(np.argmax(noisy))
    scores = np.full(m, np.nan)
    scores[drawn[best_run]] = noisy[best_run]
    return Outcome(drawn[best_run], scores, results[best_run][1])


def _number_of_runs(mean, stream):
    """Return a draw from the geometric distribution with this mean, without rounding errors."""
    count = 1
    while uniform_integers(mean, 1, stream)[0]:
        count += 1
    return count
