"""Runs of noisy stochastic gradients: sampling, clipping, noise and privacy cost.

Each function returns one frozen value with the sampler, the clipped sums, the noise and the event.
The loop runs nothing else, so that exactly the charged run takes place. The proofs are in
``docs/theory/dp_sgd.md``.
"""

import math
from dataclasses import dataclass

import skdp.accounting as accounting
from skdp._loops import NUMPY, choose_loops
from skdp._optim._batches import FixedSizeBatches, FullBatches, PoissonBatches
from skdp._optim._clipped_sums import ClippedSums, sum_rounding
from skdp._optim._default_settings import SGDProblem
from skdp._optim._gradient_noise import GaussianNoise, LaplaceNoise
from skdp.mechanisms._stages import UNNAMED, Stage, noise_multiplier
from skdp.utils._units import UnitText, for_unit
from skdp.utils._values import FrozenValue

SAMPLINGS = ("full", "poisson", "without_replacement")

# Factor that covers the rounding of a few multiplications and divisions.
SLACK = 1.0 + 1e-12
# Relative accuracies of epsilon and of the multiplier in the search of `_calibrated_multiplier`.
SEARCH_TOLERANCE = 1e-3
SEARCH_RTOL = 1e-5
# Number of cells, in the batches of all steps, from which compiled loops are used: they then save
# about as much time as it takes to load them. The cost of calls is that of some more cells a step.
# Measured by docs/benchmarks/dpsgd.py.
MIN_CELLS_OF_BATCHES = 1 << 30
CELLS_OF_CALLS = 1 << 15


@dataclass(frozen=True, kw_only=True)
class SGDRun(FrozenValue):
    """A run of noisy gradient steps: the mechanism that releases the weights.

    Parameters
    ----------
    problem : SGDProblem
        Problem whose constant feature has the same value as in the rows that are read.
    clip : float
        Upper bound on the norm of a row's gradient, including the constant feature.
    n_steps : int
    batches : PoissonBatches, FixedSizeBatches or FullBatches
        Sampler of the rows for each step.
    noise : GaussianNoise or LaplaceNoise
        Noise added to each sum.
    step : accounting.Event
        Event of one step.
    sensitivity : float
        Sensitivity of a sum, in the norm of the clip, to which the event's noise multiplier is
        relative. For full batches, it is the sensitivity to a change between neighboring tables;
        for sampled batches, to adding or removing one record.
    """

    problem: SGDProblem
    clip: float
    n_steps: int
    batches: object
    noise: object
    step: accounting.Event
    sensitivity: float

    @property
    def guarantee(self):
        """The guarantee of the whole run."""
        return self.problem.guarantee

    @property
    def epsilon(self):
        return self.guarantee.epsilon

    @property
    def delta(self):
        return self.guarantee.delta

    @property
    def norm(self):
        """The norm in which gradients are clipped and the sensitivity is measured."""
        if self.delta == 0.0:
            return "l1"
        return "l2"

    @property
    def event(self):
        """The event of the whole run."""
        return self.step * self.n_steps

    @property
    def scale(self):
        """The scale of the noise added to the sum of a batch."""
        return self.noise.scale

    @property
    def name(self):
        """The name of the mechanism, for statements."""
        return f"Noisy stochastic gradients, {self.noise.law} noise"

    @property
    def noise_multiplier(self):
        """The scale of a step's noise divided by `sensitivity`."""
        return noise_multiplier(self.step)

    @property
    def stages(self):
        """One stage with one release per step."""
        sampling = self.batches.rule
        steps = f"in each of {self.n_steps} steps"

        def rows_read(unit):
            return f"{for_unit(sampling, unit)}, {steps}"

        stage = Stage(
            name=UNNAMED,
            event=self.step,
            n_releases=self.n_steps,
            law=self.name,
            scale=self.scale,
            sensitivity=self.sensitivity,
            reads=UnitText(rows_read),
        )
        return (stage,)

    def spent_after(self, n_steps):
        """Return the epsilon of the first `n_steps` steps, at the run's delta."""
        steps = self.step * n_steps
        relation = self.guarantee.relation
        return accounting.get_epsilon(steps, self.delta, relation=relation)

    @property
    def loops(self):
        """Version of the loops over a batch's rows; see `skdp._loops`.

        Full batches have no compiled loops, and neither has a loss with several scores.
        """
        if isinstance(self.batches, FullBatches) or self.problem.loss_spec.n_outputs > 1:
            return NUMPY
        cells = self.batches.expected_size * self.problem.n_columns + CELLS_OF_CALLS
        return choose_loops(self.n_steps, cells, MIN_CELLS_OF_BATCHES)

    def sums(self, X, y, loss, persons=None, center=None, column_factors=None, whitening=None):
        """Read a table and return its clipped sums.

        Parameters
        ----------
        X, y, loss, persons, center, column_factors, whitening
            As in `ClippedSums`.

        Returns
        -------
        ClippedSums
        """
        return ClippedSums(
            X,
            y,
            loss,
            constant=self.problem.constant,
            clip=self.clip,
            norm=self.norm,
            persons=persons,
            center=center,
            column_factors=column_factors,
            whitening=whitening,
            loops=self.loops,
        )

    def noisy_means(self, next_sum, source):
        """Yield the noisy mean gradients of the steps.

        Sums are divided by the expected size of a batch, which is public. The actual size of a
        Poisson-sampled batch is private.

        Parameters
        ----------
        next_sum : callable
            Function that receives the rows or persons of a batch and returns a sum to which each of
            them adds at most a clipped gradient.
        source : RandomSource

        Yields
        ------
        ndarray
        """
        batches = self.batches.draw(self.n_steps, source.stream())
        noises = self.noise.draw(self.n_steps, source.stream())
        loops = self.loops
        for rows, noise in zip(batches, noises, strict=True):
            yield self.noise.add(next_sum(rows), noise, loops) / self.batches.expected_size


