"""Which mechanism a fit uses and with which regularization, from public quantities alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from skdp._sgd._defaults import Settings, automatic_settings, release_noise
from skdp.linear_model import _objective_perturbation, _output_perturbation, _planning
from skdp.linear_model._clipped_descent import plan_clipped_descent
from skdp.linear_model._standard_errors import split_guarantee
from skdp.utils._validation import check_within

NESTEROV = Settings("nesterov")
MECHANISMS = ("output", "objective", "gradient")

# "auto" takes gradients where they are expected to save more than so many nats a row: they are
# slower, and the better the more noise there is. The noise of output perturbation is not reduced
# by curvature.
SAVED = {"objective": 0.02, "output": 0.001}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How a fit makes its weights, and what that is expected to cost.

    Parameters
    ----------
    mechanism : {"output", "objective", "gradient"}
    problem : Problem
    excess : float
        The summed loss expected above that of weights of an expected norm.
    regularized : float
        The part of it that regularization costs at most.
    plan : callable
        Returns the plan of the weights, which knows how to make them and what they cost.
    """

    mechanism: str
    problem: _planning.Problem
    excess: float
    regularized: float
    plan: Callable[[], _planning.Perturbation]

    @property
    def expected(self):
        """The excess where regularization costs no more than the loss of weights of 0."""
        lost = self.problem.n_rows * self.problem.loss.value_at_zero()
        return self.excess - max(0.0, self.regularized - lost)


def choose_mechanism(mechanism, C, rows, shape, expected, with_hessian=False, rival="objective"):
    """Return the mechanism and C that are asked for or expected to cost least.

    Parameters
    ----------
    mechanism : {"auto", "output", "objective", "gradient"}
        "auto" is the `rival`, or "gradient" if that is expected to cost clearly less.
    C : float or None
        None is the C at which regularization and noise are expected to cost least together.
    rows : RowPlan
        With the guarantee that is left for the weights.
    shape : TableShape
    expected : Task
    with_hessian : bool, default=False
        Whether a share of the guarantee goes to the release of a Hessian.
    rival : {"objective", "output"}, default="objective"
        The perturbation that "auto" compares with gradients. It is that of the output only where
        that of the objective is not proved for the loss: noise on the gradient reaches weights
        divided by the curvature plus the regularization, noise on the minimizer is made for the
        regularization alone.

    Returns
    -------
    Choice
    """
    names = (rival, "gradient") if mechanism == "auto" else (mechanism,)
    choices = [_choice(name, C, rows, shape, expected, with_hessian) for name in names]
    cost = attrgetter("excess" if rival == "objective" else "expected")
    saved = {"gradient": SAVED[rival] * shape.n_rows}
    return min(choices, key=lambda choice: cost(choice) + saved.get(choice.mechanism, 0.0))


def descent_choice(rows, shape, expected, given=NESTEROV, least_alpha=0.0):
    """Return the `Choice` of clipped gradients.

    Parameters
    ----------
    rows : RowPlan
    shape : TableShape
    expected : Task
    given : Settings, default=NESTEROV
        What is left to the rule is None.
    least_alpha : float, default=0.0
        The strength of the penalty on the mean loss, which is raised to the one that balances
        regularization against noise.
    """
    problem = rows.sgd_problem(shape, expected)
    n_rows = shape.n_rows
    settings = automatic_settings(problem, given)
    if least_alpha > settings.alpha:
        settings = automatic_settings(problem, replace(given, alpha=least_alpha))
    if rows.search is not None:
        # The engine takes it times any norm that can be found, 2**-100 to 2**100.
        check_within(settings.clip, "the clip that target_bounds lead to", 1e-19, 1e19)
    # The average over the steps has the noise of one release that is worth all of them.
    noise = n_rows * release_noise(problem, settings.clip, settings.n_steps(n_rows))
    of_rows = rows.problem(expected, shape)
    strength = n_rows * settings.alpha
    weights_norm = _planning.EXPECTED_WEIGHTS_NORM / rows.data_norm
    excess = _planning.quadratic_excess(of_rows, strength, weights_norm, noise)
    return Choice(
        mechanism="gradient",
        problem=of_rows,
        # The engine takes no other clips.
        excess=excess if 1e-50 <= settings.clip <= 1e50 else math.inf,
        regularized=0.5 * weights_norm**2 * strength,
        plan=partial(plan_clipped_descent, problem, settings),
    )


def _choice(name, C, rows, shape, expected, with_hessian):
    own = split_guarantee(name, rows.left)[0] if with_hessian else rows.left
    if name == "gradient":
        alpha = None if C is None else 1.0 / (shape.n_rows * C)
        given = replace(NESTEROV, alpha=alpha, tie=alpha)
        if with_hessian:
            # Its standard errors are those of gradients of all rows that nothing cuts.
            given = replace(given, sampling="full")
            expected = replace(expected, least_clip=2.0, checked=0.0)
        return descent_choice(replace(rows, left=own), shape, expected, given)
    functions = {"output": _output_perturbation, "objective": _objective_perturbation}[name]
    problem = rows.problem(expected, shape)
    # An automatic C leaves no quadratic term to add.
    extra = {"quadratic": 1.0} if C is None and name == "objective" else {}
    if C is None:
        C = functions.automatic_C(problem, functions.BALANCED_WEIGHTS_NORM / rows.data_norm, own)
    weights_norm = _planning.EXPECTED_WEIGHTS_NORM / rows.data_norm
    return Choice(
        mechanism=name,
        problem=problem,
        excess=functions.expected_excess(problem, C, weights_norm, own, **extra),
        regularized=0.5 * weights_norm**2 / C,
        plan=partial(getattr(functions, f"plan_{name}_perturbation"), problem, C, own, **extra),
    )
