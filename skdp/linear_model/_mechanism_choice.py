"""Which mechanism a fit uses and with which regularisation, from public quantities alone."""

from dataclasses import dataclass

from skdp.accounting import Guarantee
from skdp.linear_model import _gradient_perturbation, _objective_perturbation, _output_perturbation
from skdp.linear_model._planning import EXPECTED_WEIGHTS_NORM
from skdp.linear_model._standard_errors import HessianShare, split_guarantee

# Each with the plan, the automatic C and the expected excess loss.
MECHANISMS = {
    "output": (
        _output_perturbation.plan_output_perturbation,
        _output_perturbation.balanced_C,
        _output_perturbation.expected_excess,
    ),
    "objective": (
        _objective_perturbation.plan_objective_perturbation,
        _objective_perturbation.objective_C,
        _objective_perturbation.expected_excess,
    ),
    "gradient": (
        _gradient_perturbation.plan_gradient_perturbation,
        _gradient_perturbation.gradient_C,
        _gradient_perturbation.expected_excess,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How a fit makes its weights, and what that is expected to cost.

    Parameters
    ----------
    mechanism : {"output", "objective", "gradient"}
    C : float
    guarantee : Guarantee
        Of the weights.
    hessian : HessianShare or None
        None without a Hessian.
    excess : float
        The summed loss expected above that of weights of an expected norm.
    """

    mechanism: str
    C: float
    guarantee: Guarantee
    hessian: HessianShare | None
    excess: float


def choose_mechanism(mechanism, C, problem, rows, with_hessian=False):
    """Return the mechanism and C that are asked for or expected to cost least.

    Parameters
    ----------
    mechanism : {"auto", "output", "objective", "gradient"}
        "auto" is "objective" or, for delta > 0, "gradient", whichever is expected to cost less.
        It is not "output": noise on the gradient reaches weights divided by the curvature plus
        the regularisation, noise on the minimiser is made for the regularisation alone.
    C : float or None
        None is the C at which regularisation and noise are expected to cost least together.
    problem : Problem
    rows : RowPlan
        With the guarantee that is left for the weights.
    with_hessian : bool, default=False
        Whether a share of the guarantee goes to the release of a Hessian.

    Returns
    -------
    Choice
    """
    weights_norm = EXPECTED_WEIGHTS_NORM / rows.data_norm
    names = [mechanism]
    if mechanism == "auto":
        names = ["objective", "gradient"] if rows.left.delta > 0.0 else ["objective"]
    choices = []
    for name in names:
        _, automatic_C, expected_excess = MECHANISMS[name]
        own, hessian = split_guarantee(name, rows.left) if with_hessian else (rows.left, None)
        chosen = automatic_C(problem, weights_norm, own) if C is None else C
        extra = _extra(name, C is None)
        excess = expected_excess(problem, chosen, weights_norm, own, **extra)
        shares = {"guarantee": own, "hessian": hessian}
        choices.append(Choice(mechanism=name, C=chosen, excess=excess, **shares))
    return min(choices, key=lambda choice: choice.excess)


def _extra(mechanism, automatic):
    """Return what else a plan is made from: an automatic C leaves no quadratic term to add."""
    return {"quadratic": 1.0} if automatic and mechanism == "objective" else {}


def plan_weights(mechanism, problem, C, guarantee, automatic=False):
    """Return the plan of the weights, which knows how to make them and what they cost.

    Parameters
    ----------
    mechanism : {"output", "objective", "gradient"}
    problem : Problem
    C : float
    guarantee : Guarantee
        Of the weights.
    automatic : bool, default=False
        Whether C is that of `choose_mechanism` for the same guarantee and C=None.
    """
    return MECHANISMS[mechanism][0](problem, C, guarantee, **_extra(mechanism, automatic))
