"""One two-class loss for each class against all others."""

from dataclasses import dataclass

import numpy as np

__all__ = ["OneVersusRestLoss"]


@dataclass(frozen=True)
class OneVersusRestLoss:
    """The sum over classes of a two-class loss of the class against the rest; y holds codes.

    Parameters
    ----------
    loss : loss
        For two classes, whose residual takes arrays of any shape.
    n_classes : int
    """

    loss: object
    n_classes: int

    @property
    def weights_shape(self):
        return (self.n_classes,)

    @property
    def curvature_bound(self):
        return self.loss.curvature_bound

    def value(self, scores, y):
        """Return the summed loss; scores have shape (n_rows, n_classes), y (n_rows,)."""
        return self.loss.value(scores, self._targets(y))

    def residual(self, scores, y):
        """Return the derivative by each score, shape (n_rows, n_classes)."""
        return self.loss.residual(scores, self._targets(y))

    def _targets(self, y):
        return (y[:, None] == np.arange(self.n_classes)).astype(np.float64)
