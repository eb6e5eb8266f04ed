"""Which noise a vector of sums or counts gets, from public quantities alone."""

import math

from skdp.mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism
from skdp.utils._validation import check_choice

__all__ = ["MECHANISMS", "additive_mechanism", "noise_deviation"]

MECHANISMS = ("auto", "laplace", "gaussian")


def additive_mechanism(name, epsilon, delta, l1, l2, size, integers=False):
    """Return the mechanism that adds noise to a vector.

    Parameters
    ----------
    name : {"auto", "laplace", "gaussian"}
        "auto" is the one whose noise has the smaller standard deviation.
    epsilon, delta : float
    l1, l2 : float
        Sensitivities of the whole vector.
    size : int
        Its length.
    integers : bool, default=False
        Whether it holds integers: Laplace noise is then discrete.

    Raises
    ------
    ValueError
        If the name is unknown, "gaussian" has no delta, or epsilon is too small for the vector.
    """
    check_choice(name, "mechanism", MECHANISMS)
    if name == "gaussian" and delta == 0.0:
        raise ValueError("mechanism='gaussian' needs delta > 0")
    choices = []
    if name != "gaussian":
        laplace = GeometricMechanism(epsilon, round(l1)) if integers else None
        choices.append(laplace or LaplaceMechanism(epsilon, l1))
    if name != "laplace" and delta > 0.0:
        choices.append(GaussianMechanism(epsilon, delta, l2))
    for mechanism in choices:
        mechanism.check_size(size)
    return min(choices, key=lambda mechanism: noise_deviation(mechanism, size))


def noise_deviation(mechanism, size):
    """Return the standard deviation of the noise in each of `size` values released together."""
    if isinstance(mechanism, GeometricMechanism):
        # Of the law with probabilities proportional to a**|x|, a = exp(-1 / scale).
        rate = 1.0 / mechanism.scale
        return math.sqrt(2.0 * math.exp(-rate)) / -math.expm1(-rate)
    root = 1.0 if isinstance(mechanism, GaussianMechanism) else math.sqrt(2.0)
    return root * mechanism.scale_for(size)
