"""Common parts of the plans of linear models: public bounds, expected losses, rounding errors."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._data._bounded import max_bounded_additions
from skdp._optim import _default_settings
from skdp.base import TableShape, guarantee_of
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue

# Upper bound on an automatic C times the curvature of all rows.
MAX_CURVATURE = 1e9

# Norm of the weights, times data_norm, for which C="auto" balances regularization and noise. Tuned
# on the tables of docs/benchmarks/utility.md.
EXPECTED_WEIGHTS_NORM = 10.0

UNIT_ROUNDOFF = np.finfo(np.float64).eps / 2
# Smallest norm of a row's gradient, times C. The squares that solvers compare are far smaller and
# must not underflow.
MIN_GRADIENT = 1e-100


class ExpectedLossMixin:
    """The method `expected_excess_loss`, for estimators whose plan states the loss."""

    def expected_excess_loss(self, n_samples, n_features, n_classes=2):
        """Return the expected excess loss due to privacy, from public sizes alone.

        No data are read and nothing is charged. The value is the excess due to regularization and
        noise in a quadratic model of the loss with unfavorable curvature. It is usually an upper
        bound (see ``docs/benchmarks/planning.md``) and does not include the sampling error.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        n_features : int or list of str
            Number of columns, or their names if parameters refer to columns by name.
        n_classes : int, default=2
            Number of classes of a classifier. Not used if `classes` are declared.

        Returns
        -------
        float
            Expected mean loss per row in excess of the best model's loss: nats for a classifier,
            half the squared error for a regressor, half the deviance for counts.

        Raises
        ------
        ValueError
            If a parameter is not as described.

        Examples
        --------
        >>> from skdp import DPRidge
        >>> model = DPRidge(epsilon=1.0, target_bounds=(0, 10))
        >>> bool(model.expected_excess_loss(10**5, 20) < model.expected_excess_loss(10**4, 20))
        True
        """
        n_rows = check_integer(n_samples, "n_samples", low=1)
        names = None
        if isinstance(n_features, list | tuple | np.ndarray):
            names = np.array(n_features, dtype=object)
            n_features = len(names)
        n_columns = check_integer(n_features, "n_features", low=1)
        classes = getattr(self, "classes", None)
        if classes is None:
            classes = np.arange(check_integer(n_classes, "n_classes", low=2))
        shape = TableShape(n_rows=n_rows, n_columns=n_columns, classes=classes, names=names)
        plan = self.plan_fit(shape, guarantee_of(self))
        return float(self._total_excess_loss(plan) / n_rows)

    def _total_excess_loss(self, plan):
        """Return the expected excess loss of a plan, summed over rows."""
        return plan.total_excess_loss


@dataclass(frozen=True)
class PrivateSolver(FrozenValue):
    """A private method of computing weights: the attributes and methods that every such plan has.

    ``run(loss, rows, y, source, start)`` returns the weights and `mechanism` is the mechanism that
    is charged. For a solver that minimizes a loss, `C` and `quadratic` are the constants of the
    objective, and ``noise_variance(curvature)`` returns the variance of the noise in the weights
    along a direction in which the summed loss has this curvature. A person whose row weights sum to
    1 changes the result no more than a single row does. `choice` is the corresponding value of the
    estimators' parameter `mechanism`.
    """

    def averaging_bias(self, curvature, norm):
        """Return the relative bias of averaged iterates: 0 for solvers without iterates."""
        return 0.0

    def standard_error(self, shape):
        """Return the standard deviation of the noise in each weight.

        None if it depends on the data.
        """


@dataclass(frozen=True, kw_only=True)
class PerturbationProblem(_default_settings.SGDProblem):
    """Public sizes and bounds of a linear model's fit, for all mechanisms.

    Here `norm` is an upper bound on the norm of a row, including the constant feature.

    Parameters
    ----------
    baseline_norm : float, default=0.0
        Upper bound on the norm of the weights that regularization shrinks to.
    """

    baseline_norm: float = 0.0

    @property
    def loss(self):
        """The loss."""
        return self.loss_spec.loss

    @property
    def has_person_unit(self):
        """True if the unit is a person, whose gradient and curvature are means over their rows."""
        return self.guarantee.neighbors.unit == "person"

    @property
    def curvature_rank(self):
        """Upper bound on the rank of a unit's contribution to the Hessian."""
        if self.has_person_unit:
            return self.size
        return self.loss.curvature_rank

    @property
    def curvature_vanishes_at_vertices(self):
        """True if the loss has this property and the unit is a row.

        The curvature of a person need not vanish where the gradient does.
        """
        return self.loss.curvature_vanishes_at_vertices and not self.has_person_unit

    @property
    def lipschitz(self):
        """Upper bound on the norm of a row's gradient."""
        return self.loss.loss_lipschitz * self.norm

    @property
    def smoothness(self):
        """Upper bound on the curvature of a row."""
        return self.loss.curvature_bound * self.norm**2

    @property
    def curvature_trace(self):
        """Upper bound on the trace of a row's curvature."""
        return self.loss.trace_bound * self.norm**2

    @property
    def value_at_baseline(self):
        """Upper bound on a row's loss at the weights that regularization shrinks to."""
        return self.loss.value_at_zero() + self.lipschitz * self.baseline_norm

    def max_C(self, noise_std):
        """Return the C beyond which the noise in the summed gradient would exceed the signal.

        With this C, the expected norm of the weights falls as the noise grows, just as it does
        under the penalty used with clipped gradients.

        Parameters
        ----------
        noise_std : float
            Standard deviation of the noise on the summed gradient.
        """
        return self.n_rows * self.loss_spec.signal / (noise_std**2 * self.size)


