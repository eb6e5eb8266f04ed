"""The regimes of noisy stochastic gradients: what is drawn, how it is clipped, what it costs.

Each function returns one frozen plan that holds the sampler, the clipped sums, the noise and the
event; the loop runs nothing else, so that what runs is what is charged. The proofs are in
``docs/dp_sgd.md``.
"""

import math
from dataclasses import dataclass

from skdp import accounting
from skdp._sgd._batches import FixedSizeBatches, FullBatches, PoissonBatches
from skdp._sgd._clipped_sums import ClippedSums, sum_rounding
from skdp._sgd._defaults import Problem
from skdp._sgd._noise import GaussianNoise, LaplaceNoise
from skdp.mechanisms._plan import PlanValue
from skdp.mechanisms._stages import Stage, noise_multiplier
from skdp.utils._units import UnitText, for_unit

SAMPLINGS = ("full", "poisson", "without_replacement")

SLACK = 1.0 + 1e-12
# How calibration searches: relative accuracies of epsilon and of the multiplier.
COARSE = {"tolerance": 1e-3, "rtol": 1e-5}


@dataclass(frozen=True, kw_only=True)
class SGDPlan(PlanValue):
    """What a run of noisy gradient steps will do and cost.

    Parameters
    ----------
    problem : Problem
        With the constant feature as it is in the rows that are read.
    clip : float
        The bound on the norm of a row's gradient, that of the constant feature included.
    n_steps : int
    batches : batches
        Which rows take part in each step.
    noise : GaussianNoise or LaplaceNoise
        What is added to each sum.
    step : accounting.Event
        What one step costs.
    sensitivity : float
        The distance, in the norm of the clip, that the noise on a sum was calibrated to.
    """

    problem: Problem
    clip: float
    n_steps: int
    batches: object
    noise: object
    step: accounting.Event
    sensitivity: float

    @property
    def guarantee(self):
        return self.problem.guarantee

    # That of the noise's sensitivity.
    @property
    def norm(self):
        return "l1" if self.delta == 0.0 else "l2"

    # What the whole run costs.
    @property
    def event(self):
        return self.step * self.n_steps

    # That on the sum of a batch.
    @property
    def scale(self):
        return self.noise.scale

    @property
    def name(self):
        return f"Noisy stochastic gradients, {self.noise.law} noise"

    # The noise of a step over what one row, or person, moves its sum by.
    @property
    def noise_multiplier(self):
        return noise_multiplier(self.step)

    @property
    def stages(self):
        """One stage, of as many releases as there are steps."""
        rule = self.batches.rule
        steps = f"in each of {self.n_steps} steps"
        described = {"law": self.name, "scale": self.scale, "sensitivity": self.sensitivity}
        described["reads"] = UnitText(lambda unit: f"{for_unit(rule, unit)}, {steps}")
        return (Stage(name=self.released, event=self.step, n_releases=self.n_steps, **described),)

    def spent_after(self, n_steps):
        """Return the epsilon of the first steps alone, at the run's delta."""
        steps = self.step * n_steps
        relation = self.guarantee.relation
        return accounting.get_epsilon(steps, self.delta, relation=relation)

    def sums(self, X, y, loss, persons=None):
        """Return the clipped sums of a table; it is read from here on."""
        clipped = {"constant": self.problem.constant, "clip": self.clip, "norm": self.norm}
        return ClippedSums(X, y, loss, persons=persons, **clipped)

    def noisy_means(self, next_sum, source):
        """Yield the noisy mean gradients of the steps.

        Sums are divided by the expected size of a batch, which is public, never by its own.

        Parameters
        ----------
        next_sum : callable
            Of a batch's rows, or persons, returns the next sum of what one of them moves by no more
            than a clipped gradient.
        source : RandomSource

        Yields
        ------
        ndarray
        """
        batches = self.batches.draw(self.n_steps, source.stream())
        noises = self.noise.draw(self.n_steps, source.stream())
        for rows, noise in zip(batches, noises, strict=True):
            yield self.noise.add(next_sum(rows), noise) / self.batches.expected_size


def plan_sgd(problem, clip, sampling, batch_size, n_steps):
    """Plan a run from public quantities alone.

    Parameters
    ----------
    problem : Problem
    clip : float
        The bound on the norm of a row's gradient, that of the constant feature included.
    sampling : {"full", "poisson", "without_replacement"}
        "poisson" needs delta > 0, "without_replacement" delta = 0.
    batch_size : int
        At most the number of rows; expected, under "poisson". Not read under "full".
    n_steps : int

    Returns
    -------
    SGDPlan

    Raises
    ------
    ValueError
        If epsilon is too small for noise that can be drawn.
    """
    partial = _plan_fixed_size if problem.delta == 0.0 else _plan_poisson
    plan = _plan_full if sampling == "full" else partial
    parts = plan(problem, clip, batch_size, n_steps)
    return SGDPlan(problem=problem, clip=clip, n_steps=n_steps, **parts)


