"""What a search will do and what it costs, fixed before it is charged and before any fit.

A row takes part in some fits, in the scoring, or in both, by its index alone. A *branch* is what
one such row goes through; the worst branch is the price of the search.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property

from skdp.accounting import (
    ZCDP,
    ApproximateDP,
    Composed,
    Gaussian,
    PureDP,
    RandomStopping,
    gaussian_noise_multiplier,
)
from skdp.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
)
from skdp.model_selection._candidates import FitPlan
from skdp.model_selection._layout import Layout
from skdp.model_selection._pricing import (
    dominating,
    fitting_scale,
    run_event,
    stand_in,
    worst_branches,
)
from skdp.pipeline import plan_pipeline

__all__ = ["SELECTIONS", "SearchPlan", "SearchTask", "plan_random_stopping", "plan_runs"]

SELECTIONS = {
    "exponential": ExponentialMechanism,
    "permute_and_flip": PermuteAndFlip,
    "noisy_max": lambda *args: ReportNoisyMax(*args, noise="laplace"),
}

# Of the whole budget; and of what is left for rows that are scored, where fits come out of the
# same budget.
REFIT_SHARE = 0.5
SELECTION_SHARE, SCORES_SHARE = 0.25, 0.1
# Where scored rows are in no fit the choice and the scores share what the refit leaves.
SELECTION_ALONE, SCORES_ALONE = 0.7, 0.3


@dataclass(frozen=True)
class SearchTask:
    """What is asked of a search: all of it is public.

    Parameters
    ----------
    candidates : tuple of Candidate
    shape : tuple of (int, int)
        Of the whole table.
    score : BoundedScore
    selection : str
    epsilon, delta : float
        The total.
    terms : Terms
        For one row: relation and a group of one.
    refit : bool
    public_steps : tuple of str
    """

    candidates: tuple
    shape: tuple
    score: object
    selection: str
    epsilon: float
    delta: float
    terms: object
    refit: bool
    public_steps: tuple = ()

    def fit_plan(self, candidate, n_samples, epsilon, delta):
        """Return the plan of one candidate's fit on so many rows."""
        pipeline = self._pipeline(candidate, n_samples)
        return FitPlan(pipeline, epsilon, delta, pipeline.charges(epsilon, delta))

    @cached_property
    def _pipeline(self):
        @cache
        def planned(candidate, n_samples):
            return plan_pipeline(
                self.candidates[candidate].estimator,
                n_samples,
                self.shape[1],
                classes=self.candidates[candidate].classes,
                terms=self.terms,
                public_steps=self.public_steps,
            )

        return planned

    def fit_plans(self, n_samples, epsilon, delta):
        """Return the plan of every candidate's fit on so many rows."""
        numbers = range(len(self.candidates))
        return tuple(self.fit_plan(i, n_samples, epsilon, delta) for i in numbers)

    def run_plans(self, layout, epsilon, delta):
        """Return the plan of every run of a layout, by candidate and split."""
        sizes = layout.splits.train_sizes
        plans = {(i, n): None for i, n in ((i, sizes[s]) for i, s in layout.runs)}
        plans = {key: self.fit_plan(*key, epsilon, delta) for key in plans}
        return {(i, s): plans[i, sizes[s]] for i, s in layout.runs}

    @property
    def refit_share(self):
        """Which share of the budget the refit gets."""
        return REFIT_SHARE if self.refit else 0.0

    @property
    def rho(self):
        """The zero-concentrated privacy loss of one Gaussian release of the whole budget."""
        return 0.5 / gaussian_noise_multiplier(self.epsilon, self.delta) ** 2


