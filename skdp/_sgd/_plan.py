"""The regimes of noisy stochastic gradients: what is drawn, how it is clipped, what it costs.

Each function returns one frozen plan that holds the sampler, the clipped sums, the noise and the
event; the loop runs nothing else, so that what runs is what is charged. The proofs are in
``docs/dp_sgd.md``.
"""

import math
from dataclasses import dataclass

from skdp._sgd._batches import FixedSizeBatches, FullBatches, PoissonBatches
from skdp._sgd._clipped_sums import ClippedSums, sum_rounding
from skdp._sgd._noise import GaussianNoise, LaplaceNoise
from skdp.accounting import (
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    SampledWithoutReplacement,
    calibrate,
    gaussian_noise_multiplier,
)
from skdp.accounting import delta as event_delta
from skdp.accounting import epsilon as event_epsilon

__all__ = ["SAMPLINGS", "Linear", "SGDPlan", "clip_norm", "plan_sgd"]

SAMPLINGS = ("full", "poisson", "without_replacement")
ROWS_MOVED = {"add_remove": 1, "replace_one": 2}

SLACK = 1.0 + 1e-12


@dataclass(frozen=True)
class Linear:
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

    def sums(self, X, y, loss):
        """Return the clipped sums of a table; it is read from here on."""
        return ClippedSums(X, y, loss, constant=self.constant, clip=self.clip, norm=self.norm)


@dataclass(frozen=True)
class SGDPlan:
    """What a run of noisy gradient steps will do and cost.

    Parameters
    ----------
    epsilon, delta : float
        A run is (epsilon, delta)-DP.
    relation : {"add_remove", "replace_one"}
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

    epsilon: float
    delta: float
    relation: str
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

    @property
    def scale(self):
        """The scale of the noise on the sum of a batch."""
        return self.noise.scale

    @property
    def name(self):
        law = "Laplace" if isinstance(self.noise, LaplaceNoise) else "Gaussian"
        return f"Noisy stochastic gradients, {law} noise"

    @property
    def sampler(self):
        """Which rows go into a step, in words."""
        batches, n, steps = self.batches, self.batches.n_rows, self.n_steps
        if isinstance(batches, FullBatches):
            return f"all rows, in each of {steps} steps"
        if isinstance(batches, PoissonBatches):
            rate = batches.rate
            return f"each row with probability {rate:.4g}, independently, in each of {steps} steps"
        return f"{batches.size} of {n} rows without replacement, in each of {steps} steps"

    def spent_after(self, n_steps):
        """Return the epsilon of the first steps alone, at the run's delta."""
        return event_epsilon(self.step * n_steps, self.delta, relation=self.relation)

    def noisy_means(self, X, y, loss, weights_now, source):
        """Yield the noisy mean gradients of the steps.

        Sums are divided by the expected size of a batch, which is public, never by its own.

        Parameters
        ----------
        X, y : table
        loss : loss
        weights_now : callable
            Returns the weights at which the next gradient is to be taken.
        source : RandomSource

        Yields
        ------
        ndarray
        """
        sums = self.model.sums(X, y, loss)
        batches = self.batches.draw(self.n_steps, source.stream())
        noises = self.noise.draw(self.n_steps, source.stream())
        for rows, noise in zip(batches, noises, strict=True):
            total = sums.sums(weights_now(), rows)
            yield self.noise.add(total, noise) / self.batches.expected_size


def clip_norm(delta):
    """Return the norm in which gradients are clipped: that of the noise's sensitivity."""
    return "l1" if delta == 0.0 else "l2"


