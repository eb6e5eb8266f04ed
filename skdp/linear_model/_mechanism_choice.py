"""Choice of a linear model's mechanism and regularization, from public quantities alone.

Perturbation of the output, of the objective, of gradients, and noisy sufficient statistics are
compared by their expected losses.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from skdp._optim._default_settings import Settings, automatic_settings, release_noise
from skdp.linear_model import _objective_perturbation, _output_perturbation, _planning
from skdp.linear_model._balanced import MAX_BALANCED_WEIGHT, TYPICAL_MAX_WEIGHT, BalancedWeights
from skdp.linear_model._clipped_descent import plan_clipped_descent
from skdp.linear_model._row_center import reserve_for_center
from skdp.linear_model._standard_errors import split_guarantee
from skdp.linear_model._whitening import reserve_for_whitening
from skdp.utils._validation import check_within

NESTEROV = Settings("nesterov")
MECHANISMS = ("output", "objective", "gradient")

# Improvement in the expected loss, in nats per row, at which "auto" prefers gradients to perturbing
# the objective or the output. Gradients are slower, and their advantage grows with the noise. The
# threshold is lower for output perturbation, whose noise is not reduced by curvature.
MIN_IMPROVEMENT = {"objective": 0.02, "output": 0.001}
# Expected loss of gradients of centered rows, relative to the loss that is computed for rows whose
# norm is the bound, and the improvement at which they are preferred. The factor was measured with
# scaled columns, on one half of Adult's training rows for fits to the other half; on bank_marketing
# and credit_default it is about 1. Whether columns are scaled is not known here: it depends on the
# frequency of the rarer class, which the fit releases.
CENTERED_LOSS_FACTOR = 0.7
MIN_IMPROVEMENT_OF_CENTERED = 0.001
# For balanced weights, which are planned for a typical largest weight: the same margin, relative to
# the one above. The expected loss due to noise is at least proportional to the weight, so an
# improvement at the typical weight is larger by this ratio at the largest possible weight.
BALANCED_MARGIN_FACTOR = TYPICAL_MAX_WEIGHT / MAX_BALANCED_WEIGHT


@dataclass(frozen=True, kw_only=True)
class MechanismCandidate:
    """A mechanism that computes weights, and its expected loss.

    Parameters
    ----------
    mechanism : {"output", "objective", "gradient"}
    rows : RowsFit
    problem : PerturbationProblem
    total_excess_loss : float
        Expected loss, summed over rows, in excess of the loss of weights of an expected norm.
    penalty_cost : float
        Upper bound on the part of the excess loss that regularization causes.
    plan : callable
        Function that returns the plan of the weights, a `PrivateSolver`.
    """

    mechanism: str
    rows: object
    problem: _planning.PerturbationProblem
    total_excess_loss: float
    penalty_cost: float
    plan: Callable[[], _planning.PrivateSolver]

    @property
    def bounded_excess_loss(self):
        """Excess loss, with the cost of regularization limited to the cost of zero weights."""
        cost_of_zero = self.problem.n_rows * self.problem.loss.value_at_zero()
        return self.total_excess_loss - max(0.0, self.penalty_cost - cost_of_zero)


def choose_mechanism(
    mechanism,
    C,
    rows,
    shape,
    loss_spec,
    with_hessian=False,
    alternative="objective",
    planned=None,
    class_weight=None,
):
    """Return the candidate that is requested or has the smallest expected loss.

    Parameters
    ----------
    mechanism : {"auto", "output", "objective", "gradient"}
        "auto" selects the `alternative`, or "gradient" if its expected loss is clearly smaller.
    C : float or None
        None selects the C that minimizes the expected loss due to regularization and noise.
    rows : RowsFit
        Its remaining guarantee is used for the weights.
    shape : TableShape
    loss_spec : LossSpec
    with_hessian : bool, default=False
        Whether a fraction of the guarantee is reserved for the release of a Hessian.
    alternative : {"objective", "output"}, default="objective"
        The perturbation that "auto" compares with gradients. "output" is for losses for which
        objective perturbation is not proved. The effect of noise on the gradient is divided by the
        curvature plus the regularization, whereas noise on the minimizer depends on the
        regularization alone.
    planned : WeightsFit, default=None
        Plan of the same fit for typical class weights. The result uses the same
        mechanism, number of steps and releases, so both have the same privacy event.
    class_weight : list of float or BalancedWeights, default=None
        Weight of each class.

    Returns
    -------
    MechanismCandidate
    """
    if planned is not None:
        return _candidate(planned.weights.choice, C, rows, shape, loss_spec, with_hessian, planned)
    # The second moment of the rows is not that of the weighted loss.
    has_equal_weights = not isinstance(class_weight, BalancedWeights) and (
        class_weight is None or len(set(class_weight)) == 1
    )
    if mechanism != "auto":
        return _candidate(
            mechanism, C, rows, shape, loss_spec, with_hessian, is_whitened=has_equal_weights
        )
    perturbation = _candidate(alternative, C, rows, shape, loss_spec, with_hessian)
    gradient = _candidate(
        "gradient", C, rows, shape, loss_spec, with_hessian, is_whitened=has_equal_weights
    )
    margin = MIN_IMPROVEMENT[alternative] * shape.n_rows
    loss_factor = 1.0
    if gradient.rows.is_centered:
        margin = MIN_IMPROVEMENT_OF_CENTERED * shape.n_rows
        loss_factor = CENTERED_LOSS_FACTOR
    if isinstance(class_weight, BalancedWeights):
        margin *= BALANCED_MARGIN_FACTOR
    if alternative == "objective":
        gradient_loss = gradient.total_excess_loss
        perturbation_loss = perturbation.total_excess_loss
    else:
        gradient_loss = gradient.bounded_excess_loss
        perturbation_loss = perturbation.bounded_excess_loss
    is_better = loss_factor * gradient_loss + margin < perturbation_loss
    if is_better:
        return gradient
    return perturbation


def descent_candidate(
    rows,
    shape,
    loss_spec,
    requested=NESTEROV,
    min_alpha=0.0,
    *,
    is_centered=False,
    is_whitened=False,
    planned=None,
):
    """Return the candidate that uses noisy clipped gradients.

    Parameters
    ----------
    rows : RowsFit
    shape : TableShape
    loss_spec : LossSpec
    requested : Settings, default=NESTEROV
        Requested settings; settings that are None are chosen by the rule.
    min_alpha : float, default=0.0
        Lower bound on the L2 regularization strength of the mean loss. The strength is raised to
        the value that balances regularization and noise.
    is_centered : bool, default=False
        Whether rows may be centered; see `reserve_for_center`.
    is_whitened : bool, default=False
        Whether rows may be whitened if all settings are automatic; see `reserve_for_whitening`.
    planned : WeightsFit, default=None
        See `choose_mechanism`.

    Returns
    -------
    MechanismCandidate
    """
    n_rows = shape.n_rows
    if planned is not None:
        is_centered = False
        rows = rows.with_releases_of(planned.rows)
        requested = with_steps_of(requested, planned.weights.settings)
    problem = rows.sgd_problem(shape, loss_spec)
    settings = automatic_settings(problem, requested)
    whitened = None
    if is_whitened and planned is None and requested == NESTEROV:
        replaced = settings
        if min_alpha > settings.alpha:
            replaced = automatic_settings(problem, replace(requested, alpha=min_alpha))
        whitened = reserve_for_whitening(rows, shape, loss_spec, replaced, min_alpha)
    if whitened is not None:
        rows, problem, settings = whitened
        min_alpha = 0.0
    # Rows are centered only for a single output. With several outputs, centering weakened the
    # shrinkage of weights fitted to uninformative rows.
    has_one_output = loss_spec.loss.weights_shape == ()
    if rows.whitening is None and is_centered and has_one_output and settings.sampling == "full":
        rows = reserve_for_center(rows, shape)
        problem = rows.sgd_problem(shape, loss_spec)
        settings = automatic_settings(problem, requested)
    if min_alpha > settings.alpha:
        settings = automatic_settings(problem, replace(requested, alpha=min_alpha))
    if rows.norm_search is not None:
        # The clip is multiplied by the released norm, which is between 2**-100 and 2**100.
        check_within(settings.clip, "the clip that target_bounds lead to", 1e-19, 1e19)
    # The mean over the steps is as noisy as one release that costs as much as all of them together.
    noise_std = n_rows * release_noise(problem, settings.clip, settings.n_steps(n_rows))
    bounded_rows = rows.problem(loss_spec, shape)
    l2_reg_strength = n_rows * settings.alpha
    weights_norm = _planning.EXPECTED_WEIGHTS_NORM / rows.data_norm
    total_excess_loss = _planning.quadratic_excess(
        bounded_rows, l2_reg_strength, weights_norm, noise_std
    )
    if not 1e-50 <= settings.clip <= 1e50:
        # `ClippedSums` refuses such a clip.
        total_excess_loss = math.inf
    return MechanismCandidate(
        mechanism="gradient",
        rows=rows,
        problem=bounded_rows,
        total_excess_loss=total_excess_loss,
        penalty_cost=0.5 * weights_norm**2 * l2_reg_strength,
        plan=partial(plan_clipped_descent, problem, settings),
    )


def statistics_are_better(total_excess_loss, rows, shape, loss_spec, min_alpha):
    """Return True if sufficient statistics have a smaller expected loss than noisy gradients.

    They are compared with gradients of rows that are not whitened, even if a fit with gradients
    would whiten its rows: sufficient statistics take a small part of the time, and where there is
    so little noise that they are better than these gradients, whitening hardly decreases the loss.

    Parameters
    ----------
    total_excess_loss : float
        Expected loss of sufficient statistics, as in `MechanismCandidate`.
    rows : RowsFit
        The rows of a fit with gradients.
    shape, loss_spec, min_alpha
        As for `descent_candidate`.

    Returns
    -------
    bool
    """
    gradients = descent_candidate(rows, shape, loss_spec, min_alpha=min_alpha)
    return total_excess_loss < gradients.bounded_excess_loss


def with_steps_of(requested, settings):
    """Return the requested settings, with batches and number of passes taken from others."""
    return replace(
        requested,
        sampling=settings.sampling,
        batch_size=settings.batch_size,
        max_iter=settings.max_iter,
    )


def _candidate(
    mechanism, C, rows, shape, loss_spec, with_hessian, planned=None, *, is_whitened=False
):
    """Return the `MechanismCandidate` of one mechanism; see `choose_mechanism`.

    Parameters
    ----------
    mechanism : {"gradient", "objective", "output"}
    C : float or None
        Inverse regularization strength; None for an automatic one.
    rows : RowsFit
    shape : TableShape
    loss_spec : LossSpec
    with_hessian : bool
        True if a fraction of the budget is for the Hessian.
    planned : WeightsFit, default=None
        A fit whose batches and number of steps are used by noisy gradients.
    is_whitened : bool, default=False
        True to plan noisy gradients on whitened rows.
    """
    guarantee = rows.remaining
    if with_hessian:
        guarantee, _ = split_guarantee(mechanism, guarantee)
    if mechanism == "gradient":
        alpha = None
        if C is not None:
            alpha = 1.0 / (shape.n_rows * C)
        requested = replace(NESTEROV, alpha=alpha, intercept_l2_reg=alpha)
        if with_hessian:
            # The standard errors hold only for unclipped gradients over all rows.
            requested = replace(requested, sampling="full")
            loss_spec = replace(loss_spec, min_clip_fraction=2.0, shrinkage_residual=0.0)
        rows = replace(rows, remaining=guarantee)
        is_centered = C is None and not with_hessian
        return descent_candidate(
            rows,
            shape,
            loss_spec,
            requested,
            is_centered=is_centered,
            is_whitened=is_centered and is_whitened,
            planned=planned,
        )
    problem = rows.problem(loss_spec, shape)
    weights_norm = _planning.EXPECTED_WEIGHTS_NORM / rows.data_norm
    if mechanism == "output":
        if C is None:
            balanced_norm = _output_perturbation.BALANCED_WEIGHTS_NORM / rows.data_norm
            C = _output_perturbation.automatic_C(problem, balanced_norm, guarantee)
        total_excess_loss = _output_perturbation.expected_excess(
            problem, C, weights_norm, guarantee
        )
        plan = partial(_output_perturbation.plan_output_perturbation, problem, C, guarantee)
    else:
        quadratic = None
        if C is None:
            balanced_norm = _objective_perturbation.BALANCED_WEIGHTS_NORM / rows.data_norm
            C = _objective_perturbation.automatic_C(problem, balanced_norm, guarantee)
            # The automatic C needs no additional quadratic term.
            quadratic = 1.0
        total_excess_loss = _objective_perturbation.expected_excess(
            problem, C, weights_norm, guarantee, quadratic
        )
        plan = partial(
            _objective_perturbation.plan_objective_perturbation, problem, C, guarantee, quadratic
        )
    return MechanismCandidate(
        mechanism=mechanism,
        rows=rows,
        problem=problem,
        total_excess_loss=total_excess_loss,
        penalty_cost=0.5 * weights_norm**2 / C,
        plan=plan,
    )
