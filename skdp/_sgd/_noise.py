"""Noise for many releases of one shape: drawn in blocks, in integers, on a grid.

A sum is rounded to the grid before noise is added to it, so that no digit of the sum survives
below the noise. Scales are raised for that rounding, and for pricing the discrete laws by the
continuous ones, as in `skdp.mechanisms` (``docs/mechanisms.md``, sections 2 to 4).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from skdp.mechanisms._gaussian import sigma_in_steps
from skdp.mechanisms._grid import from_steps, grid_step, to_steps
from skdp.mechanisms._laplace import scale_in_steps
from skdp.noise import LARGEST_SCALE, discrete_gaussian, discrete_laplace
from skdp.utils._values import FrozenValue

BLOCK_VALUES = 1 << 14
# Covers the rounding of a scale's own computation.
SLACK = 1.0 + 2.0**-40


@dataclass(frozen=True)
class _GridNoise(FrozenValue):
    """What both kinds of noise share: a grid, blocks, and how noise is added.

    It is no mechanism (`skdp.mechanisms._plan.Plan`): it is drawn for many steps at once, and what
    a step costs is the price of the sampling that it is part of. `_on_grid` is the mechanisms'.
    """

    scale: float
    size: int
    sensitivity: float

    def __post_init__(self):
        is_usual = 1e-100 <= self.scale <= 1e100
        step, scale_in_steps = self._on_grid() if is_usual else (0.0, math.inf)
        vars(self).update(step=step, scale_in_steps=scale_in_steps)
        self.check_steps()

    def check_steps(self, share=1.0):
        """Raise `ValueError` if the scale in steps is above a share of the largest."""
        if not self.scale_in_steps <= share * self._largest:
            raise ValueError(
                f"noise of scale {self.scale:g} cannot be drawn for {self.size} values of "
                f"sensitivity {self.sensitivity:g}: epsilon is too small"
            )

    # The scale of the noise that is drawn: `scale`, raised for the rounding.
    @property
    def drawn_scale(self):
        return self.step * self.scale_in_steps

    def draw(self, n_steps, stream):
        """Yield independent noise vectors.

        Parameters
        ----------
        n_steps : int
        stream : Stream

        Yields
        ------
        ndarray of shape (size,), dtype int64
            In steps of the grid, for `add`.
        """
        at_once = max(1, BLOCK_VALUES // self.size)
        for first in range(0, n_steps, at_once):
            shape = (min(at_once, n_steps - first), self.size)
            yield from self._sample(self.scale_in_steps, shape, stream)

    def add(self, values, noise):
        """Round values to the grid and add noise to them there.

        Parameters
        ----------
        values : ndarray of float64, of `size` values
        noise : ndarray of shape (size,), dtype int64
            From `draw`; never used twice.

        Returns
        -------
        ndarray of float64
            Of the shape of `values`.
        """
        return from_steps(to_steps(values.ravel(), self.step) + noise, self.step, values.shape)


@dataclass(frozen=True)
class GaussianNoise(_GridNoise):
    """Gaussian noise for vectors of `size` values.

    Parameters
    ----------
    scale : float
        The standard deviation that the accountant was told.
    size : int
        How many values are released together.
    sensitivity : float
        How far one record moves the values in L2 norm, before they are rounded to the grid. The
        release then costs a Gaussian of noise multiplier ``scale / sensitivity``.

    Attributes
    ----------
    step : float
        The grid, a power of two.
    scale_in_steps : float

    Raises
    ------
    ValueError
        If the scale is too large or too small to draw noise of.
    """

    law = "Gaussian"

    @property
    def deviation(self):
        return self.scale

    _sample = staticmethod(discrete_gaussian)
    _largest = 0.5 * LARGEST_SCALE

    def _on_grid(self):
        root = math.sqrt(self.size)
        step = grid_step(self.scale, self.sensitivity / root)
        return step, sigma_in_steps(self.scale, self.sensitivity, root, step)


@dataclass(frozen=True)
class LaplaceNoise(_GridNoise):
    """Laplace noise for vectors of `size` values.

    Parameters
    ----------
    scale : float
        The scale b that the accountant was told, of a standard deviation of sqrt(2) b.
    size : int
        How many values are released together.
    sensitivity : float
        How far the values can move in L1 norm, before they are rounded to the grid. The release
        then costs epsilon = ``sensitivity / scale``.

    Attributes
    ----------
    step : float
        The grid, a power of two.
    scale_in_steps : float

    Raises
    ------
    ValueError
        If the scale is too large or too small to draw noise of.
    """

    law = "Laplace"

    @property
    def deviation(self):
        return math.sqrt(2.0) * self.scale

    _sample = staticmethod(discrete_laplace)
    _largest = LARGEST_SCALE

    def _on_grid(self):
        step = grid_step(self.scale, self.sensitivity / self.size)
        epsilon = Fraction(self.sensitivity) / Fraction(self.scale)
        return step, scale_in_steps(self.sensitivity, epsilon, self.size, step)
