"""The fits of a search and its privacy cost, fixed before the charge and before any fit.

A row's index determines the fits in which it takes part and whether it is scored. A *record path*
is the composition of all mechanisms that read one such row. The privacy cost of the search is the
cost of its most expensive record path (parallel composition).
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import skdp.mechanisms as mechanisms
from skdp.accounting import _events as ev
from skdp.accounting import gaussian_noise_multiplier
from skdp.mechanisms._plan import Plan
from skdp.mechanisms._stages import Stage, stages_of
from skdp.metrics._statistics import CellCounts
from skdp.model_selection._candidates import CandidateFit
from skdp.model_selection._pooled import PooledStatistics
from skdp.model_selection._pricing import (
    dominating_event,
    fitting_scale,
    run_cost,
    worst_record_paths,
)
from skdp.utils._documents import count_of
from skdp.utils._units import UnitText
from skdp.utils._validation import SIZES
from skdp.utils._values import FrozenValue

# Assumptions and inputs of stages, as they appear in a privacy statement.
TRAINING_PART = UnitText(lambda unit: f"the {unit}s of its training part")
SCORED_PART = UnitText(lambda unit: f"the {unit}s that are scored")
ASSIGNED = UnitText(lambda unit: f"which {unit}s go where")


def _laplace_noisy_max(epsilon, sensitivity, monotonic):
    """Return the mechanism that chooses the largest score with Laplace noise."""
    return mechanisms.ReportNoisyMax(epsilon, sensitivity, monotonic, noise="laplace")


# Mechanisms that choose a candidate; called with epsilon, sensitivity and monotonicity.
SELECTIONS = {
    "exponential": mechanisms.ExponentialMechanism,
    "permute_and_flip": mechanisms.PermuteAndFlip,
    "noisy_max": _laplace_noisy_max,
}

# Fraction of the whole budget for the refit on all rows.
REFIT_FRACTION = 0.5
# Fractions of the remaining budget for the choice and for the noisy scores, if scored rows are also
# used for training.
SELECTION_FRACTION = 0.25
SCORES_FRACTION = 0.1
# The same fractions if scored rows are not used in fits. The two then share all of the budget that
# remains after the refit.
HELD_OUT_SELECTION_FRACTION = 0.7
HELD_OUT_SCORES_FRACTION = 0.3
# Fraction of the whole budget for the noisy scores, if no candidate is chosen.
ONLY_SCORES_FRACTION = 0.2
# Fraction of the whole epsilon for the denominators of a score, if they are not declared.
# Denominators are counts or a variance over all rows, far more precise than the score of one fold.
DENOMINATORS_FRACTION = 0.05


@dataclass(frozen=True, kw_only=True)
class SearchTask(FrozenValue):
    """Public description of a search: its candidates, score and budget.

    Parameters
    ----------
    candidates : tuple of Candidate
    shape : tuple of (int, int)
        Number of rows (or of persons) and number of columns of the whole table.
    score : BoundedScore
    guarantee : Guarantee
        Budget of the whole search, for one row or person.
    selection : str
    refit : bool
    public_steps : tuple of str
    """

    candidates: tuple
    shape: tuple
    score: object
    guarantee: object
    selection: str = "exponential"
    refit: bool = False
    public_steps: tuple = ()

    @cached_property
    def fit_plan(self):
        """Function that plans a candidate's fit from the number of rows and the budget, cached."""

        @cache
        def plan_fit(candidate, n_samples, guarantee):
            """Return the `CandidateFit` for a number of training rows."""
            pipeline = self.candidates[candidate].pipeline
            return CandidateFit(replace(pipeline, n_samples=n_samples), guarantee)

        return plan_fit

    def public(self, candidates):
        """Return the list of public quantities, as they appear in a privacy statement."""
        labels = ()
        if self.candidates[0].pipeline.classes is not None:
            labels = ("the label set",)
        steps = (f"step {name!r}" for name in self.public_steps)
        return SIZES, ASSIGNED, candidates, *labels, *steps

    def run_plans(self, layout, guarantee):
        """Return a dict from (candidate, split) to the `CandidateFit` of that run."""
        sizes = layout.splits.train_sizes
        return {(i, s): self.fit_plan(i, sizes[s], guarantee) for i, s in layout.runs}

    def refits(self, scale):
        """Return the plan of each candidate's fit to all rows; empty without a refit.

        Parameters
        ----------
        scale : float
            Factor of the refit's epsilon.
        """
        if not self.refit:
            return ()
        guarantee = scaled(self.budget_part(REFIT_FRACTION, 0.25), scale)
        n_candidates = len(self.candidates)
        return tuple(self.fit_plan(i, self.shape[0], guarantee) for i in range(n_candidates))

    def make_fit(self, strategy, layout, budget, scale, **fields):
        """Return the `SearchFit` in which the epsilons of runs and refit are scaled.

        Parameters
        ----------
        strategy : str
        layout : Layout
        budget : Guarantee
            Budget of one run, before scaling.
        scale : float
            Factor of the epsilons, see `fitting_scale`.
        **fields
            Further fields of `SearchFit`.
        """
        return SearchFit(
            task=self,
            strategy=strategy,
            layout=layout,
            runs=self.run_plans(layout, scaled(budget, scale)),
            refits=self.refits(scale),
            denominators=self.denominators,
            **fields,
        )

    def budget_part(self, fraction, delta_fraction):
        """Return a fraction of the budget as a guarantee.

        It is a fraction of the squared epsilon with delta > 0, because that is how zCDP composes,
        and of epsilon with delta = 0.
        """
        total = self.guarantee
        factor = fraction
        if total.delta > 0.0:
            factor = math.sqrt(fraction)
        return replace(total, epsilon=total.epsilon * factor, delta=total.delta * delta_fraction)

    @cached_property
    def denominators(self):
        """Plan of the denominators of the score, computed from all rows; None if there are none."""
        if not self.score.needs_denominators:
            return None
        # It has no delta, so it composes with every mechanism of the search.
        total = self.guarantee
        guarantee = replace(total, epsilon=total.epsilon * DENOMINATORS_FRACTION, delta=0.0)
        classes = self.candidates[0].pipeline.classes
        return self.score.plan_denominators(self.shape[0], guarantee, classes)

    @property
    def denominator_events(self):
        """List with the event of the denominators; empty if there are none."""
        if self.denominators is None:
            return []
        return [self.denominators.event]

    @property
    def refit_fraction(self):
        """Fraction of the budget that the refit receives."""
        if self.refit:
            return REFIT_FRACTION
        return 0.0

    @property
    def rho(self):
        """The zCDP parameter of one Gaussian release that uses the whole budget."""
        return 0.5 / gaussian_noise_multiplier(self.guarantee.epsilon, self.guarantee.delta) ** 2


