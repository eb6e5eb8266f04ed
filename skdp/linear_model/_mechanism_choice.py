"""Which mechanism a fit uses and with which regularisation, from public quantities alone."""

from skdp.linear_model import (
    _gradient_perturbation,
    _objective_perturbation,
    _output_perturbation,
)
from skdp.linear_model._planning import EXPECTED_WEIGHTS_NORM
from skdp.linear_model._standard_errors import split_guarantee

__all__ = ["MECHANISMS", "automatic_fit", "plan_fit"]

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


def automatic_fit(mechanism, C, table, data_norm, guarantee, with_hessian=False):
    """Return the mechanism, C and the summed loss that they are expected to cost.

    Parameters
    ----------
    mechanism : {"auto", "output", "objective", "gradient"}
        "auto" is "objective" or, for delta > 0, "gradient", whichever is expected to cost less.
        It is not "output": noise on the gradient reaches weights divided by the curvature plus
        the regularisation, noise on the minimiser is made for the regularisation alone.
    C : float or "auto"
        "auto" is the C at which regularisation and noise are expected to cost least together.
    table : tuple
        The loss, the numbers of rows and features and the bound on a row's norm.
    data_norm : float
    guarantee : tuple
        Epsilon, delta and the relation.
    with_hessian : bool, default=False
        Whether a share of the guarantee goes to the release of a Hessian.

    Returns
    -------
    mechanism : str
    C : float
    excess : float
    """
    weights_norm = EXPECTED_WEIGHTS_NORM / data_norm
    names = [mechanism]
    if mechanism == "auto":
        names = ["objective", "gradient"] if guarantee[1] > 0.0 else ["objective"]
    choices = []
    for name in names:
        _, automatic_C, expected_excess = MECHANISMS[name]
        left = split_guarantee(name, guarantee)[0] if with_hessian else guarantee
        own = automatic_C(*table, weights_norm, *left) if C == "auto" else C
        choices.append((name, own, expected_excess(*table, own, weights_norm, *left)))
    return min(choices, key=lambda choice: choice[2])


def plan_fit(mechanism, table, C, guarantee):
    """Return the plan of a fit, which knows how to run it and what it costs.

    Parameters
    ----------
    mechanism : {"output", "objective", "gradient"}
    table, guarantee : tuple
        As in `automatic_fit`.
    C : float
    """
    return MECHANISMS[mechanism][0](*table, C, *guarantee)
