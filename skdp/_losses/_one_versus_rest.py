"""One two-class loss for each class against all others."""

from dataclasses import dataclass

import numpy as np

from skdp._losses._base import ClippableLoss


@dataclass(frozen=True)
class OneVersusRestLoss(ClippableLoss):
    """The sum over classes of a two-class loss of the class against the rest; y holds codes.

    Parameters
    ----------
    loss : ClippableLoss
        For two classes.
    n_classes : int
    """

    loss: ClippableLoss
    n_classes: int

    @property
    def weights_shape(self):
        return (self.n_classes,)

    @property
    def curvature_bound(self):
        return self.loss.curvature_bound

    def value(self, scores, y):
        return self.loss.value(scores, self._targets(y)).sum(axis=1)

    def residual(self, scores, y):
        return self.loss.residual(scores, self._targets(y))

    def _targets(self, y):
        return (y[:, None] == np.arange(self.n_classes)).astype(np.float64)
