"""What a search will do and what it costs, fixed before it is charged and before any fit.

A row takes part in some fits, in the scoring, or in both, by its index alone. A *branch* is what
one such row goes through; the worst branch is the price of the search.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

from skdp import mechanisms
from skdp.accounting import _events as ev
from skdp.accounting import gaussian_noise_multiplier
from skdp.mechanisms._plan import MechanismPlan, Price
from skdp.mechanisms._stages import Stage, stages_of
from skdp.model_selection._candidates import FitPlan
from skdp.model_selection._pricing import dominating, fitting_scale, run_cost, worst_branches
from skdp.utils._units import UnitText
from skdp.utils._validation import SIZES
from skdp.utils._values import FrozenValue

TRAINING_PART = UnitText(lambda unit: f"the {unit}s of its training part")
SCORED_PART = UnitText(lambda unit: f"the {unit}s that are scored")
ASSIGNED = UnitText(lambda unit: f"which {unit}s go where")
SELECTIONS = {
    "exponential": mechanisms.ExponentialMechanism,
    "permute_and_flip": mechanisms.PermuteAndFlip,
    "noisy_max": lambda *args: mechanisms.ReportNoisyMax(*args, noise="laplace"),
}

# Of the whole budget; and of what is left for rows that are scored, where fits come out of the
# same budget.
REFIT_SHARE = 0.5
SELECTION_SHARE = 0.25
SCORES_SHARE = 0.1
# Where scored rows are in no fit the choice and the scores share what the refit leaves.
SELECTION_ALONE = 0.7
SCORES_ALONE = 0.3
# Of the whole budget, what noisy scores get where nothing else is released.
SCORES_TOGETHER = 0.2


@dataclass(frozen=True, kw_only=True)
class SearchTask(FrozenValue):
    """What is asked of a search: all of it is public.

    Parameters
    ----------
    candidates : tuple of Candidate
    shape : tuple of (int, int)
        Of the whole table: the numbers of rows, or of persons, and of columns.
    score : BoundedScore
    guarantee : Guarantee
        The total, for one row or person.
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
        """What plans one candidate's fit on so many rows, once for each guarantee."""

        @cache
        def planned(candidate, n_samples, guarantee):
            pipeline = self.candidates[candidate].pipeline
            return FitPlan(replace(pipeline, n_samples=n_samples), guarantee)

        return planned

    def public(self, tried):
        """Return in words what a statement says was taken to be public."""
        labels = ("the label set",) if self.candidates[0].pipeline.classes is not None else ()
        steps = (f"step {name!r}" for name in self.public_steps)
        return SIZES, ASSIGNED, tried, *labels, *steps

    def run_plans(self, layout, guarantee):
        """Return the plan of every run of a layout, by candidate and split."""
        sizes = layout.splits.train_sizes
        return {(i, s): self.fit_plan(i, sizes[s], guarantee) for i, s in layout.runs}

    def refits(self, scale):
        """Return the plan of each candidate's fit to all rows, nothing without a refit.

        Parameters
        ----------
        scale : float
            Of its budget.
        """
        if not self.refit:
            return ()
        own = scaled(self.part(REFIT_SHARE, 0.25), scale)
        numbers = range(len(self.candidates))
        return tuple(self.fit_plan(i, self.shape[0], own) for i in numbers)

    def planned(self, strategy, layout, budget, scale, **released):
        """Return the plan in which runs have so many times a budget, and the refit of its own.

        Parameters
        ----------
        strategy : str
        layout : Layout
        budget : Guarantee
            Of a run.
        scale : float
        **released
            What else a `SearchPlan` has.
        """
        runs = self.run_plans(layout, scaled(budget, scale))
        refits = self.refits(scale)
        known = {"task": self, "strategy": strategy, "layout": layout}
        return SearchPlan(runs=runs, refits=refits, **known, **released)

    def part(self, share, delta_share):
        """Return a share of the budget as a guarantee.

        With delta > 0 the squares of the epsilons divide it, as zero-concentrated losses would;
        with delta = 0 the epsilons do.
        """
        whole = self.guarantee
        part = math.sqrt(share) if whole.delta > 0.0 else share
        return replace(whole, epsilon=whole.epsilon * part, delta=whole.delta * delta_share)

    # Which share of the budget the refit gets.
    @property
    def refit_share(self):
        return REFIT_SHARE if self.refit else 0.0

    @property
    def rho(self):
        """The zero-concentrated privacy loss of one Gaussian release of the whole budget."""
        return 0.5 / gaussian_noise_multiplier(self.guarantee.epsilon, self.guarantee.delta) ** 2