def row_moves(problem, clip, rows, batch_bound):
    """How far some rows move the sum of a batch: by their clips and its rounding, twice."""
    rounding = sum_rounding(problem.n_columns, problem.task.n_outputs, clip, batch_bound)
    return (rows * clip + 2.0 * rounding) * SLACK


def _plan_full(problem, clip, batch_size, n_steps):
    """T Gaussian steps of multiplier z sqrt(T) cost exactly one of z; Laplace steps epsilon / T."""
    guarantee = problem.guarantee
    batches = FullBatches(problem.n_rows)
    moved = row_moves(problem, clip, guarantee.neighbors.sensitivity_factor, batches.largest)
    if guarantee.delta == 0.0:
        step = accounting.Laplace(_share(guarantee.epsilon, n_steps))
        noise = LaplaceNoise(moved / step.epsilon * SLACK, problem.size, moved)
    else:
        multiplier = accounting.gaussian_noise_multiplier(guarantee.epsilon, guarantee.delta)
        step = accounting.Gaussian(multiplier * (math.sqrt(n_steps) * SLACK))
        noise = GaussianNoise(step.noise_multiplier * moved * SLACK, problem.size, moved)
    return {"batches": batches, "noise": noise, "step": step, "sensitivity": moved}


def _plan_poisson(problem, clip, batch_size, n_steps):
    """Poisson-sampled Gaussian steps; z is relative to what one record adds to a sum."""
    guarantee = problem.guarantee
    batches = PoissonBatches(problem.n_rows, batch_size / problem.n_rows)

    def step(multiplier):
        return accounting.PoissonSampled(batches.rate, accounting.Gaussian(multiplier))

    multiplier = _sufficient(lambda z: step(z) * n_steps, guarantee)
    one_record = row_moves(problem, clip, 1, batches.largest)
    noise = GaussianNoise(multiplier * one_record * SLACK, problem.size, one_record)
    moved = guarantee.neighbors.sensitivity_factor * one_record
    return {"batches": batches, "noise": noise, "step": step(multiplier), "sensitivity": moved}


def _plan_fixed_size(problem, clip, batch_size, n_steps):
    r"""Laplace steps on m of n rows without replacement, of epsilon / T each.

    A release of :math:`\varepsilon_0` on such a batch is
    :math:`\ln(1 + \tfrac mn (e^{\varepsilon_0} - 1))`-DP (Balle, Barthe and Gaboardi 2018,
    theorem 9) if it is :math:`\varepsilon_0`-DP for batches of which one record was replaced,
    under both relations: one record moves the sum by at most twice its clip.
    """
    n_rows = problem.n_rows
    each = _share(problem.guarantee.epsilon, n_steps)
    batches = FixedSizeBatches(n_rows, batch_size)
    # ln(1 + (e^each - 1) n/m), without overflow.
    most = min(each, 500.0)
    inner = (math.log1p(math.expm1(most) * (n_rows / batch_size)) + (each - most)) / SLACK
    moved = row_moves(problem, clip, 2, batches.largest)
    noise = LaplaceNoise(moved / inner * SLACK, problem.size, moved)
    step = accounting.SampledWithoutReplacement(n_rows, batch_size, accounting.Laplace(0.5 * inner))
    return {"batches": batches, "noise": noise, "step": step, "sensitivity": moved}


def _sufficient(event, guarantee):
    """Return a multiplier that fits the budget, within some thousandths of the least.

    It is sought with bounds on a coarser grid, which are upper bounds too and take a fraction of
    the time, and checked as the accountant checks a price: by delta at epsilon, on its own grid.
    """
    epsilon = guarantee.epsilon
    delta = guarantee.delta
    relation = guarantee.relation
    multiplier = accounting.calibrate(event, epsilon, delta, relation=relation, **COARSE)
    raised = 1e-5
    while accounting.get_delta(event(multiplier), epsilon, relation=relation) > delta:
        multiplier *= 1.0 + raised
        raised *= 4.0
    return multiplier


def _share(epsilon, n_steps):
    """Return one of n_steps equal shares of epsilon, whose sum does not exceed it."""
    return epsilon / n_steps / SLACK
