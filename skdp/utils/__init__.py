"""Checks of parameters, and text that depends on the privacy unit."""

from skdp.utils._units import UnitText

__all__ = ["UnitText"]
