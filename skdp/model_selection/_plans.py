"""What a search will do and what it costs, fixed before it is charged and before any fit.

A row takes part in some fits, in the scoring, or in both, by its index alone. A *branch* is what
one such row goes through; the worst branch is the price of the search.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from skdp.accounting import (
    ZCDP,
    ApproximateDP,
    Composed,
    Gaussian,
    PureDP,
    RandomStopping,
    gaussian_noise_multiplier,
    zcdp,
)
from skdp.accounting import delta as event_delta
from skdp.accounting import epsilon as event_epsilon
from skdp.accounting._events import leaves, merged
from skdp.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
)
from skdp.model_selection._candidates import make_fit_plan

__all__ = [
    "SELECTIONS",
    "ScoresPlan",
    "SearchPlan",
    "SearchTask",
    "plan_random_stopping",
    "plan_runs",
    "plan_scores",
]

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
# Of the whole budget, what the noisy scores of cross-validation get.
SCORES_TOGETHER = 0.2
MOST_BRANCHES, MOST_STEPS, LARGEST_STEP = 32, 40, 7.0


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
        return make_fit_plan(
            self.candidates[candidate],
            (n_samples, self.shape[1]),
            (epsilon, delta),
            self.terms,
            self.public_steps,
        )

    def fit_plans(self, n_samples, epsilon, delta):
        """Return the plan of every candidate's fit on so many rows."""
        numbers = range(len(self.candidates))
        return tuple(self.fit_plan(i, n_samples, epsilon, delta) for i in numbers)

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

    @property
    def event(self):
        """The one branch, or what stands for the worst of several."""
        if len(self.branches) == 1:
            return self.branches[0]
        return _stand_in(self.epsilon, self.delta)

    @property
    def releases(self):
        """How many releases were planned, in expectation for random stopping."""
        steps = [len(run.charges) for run in self.runs.values()]
        runs = sum(steps) if self.mean_runs is None else self.mean_runs * max(steps)
        return runs + (len(self.refits[0].charges) if self.refits else 0) + 1


@dataclass(frozen=True)
class Layout:
    """Which candidate is fitted on which splits.

    Parameters
    ----------
    splits : Splits
    of_candidate : tuple of tuple of int
        The splits on which each candidate is fitted and scored.
    """

    splits: object
    of_candidate: tuple

    @property
    def runs(self):
        """Every fit, as (candidate, split)."""
        return [(i, s) for i, splits in enumerate(self.of_candidate) for s in splits]

    def patterns(self):
        """Return what distinct rows take part in: (tuple of runs, whether it is scored)."""
        found = set()
        for train, test in self.splits.memberships():
            found.add((tuple(run for run in self.runs if run[1] in train), bool(test)))
        # A row that takes part in less than another one costs less.
        return sorted(p for p in found if not any(_is_less(p, q) for q in found))

    def sensitivity(self, score, relation):
        """Return by how much one row moves the score of any candidate."""
        sizes = np.asarray(self.splits.test_sizes)
        largest = 0.0
        for splits in set(self.of_candidate):
            weights = dict(zip(splits, score.weights(sizes[list(splits)]), strict=True))
            for _, test in self.splits.memberships():
                moved = math.fsum(
                    weights[s] * score.sensitivity(int(sizes[s]), relation)
                    for s in test
                    if s in weights
                )
                largest = max(largest, moved)
        # Scores of several splits are added up in floating point.
        return largest * (1.0 + 2.0**-40)

    def score(self, score, values, candidate):
        """Return a candidate's score from those of its runs."""
        splits = list(self.of_candidate[candidate])
        weights = score.weights(np.asarray(self.splits.test_sizes)[splits])
        return math.fsum(w * values[candidate, s] for w, s in zip(weights, splits, strict=True))


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
    patterns = _worst_patterns(layout)
    together = any(runs and scored for runs, scored in patterns)
    most = max(len(runs) for runs, _ in patterns)
    fit_budget, refit_budget = _fit_budgets(task, most, together)
    sizes = layout.splits.train_sizes

    @cache
    def fits(scale):
        budget = fit_budget[0] * scale, fit_budget[1]
        needed = {(i, sizes[s]) for i, s in layout.runs}
        plans = {(i, size): task.fit_plan(i, size, *budget) for i, size in needed}
        return {(i, s): plans[i, sizes[s]] for i, s in layout.runs}

    @cache
    def refits(scale):
        plans = _refits(task, refit_budget, scale)
        return plans, [_dominating(plans)] if plans else []

    def branches(scale, stage_scale, wanted):
        stage = [part.event for part in _scoring(task, sensitivity, stage_scale, together)]
        return _worst(
            [fits(scale)[run].event for run in runs] + stage * scored + refits(scale)[1]
            for runs, scored in wanted
        )

    scale = _fitting(task, lambda s: branches(s, 1.0, [p for p in patterns if p[0]]))
    stage_scale = 1.0
    if not together:
        stage_scale = _fitting(task, lambda s: branches(scale, s, [((), True)]))
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