def quadratic_excess(problem, l2_reg_strength, weights_norm, noise_std):
    r"""Return the expected excess loss, summed over rows, in the quadratic model.

    The comparison is with weights of norm W. A regularizer of strength :math:`\lambda` increases
    the loss by at most :math:`\lambda W^2 / 2`. Noise with variance 1 on the summed gradient
    increases it by :math:`\tfrac12 \sum_j h_j / (h_j + \lambda)^2` over the D eigenvalues of the
    Hessian, whose sum is at most the sum of the traces of the rows' curvatures. The sum is largest
    when all eigenvalues are equal or, if there is enough curvature, equal to :math:`\lambda`.

    Parameters
    ----------
    problem : PerturbationProblem
    l2_reg_strength : float
        Strength of the regularizer of the summed loss.
    weights_norm : float
        The norm W.
    noise_std : float
        Standard deviation of the noise on the summed gradient.

    Returns
    -------
    float
    """
    h = min(l2_reg_strength, problem.n_rows * problem.curvature_trace / problem.size)
    if h + l2_reg_strength == 0.0:
        # The penalty is so weak that it underflows: nothing limits the noise in the weights.
        return math.inf
    variance_factor = 0.5 * problem.size * (h / (h + l2_reg_strength)) / (h + l2_reg_strength)
    return 0.5 * weights_norm**2 * l2_reg_strength + variance_factor * noise_std * noise_std


def gradient_rounding(problem, C, weights_norm):
    r"""Return an upper bound on the rounding error in an objective's gradient.

    A sum of m terms in any order has an error of at most :math:`\gamma_m` times the sum of their
    magnitudes (Higham 2002, section 3.1). Rows are added in blocks and blocks to a total. The error
    in a score, :math:`\gamma_p R \|w\|`, changes a residual by at most this error times the loss's
    curvature. The residual itself is also rounded.

    Parameters
    ----------
    problem : PerturbationProblem
        Its bound on a row's norm is R.
    C : float
        Factor of the summed loss.
    weights_norm : float
        Upper bound on the norm of the weights.

    Returns
    -------
    float
        An affine function of `weights_norm`.
    """
    n_rows = problem.n_rows
    n_features = problem.n_features
    additions = max_bounded_additions(n_features) + 16
    sums = n_rows * problem.lipschitz * additions
    scores = n_rows * problem.smoothness * (n_features + 4) * weights_norm
    summed = 1.1 * UNIT_ROUNDOFF * (C * (sums + scores) + 4.0 * weights_norm)
    return summed + C * n_rows * problem.norm * problem.loss.residual_error


def rounding_per_weight(problem, C):
    """Return the derivative of `gradient_rounding` with respect to the norm of the weights.

    A larger rounding error allows weights of larger norm, whose rounding error is larger still. A
    bound exists only if this number is small, so objective perturbation calls this to check C.

    Raises
    ------
    ValueError
        If C is so large or so small that the bound or a computed norm becomes meaningless.
    """
    if not C * problem.lipschitz >= MIN_GRADIENT:
        raise ValueError(f"C={C:g} is too small for rows of norm {problem.norm:g}")
    per_weight = gradient_rounding(problem, C, 1.0) - gradient_rounding(problem, C, 0.0)
    if not per_weight <= 1.0 / 16.0:
        raise ValueError(
            f"C={C:g} times the number of rows is too large for rows of norm {problem.norm:g}"
        )
    return per_weight
