"""The regimes of noisy stochastic gradients: what is drawn, how it is clipped, what it costs.

Each function returns one frozen plan that holds the sampler, the clipped sums, the noise and the
event; the loop runs nothing else, so that what runs is what is charged. The proofs are in
``docs/dp_sgd.md``.
"""

import math
from operator import attrgetter

from skdp._sgd._batches import FixedSizeBatches, FullBatches, PoissonBatches
from skdp._sgd._clipped_sums import ClippedSums, sum_rounding
from skdp._sgd._noise import GaussianNoise, LaplaceNoise
from skdp.accounting import (
    Event,
    Gaussian,
    Guarantee,
    Laplace,
    PoissonSampled,
    SampledWithoutReplacement,
    calibrate,
    gaussian_noise_multiplier,
    get_delta,
    get_epsilon,
)
from skdp.mechanisms._plan import PlanValue
from skdp.utils._values import FrozenValue

SAMPLINGS = ("full", "poisson", "without_replacement")

SLACK = 1.0 + 1e-12
# How calibration searches: relative accuracies of epsilon and of the multiplier.
COARSE = {"tolerance": 1e-3, "rtol": 1e-5}


class Linear(FrozenValue):
    """The public measures of a linear model whose rows' gradients are clipped.

    Parameters
    ----------
    n_rows, n_columns : int
        Of the table.
    n_outputs : int
        How many scores a row has.
    constant : float
        The value of the constant feature that carries the intercept; 0 for none.
    clip : float
        The bound on the norm of a row's gradient, that of the constant feature included.
    norm : {"l2", "l1"}
    """

    n_rows: int
    n_columns: int
    n_outputs: int
    constant: float
    clip: float
    norm: str

    @property
    def n_features(self):
        """The number of weights of an output."""
        return self.n_columns + (self.constant != 0.0)

    @property
    def size(self):
        """The number of weights."""
        return self.n_outputs * self.n_features

    def moved(self, rows, batch_bound):
        """How far some rows move the sum of a batch: by their clips and its rounding, twice."""
        rounding = sum_rounding(self.n_columns, self.n_outputs, self.clip, batch_bound)
        return (rows * self.clip + 2.0 * rounding) * SLACK

    def sums(self, X, y, loss, persons=None):
        """Return the clipped sums of a table; it is read from here on."""
        clipped = {"constant": self.constant, "clip": self.clip, "norm": self.norm}
        return ClippedSums(X, y, loss, persons=persons, **clipped)


class SGDPlan(PlanValue, eq=True):
    """What a run of noisy gradient steps will do and cost.

    Parameters
    ----------
    guarantee : Guarantee
        Of a run.
    n_steps : int
    model : Linear
        How gradients are clipped.
    batches : batches
        Which rows take part in each step.
    noise : GaussianNoise or LaplaceNoise
        What is added to each sum.
    step : Event
        What one step costs.
    sensitivity : float
        The distance, in the norm of the clip, that the noise on a sum was calibrated to.
    """

    guarantee: Guarantee
    n_steps: int
    model: Linear
    batches: object
    noise: object
    step: Event
    sensitivity: float

    @property
    def event(self):
        """What the whole run costs."""
        return self.step * self.n_steps

    # That on the sum of a batch.
    scale = property(attrgetter("noise.scale"))

    @property
    def name(self):
        return f"Noisy stochastic gradients, {self.noise.law} noise"

    @property
    def sampler(self):
        """Which rows go into a step, in words."""
        return f"{self.batches.rule}, in each of {self.n_steps} steps"

    def spent_after(self, n_steps):
        """Return the epsilon of the first steps alone, at the run's delta."""
        return get_epsilon(self.step * n_steps, self.delta, relation=self.guarantee.relation)

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


def clip_norm(delta):
    """Return the norm in which gradients are clipped: that of the noise's sensitivity."""
    return "l1" if delta == 0.0 else "l2"