def scaled(guarantee, scale):
    """Return the guarantee with its epsilon multiplied by `scale`."""
    return replace(guarantee, epsilon=guarantee.epsilon * scale)


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchFit(FrozenValue):
    """All fits and releases of a search or a cross-validation; `plan` returns its plan.

    Parameters
    ----------
    task : SearchTask
    strategy : str
        "scores" for a cross-validation and "histogram" for counts of scores choose no candidate.
    runs : dict of (int, int) to CandidateFit
        The fits by (candidate, split). For random stopping, the fits that a run may draw.
    refits : tuple of CandidateFit, default=()
        One per candidate, only one of which will be fitted. Empty without a refit.
    layout : Layout
    choice : mechanism or None, default=None
        Mechanism that chooses a candidate by the raw scores.
    noisy : mechanism
        Mechanism that releases the scores.
    record_paths : tuple of Event
        The compositions in which one row can take part; see the module's docstring.
    released_together : int, default=1
        Number of noisy scores per release; 1 for random stopping, which releases one per run.
    mean_runs : int or None
        Mean number of runs of random stopping.
    denominators : DenominatorPlan, default=None
        Plan of the denominators of the score, which are released before the first fit.
    reserved_delta : float
        Delta that is added to the runs of random stopping, outside of their event.
    """

    task: SearchTask
    strategy: str
    runs: dict
    layout: object
    noisy: object
    record_paths: tuple
    refits: tuple = ()
    choice: object = None
    released_together: int = 1
    mean_runs: int | None = None
    reserved_delta: float = 0.0
    denominators: object = None

    def plan(self):
        """Return the plan, which has no `run`, because `SearchRun` runs the fits and the releases.

        The charge is the event of the only record path, or the total (epsilon, delta) if there are
        several or a delta is reserved. For a group of rows, the reserved delta also grows with the
        epsilon of the runs, which an event that contains only this delta could not express.
        """
        total = self.task.guarantee
        event = total.event
        if len(self.record_paths) == 1 and not self.reserved_delta:
            event = self.record_paths[0]
        return Plan(
            name=self._name,
            event=event,
            epsilon=total.epsilon,
            delta=total.delta,
            scale=self.noisy.scale,
            sensitivity=self.noisy.sensitivity,
            stages=self.score_stages,
            mechanism=self,
        )

    @property
    def _name(self):
        """Name of the plan: its fits or its candidates, the choice and the refit."""
        fits = count_of(len(self.runs), "fit")
        name = f"{fits}, then {self.noisy.name} on the scores"
        if self.strategy not in ("scores", "histogram"):
            choice = "the best noisy score of a secret number of runs"
            if self.choice is not None:
                choice = f"{self.choice.name} and noisy scores"
            n_candidates = len(self.layout.candidate_splits)
            candidates = count_of(n_candidates, "candidate")
            name = f"search over {candidates}: {self.strategy}, {choice}"
        if self.refits:
            name += ", then a refit"
        return name

    def training_stages(self, published=None):
        """Return the stages of the unpublished fits, equal ones counted together.

        The models of these fits are not published, but the scores depend on them, so they are
        charged.

        Parameters
        ----------
        published : int, default=None
            Index of the candidate whose fit to a training part is published. The fit is not
            counted, because the search lists its stages separately. With a secret number of runs,
            the stages are those of any run.

        Returns
        -------
        tuple of Stage
        """
        is_secret = self.mean_runs is not None
        name_of_runs = "fits that are scored"
        if is_secret:
            name_of_runs = "a run drawn at random"
        runs = dict(self.runs)
        if published is not None and not is_secret:
            del runs[next(run for run in runs if run[0] == published)]
        counts = Counter(
            stage
            for run in runs.values()
            for charge in run.charges
            for stage in _stages_of_charge(charge)
        )
        return tuple(
            replace(
                stage,
                name=f"{name_of_runs}: {stage.name}",
                reads=TRAINING_PART,
                n_releases=stage.n_releases if is_secret else stage.n_releases * count,
            )
            for stage, count in counts.items()
        )

    @property
    def score_stages(self):
        """Stages of the choice and of the noisy scores, without the stages of the model."""
        if self.choice is None:
            choice = ()
        else:
            choice = stages_of(self.choice, "the choice of a candidate")
        name = "noisy scores"
        if self.strategy == "histogram":
            name = CellCounts.released_name
        stages = (*choice, *stages_of(self.noisy, name))
        stages = tuple(replace(stage, reads=SCORED_PART) for stage in stages)
        if self.denominators is not None:
            stages = (*stages_of(self.denominators), *stages)
        return stages

    def with_denominators(self, y, source, persons=None):
        """Release the score's denominators, and return the search with a score that uses them.

        Its mechanisms use the sensitivity of that score; their events do not change.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            The targets of all rows.
        source : RandomSource
        persons : Persons, default=None

        Returns
        -------
        SearchFit
        """
        if self.denominators is None:
            return self
        released = self.denominators.run(y, source, persons)
        task = replace(self.task, score=self.task.score.with_denominators(released))
        relation = task.guarantee.relation
        choice = self.choice
        if self.mean_runs is not None:
            size = self.layout.splits.test_sizes[0]
            l1 = l2 = task.score.sensitivity(size, relation)
        elif self.strategy == "scores":
            l1, l2 = release_sensitivities(task, self.layout)
        else:
            sensitivity, l1, l2 = selection_sensitivities(task, self.layout)
            choice = replace(choice, sensitivity=sensitivity)
        is_laplace = isinstance(self.noisy, mechanisms.LaplaceMechanism)
        noisy = replace(self.noisy, sensitivity=l1 if is_laplace else l2)
        planned = [mechanism.event for mechanism in (self.choice, self.noisy) if mechanism]
        if [mechanism.event for mechanism in (choice, noisy) if mechanism] != planned:
            raise RuntimeError("the mechanisms of the scores differ from the planned ones")
        return replace(self, task=task, choice=choice, noisy=noisy)

    @property
    def releases(self):
        """Number of planned releases; None if the number of runs is secret."""
        if self.mean_runs is not None:
            return None
        runs = sum(len(run.charges) for run in self.runs.values())
        refit = 0
        if self.refits:
            refit = len(self.refits[0].charges)
        # The noisy scores are one release.
        return runs + refit + 1 + (self.choice is not None) + (self.denominators is not None)