@dataclass(frozen=True)
class ScoresPlan:
    """What cross-validation releases: the score of every run, together.

    Parameters
    ----------
    runs : dict of (int, int) to FitPlan
    layout : Layout
    noisy : mechanism
    event : Event
    epsilon, delta : float
        The total.
    """

    runs: dict
    layout: Layout
    noisy: object
    event: object
    epsilon: float
    delta: float

    @property
    def name(self):
        return f"{len(self.runs)} fits, then {self.noisy.name} on their scores"

    @property
    def scale(self):
        return self.noisy.scale

    @property
    def sensitivity(self):
        return self.noisy.sensitivity

    @property
    def releases(self):
        return sum(len(run.charges) for run in self.runs.values()) + 1


def plan_scores(task, layout):
    """Plan the release of the scores of all runs.

    Parameters
    ----------
    task : SearchTask
        Without a refit.
    layout : Layout

    Returns
    -------
    ScoresPlan
    """
    patterns = _worst_patterns(layout)
    most = max(len(runs) for runs, _ in patterns)
    sizes = layout.splits.train_sizes
    noisy = _scores_together(task, layout)
    share = 1.0 - SCORES_TOGETHER
    share, part = (share, 0.0) if task.delta == 0.0 else (math.sqrt(share * most), 0.5)
    budget = task.epsilon * share / most, task.delta * part / most

    @cache
    def fits(scale):
        needed = {(i, sizes[s]) for i, s in layout.runs}
        plans = {(i, n): task.fit_plan(i, n, budget[0] * scale, budget[1]) for i, n in needed}
        return {(i, s): plans[i, sizes[s]] for i, s in layout.runs}

    def branches(scale):
        return _worst(
            [fits(scale)[run].event for run in runs] + [noisy.event] * scored
            for runs, scored in patterns
        )

    scale = _fitting(task, branches)
    worst = branches(scale)
    event = worst[0] if len(worst) == 1 else _stand_in(task.epsilon, task.delta)
    return ScoresPlan(fits(scale), layout, noisy, event, task.epsilon, task.delta)


def _scores_together(task, layout):
    """Return the mechanism that releases the scores of all runs."""
    relation, sizes = task.terms.relation, layout.splits.test_sizes
    moved = [
        [task.score.sensitivity(sizes[s], relation) for _, s in layout.runs if s in test]
        for _, test in layout.splits.memberships()
    ]
    if task.delta == 0.0:
        length = max(map(math.fsum, moved)) * (1.0 + 2.0**-50)
        return LaplaceMechanism(task.epsilon * SCORES_TOGETHER, length)
    length = math.sqrt(max(math.fsum(d * d for d in row) for row in moved)) * (1.0 + 2.0**-50)
    return GaussianMechanism.from_rho(SCORES_TOGETHER * task.rho, length, task.delta)


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
    approximate = any(_has_delta(plan.event) for plan in trial)
    delta = run_delta if approximate else exact_delta
    refit_budget = task.epsilon * (math.sqrt(share) if task.delta else share), task.delta / 4.0

    @cache
    def runs(scale):
        fits = task.fit_plans(n_train, first * scale, delta)
        return fits, *_run_event(fits, delta)

    @cache
    def refits(scale):
        return _refits(task, refit_budget, scale)

    def branches(scale):
        _, run, run_delta = runs(scale)
        parts = [RandomStopping(run, mean_runs, 1.0)]
        if run_delta > 0.0:
            parts.append(ApproximateDP(0.0, min(1.0, mean_runs * run_delta)))
        return (Composed((*parts, *([_dominating(refits(scale))] if task.refit else []))),)

    scale = _fitting(task, branches)
    fits, run, _ = runs(scale)
    return SearchPlan(
        strategy="random_stopping",
        runs={(i, 0): fit for i, fit in enumerate(fits)},
        refits=refits(scale),
        layout=Layout(splits, ((0,),) * len(fits)),
        choice=None,
        noisy=_score_of_a_run(run, sensitivity, task.delta),
        branches=branches(scale),
        epsilon=task.epsilon,
        delta=task.delta,
        sensitivity=sensitivity,
        mean_runs=mean_runs,
    )


def _fitting(task, make_branches):
    """Return a scale at which every branch is within the budget, and the worst nearly fills it.

    Costs grow with the scale, about in proportion: a secant in logarithms, kept in its bracket.
    """
    relation = task.terms.relation
    target, tolerance = task.epsilon, 1e-3
    low, high = 0.0, math.inf
    scale, points = 1.0, []
    for _ in range(MOST_STEPS):
        cost = max(event_epsilon(e, task.delta, relation=relation) for e in make_branches(scale))
        if cost <= target:
            low = max(low, scale)
            if cost >= target * (1.0 - tolerance):
                break
        else:
            high = min(high, scale)
        points = [*points, (math.log(scale), math.log(max(cost, 1e-300)))][-2:]
        step = math.log((1.0 - 0.5 * tolerance) * target) - points[-1][1]
        scale *= math.exp(min(max(step * _inverse(points), -LARGEST_STEP), LARGEST_STEP))
        if not low < scale < high:
            scale = math.sqrt(low * high) if low and high < math.inf else (low or high) / 2.0
    if not low:
        raise ValueError(
            f"epsilon={task.epsilon!r} and delta={task.delta!r} cannot pay for this search: the "
            "cost of a candidate does not fall with its epsilon"
        )
    while any(event_delta(e, target, relation=relation) > task.delta for e in make_branches(low)):
        low *= 1.0 - tolerance
    return low