def plan_sgd(sampling, batch_size, n_steps, model, guarantee):
    """Plan a run from public quantities alone.

    Parameters
    ----------
    sampling : {"full", "poisson", "without_replacement"}
        "poisson" needs delta > 0, "without_replacement" delta = 0.
    batch_size : int
        At most the number of rows; expected, under "poisson". Not read under "full".
    n_steps : int
    model : Linear
        With the norm that `clip_norm` names.
    guarantee : Guarantee
        Of the run.

    Returns
    -------
    SGDPlan

    Raises
    ------
    ValueError
        If epsilon is too small for noise that can be drawn.
    """
    partial = _plan_fixed_size if guarantee.delta == 0.0 else _plan_poisson
    plan = _plan_full if sampling == "full" else partial
    parts = plan(batch_size, n_steps, model, guarantee)
    return SGDPlan(guarantee=guarantee, n_steps=n_steps, model=model, **parts)


def _plan_full(batch_size, n_steps, model, guarantee):
    """T Gaussian steps of multiplier z sqrt(T) cost exactly one of z; Laplace steps epsilon / T."""
    moved = model.moved(guarantee.neighbours.rows_moved, model.n_rows)
    if guarantee.delta == 0.0:
        step = Laplace(_share(guarantee.epsilon, n_steps))
        noise = LaplaceNoise(moved / step.epsilon * SLACK, model.size, moved)
    else:
        multiplier = gaussian_noise_multiplier(guarantee.epsilon, guarantee.delta)
        step = Gaussian(multiplier * (math.sqrt(n_steps) * SLACK))
        noise = GaussianNoise(step.noise_multiplier * moved * SLACK, model.size, moved)
    batches = FullBatches(model.n_rows)
    return {"batches": batches, "noise": noise, "step": step, "sensitivity": moved}


def _plan_poisson(batch_size, n_steps, model, guarantee):
    """Poisson-sampled Gaussian steps; z is relative to what one record adds to a sum."""
    batches = PoissonBatches(model.n_rows, batch_size / model.n_rows)

    def step(multiplier):
        return PoissonSampled(batches.rate, Gaussian(multiplier))

    multiplier = _sufficient(lambda z: step(z) * n_steps, guarantee)
    one_record = model.moved(1, batches.largest)
    return {
        "batches": batches,
        "noise": GaussianNoise(multiplier * one_record * SLACK, model.size, one_record),
        "step": step(multiplier),
        "sensitivity": guarantee.neighbours.rows_moved * one_record,
    }


def _plan_fixed_size(batch_size, n_steps, model, guarantee):
    r"""Laplace steps on m of n rows without replacement, of epsilon / T each.

    A release of :math:`\varepsilon_0` on such a batch is
    :math:`\ln(1 + \tfrac mn (e^{\varepsilon_0} - 1))`-DP (Balle, Barthe and Gaboardi 2018,
    theorem 9) if it is :math:`\varepsilon_0`-DP for batches of which one record was replaced,
    under both relations: one record moves the sum by at most twice its clip.
    """
    batches = FixedSizeBatches(model.n_rows, batch_size)
    each = _share(guarantee.epsilon, n_steps)
    # ln(1 + (e^each - 1) n/m), without overflow.
    most = min(each, 500.0)
    inner = (math.log1p(math.expm1(most) * (model.n_rows / batch_size)) + (each - most)) / SLACK
    moved = model.moved(2, batches.largest)
    return {
        "batches": batches,
        "noise": LaplaceNoise(moved / inner * SLACK, model.size, moved),
        "step": SampledWithoutReplacement(model.n_rows, batch_size, Laplace(0.5 * inner)),
        "sensitivity": moved,
    }


def _sufficient(event, guarantee):
    """Return a multiplier that fits the budget, within some thousandths of the least.

    It is sought with bounds on a coarser grid, which are upper bounds too and take a fraction of
    the time, and checked as the accountant checks a price: by delta at epsilon, on its own grid.
    """
    epsilon, delta, relation = guarantee.epsilon, guarantee.delta, guarantee.relation
    multiplier, raised = calibrate(event, epsilon, delta, relation=relation, **COARSE), 1e-5
    while get_delta(event(multiplier), epsilon, relation=relation) > delta:
        multiplier *= 1.0 + raised
        raised *= 4.0
    return multiplier


def _share(epsilon, n_steps):
    """Return one of n_steps equal shares of epsilon, whose sum does not exceed it."""
    return epsilon / n_steps / SLACK
