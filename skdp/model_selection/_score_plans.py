"""What cross-validation without a search will do and what it costs."""

import math
from dataclasses import dataclass
from functools import cache

from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.model_selection._pricing import fitting_scale, stand_in, worst_branches

__all__ = ["ScoresPlan", "plan_scores"]

# Of the whole budget, what the noisy scores get.
SCORES_TOGETHER = 0.2


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
    layout: object
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
    def released_together(self):
        return len(self.runs)

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
    patterns = layout.patterns()
    most = max(len(runs) for runs, _ in patterns)
    noisy = _scores_together(task, layout)
    share = 1.0 - SCORES_TOGETHER
    share, part = (share, 0.0) if task.delta == 0.0 else (math.sqrt(share * most), 0.5)
    budget = task.epsilon * share / most, task.delta * part / most

    @cache
    def fits(scale):
        return task.run_plans(layout, budget[0] * scale, budget[1])

    def branches(scale):
        return worst_branches(
            [fits(scale)[run].event for run in runs] + [noisy.event] * scored
            for runs, scored in patterns
        )

    scale = fitting_scale(task, branches)
    worst = branches(scale)
    event = worst[0] if len(worst) == 1 else stand_in(task.epsilon, task.delta)
    return ScoresPlan(fits(scale), layout, noisy, event, task.epsilon, task.delta)


def _scores_together(task, layout):
    """Return the mechanism that releases the scores of all runs."""
    relation, sizes = task.terms.relation, layout.splits.test_sizes
    moved = [
        [task.score.sensitivity(sizes[s], relation) for _, s in layout.runs if s in test]
        for _, test in layout.splits.memberships
    ]
    if task.delta == 0.0:
        length = max(map(math.fsum, moved)) * (1.0 + 2.0**-50)
        return LaplaceMechanism(task.epsilon * SCORES_TOGETHER, length)
    length = math.sqrt(max(math.fsum(d * d for d in row) for row in moved)) * (1.0 + 2.0**-50)
    return GaussianMechanism.from_rho(SCORES_TOGETHER * task.rho, length, task.delta)
