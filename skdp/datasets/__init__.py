"""Made tables, to try things out on: no row of them is anybody's."""

from skdp.datasets._people import make_people

__all__ = ["make_people"]