@dataclass(frozen=True)
class SearchPlan:
    """Everything that a search will release.

    Parameters
    ----------
    strategy : str
    runs : dict of (int, int) to FitPlan
        The fits, by the numbers of the candidate and of the split; for random stopping those
        that a run may draw.
    refits : tuple of FitPlan
        One for each candidate, of which one will be fitted; empty without a refit.
    layout : Layout
    choice : mechanism or None
        How a candidate is chosen by its raw scores.
    noisy : mechanism
        How scores are released: all together, or one a run for random stopping.
    branches : tuple of Event
        What one row can go through.
    epsilon, delta : float
        The total.
    sensitivity : float
        Of one candidate's score.
    mean_runs : int or None
        The mean number of runs of random stopping.
    set_aside : float
        The delta of random stopping's runs, which its event has beside them.
    """

    strategy: str
    runs: dict
    refits: tuple
    layout: object
    choice: object
    noisy: object
    branches: tuple
    epsilon: float
    delta: float
    sensitivity: float
    mean_runs: int | None = None
    set_aside: float = 0.0

    @property
    def event(self):
        """The one branch, or what stands for the worst of several.

        A branch that sets a delta aside is the price of one row: for a group that delta grows by
        the runs' epsilon too, which a delta by itself does not know.
        """
        if len(self.branches) == 1 and not self.set_aside:
            return self.branches[0]
        return stand_in(self.epsilon, self.delta)

    @property
    def released_together(self):
        """How many noisy scores are released at a time."""
        return 1 if self.mean_runs is not None else len(self.layout.of_candidate)

    @property
    def releases(self):
        """How many releases were planned, in expectation for random stopping."""
        steps = [len(run.charges) for run in self.runs.values()]
        runs = sum(steps) if self.mean_runs is None else self.mean_runs * max(steps)
        return runs + (len(self.refits[0].charges) if self.refits else 0) + 1


def plan_runs(task, strategy, layout):
    """Plan a search that fits every candidate on its splits, then chooses one.

    Parameters
    ----------
    task : SearchTask
    strategy : {"disjoint", "holdout", "cv"}
    layout : Layout

    Returns
    -------
    SearchPlan
    """
    sensitivity = layout.sensitivity(task.score, task.terms.relation)
    patterns = layout.patterns()
    together = any(runs and scored for runs, scored in patterns)
    most = max(len(runs) for runs, _ in patterns)
    fit_budget, refit_budget = _fit_budgets(task, most, together)

    @cache
    def fits(scale):
        return task.run_plans(layout, fit_budget[0] * scale, fit_budget[1])

    @cache
    def refits(scale):
        return _refits(task, refit_budget, scale)

    def branches(scale, stage_scale, wanted):
        stage = [part.event for part in _scoring(task, sensitivity, stage_scale, together)]
        return worst_branches(
            [fits(scale)[run].event for run in runs] + stage * scored + refits(scale)[1]
            for runs, scored in wanted
        )

    scale = fitting_scale(task, lambda s: branches(s, 1.0, [p for p in patterns if p[0]]))
    stage_scale = 1.0
    if not together:
        stage_scale = fitting_scale(task, lambda s: branches(scale, s, [((), True)]))
    choice, noisy = _scoring(task, sensitivity, stage_scale, together)
    return SearchPlan(
        strategy=strategy,
        runs=fits(scale),
        refits=refits(scale)[0],
        layout=layout,
        choice=choice,
        noisy=noisy,
        branches=branches(scale, stage_scale, patterns),
        epsilon=task.epsilon,
        delta=task.delta,
        sensitivity=sensitivity,
    )