def scaled(guarantee, scale):
    """Return a guarantee of so many times its epsilon."""
    return replace(guarantee, epsilon=guarantee.epsilon * scale)


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchPlan(MechanismPlan):
    """Everything that a search, or a cross-validation without one, will release.

    Parameters
    ----------
    task : SearchTask
    strategy : str
        "scores" where scores are all that is released.
    runs : dict of (int, int) to FitPlan
        The fits, by the numbers of the candidate and of the split; for random stopping those
        that a run may draw.
    refits : tuple of FitPlan, default=()
        One for each candidate, of which one will be fitted; empty without a refit.
    layout : Layout
    choice : mechanism or None, default=None
        How a candidate is chosen by its raw scores.
    noisy : mechanism
        How scores are released.
    branches : tuple of Event
        What one row can go through.
    released_together : int, default=1
        How many noisy scores are released at a time: one a run for random stopping.
    mean_runs : int or None
        The mean number of runs of random stopping.
    set_aside : float
        The delta of random stopping's runs, which its event has beside them.
    """

    task: SearchTask
    strategy: str
    runs: dict
    layout: object
    noisy: object
    branches: tuple
    refits: tuple = ()
    choice: object = None
    released_together: int = 1
    mean_runs: int | None = None
    set_aside: float = 0.0
    by_person = True

    @cached_property
    def mechanism(self):
        """What is charged: the one branch, or what stands for the worst of several.

        A branch that sets a delta aside is the price of one row: for a group that delta grows by
        the runs' epsilon too, which a delta by itself does not know.
        """
        is_one = len(self.branches) == 1 and not self.set_aside
        name = f"{len(self.runs)} fits, then {self.noisy.name} on their scores"
        if self.strategy != "scores":
            choice = "the best noisy score of a secret number of runs"
            if self.choice is not None:
                choice = f"{self.choice.name} and noisy scores"
            name = f"search over {len(self.layout.of_candidate)} candidates: "
            name += f"{self.strategy}, {choice}" + (", then a refit" if self.refits else "")
        whole = self.task.guarantee
        scale = self.noisy.scale
        # Of one candidate's score, or of all scores where there is no choice.
        noise = {"scale": scale, "sensitivity": (self.choice or self.noisy).sensitivity}
        event = self.branches[0] if is_one else whole.event
        return Price(name=name, event=event, guarantee=whole, **noise)

    @property
    def training_stages(self):
        """The fits that scores are computed of, each kind once: a stage holds the event of a fit.

        Their models are not published, but the scores depend on them, and they are charged.
        """
        is_secret = self.mean_runs is not None
        counts = Counter(
            (charge.name, charge.event)
            for run in self.runs.values()
            for charge in run.charges
            if charge.event != ev.Composed(())
        )
        return tuple(
            Stage(
                name=f"{'a run drawn at random' if is_secret else 'fits that are scored'}: {name}",
                law=f"as planned, {event}",
                scale=None,
                sensitivity=None,
                event=event,
                reads=TRAINING_PART,
                n_releases=1 if is_secret else count,
            )
            for (name, event), count in counts.items()
        )

    @property
    def stages(self):
        """What is released beside a model, which has stages of its own."""
        choice = () if self.choice is None else stages_of(self.choice, "the choice of a candidate")
        stages = (*choice, *stages_of(self.noisy, "noisy scores"))
        return tuple(replace(stage, reads=SCORED_PART) for stage in stages)

    @property
    def releases(self):
        """How many releases were planned, in expectation for random stopping."""
        steps = [len(run.charges) for run in self.runs.values()]
        runs = sum(steps) if self.mean_runs is None else self.mean_runs * max(steps)
        return runs + (len(self.refits[0].charges) if self.refits else 0) + 1


def plan_runs(task, strategy, layout):
    """Plan the fits of every candidate on its splits, and what is released of their scores.

    Parameters
    ----------
    task : SearchTask
    strategy : {"disjoint", "holdout", "cv", "scores"}
        "scores" releases those of all runs, and chooses none.
    layout : Layout

    Returns
    -------
    SearchPlan
    """
    patterns = layout.patterns()
    chooses = strategy != "scores"
    together = any(runs and scored for runs, scored in patterns) or not chooses
    most = max(len(runs) for runs, _ in patterns)
    stage = SELECTION_SHARE + SCORES_SHARE if chooses else SCORES_TOGETHER
    # Of epsilon, what the fits on one row share; of delta, what choice, scores and refit leave.
    share = (1.0 - task.refit_share) * (1.0 - stage * together)
    delta_share = 0.25 if task.refit else 1.0 if most == 1 and chooses else 0.5
    budget = task.part(share / most, delta_share / most)
    choosing = partial(_scoring, task, layout, together)
    scoring = cache(choosing if chooses else partial(_scoring_of_all, task, layout))

    def branches(scale, stage_scale, wanted):
        fits = task.run_plans(layout, scaled(budget, scale))
        stage = [part.event for part in scoring(stage_scale) if part is not None]
        refit = [dominating(task.refits(scale))] if task.refit else []
        return worst_branches(
            [fits[run].event for run in runs] + stage * scored + refit for runs, scored in wanted
        )

    scale = fitting_scale(task, lambda s: branches(s, 1.0, [p for p in patterns if p[0]]))
    stage_scale = 1.0
    if not together:
        stage_scale = fitting_scale(task, lambda s: branches(scale, s, [((), True)]))
    choice, noisy = scoring(stage_scale)
    n_scores = len(task.candidates if chooses else layout.runs)
    stage = {"choice": choice, "noisy": noisy, "released_together": n_scores}
    every = branches(scale, stage_scale, patterns)
    return task.planned(strategy, layout, budget, scale, branches=every, **stage)