def plan_runs(task, strategy, layout):
    """Return the plan of the candidates' fits on their splits and of the release of their scores.

    Parameters
    ----------
    task : SearchTask
    strategy : {"disjoint", "holdout", "cv", "scores"}
        "scores" releases the scores of all runs and chooses no candidate.
    layout : Layout

    Returns
    -------
    SearchFit
    """
    patterns = layout.patterns()
    is_search = strategy != "scores"
    # True if some rows are both trained on and scored, so that both uses share a budget.
    is_shared = any(runs and is_scored for runs, is_scored in patterns) or not is_search
    max_fits = max(len(runs) for runs, _ in patterns)
    scores_fraction = ONLY_SCORES_FRACTION
    if is_search:
        scores_fraction = SELECTION_FRACTION + SCORES_FRACTION
    # The fits on one row share the epsilon that remains after the refit, the choice and the scores.
    fraction = (1.0 - task.refit_fraction) * (1.0 - scores_fraction * is_shared)
    if task.refit:
        delta_fraction = 0.25
    elif max_fits == 1 and is_search:
        delta_fraction = 1.0
    else:
        delta_fraction = 0.5
    budget = task.budget_part(fraction / max_fits, delta_fraction / max_fits)

    @cache
    def score_mechanisms(scale):
        """Return the mechanisms of the choice and of the scores; None for an unused one."""
        if is_search:
            return _selection_mechanisms(task, layout, is_shared, scale)
        return _release_mechanism(task, layout, scale)

    def record_paths(scale, stage_scale, patterns):
        """Return the costliest compositions of the releases that one record takes part in.

        Parameters
        ----------
        scale, stage_scale : float
            Factors on the budget of the fits, and on the budgets of the choice and the scores.
        patterns : list of Pattern
            For each kind of record, the runs that train on it and whether scores read it.
        """
        fits = task.run_plans(layout, scaled(budget, scale))
        score_events = [
            mechanism.event for mechanism in score_mechanisms(stage_scale) if mechanism is not None
        ]
        refit = []
        if task.refit:
            refit = [dominating_event(task.refits(scale))]
        paths = []
        for runs, is_scored in patterns:
            events = [fits[run].event for run in runs]
            if is_scored:
                events += score_events
            paths.append(events + refit + task.denominator_events)
        return worst_record_paths(paths)

    trained = [pattern for pattern in patterns if pattern.trained]
    scale = fitting_scale(task, lambda s: record_paths(s, 1.0, trained))
    stage_scale = 1.0
    if not is_shared:
        # Rows that are only scored can spend the whole budget on the choice and the scores.
        stage_scale = fitting_scale(task, lambda s: record_paths(scale, s, [((), True)]))
    choice, noisy = score_mechanisms(stage_scale)
    return task.make_fit(
        strategy,
        layout,
        budget,
        scale,
        record_paths=record_paths(scale, stage_scale, patterns),
        choice=choice,
        noisy=noisy,
        released_together=_number_of_scores(task, layout, is_search),
    )


