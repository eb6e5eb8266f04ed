"""A loss that keeps the contract, others that break it in one way each, and unfinished ones."""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from skdp._optim._loss import BoundedLoss


@dataclass(frozen=True)
class WholeLoss(BoundedLoss):
    """The pseudo-Huber loss, c² (√(1 + (r / c)²) - 1) of r = s - y; its curvature is at most 1."""

    c: float
    target_bounds = (-1.0, 1.0)
    curvature_bound = 1.0
    loss_lipschitz = property(attrgetter("c"))

    @property
    def residual_error(self):
        return 4.0 * np.finfo(np.float64).eps * self.c

    def value_at_zero(self):
        return float(self.value(np.zeros(1), np.ones(1))[0])

    def value(self, scores, y):
        r = scores - y
        return self.c * r * (r / (self.c + np.hypot(self.c, r)))

    def residual(self, scores, y):
        r = scores - y
        return self.c * (r / np.hypot(self.c, r))

    def curvature(self, scores, y):
        return (self.c / np.hypot(self.c, scores - y)) ** 3


@dataclass(frozen=True)
class OverflowingLoss(WholeLoss):
    """Its slope falls back to 0 where a square overflows."""

    def residual(self, scores, y):
        r = scores - y
        return r / np.sqrt(1.0 + (r / self.c) ** 2)


@dataclass(frozen=True)
class NumberlessLoss(WholeLoss):
    """Its slope is no number where a square overflows."""

    def residual(self, scores, y):
        size = np.hypot(self.c, scores - y)
        return self.c * (scores - y) * size / size**2


@dataclass(frozen=True)
class InfiniteLoss(WholeLoss):
    """Its value overflows where it is a plain number."""

    def value(self, scores, y):
        r = scores - y
        return self.c * r**2 / (self.c + np.hypot(self.c, r))


@dataclass(frozen=True)
class CancellingLoss(WholeLoss):
    """Its value loses the digits that it has near the target."""

    def value(self, scores, y):
        return self.c * (np.hypot(self.c, scores - y) - self.c)


@dataclass(frozen=True)
class WastefulLoss(WholeLoss):
    """States a rounding error that is far from what it has."""

    residual_error = property(lambda self: 1e9 * np.finfo(np.float64).eps * self.c)


@dataclass(frozen=True)
class RoughLoss(WholeLoss):
    """States a rounding error that it exceeds."""

    residual_error = property(lambda self: 1e-3 * np.finfo(np.float64).eps * self.c)


@dataclass(frozen=True)
class SteepLoss(WholeLoss):
    """Has a slope of twice the bound."""

    loss_lipschitz = property(lambda self: 0.5 * self.c)


@dataclass(frozen=True)
class LooseLoss(WholeLoss):
    """Has a bound of twice the slope."""

    loss_lipschitz = property(lambda self: 2.0 * self.c)


@dataclass(frozen=True)
class CurvedLoss(WholeLoss):
    """Has a curvature of twice the bound."""

    curvature_bound = 0.5


@dataclass(frozen=True)
class FlatLoss(WholeLoss):
    """Says that it has half of its curvature."""

    def curvature(self, scores, y):
        return 0.5 * super().curvature(scores, y)


@dataclass(frozen=True)
class WrongLoss(WholeLoss):
    """Its residual is no derivative of its value."""

    def residual(self, scores, y):
        return 1.1 * super().residual(scores, y)


@dataclass(frozen=True)
class CrowdedLoss(WholeLoss):
    """A row's residual depends on the other rows."""

    def residual(self, scores, y):
        return super().residual(scores, y) + (0.0 if len(y) == 0 else 1e-9 * np.mean(scores))


@dataclass(frozen=True)
class SharingLoss(WholeLoss):
    """Works in the scores that it is given."""

    def residual(self, scores, y):
        scores -= y
        return self.c * (scores / np.hypot(self.c, scores))


@dataclass(frozen=True)
class CodedLoss(WholeLoss):
    """Takes the value of one target for that of all."""

    value_at_zero = BoundedLoss.value_at_zero


@dataclass(frozen=True)
class DentedLoss(WholeLoss):
    """Is not convex far from its target."""

    def residual(self, scores, y):
        r = scores - y
        return np.where(np.abs(r) > 9.0, 0.5, 1.0) * super().residual(scores, y)


@dataclass(frozen=True)
class ShiftedLoss(WholeLoss):
    """Is negative near its target."""

    def value(self, scores, y):
        return super().value(scores, y) - 1.0


def without(name):
    """Return the parts of a loss but for one."""
    return {
        part: value
        for part, value in vars(WholeLoss).items()
        if not part.startswith("__") and part != name
    } | {"__annotations__": {"c": float}, "__module__": __name__}


LEFT_OUT = "residual value curvature residual_error loss_lipschitz curvature_bound target_bounds"
UNFINISHED = {
    f"Without_{name}": type(f"Without_{name}", (BoundedLoss,), without(name))
    for name in LEFT_OUT.split()
}
globals().update(UNFINISHED)


class StrayLoss:
    """Is no loss of either kind."""


@dataclass(frozen=True)
class StrangeLoss(WholeLoss):
    """Has a parameter that nobody knows values of."""

    edges: tuple


@dataclass(frozen=True)
class RefusingLoss(WholeLoss):
    """Takes none of the values that it is tried with."""

    def __post_init__(self):
        raise ValueError("c must be 42")


HINDERED = {
    **{f"Without_{name}": f"it lacks {name}" for name in LEFT_OUT.split()},
    "StrayLoss": "neither ClippableLoss nor BoundedLoss",
    "StrangeLoss": "edges: tuple",
    "RefusingLoss": "c must be 42",
}
