r"""The noisy second moment that whitens rows of linear models, and how noise changes the steps.

With little noise, the number of steps of noisy gradients depends on the condition of the loss: a
direction in which rows hardly vary needs many steps. A released second moment makes the curvature
about equal in all directions, so that a few dozen steps are enough for any number of rows.
The noise in the weights is then also proportional to the deviation of the scores, not of the
columns. The mean row and the spread of the rows about it are released first (see `_row_center`), so
the noise in the second moment is proportional to the rows' own spread, however far they are from 0.
If noise would hide the second moment, classifiers of two classes only center their rows. The
releases, their sensitivities and the rule for the budget are derived in
``docs/theory/guarantees.md``.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from skdp._data._bounded import BoundedRows, max_bounded_additions
from skdp._data._parts import max_additions, sum_over
from skdp._data._symmetric import pack_symmetric, spectral_margin, unpack_symmetric
from skdp._optim._default_settings import Settings, automatic_settings
from skdp._optim._whitened_rows import SAFETY, WHITENED_NORM, WhitenedRows
from skdp.accounting import Gaussian, get_epsilon
from skdp.linear_model._row_center import MIN_UNIT, UNIT_PER_SPREAD, RowCenter, reserve_for_center
from skdp.mechanisms import GaussianMechanism
from skdp.mechanisms._plan import plan_release
from skdp.utils._values import FrozenValue

UNIT_ROUNDOFF = np.finfo(np.float64).eps / 2
# Value of the constant feature in the second moment, relative to the bound on rows.
MOMENT_CONSTANT = 0.5
# Smallest second moment that is whitened, relative to the mean over the directions.
MIN_RELATIVE_MOMENT = 0.0003
# Smallest number of directions to which the norm of whitened rows is attributed, as a fraction of
# the number of columns.
MIN_DIRECTIONS = 0.25
# The second moment gets the fraction of mu squared with which the noise is this fraction of the
# second moment of a typical direction, within two limits.
TARGET_NOISE = 0.01
FRACTIONS = (0.002, 0.2)
# Rows are not whitened if the noise is larger than this fraction.
MAX_NOISE = 1.0
# For classes, the largest fraction of mu squared. Where one class is rare, the noise of the steps
# determines the loss, and a fifth of the budget costs more than it gains: with one positive row in
# 100 and independent columns (40,000 rows, 20 columns, epsilon = .3), the AUC of 24 paired fits is
# .767 with centered rows, .759 with a fifth and .765 to .772 with a twentieth. The standard error
# of the differences is .007 (docs/benchmarks/design_choices.py classes compares the first with the
# last).
MAX_FRACTION_OF_CLASSES = 0.05
# For classes, the distance from which on gradients of rows are shortened, relative to the distance
# at which rows are scaled down for the second moment. The rows of a rare class are far from the
# center, and their gradients must not become smaller than those of the other rows. With 1, the log
# loss of numbers of credit_default and bank_marketing (training rows, epsilon = 1) is larger by 7
# and 2 sampling errors. With 4, it is the same as with 2.
DISTANCE_OF_CLASSES = 2.0
# For classes, the largest value of the constant feature, relative to the root mean square of the
# whitened rows in a direction. If the rarer class is very rare, the loss has little curvature, and
# the intercept follows the weights too slowly with a smaller constant: with one positive row in 100
# and two columns of use, the log loss is larger by 4 sampling errors with 1 than with centered
# rows, and by 2 with 1.5.
CONSTANT_OF_CLASSES = 1.5
# Mean squared norm of centered rows in units of the released spread; see `RowCenter`.
TYPICAL_SQUARED_NORM = 1.0 / UNIT_PER_SPREAD**2
# With less noise than this fraction, only rows that are farther from the center are scaled down, so
# that a few distant rows keep their weight, and the noise becomes this fraction. With more noise,
# directions that hardly vary are hidden, and the number of steps grows. Chosen on simulated rows
# with heavy tails and with very unequal columns, where 25 steps were too few
# (docs/benchmarks/design_choices.py).
LOW_NOISE = 0.2
# Largest distance from the center at which rows are scaled down, relative to the bound on rows: the
# distance between two rows.
MAX_DISTANCE = 2.0
# Mean squared norm of the rows, shortened to their bound of 1, from which on most of them are taken
# to be longer than the bound.
SHORTENED_MEAN_SQUARE = 0.95
# Rows are whitened if there are at least this many per column. With fewer, a fit to the rows needs
# the regularization by directions that hardly move.
MIN_ROWS_PER_COLUMN = 250
# Number of steps that take about as long as the releases, the weights and the norms of whitened
# rows. Rows are whitened if this saves time.
STEPS_OF_WHITENING = 32
# Number of rows up to which `LossSpec.whitened_steps` are enough. With very little noise, n mu
# divided by the second number takes the place of the number of rows n, so that the weights without
# noise are those of scikit-learn.
ROWS_OF_WHITENED_STEPS = 10_000
SIGNAL_PER_ROW = 10.0
# A product with the matrix must not take much longer than a step.
MAX_COLUMNS = 200
# Relative slack in a budget fraction, for rounding errors in noise multipliers.
SLACK = 1e-6


@dataclass(frozen=True, kw_only=True)
class RowWhitening(FrozenValue):
    """The release of the second moment of rows with a constant feature.

    Parameters
    ----------
    n_rows, n_columns : int
    center : RowCenter
        The release of the mean row and of the spread of rows about it, which precedes this one.
    mechanism : GaussianMechanism
        Mechanism for rows whose norm, without the constant feature, is at most 1.
    l2_reg : float, default=0.0
        L2 regularization strength of the columns' weights, for rows of norm 1 and curvature 1,
        which is added to the second moment.
    distance_factor : float, default=1.0
        Distance from the center at which rows are scaled down, relative to the unit that `center`
        releases.
    gradient_distance : float, default=1.0
        Distance from which on the gradients of rows have a smaller weight, relative to the distance
        at which rows are scaled down.
    """

    n_rows: int
    n_columns: int
    center: RowCenter
    mechanism: GaussianMechanism
    l2_reg: float = 0.0
    distance_factor: float = 1.0
    gradient_distance: float = 1.0

    def __post_init__(self):
        self.mechanism.check_size(self._n_values)

    @property
    def _n_values(self):
        """Number of entries in the upper triangle of the second moment."""
        n_features = self.n_columns + 1
        return n_features * (n_features + 1) // 2

    @property
    def noise_norm(self):
        """Bound on the spectral norm of the noise in the mean; see `spectral_margin`."""
        deviation = self.mechanism.deviation(self._n_values) / self.n_rows
        return spectral_margin(deviation, self.n_columns + 1)

    def plan(self):
        """Return the plan of the release of the second moment."""
        return plan_release(
            self.mechanism,
            self.run,
            stage_name="the second moment",
            unit="the square of the distance at which rows are scaled down",
        )

    def run(self, X, norm, source, persons=None):
        """Return the `WhitenedRows`.

        Parameters
        ----------
        X : array, CSR matrix or ChunkedArray of shape (n_rows, n_columns)
        norm : float
            Bound on the norm of rows.
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.
        """
        center, _, centered_unit = self.center.run(X, norm, source, persons)
        # Rows that are farther from the center are scaled down to this distance, with their
        # constant feature.
        unit = min(self.distance_factor * centered_unit, MAX_DISTANCE)
        weight_distance = min(self.gradient_distance * unit, MAX_DISTANCE)
        mean_square = (centered_unit / UNIT_PER_SPREAD) ** 2 + float(center @ center) / norm**2
        if mean_square >= SHORTENED_MEAN_SQUARE:
            # Most rows are longer than the bound, and about as far from the center as they are
            # longer: their own spread is no measure of that.
            unit = max(unit, 1.0)
            weight_distance = unit
        n_features = self.n_columns + 1
        rows = BoundedRows(X, 1.0, MOMENT_CONSTANT, unit * norm, persons)
        equations = rows.as_equations(center)
        total = sum_over(equations, _add_second_moment, np.zeros((n_features, n_features)))
        released = self.mechanism.release(pack_symmetric(total), random_state=source)
        moment = unpack_symmetric(released / self.n_rows, n_features)
        return self._whitened_rows(moment, center, unit, weight_distance, norm)

    def _whitened_rows(self, moment, row_center, unit, weight_distance, norm):
        """Return the `WhitenedRows` for a released mean second moment (post-processing).

        Parameters
        ----------
        moment : ndarray of shape (n_columns + 1, n_columns + 1)
            Of the rows minus the center, divided by their bound, with the constant feature.
        row_center : ndarray of shape (n_columns,)
        unit : float
            Bound on the distance of the rows from the center, relative to `norm`.
        weight_distance : float
            Distance from which on the gradients of rows have a smaller weight, relative to `norm`.
        norm : float
        """
        n_columns = self.n_columns
        noise_norm = self.noise_norm
        # The weights of the rows add up to at most their number, apart from noise.
        total_weight = min(max(moment[-1, -1], noise_norm), MOMENT_CONSTANT**2)
        center = moment[:-1, -1] / total_weight
        center /= max(1.0, MOMENT_CONSTANT * np.linalg.norm(center))
        # The second moment about the center is L M L'. With the noise, M is at most the noise's
        # norm below the second moment of the rows.
        about = np.column_stack([np.eye(n_columns), -center])
        upper = about @ moment @ about.T + noise_norm * (about @ about.T)
        center *= MOMENT_CONSTANT * unit * norm
        values, vectors = eigh(upper, check_finite=False)
        smallest = max(noise_norm, MIN_RELATIVE_MOMENT * float(np.mean(np.maximum(values, 0.0))))
        values = np.maximum(values, smallest)
        # The number of directions that are neither mostly noise nor regularized.
        l2_reg = self.l2_reg / unit**2
        n_directions = float(np.sum((values - noise_norm) / (values + l2_reg)))
        values += l2_reg
        n_directions = max(n_directions, MIN_DIRECTIONS * n_columns)
        scale = WHITENED_NORM / math.sqrt(n_directions)
        return WhitenedRows(
            center=row_center + center,
            transform=(vectors * (scale / unit / np.sqrt(values))) @ vectors.T,
            weight_center=row_center,
            weight_distance=weight_distance * norm,
            second_moment=SAFETY * scale**2,
        )

    def rounding_factor(self, norm_over_constant):
        r"""Return the factor by which whitening increases the rounding error of sums of gradients.

        Parameters
        ----------
        norm_over_constant : float
            Bound on the norm of rows over the value of the constant feature.

        Returns
        -------
        float
        """
        n_columns = self.n_columns
        transform_norm = WHITENED_NORM / math.sqrt(MIN_DIRECTIONS * n_columns * self.noise_norm)
        transform_norm /= min(self.distance_factor * MIN_UNIT, MAX_DISTANCE)
        product = (n_columns + 4.0) * math.sqrt(n_columns) / max_additions(0)
        # A row times its weight is at most the distance plus the norm of the center.
        norm_over_constant = 2.0 * norm_over_constant
        return 1.0 + (1.0 + product) * (1.0 + 3.0 * transform_norm * norm_over_constant)


def _add_second_moment(total, block):
    block.add_weighted_gram(np.ones(len(block.equation_factors)), total)


def _sensitivity(n_rows, n_columns, sensitivity_factor):
    """Return the sensitivity of the sum of z z' for rows z with a constant feature, and its error.

    A row changes the sum by at most the squared norm of z in the Frobenius norm, and two rows by at
    most the square root of 2 times that. The error is bounded as in `plan_adassp`.
    """
    squared_norm = 1.0 + MOMENT_CONSTANT**2
    additions = max_bounded_additions(n_columns + 1) + 16
    rounding = 1.1 * UNIT_ROUNDOFF * n_rows * additions * squared_norm
    return (math.sqrt(sensitivity_factor) * squared_norm + 2.0 * rounding) * (1.0 + 1e-12)


def _number_of_steps(loss_spec, n_rows, mu=0.0):
    """Return the number of steps of whitened rows if the noise hides no direction.

    With more rows, the sampling error is smaller, and so must be the error of the optimization.
    With so little noise that `mu` exceeds `SIGNAL_PER_ROW`, the optimization is as precise as with
    more rows.
    """
    n_effective = n_rows * max(1.0, mu / SIGNAL_PER_ROW)
    n_decades = max(0.0, math.log10(n_effective / ROWS_OF_WHITENED_STEPS))
    return loss_spec.whitened_steps + round(loss_spec.whitened_steps_per_decade * n_decades)


def reserve_for_whitening(rows, shape, loss_spec, settings, min_alpha=0.0):
    """Return the `RowsFit` with budget for the center and the second moment, and its settings.

    Gaussian releases whose fractions of mu squared add up to 1 together form one Gaussian release
    (Dong, Roth and Su 2022). Rows are not whitened, and None is returned, if they cannot be
    centered, if a run with the given settings takes few steps, if steps of whitened rows would not
    read all rows, if there are several outputs, many columns or few rows, or if the noise would
    hide the second moment.

    Parameters
    ----------
    rows : RowsFit
    shape : TableShape
    loss_spec : LossSpec
    settings : Settings
        Complete automatic settings for rows that are not whitened.
    min_alpha : float, default=0.0
        L2 regularization strength of the mean loss, for the columns' weights.

    Returns
    -------
    (RowsFit, SGDProblem, Settings) or None
    """
    n_rows = shape.n_rows
    n_columns = shape.n_columns
    is_wide = n_columns > MAX_COLUMNS or n_rows < MIN_ROWS_PER_COLUMN * n_columns
    if loss_spec.loss.weights_shape != () or is_wide:
        return None
    n_steps = _number_of_steps(loss_spec, n_rows)
    if settings.n_steps(n_rows) <= STEPS_OF_WHITENING + n_steps:
        return None
    rows = reserve_for_center(rows, shape)
    if rows.center is None:
        return None
    center = rows.center
    remaining = rows.remaining
    sensitivity = _sensitivity(n_rows, n_columns, remaining.neighbors.sensitivity_factor)
    mechanism = GaussianMechanism(remaining.epsilon, remaining.delta, sensitivity)
    n_steps = _number_of_steps(loss_spec, n_rows, 1.0 / mechanism.noise_multiplier)
    whole = RowWhitening(n_rows=n_rows, n_columns=n_columns, center=center, mechanism=mechanism)
    noise = whole.noise_norm * n_columns / TYPICAL_SQUARED_NORM
    low, high = FRACTIONS
    gradient_distance = 1.0
    relative_constant = 1.0
    if loss_spec.score_exponent is not None:
        high = min(high, MAX_FRACTION_OF_CLASSES)
        gradient_distance = DISTANCE_OF_CLASSES
        relative_constant = CONSTANT_OF_CLASSES
    fraction = min(max((noise / TARGET_NOISE) ** 2, low), high)
    noise /= math.sqrt(fraction)
    if noise > MAX_NOISE:
        return None
    # The noise relative to the second moment is proportional to the square of the distance.
    distance_factor = max(1.0, math.sqrt(LOW_NOISE / noise))
    # A direction that is hidden by noise is the slower, the larger the noise: like the root of it,
    # as the condition number. For classes, more steps made no difference: with so much noise, the
    # penalty outweighs the loss in these directions.
    steps_factor = 1.0
    if loss_spec.score_exponent is None:
        steps_factor = max(1.0, math.sqrt(noise / LOW_NOISE))
    scale = mechanism.scale / math.sqrt(fraction)
    whitening = replace(
        whole,
        mechanism=GaussianMechanism.from_scale(scale, sensitivity, remaining.delta),
        distance_factor=distance_factor,
        gradient_distance=gradient_distance,
        l2_reg=min_alpha / (loss_spec.curvature * rows.data_norm**2),
    )
    rest = Gaussian(mechanism.noise_multiplier / math.sqrt(1.0 - fraction - SLACK))
    epsilon = get_epsilon(rest, remaining.delta)
    # Except for classes, the constant feature is as large as the whitened rows in a direction.
    constant = relative_constant * WHITENED_NORM / math.sqrt(n_columns) * rows.data_norm
    rows = replace(
        rows,
        center=None,
        whitening=whitening,
        constant=min(rows.constant, constant),
        remaining=replace(remaining, epsilon=epsilon),
    )
    whitened_spec = replace(
        loss_spec,
        whitened_steps=math.ceil(steps_factor * n_steps),
        whitened_condition=steps_factor**2 * loss_spec.whitened_condition,
    )
    problem = rows.sgd_problem(shape, whitened_spec)
    requested = Settings(loss_spec.whitened_optimizer, alpha_of_columns=min_alpha)
    settings = automatic_settings(problem, requested)
    if settings.sampling != "full":
        # The fractions of mu squared add up for Gaussian steps, not for sampled ones.
        return None
    return rows, problem, settings