def _number_of_scores(task, layout, is_search):
    """Return the number of noisy values that are released together."""
    if isinstance(task.score, PooledStatistics):
        return task.score.size
    return len(task.candidates if is_search else layout.runs)


def _selection_mechanisms(task, layout, is_shared, scale):
    """Return the mechanism that chooses a candidate and the one that releases the scores.

    Parameters
    ----------
    task : SearchTask
    layout : Layout
    is_shared : bool
        True if some rows are both trained on and scored. The scores then share the budget with the
        fits, and have smaller fractions of it.
    scale : float
        Factor on the budgets.
    """
    remaining = 1.0 - task.refit_fraction
    total = task.guarantee
    if is_shared:
        selection = remaining * SELECTION_FRACTION
        scores = remaining * SCORES_FRACTION
    else:
        selection = remaining * HELD_OUT_SELECTION_FRACTION
        scores = remaining * HELD_OUT_SCORES_FRACTION
    monotonic = task.score.monotonic(total.relation)
    sensitivity, l1, l2 = selection_sensitivities(task, layout)
    epsilon = total.epsilon * selection
    if total.delta > 0.0:
        # An exponential mechanism is (epsilon^2 / 8)-zCDP, and any pure mechanism is (epsilon^2 /
        # 2)-zCDP.
        factor = 2.0
        if task.selection == "exponential":
            factor = 8.0
        epsilon = math.sqrt(factor * selection * task.rho)
    choice = SELECTIONS[task.selection](epsilon * scale, sensitivity, monotonic)
    return choice, score_noise(task, scores, scale, l1=l1, l2=l2)


