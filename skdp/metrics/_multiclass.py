"""Metrics of several classes, computed from released counts."""

from dataclasses import dataclass

import numpy as np

from skdp.metrics._binary import calibration_of_bins, roc_auc
from skdp.metrics._counts import ReleasedMatrix, merge_cells
from skdp.metrics._values import NoisyScore
from skdp.utils._values import FrozenValue


def one_against_rest_auc(blocks):
    """Return the mean, over classes, of the area under the ROC curve of a class against the rest.

    Parameters
    ----------
    blocks : list of ReleasedMatrix
        One block of counts of shape (2, n_cells) for each class.

    Returns
    -------
    NoisyScore
    """
    scores = [block.score("roc_auc_ovr", roc_auc) for block in blocks]
    value = float(np.mean(scores))
    # The blocks have independent noise but count the same rows. Their sampling errors are added as
    # if perfectly correlated, so the standard deviation is at least the true one.
    noise_std = float(np.sqrt(np.sum([score.noise_std**2 for score in scores]))) / len(scores)
    sampling = [np.sqrt(max(score.std**2 - score.noise_std**2, 0.0)) for score in scores]
    std = float(np.hypot(noise_std, np.mean(sampling)))
    intervals = []
    for deviation in (noise_std, std):
        low, high = np.clip([value - 1.96 * deviation, value + 1.96 * deviation], 0.0, 1.0)
        intervals.append((low, high))
    return NoisyScore(
        value,
        name="roc_auc_ovr",
        noise_std=noise_std,
        std=std,
        noise_interval=intervals[0],
        interval=intervals[1],
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TopLabelCells(FrozenValue):
    """Released counts by correctness and bin of the probability of the predicted label.

    Parameters
    ----------
    matrix : ReleasedMatrix
        Counts of shape (2, n_bins): wrong predictions, then right ones.
    """

    matrix: ReleasedMatrix

    def calibration_curve(self):
        """Return the fraction of right predictions by the top label's probability.

        Neighboring bins are merged until they have more rows than noise.
        """
        n_cells = self.matrix.counts.shape[-1]
        starts = merge_cells(self.matrix.counts.sum(axis=0), self.matrix.count_std)
        return calibration_of_bins(self.matrix, starts, np.arange(1, n_cells) / n_cells)