def plan_sgd(problem, clip, sampling, batch_size, n_steps):
    """Plan a run from public quantities alone.

    Parameters
    ----------
    problem : SGDProblem
    clip : float
        Upper bound on the norm of a row's gradient, including the constant feature.
    sampling : {"full", "poisson", "without_replacement"}
        "poisson" requires delta > 0, and "without_replacement" requires delta = 0.
    batch_size : int
        Number of rows in a batch, at most the number of rows; with "poisson", the expected number.
        It is not used with "full".
    n_steps : int

    Returns
    -------
    SGDRun

    Raises
    ------
    ValueError
        If epsilon is so small that the noise cannot be sampled.
    """
    if sampling == "full":
        return _plan_full(problem, clip, n_steps)
    if problem.delta == 0.0:
        return _plan_fixed_size(problem, clip, batch_size, n_steps)
    return _plan_poisson(problem, clip, batch_size, n_steps)


def sum_sensitivity(problem, clip, n_changed_rows, batch_bound):
    """Return the sensitivity of a batch's computed sum: the clips plus two rounding errors."""
    rounding = sum_rounding(problem.n_columns, problem.loss_spec.n_outputs, clip, batch_bound)
    rounding *= problem.rounding_factor
    return (n_changed_rows * clip + 2.0 * rounding) * SLACK


def _plan_full(problem, clip, n_steps):
    """Plan Gaussian or Laplace steps on all rows.

    T Gaussian steps with multiplier z sqrt(T) cost exactly as much as one step with multiplier z. A
    Laplace step costs epsilon / T.
    """
    guarantee = problem.guarantee
    batches = FullBatches(problem.n_rows)
    sensitivity = sum_sensitivity(
        problem, clip, guarantee.neighbors.sensitivity_factor, batches.max_size
    )
    if guarantee.delta == 0.0:
        step = accounting.Laplace(_epsilon_per_step(guarantee.epsilon, n_steps))
        noise = LaplaceNoise(sensitivity / step.epsilon * SLACK, problem.size, sensitivity)
    else:
        multiplier = accounting.gaussian_noise_multiplier(guarantee.epsilon, guarantee.delta)
        step = accounting.Gaussian(multiplier * (math.sqrt(n_steps) * SLACK))
        scale = step.noise_multiplier * sensitivity * SLACK
        noise = GaussianNoise(scale, problem.size, sensitivity)
    return SGDRun(
        problem=problem,
        clip=clip,
        n_steps=n_steps,
        batches=batches,
        noise=noise,
        step=step,
        sensitivity=sensitivity,
    )


