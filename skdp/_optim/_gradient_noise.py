"""Noise for many releases of the same shape, sampled in blocks as integers on a grid.

A sum is rounded to the grid before noise is added, so that its digits below the grid are never
released. Scales are increased to cover that rounding, and because discrete noise is accounted as
continuous noise, as in `skdp.mechanisms` (``docs/theory/mechanisms.md``, sections 2 to 4).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from skdp._loops import NUMBA, NUMPY, get_loops
from skdp.mechanisms._gaussian import sigma_in_steps
from skdp.mechanisms._grid import MAX_STEPS, from_steps, grid_step, to_steps
from skdp.mechanisms._laplace import scale_in_steps
from skdp.noise import LARGEST_SCALE, discrete_gaussian, discrete_laplace
from skdp.utils._values import FrozenValue

# Number of values that are sampled at once.
BLOCK_VALUES = 1 << 14
# Factor that covers the rounding errors in the computation of a scale.
SLACK = 1.0 + 2.0**-40


@dataclass(frozen=True)
class _GridNoise(FrozenValue):
    """Common part of Gaussian and Laplace noise: the grid, the blocks and the addition.

    This is not a mechanism: the noise is sampled for many steps at once, and the cost of a step
    depends on the sampling of rows. A subclass defines `_grid`, which returns the step of the grid
    and the scale in steps, as mechanisms compute them.
    """

    scale: float
    size: int
    sensitivity: float

    def __post_init__(self):
        if 1e-100 <= self.scale <= 1e100:
            step, scale_in_steps = self._grid()
        else:
            step = 0.0
            scale_in_steps = math.inf
        vars(self).update(step=step, scale_in_steps=scale_in_steps)
        self.check_scale()

    def check_scale(self, fraction=1.0):
        """Check that the scale in steps is at most a fraction of the largest permitted scale.

        Raises
        ------
        ValueError
            If it is larger.
        """
        if not self.scale_in_steps <= fraction * self._max_scale:
            raise ValueError(
                f"epsilon is too small: noise of scale {self.scale:g} cannot be sampled for "
                f"{self.size} values of sensitivity {self.sensitivity:g}"
            )

    @property
    def drawn_scale(self):
        """The scale of the sampled noise: `scale`, increased to cover the rounding."""
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
            Noise in grid steps, to be passed to `add`.
        """
        at_once = max(1, BLOCK_VALUES // self.size)
        for first in range(0, n_steps, at_once):
            shape = (min(at_once, n_steps - first), self.size)
            yield from self._sample(self.scale_in_steps, shape, stream)

    def add(self, values, noise, loops=NUMPY):
        """Return the values, rounded to the grid, plus noise.

        Parameters
        ----------
        values : ndarray of float64, of `size` values
        noise : ndarray of shape (size,), dtype int64
            Noise from `draw`. It must never be used twice.
        loops : str, default="numpy"
            Value of `skdp._loops.choose_loops`, which does not change the result.

        Returns
        -------
        ndarray of float64, of the same shape as `values`
        """
        if loops == NUMBA:
            result = get_loops(loops).add_on_grid(values.ravel(), noise, self.step, MAX_STEPS)
            if result is not None:
                return result.reshape(values.shape)
        return from_steps(to_steps(values.ravel(), self.step) + noise, self.step, values.shape)


@dataclass(frozen=True)
class GaussianNoise(_GridNoise):
    """Gaussian noise for vectors of `size` values.

    Parameters
    ----------
    scale : float
        Standard deviation for which the cost is computed.
    size : int
        Number of values that are released together.
    sensitivity : float
        L2 sensitivity of the values before they are rounded to the grid. The release costs as much
        as a Gaussian mechanism with noise multiplier ``scale / sensitivity``.

    Attributes
    ----------
    step : float
        Step of the grid, a power of two.
    scale_in_steps : float
        Scale of the sampled noise, in steps.

    Raises
    ------
    ValueError
        If the scale is so large or so small that the noise cannot be sampled.
    """

    law = "Gaussian"

    @property
    def deviation(self):
        """The standard deviation of each value."""
        return self.scale

    _sample = staticmethod(discrete_gaussian)
    _max_scale = 0.5 * LARGEST_SCALE

    def _grid(self):
        """Return the grid step, and the standard deviation in steps, raised for the rounding."""
        root = math.sqrt(self.size)
        step = grid_step(self.scale, self.sensitivity / root)
        return step, sigma_in_steps(self.scale, self.sensitivity, root, step)


@dataclass(frozen=True)
class LaplaceNoise(_GridNoise):
    """Laplace noise for vectors of `size` values.

    Parameters
    ----------
    scale : float
        Scale b for which the cost is computed. The standard deviation is sqrt(2) b.
    size : int
        Number of values that are released together.
    sensitivity : float
        L1 sensitivity of the values before they are rounded to the grid. The release costs
        epsilon = ``sensitivity / scale``.

    Attributes
    ----------
    step : float
        Step of the grid, a power of two.
    scale_in_steps : float
        Scale of the sampled noise, in steps.

    Raises
    ------
    ValueError
        If the scale is so large or so small that the noise cannot be sampled.
    """

    law = "Laplace"

    @property
    def deviation(self):
        """The standard deviation of each value."""
        return math.sqrt(2.0) * self.scale

    _sample = staticmethod(discrete_laplace)
    _max_scale = LARGEST_SCALE

    def _grid(self):
        """Return the grid step, and the scale in steps, raised for the rounding."""
        step = grid_step(self.scale, self.sensitivity / self.size)
        epsilon = Fraction(self.sensitivity) / Fraction(self.scale)
        return step, scale_in_steps(self.sensitivity, epsilon, self.size, step)
