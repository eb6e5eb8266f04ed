"""The bound on a row's norm: given, or found privately in the same charge."""

from dataclasses import dataclass

import numpy as np

from skdp._data._tables import block_size, read_block, row_blocks
from skdp.linear_model._rows import row_norms
from skdp.mechanisms import JointMechanism
from skdp.stats._bounds import AUTO_SHARE, NormPlan
from skdp.utils._shares import split_epsilon
from skdp.utils._validation import check_magnitude, is_auto

__all__ = ["NormSearch", "check_data_norm", "plan_norm"]


def check_data_norm(data_norm):
    """Return the bound that a fit is planned with: 1.0 for "auto", whose rows are divided by it."""
    if is_auto(data_norm):
        return 1.0
    return check_magnitude(data_norm, "data_norm")


@dataclass(frozen=True)
class NormSearch:
    """What finds the norm that rows are divided by; nothing if it was given.

    Parameters
    ----------
    plan : NormPlan or None
    epsilon : float
        What is left for the model.
    total : tuple of (float, float)
        The epsilon and delta of the fit.
    """

    plan: NormPlan | None
    epsilon: float
    total: tuple

    def joined(self, mechanism):
        """Return what is charged: the model's mechanism, after the search if there is one."""
        if self.plan is None:
            return mechanism
        return JointMechanism((self.plan, mechanism), *self.total)

    def run(self, X, source):
        """Return what to divide the rows by: the released norm, or 1."""
        if self.plan is None:
            return 1.0
        blocks = row_blocks(X.shape[0], block_size(X.shape[1]))
        # Whether a norm overflows is nobody's business.
        with np.errstate(over="ignore"):
            return self.plan.run((row_norms(read_block(X, rows)) for rows in blocks), source)


def plan_norm(data_norm, n_rows, epsilon, delta, relation):
    """Return the `NormSearch` of a fit: "auto" spends a fifth of epsilon."""
    if not is_auto(data_norm):
        return NormSearch(None, epsilon, (epsilon, delta))
    first, left = split_epsilon(epsilon, AUTO_SHARE)
    return NormSearch(NormPlan(n_rows, first, 0.0, relation), left, (epsilon, delta))