def plan_random_stopping(task, splits, mean_runs):
    """Plan a search that keeps the best of a random number of runs by its noisy score.

    Parameters
    ----------
    task : SearchTask
    splits : Splits
        One split.
    mean_runs : int
        The mean of the geometric number of runs.

    Returns
    -------
    SearchPlan
    """
    n_train, n_test = splits.train_sizes[0], splits.test_sizes[0]
    sensitivity = task.score.sensitivity(n_test, task.terms.relation)
    share = task.refit_share
    first = task.epsilon * (1.0 - share) / 3.0
    part = 0.25 if task.refit else 0.5
    exact_delta, run_delta = task.delta * part, task.delta * part / mean_runs
    trial = task.fit_plans(n_train, first, run_delta)
    fit_delta = run_delta if run_event(trial, run_delta)[1] else exact_delta
    refit_budget = task.epsilon * (math.sqrt(share) if task.delta else share), task.delta / 4.0

    @cache
    def runs(scale):
        fits = task.fit_plans(n_train, first * scale, fit_delta)
        return fits, *run_event(fits, fit_delta)

    @cache
    def refits(scale):
        return _refits(task, refit_budget, scale)

    def branch(scale, run, delta):
        parts = [RandomStopping(run, mean_runs, 1.0), *refits(scale)[1]]
        if delta > 0.0:
            parts.append(ApproximateDP(0.0, min(1.0, mean_runs * delta)))
        return Composed(tuple(parts))

    scale = fitting_scale(task, lambda s: (branch(s, *runs(s)[1:]),))
    fits, run, delta = runs(scale)
    branches, noisy = (branch(scale, run, delta),), _score_of_a_run(run, sensitivity, task.delta)
    if noisy is None:
        # Rows that are scored pay a price of their own.
        @cache
        def scoring(s):
            return GaussianMechanism.from_rho(task.rho * s**2, sensitivity, task.delta)

        s = fitting_scale(task, lambda s: (branch(scale, scoring(s).event, 0.0),))
        noisy = scoring(s)
        branches += (branch(scale, noisy.event, 0.0),)
    return SearchPlan(
        strategy="random_stopping",
        runs={(i, 0): fit for i, fit in enumerate(fits)},
        refits=refits(scale)[0],
        layout=Layout(splits, ((0,),) * len(fits)),
        choice=None,
        noisy=noisy,
        branches=branches,
        epsilon=task.epsilon,
        delta=task.delta,
        sensitivity=sensitivity,
        mean_runs=mean_runs,
        set_aside=delta,
    )


def _score_of_a_run(run, sensitivity, delta):
    """Return the mechanism for a run's score that costs a scored row what a fit costs others.

    None where that cost has no closed form.
    """
    if isinstance(run, PureDP):
        return LaplaceMechanism(run.epsilon, sensitivity)
    if not isinstance(run, Gaussian | ZCDP):
        return None
    rho = run.rho if isinstance(run, ZCDP) else 0.5 / run.noise_multiplier**2
    return GaussianMechanism.from_rho(rho * (1.0 - 2.0**-40), sensitivity, delta)


def _refits(task, budget, scale):
    """Return the plan of each candidate's refit, and a list of what the refit costs."""
    if not task.refit:
        return (), []
    plans = task.fit_plans(task.shape[0], budget[0] * scale, budget[1])
    return plans, [dominating(plans)]


def _fit_budgets(task, most, together):
    """Return the nominal (epsilon, delta) of one of `most` fits, and of the refit.

    With delta > 0 the squares of the epsilons divide the budget, as zero-concentrated losses
    would; with delta = 0 the epsilons do.
    """
    share = task.refit_share
    left = (1.0 - share) * (1.0 - (SELECTION_SHARE + SCORES_SHARE if together else 0.0))
    if task.delta == 0.0:
        return (task.epsilon * left / most, 0.0), (task.epsilon * share, 0.0)
    fit = task.epsilon * math.sqrt(left / most)
    refit = task.epsilon * math.sqrt(share)
    if most == 1 and not task.refit:
        return (fit, task.delta), (refit, 0.0)
    part = 0.25 if task.refit else 0.5
    return (fit, task.delta * part / most), (refit, task.delta * part)


def _scoring(task, sensitivity, scale, together):
    """Return the mechanism that chooses and the one that releases all scores."""
    left = 1.0 - task.refit_share
    shares = (SELECTION_SHARE, SCORES_SHARE) if together else (SELECTION_ALONE, SCORES_ALONE)
    selection, scores = (left * share for share in shares)
    monotonic = task.score.monotonic(task.terms.relation)
    m = len(task.candidates)
    choose = SELECTIONS[task.selection]
    if task.delta == 0.0:
        choice = choose(task.epsilon * selection * scale, sensitivity, monotonic)
        return choice, LaplaceMechanism(task.epsilon * scores * scale, sensitivity * m)
    # An exponential mechanism is epsilon^2 / 8-zCDP, any pure one epsilon^2 / 2.
    factor = 8.0 if task.selection == "exponential" else 2.0
    choice = choose(math.sqrt(factor * selection * task.rho) * scale, sensitivity, monotonic)
    length = sensitivity * math.sqrt(m) * (1.0 + 2.0**-50)
    return choice, GaussianMechanism.from_rho(scores * task.rho * scale**2, length, task.delta)