def plan_sgd(sampling, batch_size, n_steps, model, epsilon, delta, relation):
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
    epsilon, delta : float
        The guarantee of the run.
    relation : {"add_remove", "replace_one"}

    Returns
    -------
    SGDPlan

    Raises
    ------
    ValueError
        If epsilon is too small for noise that can be drawn.
    """
    if delta == 0.0:
        plan = _plan_full_laplace if sampling == "full" else _plan_fixed_size
    else:
        plan = _plan_full_gaussian if sampling == "full" else _plan_poisson
    guarantee = epsilon, delta, relation
    parts = plan(batch_size, n_steps, model, *guarantee)
    return SGDPlan(*guarantee, n_steps, model, *parts)


def _plan_full_gaussian(batch_size, n_steps, model, epsilon, delta, relation):
    """T Gaussian steps of multiplier z sqrt(T) cost exactly one of multiplier z."""
    multiplier = gaussian_noise_multiplier(epsilon, delta) * math.sqrt(n_steps) * SLACK
    sensitivity = model.moved(ROWS_MOVED[relation], model.n_rows)
    noise = GaussianNoise(multiplier * sensitivity * SLACK, model.size, sensitivity)
    return FullBatches(model.n_rows), noise, Gaussian(multiplier), sensitivity


def _plan_full_laplace(batch_size, n_steps, model, epsilon, delta, relation):
    """T Laplace steps of epsilon / T each."""
    each = _share(epsilon, n_steps)
    sensitivity = model.moved(ROWS_MOVED[relation], model.n_rows)
    noise = LaplaceNoise(sensitivity / each * SLACK, model.size, sensitivity)
    return FullBatches(model.n_rows), noise, Laplace(each), sensitivity


def _plan_poisson(batch_size, n_steps, model, epsilon, delta, relation):
    """Poisson-sampled Gaussian steps; z is relative to what one record adds to a sum."""
    batches = PoissonBatches(model.n_rows, batch_size / model.n_rows)

    def step(multiplier):
        return PoissonSampled(batches.rate, Gaussian(multiplier))

    guarantee = epsilon, delta, relation
    multiplier = _sufficient(lambda z: step(z) * n_steps, *guarantee)
    one_record = model.moved(1, batches.largest)
    noise = GaussianNoise(multiplier * one_record * SLACK, model.size, one_record)
    return batches, noise, step(multiplier), ROWS_MOVED[relation] * one_record


def _plan_fixed_size(batch_size, n_steps, model, epsilon, delta, relation):
    r"""Laplace steps on m of n rows without replacement, of epsilon / T each.

    A release of :math:`\varepsilon_0` on such a batch is
    :math:`\ln(1 + \tfrac mn (e^{\varepsilon_0} - 1))`-DP (Balle, Barthe and Gaboardi 2018,
    theorem 9) if it is :math:`\varepsilon_0`-DP for batches of which one record was replaced,
    under both relations: one record moves the sum by at most twice its clip.
    """
    batches = FixedSizeBatches(model.n_rows, batch_size)
    inner = _before_sampling(_share(epsilon, n_steps), model.n_rows / batch_size) / SLACK
    moved = model.moved(2, batches.largest)
    noise = LaplaceNoise(moved / inner * SLACK, model.size, moved)
    step = SampledWithoutReplacement(model.n_rows, batch_size, Laplace(0.5 * inner))
    return batches, noise, step, moved


def _sufficient(event, epsilon, delta, relation):
    """Return the multiplier that fits the budget, by the curve in delta too.

    The accountant checks a price by delta at epsilon, whose tolerance is not that of epsilon at
    delta; the bounds meet within a few millionths.
    """
    multiplier, raised = calibrate(event, epsilon, delta, relation=relation), 1e-6
    while event_delta(event(multiplier), epsilon, relation=relation) > delta:
        multiplier *= 1.0 + raised
        raised *= 2.0
    return multiplier


def _share(epsilon, n_steps):
    """Return one of n_steps equal shares of epsilon, whose sum does not exceed it."""
    return epsilon / n_steps / SLACK


def _before_sampling(epsilon, ratio):
    """Return ln(1 + (e^epsilon - 1) n/m), without overflow."""
    if epsilon > 500.0:
        return epsilon + math.log(ratio)
    return math.log1p(math.expm1(epsilon) * ratio)
