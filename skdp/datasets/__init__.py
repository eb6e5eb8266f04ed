"""Made tables, to try things out on: no row of them is anybody's."""

from skdp.datasets._customers import make_customers

__all__ = ["make_customers"]
