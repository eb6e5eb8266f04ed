"""What the plans of all mechanisms share: public constants, and what noise and rounding do."""

from dataclasses import dataclass

import numpy as np

from skdp._data._bounded import max_bounded_additions
from skdp._sgd import _defaults
from skdp.base import TableShape, guarantee_of
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue

# C="auto" keeps C times the curvature of all rows below this.
LARGEST_CURVATURE = 1e9

# The norm of weights, times data_norm, for which C="auto" balances regularization against noise;
# chosen with the benchmarks' tables in view, see docs/benchmarks/utility.md.
EXPECTED_WEIGHTS_NORM = 10.0

UNIT_ROUNDOFF = np.finfo(np.float64).eps / 2
# Squares of what solvers compare must not underflow; they are far smaller than what one row moves.
SMALLEST_MOVE = 1e-100


class ExpectedLossMixin:
    """What a fit is expected to lose, by its plan, which has an `excess`."""

    def expected_excess_loss(self, n_samples, n_features, n_classes=2):
        """Return the loss that privacy is expected to cost, before any data are touched.

        Nothing is charged. It comes from the regularization and from the noise, in a quadratic
        model of the loss with little favorable curvature, and is more often an upper bound than
        not; see ``docs/planning.md``. Sampling error is not part of it.

        Parameters
        ----------
        n_samples : int
            The number of rows.
        n_features : int or list of str
            The number of columns; their names, where parameters name columns.
        n_classes : int, default=2
            Of a classifier; not read where `classes` are declared.

        Returns
        -------
        float
            The mean loss of a row above that of the best model that is expected: nats of a
            classifier, half the squared error of a regressor, half the deviance of counts.

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
        named = isinstance(n_features, list | tuple | np.ndarray)
        names = np.array(n_features, dtype=object) if named else None
        n_columns = check_integer(len(names) if named else n_features, "n_features", low=1)
        classes = getattr(self, "classes", None)
        if classes is None:
            classes = np.arange(check_integer(n_classes, "n_classes", low=2))
        shape = TableShape(n_rows=n_rows, n_columns=n_columns, classes=classes, names=names)
        return float(self.plan_fit(shape, guarantee_of(self)).excess / n_rows)


@dataclass(frozen=True)
class Perturbation(FrozenValue):
    """How weights are made by noise, and what that does to them; a plan has each name below.

    ``run(loss, rows, y, source)`` returns the weights, and `mechanism` is their price. Of what
    minimizes a loss `C` and `quadratic` are the objective's, and ``noise_variance(curvature)`` is
    the variance of the noise in the weights where the summed loss has a curvature. A person whose
    rows count by shares moves them by no more than a row.
    """

    def lengthening(self, curvature, norm):
        """Return by which share noise in iterates lengthens the weights: here there are none."""
        return 0.0

    def standard_error(self, shape):
        """Return that of each weight, None where how noise reaches them depends on the data."""


@dataclass(frozen=True, kw_only=True)
class Problem(_defaults.Problem):
    """What is public of the rows that a linear model is fitted to, whichever its mechanism.

    The norm bounds that of a row, the constant feature included.

    Parameters
    ----------
    center : float, default=0.0
        The largest norm of the weights that regularization pulls to.
    """

    center: float = 0.0

    @property
    def loss(self):
        return self.task.loss

    # Whether the unit is a person, whose gradient and curvature are means of those of rows.
    @property
    def by_person(self):
        return self.guarantee.neighbors.unit == "person"

    @property
    def curvature_rank(self):
        """The bound on the rank of a unit's curvature."""
        return self.size if self.by_person else self.loss.curvature_rank

    @property
    def curvature_vanishes_at_vertices(self):
        """As that of the loss; a person's is not known to vanish with the gradient."""
        return self.loss.curvature_vanishes_at_vertices and not self.by_person

    # The bound on the norm of a row's gradient.
    @property
    def lipschitz(self):
        return self.loss.slope_bound * self.norm

    # The bound on a row's curvature.
    @property
    def smoothness(self):
        return self.loss.curvature_bound * self.norm**2

    # The bound on the trace of a row's curvature.
    @property
    def curvature_trace(self):
        return self.loss.trace_bound * self.norm**2

    @property
    def value_at_center(self):
        """The bound on a row's loss where the weights are the center."""
        return self.loss.value_at_zero() + self.lipschitz * self.center

    def largest_C(self, noise):
        """Return the C beyond which noise on the summed gradient would drown the signal.

        The weights that noise of a standard deviation leads to are then expected to have norms that
        fall as it grows, as under the penalty of clipped gradients.
        """
        return self.n_rows * self.task.signal / (noise**2 * self.size)


def quadratic_excess(problem, strength, weights_norm, noise):
    r"""Return the summed loss expected above that of weights of norm W, in the quadratic model.

    A regularizer of strength :math:`\lambda` costs at most :math:`\lambda W^2 / 2`, and noise of
    variance 1 on the summed gradient :math:`\tfrac12 \sum_j h_j / (h_j + \lambda)^2` over the D
    eigenvalues of the Hessian, whose sum is at most that of the traces of the rows' curvatures. The
    sum is largest when all are equal or, if there is enough curvature, equal to :math:`\lambda`.
    """
    h = min(strength, problem.n_rows * problem.curvature_trace / problem.size)
    cost = 0.5 * problem.size * (h / (h + strength)) / (h + strength)
    return 0.5 * weights_norm**2 * strength + cost * noise * noise


def gradient_rounding(problem, C, weights_norm):
    r"""Bound the rounding error of the gradient of an objective at weights of bounded norm.

    A sum of m terms in any order is off by at most :math:`\gamma_m` times the sum of their
    magnitudes (Higham 2002, section 3.1); rows are added in blocks and blocks to a total. The
    error of a score, :math:`\gamma_p R \|w\|`, moves a residual by the loss's curvature. A
    residual has an error of its own even for exact scores.

    Parameters
    ----------
    problem : Problem
        Its bound on a row's norm is R.
    C : float
        The factor of the summed loss.
    weights_norm : float
        The bound on the weights' norm.

    Returns
    -------
    float
        Affine in `weights_norm`.
    """
    n_rows = problem.n_rows
    n_features = problem.n_features
    additions = max_bounded_additions(n_features) + 16
    sums = n_rows * problem.lipschitz * additions
    scores = n_rows * problem.smoothness * (n_features + 4) * weights_norm
    summed = 1.1 * UNIT_ROUNDOFF * (C * (sums + scores) + 4.0 * weights_norm)
    return summed + C * n_rows * problem.norm * problem.loss.residual_error


def rounding_per_weight(problem, C):
    """Return how `gradient_rounding` grows with the weights' norm.

    Raises
    ------
    ValueError
        If C is so large or so small that the bound, or a computed norm, loses its meaning.
    """
    if not C * problem.lipschitz >= SMALLEST_MOVE:
        raise ValueError(f"C={C:g} is too small for rows of norm {problem.norm:g}")
    per_weight = gradient_rounding(problem, C, 1.0) - gradient_rounding(problem, C, 0.0)
    if not per_weight <= 1.0 / 16.0:
        raise ValueError(f"C={C:g} is too large for {problem.n_rows} rows of norm {problem.norm:g}")
    return per_weight
