"""Plans within bounds that are declared, or found privately in the same charge."""

from dataclasses import dataclass, replace

import numpy as np

from skdp.mechanisms._plan import MechanismPlan, one_charge
from skdp.stats._bounds import AUTO_SHARE, BoundsPlan, plan_search
from skdp.utils._sums import split_epsilon
from skdp.utils._validation import check_bounds, is_auto

__all__ = ["WithinBounds", "plan_within_bounds"]


@dataclass(frozen=True, eq=False, kw_only=True)
class WithinBounds(MechanismPlan):
    """Bounds, unless they are declared, then a release within them.

    Parameters
    ----------
    search : BoundsPlan or None
    main : plan
        With the bounds `low` and `high` that are declared, or others in their place; what it
        costs does not depend on them.
    mechanism : plan
        What is charged.
    """

    search: BoundsPlan | None
    main: object
    mechanism: object

    @property
    def size(self):
        """How many values the main plan releases together."""
        return self.main.size

    def check_size(self, size):
        self.main.check_size(size)

    def find(self, X, source):
        """Return the main plan with its bounds, which are released if they are not declared."""
        if self.search is None:
            return self.main
        return self.within(self.search.run(X, source))

    def run(self, X, source):
        """Release what the main plan releases, within bounds that are released first."""
        return self.find(X, source).run(X, source)

    def within(self, bounds):
        """Return the main plan with other bounds."""
        low, high = bounds
        return replace(self.main, low=low, high=high)


def plan_within_bounds(plan_main, bounds, shape, guarantee):
    """Plan a release within bounds of a table's columns.

    Parameters
    ----------
    plan_main : callable
        Of the keywords `low`, `high` and `guarantee`, what is left for it. What its plan costs
        must not depend on the bounds.
    bounds : "auto" or tuple of (low, high)
        "auto" spends a fifth of epsilon, and at most of delta, on bounds.
    shape : TableShape
    guarantee : Guarantee

    Returns
    -------
    WithinBounds

    Raises
    ------
    ValueError
        If the bounds are not as described, or epsilon is too small for so many columns.
    """
    search, left = None, guarantee
    if is_auto(bounds):
        first, rest = split_epsilon(guarantee.epsilon, AUTO_SHARE)
        search, left = plan_search(shape, replace(guarantee, epsilon=first))
        low, high = np.full(shape.n_columns, -1.0), np.full(shape.n_columns, 1.0)
        left = replace(guarantee, epsilon=rest, delta=left)
    else:
        low, high = check_bounds(bounds, shape.n_columns)
    main = plan_main(low=low, high=high, guarantee=left)
    main.check_size(main.size)
    return WithinBounds(search=search, main=main, mechanism=one_charge((search, main), guarantee))
