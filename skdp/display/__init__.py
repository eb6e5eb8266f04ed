"""Pictures of privacy. They need matplotlib: ``pip install "skdp[plot]"``."""

from skdp.display._budget import BudgetDisplay
from skdp.display._composition import CompositionDisplay

__all__ = ["BudgetDisplay", "CompositionDisplay"]