def _scoring(task, layout, together, scale):
    """Return the mechanism that chooses and the one that releases each candidate's score."""
    left = 1.0 - task.refit_share
    whole = task.guarantee
    shares = (SELECTION_SHARE, SCORES_SHARE) if together else (SELECTION_ALONE, SCORES_ALONE)
    selection, scores = (left * share for share in shares)
    monotonic = task.score.monotonic(whole.relation)
    m = len(task.candidates)
    sensitivity = layout.sensitivity(task.score, whole.relation)
    epsilon = whole.epsilon * selection
    if whole.delta > 0.0:
        # An exponential mechanism is epsilon^2 / 8-zCDP, any pure one epsilon^2 / 2.
        factor = 8.0 if task.selection == "exponential" else 2.0
        epsilon = math.sqrt(factor * selection * task.rho)
    choice = SELECTIONS[task.selection](epsilon * scale, sensitivity, monotonic)
    length = sensitivity * math.sqrt(m) * (1.0 + 2.0**-50)
    return choice, _noise(task, scores, scale, l1=sensitivity * m, l2=length)


def _scoring_of_all(task, layout, scale):
    """Return that none chooses, and the mechanism that releases the scores of all runs."""
    sizes = layout.splits.test_sizes
    relation = task.guarantee.relation
    moved = [
        [task.score.sensitivity(sizes[s], relation) for _, s in layout.runs if s in test]
        for _, test in layout.splits.memberships
    ]
    l1 = max(map(math.fsum, moved)) * (1.0 + 2.0**-50)
    l2 = math.sqrt(max(math.fsum(d * d for d in row) for row in moved)) * (1.0 + 2.0**-50)
    return None, _noise(task, SCORES_TOGETHER, scale, l1=l1, l2=l2)


def _noise(task, share, scale, *, l1, l2):
    """Return the mechanism that releases scores of a sensitivity for a share of the budget."""
    whole = task.guarantee
    if whole.delta == 0.0:
        return mechanisms.LaplaceMechanism(whole.epsilon * share * scale, l1)
    return mechanisms.GaussianMechanism.from_rho(share * task.rho * scale**2, l2, whole.delta)


def plan_random_stopping(task, layout, mean_runs):
    """Plan a search that keeps the best of a random number of runs by its noisy score.

    Parameters
    ----------
    task : SearchTask
    layout : Layout
        Of one split.
    mean_runs : int
        The mean of the geometric number of runs.

    Returns
    -------
    SearchPlan
    """
    whole = task.guarantee
    sensitivity = task.score.sensitivity(layout.splits.test_sizes[0], whole.relation)
    exact_delta = whole.delta * (0.25 if task.refit else 0.5)
    epsilon = whole.epsilon * (1.0 - task.refit_share) / 3.0
    first = replace(whole, epsilon=epsilon, delta=exact_delta / mean_runs)

    def cost(scale):
        return run_cost(tuple(task.run_plans(layout, scaled(first, scale)).values()), first.delta)

    if not cost(1.0).set_aside:
        first = replace(first, delta=exact_delta)

    def branch(scale, run, delta):
        parts = [ev.RandomStopping(run, mean_runs, 1.0)]
        if task.refit:
            parts.append(dominating(task.refits(scale)))
        if delta > 0.0:
            parts.append(ev.ApproximateDP(0.0, min(1.0, mean_runs * delta)))
        return ev.Composed(tuple(parts))

    scale = fitting_scale(task, lambda s: (branch(s, cost(s).event, cost(s).set_aside),))
    run = cost(scale)
    branches = (branch(scale, run.event, run.set_aside),)
    noisy = _score_of_a_run(run.event, sensitivity, whole.delta)
    if noisy is None:
        # Rows that are scored pay a price of their own.
        scoring = partial(_noise, task, 1.0, l1=sensitivity, l2=sensitivity)
        noisy = scoring(fitting_scale(task, lambda s: (branch(scale, scoring(s).event, 0.0),)))
        branches += (branch(scale, noisy.event, 0.0),)
    stage = {"noisy": noisy, "mean_runs": mean_runs, "set_aside": run.set_aside}
    return task.planned("random_stopping", layout, first, scale, branches=branches, **stage)


def _score_of_a_run(run, sensitivity, delta):
    """Return the mechanism for a run's score that costs a scored row what a fit costs others.

    None where that cost has no closed form.
    """
    if isinstance(run, ev.PureDP):
        return mechanisms.LaplaceMechanism(run.epsilon, sensitivity)
    if not isinstance(run, ev.Gaussian | ev.ZCDP):
        return None
    rho = run.rho if isinstance(run, ev.ZCDP) else 0.5 / run.noise_multiplier**2
    return mechanisms.GaussianMechanism.from_rho(rho * (1.0 - 2.0**-40), sensitivity, delta)