def _inverse(points):
    """Return the inverse of the slope through the last points, within a factor of 3 of 1."""
    if len(points) < 2 or points[0][0] == points[1][0]:
        return 1.0
    slope = (points[1][1] - points[0][1]) / (points[1][0] - points[0][0])
    return 1.0 / min(max(slope, 1.0 / 3.0), 3.0)


def _refits(task, budget, scale):
    if not task.refit:
        return ()
    return task.fit_plans(task.shape[0], budget[0] * scale, budget[1])


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


def _is_less(pattern, other):
    (runs, scored), (other_runs, other_scored) = pattern, other
    return pattern != other and scored <= other_scored and set(runs) <= set(other_runs)


def _worst_patterns(layout):
    """Return the patterns, or one that covers them all where there are very many."""
    patterns = layout.patterns()
    if len(patterns) <= MOST_BRANCHES:
        return patterns
    most = max(len({s for _, s in runs}) for runs, _ in patterns)
    sizes = np.asarray(layout.splits.train_sizes)
    if len(set(sizes)) > 1:
        most = len(sizes)
    kept = set(range(most))
    return [(tuple(run for run in layout.runs if run[1] in kept), True)]


def _parts(event):
    """Return an event as (noise multiplier of its Gaussians or inf, counts of the others)."""
    counts = leaves(event)
    gaussians = [part * n for part, n in counts.items() if isinstance(part, Gaussian)]
    others = frozenset((part, n) for part, n in counts.items() if not isinstance(part, Gaussian))
    if not gaussians:
        return math.inf, others
    return math.nextafter(merged(Composed(tuple(gaussians))).noise_multiplier, 0.0), others


def _worst(branches):
    """Return the branches, each a list of events, that no other one exceeds.

    The Gaussians of a branch are one Gaussian; of branches that differ in it alone the one with
    the least noise costs most.
    """
    least = {}
    for events in branches:
        noise, others = _parts(Composed(tuple(events)))
        least[others] = min(noise, least.get(others, math.inf))
    found = []
    for others, noise in least.items():
        events = tuple(part * n for part, n in sorted(others, key=repr))
        found.append(Composed(events if noise == math.inf else (*events, Gaussian(noise))))
    return tuple(found)


def _has_delta(event):
    return any(isinstance(part, ApproximateDP) and part.delta > 0.0 for part in leaves(event))


def _stand_in(epsilon, delta):
    return PureDP(epsilon) if delta == 0.0 else ApproximateDP(epsilon, delta)


def _gaussian(event):
    """Return the noise multiplier of a composition of Gaussians, else None."""
    if all(isinstance(part, Gaussian) for part in leaves(event)):
        return merged(event).noise_multiplier
    return None


def _pure(event):
    """Return the epsilon of an event at delta = 0."""
    return event_epsilon(event, 0.0, method="basic")


def _dominating(fits):
    """Return an event that costs at least as much as the fit of any candidate."""
    events = [fit.event for fit in fits]
    distinct = _worst([event] for event in events)
    if len(distinct) == 1:
        return distinct[0]
    noises = [_gaussian(event) for event in events]
    if None not in noises:
        return Gaussian(min(noises))
    pure = max(map(_pure, events))
    if pure < math.inf:
        return PureDP(pure)
    return _stand_in(_common_epsilon(fits, fits[0].delta), fits[0].delta)


def _common_epsilon(fits, delta):
    relation = fits[0].pipeline.terms.relation
    return max(event_epsilon(fit.event, delta, relation=relation) for fit in fits)


def _run_event(fits, delta):
    """Return (event, delta) of one run, whichever candidate it draws and whoever's row it is.

    The delta is 0 where every fit has a Renyi bound; otherwise the run is (epsilon, delta)-DP
    and the event is that of the pure mechanism which it is with probability 1 - delta.
    """
    events = [fit.event for fit in fits]
    if any(map(_has_delta, events)):
        return PureDP(_common_epsilon(fits, delta)), delta
    noises = [_gaussian(event) for event in events]
    if None not in noises:
        return Gaussian(min(noises)), 0.0
    pure = max(map(_pure, events))
    if pure < math.inf:
        return PureDP(pure), 0.0
    relation = fits[0].pipeline.terms.relation
    return ZCDP(max(zcdp(event, relation=relation)[0] for event in events)), 0.0


def _score_of_a_run(run, sensitivity, delta):
    """Return the mechanism for a run's score that costs a scored row what a fit costs others."""
    if isinstance(run, PureDP):
        return LaplaceMechanism(run.epsilon, sensitivity)
    rho = run.rho if isinstance(run, ZCDP) else 0.5 / run.noise_multiplier**2
    return GaussianMechanism.from_rho(rho * (1.0 - 2.0**-40), sensitivity, delta)
