"""Pictures of privacy. They need matplotlib: ``pip install "skdp[plot]"``."""

from skdp.display._composition import CompositionDisplay

__all__ = ["CompositionDisplay"]