def _plan_poisson(problem, clip, batch_size, n_steps):
    """Plan Poisson-sampled Gaussian steps.

    The noise multiplier is relative to the contribution of one row or person to a sum.
    """
    guarantee = problem.guarantee
    batches = PoissonBatches(problem.n_rows, batch_size / problem.n_rows)

    def step(multiplier):
        return accounting.PoissonSampled(batches.rate, accounting.Gaussian(multiplier))

    def all_steps(multiplier):
        return step(multiplier) * n_steps

    multiplier = _calibrated_multiplier(all_steps, guarantee)
    one_record = sum_sensitivity(problem, clip, 1, batches.max_size)
    noise = GaussianNoise(multiplier * one_record * SLACK, problem.size, one_record)
    return SGDRun(
        problem=problem,
        clip=clip,
        n_steps=n_steps,
        batches=batches,
        noise=noise,
        step=step(multiplier),
        sensitivity=one_record,
    )


def _plan_fixed_size(problem, clip, batch_size, n_steps):
    r"""Plan Laplace steps on m of n rows without replacement; each step costs epsilon / T.

    An :math:`\varepsilon_0`-DP release on such a batch is :math:`\ln(1 + \tfrac mn
    (e^{\varepsilon_0} - 1))`-DP (Balle, Barthe and Gaboardi 2018, theorem 9), where
    :math:`\varepsilon_0` holds for batches in which one record was replaced. This holds under both
    relations: one replaced record changes the sum by at most twice the clip.
    """
    n_rows = problem.n_rows
    step_epsilon = _epsilon_per_step(problem.guarantee.epsilon, n_steps)
    batches = FixedSizeBatches(n_rows, batch_size)
    # ln(1 + (exp(step_epsilon) - 1) n / m), without overflow.
    bounded = min(step_epsilon, 500.0)
    batch_epsilon = math.log1p(math.expm1(bounded) * (n_rows / batch_size))
    batch_epsilon = (batch_epsilon + (step_epsilon - bounded)) / SLACK
    sensitivity = sum_sensitivity(problem, clip, 2, batches.max_size)
    noise = LaplaceNoise(sensitivity / batch_epsilon * SLACK, problem.size, sensitivity)
    # The event's Laplace mechanism, and the stated sensitivity, are relative to one added or
    # removed record: half the sensitivity to a replaced record.
    inner = accounting.Laplace(0.5 * batch_epsilon)
    return SGDRun(
        problem=problem,
        clip=clip,
        n_steps=n_steps,
        batches=batches,
        noise=noise,
        step=accounting.SampledWithoutReplacement(n_rows, batch_size, inner),
        sensitivity=0.5 * sensitivity,
    )


def _calibrated_multiplier(make_event, guarantee):
    """Return a noise multiplier within a few thousandths of the smallest sufficient one.

    The search uses upper bounds on a coarse grid of losses, which take a fraction of the time. The
    result is then checked by the bound on delta at epsilon with the default tolerance. This is one
    of the two bounds by which a ledger accepts a claimed price (`is_proved` in
    `skdp.accounting._composition`), so a ledger accepts the result, too.

    Parameters
    ----------
    make_event : callable
        Function that maps a noise multiplier to the event of all steps.
    guarantee : Guarantee
    """
    epsilon = guarantee.epsilon
    delta = guarantee.delta
    relation = guarantee.relation
    multiplier = accounting.calibrate(
        make_event, epsilon, delta, relation=relation, tolerance=SEARCH_TOLERANCE, rtol=SEARCH_RTOL
    )
    increment = 1e-5
    while accounting.get_delta(make_event(multiplier), epsilon, relation=relation) > delta:
        multiplier *= 1.0 + increment
        increment *= 4.0
    return multiplier


def _epsilon_per_step(epsilon, n_steps):
    """Return the epsilon of one of n_steps equal steps, whose sum does not exceed the total."""
    return epsilon / n_steps / SLACK