def selection_sensitivities(task, layout):
    """Return the sensitivity of one candidate's score, and the (L1, L2) pair for all scores."""
    m = len(task.candidates)
    sensitivity = layout.sensitivity(task.score, task.guarantee.relation)
    # One row changes the scores of all m candidates. The factor covers rounding.
    return sensitivity, sensitivity * m, sensitivity * math.sqrt(m) * (1.0 + 2.0**-50)


def _release_mechanism(task, layout, scale):
    """Return None, since nothing is chosen, and the mechanism that releases all runs' scores."""
    if isinstance(task.score, PooledStatistics):
        # A row is scored in one fold only, so the sensitivity is that of one table.
        l1, l2 = task.score.sensitivities
        return None, score_noise(task, ONLY_SCORES_FRACTION, scale, l1=l1, l2=l2)
    l1, l2 = release_sensitivities(task, layout)
    return None, score_noise(task, ONLY_SCORES_FRACTION, scale, l1=l1, l2=l2)


def release_sensitivities(task, layout):
    """Return the (L1, L2) sensitivities of the scores of all runs."""
    sizes = layout.splits.test_sizes
    relation = task.guarantee.relation
    l1 = 0.0
    l2_squared = 0.0
    for _, test in layout.splits.memberships:
        changes = [
            task.score.planned_sensitivity(sizes[s], relation) for _, s in layout.runs if s in test
        ]
        l1 = max(l1, math.fsum(changes))
        l2_squared = max(l2_squared, math.fsum(change * change for change in changes))
    # The factors cover rounding errors in the sums.
    l1 *= 1.0 + 2.0**-50
    return l1, math.sqrt(l2_squared) * (1.0 + 2.0**-50)


def score_noise(task, budget_fraction, scale, *, l1, l2):
    """Return the mechanism that releases scores with the given L1 and L2 sensitivities."""
    total = task.guarantee
    if total.delta == 0.0:
        return mechanisms.LaplaceMechanism(total.epsilon * budget_fraction * scale, l1)
    rho = budget_fraction * task.rho * scale**2
    return mechanisms.GaussianMechanism.from_rho(rho, l2, total.delta)


