"""Metrics of several classes, computed from released counts."""

from dataclasses import dataclass

import numpy as np

from skdp.metrics._binary import roc_auc
from skdp.metrics._counts import HIDDEN_STD, ReleasedMatrix, ratio
from skdp.metrics._values import NoisyCurve, NoisyScore
from skdp.utils._values import FrozenValue


def one_against_rest_auc(blocks):
    """Return the mean over classes of the area under the ROC curve of the class against the rest.

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
    # The blocks have independent noise, but the same rows. Their sampling errors are added as if
    # they were perfectly correlated, which gives at least the true standard deviation.
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
        """Return the fraction of right predictions in each bin of the top label's probability."""

        def fractions(counts):
            return ratio(counts[..., 1, :], counts.sum(axis=-2))

        counts = self.matrix.counts
        n_bins = counts.shape[-1]
        errors = self.matrix.errors(fractions)
        noise_interval, interval = errors.intervals(fractions(counts), 0.0, 1.0)
        is_hidden = counts.sum(axis=0) < HIDDEN_STD * self.matrix.count_std * np.sqrt(2.0)
        intervals = []
        for low, high in (noise_interval, interval):
            intervals.append((np.where(is_hidden, 0.0, low), np.where(is_hidden, 1.0, high)))
        return NoisyCurve(
            name="calibration",
            x=(np.arange(n_bins) + 0.5) / n_bins,
            y=np.clip(fractions(counts), 0.0, 1.0),
            noise_interval=intervals[0],
            interval=intervals[1],
        )