def plan_random_stopping(task, layout, mean_runs):
    """Return the plan of random stopping, which keeps the best of a random number of noisy scores.

    The privacy cost was derived by Liu and Talwar (STOC 2019) and Papernot and Steinke (ICLR 2022).

    Parameters
    ----------
    task : SearchTask
    layout : Layout
        Layout of one split.
    mean_runs : int
        Mean of the geometric number of runs.

    Returns
    -------
    SearchFit
    """
    total = task.guarantee
    sensitivity = task.score.planned_sensitivity(layout.splits.test_sizes[0], total.relation)
    runs_delta = total.delta * (0.25 if task.refit else 0.5)
    epsilon = total.epsilon * (1.0 - task.refit_fraction) / 3.0
    # Each run may use up this delta, so it is divided by the mean number of runs.
    budget = replace(total, epsilon=epsilon, delta=runs_delta / mean_runs)

    def cost(scale):
        """Return the `RunCost` of one run, for a factor on the budget."""
        fits = tuple(task.run_plans(layout, scaled(budget, scale)).values())
        return run_cost(fits, budget.delta)

    if not cost(1.0).reserved_delta:
        budget = replace(budget, delta=runs_delta)

    def record_path(scale, run, delta):
        """Return the event of everything that one record can take part in: all runs and the refit.

        Parameters
        ----------
        scale : float
            Factor on the budget of the refit.
        run : Event
            Event of one run: that of the fit for a training row, of the score for a scored row.
        delta : float
            Delta of one run that `run` does not contain; it is multiplied by the mean number of
            runs.
        """
        events = [ev.RandomStopping(run, mean_runs, 1.0), *task.denominator_events]
        if task.refit:
            events.append(dominating_event(task.refits(scale)))
        if delta > 0.0:
            events.append(ev.ApproximateDP(0.0, min(1.0, mean_runs * delta)))
        return ev.Composed(tuple(events))

    scale = fitting_scale(task, lambda s: (record_path(s, cost(s).event, cost(s).reserved_delta),))
    run = cost(scale)
    record_paths = (record_path(scale, run.event, run.reserved_delta),)
    noisy = _run_score_mechanism(run.event, sensitivity, total.delta)
    if noisy is None:
        # The record path of scored rows differs from that of training rows.
        noise_at = partial(score_noise, task, 1.0, l1=sensitivity, l2=sensitivity)
        score_scale = fitting_scale(task, lambda s: (record_path(scale, noise_at(s).event, 0.0),))
        noisy = noise_at(score_scale)
        record_paths += (record_path(scale, noisy.event, 0.0),)
    return task.make_fit(
        "random_stopping",
        layout,
        budget,
        scale,
        record_paths=record_paths,
        noisy=noisy,
        mean_runs=mean_runs,
        reserved_delta=run.reserved_delta,
    )


def _run_score_mechanism(run, sensitivity, delta):
    """Return the mechanism for a run's score that costs as much as the run's fit.

    A row is either trained on or scored, so both may use the same budget. None if the cost of
    the fit has no closed form.
    """
    if isinstance(run, ev.PureDP):
        return mechanisms.LaplaceMechanism(run.epsilon, sensitivity)
    if not isinstance(run, ev.Gaussian | ev.ZCDP):
        return None
    if isinstance(run, ev.ZCDP):
        rho = run.rho
    else:
        rho = 0.5 / run.noise_multiplier**2
    return mechanisms.GaussianMechanism.from_rho(rho * (1.0 - 2.0**-40), sensitivity, delta)


def _stages_of_charge(charge):
    """Return the stages of a planned charge, named after its step; one if they are unknown."""
    if charge.event == ev.Composed(()):
        return ()
    if not charge.stages:
        law = f"any mechanism that costs at most {charge.event}"
        stage = Stage(name=charge.name, law=law, scale=None, sensitivity=None, event=charge.event)
        return (stage,)
    return tuple(replace(stage, name=f"{charge.name}: {stage.name}") for stage in charge.stages)
