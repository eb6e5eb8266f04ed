"""Display of a private evaluation: ROC curve, calibration curve and confusion matrix."""

import numpy as np

from skdp.utils._display import Display, text_color


class EvaluationDisplay(Display):
    """Display of a report of `skdp.dp_evaluate` or `skdp.dp_cross_validate`.

    Bands are 95 % intervals: the dark band is for the noise, the light band for noise and sampling.

    Parameters
    ----------
    report : skdp.model_selection.EvaluationReport
        The released metrics.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        One for each picture: the ROC curve, the calibration curve and the confusion matrix, if they
        are in the report, or the metrics of a regressor.
    figure_ : matplotlib Figure
        Figure that holds them.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression, dp_evaluate
    >>> from skdp.display import EvaluationDisplay
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> model = DPLogisticRegression(delta=1e-6).fit(X[:2500], y[:2500])
    >>> display = EvaluationDisplay(dp_evaluate(model, X[2500:], y[2500:]))
    >>> [draw.__name__ for draw in display.pictures]
    ['_draw_roc', '_draw_calibration', '_draw_confusion']
    """

    def __init__(self, report: object):
        self.report = report

    @property
    def pictures(self):
        """The functions that draw the pictures of the report, in order."""
        pictures = []
        if self.report.roc_curve_ is not None:
            pictures.append(self._draw_roc)
        if self.report.calibration_curve_ is not None:
            pictures.append(self._draw_calibration)
        if self.report.confusion_matrix_ is not None:
            pictures.append(self._draw_confusion)
        return pictures or [self._draw_scores]

    def plot(self, axes=None):
        """Draw the report.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            One for each of the `pictures`; None creates a new figure.

        Returns
        -------
        EvaluationDisplay
            The display itself, with `axes_` and `figure_`.

        Raises
        ------
        ValueError
            If the number of axes differs from the number of pictures.
        """
        pictures = self.pictures
        if axes is None:
            import matplotlib.pyplot as plt

            size = (4.6 * max(len(pictures), 1.5), 4.2)
            _, axes = plt.subplots(1, len(pictures), figsize=size, layout="constrained")
        axes = list(np.ravel(axes))
        if len(axes) != len(pictures):
            raise ValueError(f"axes must be {len(pictures)} axes, got {len(axes)}")
        for draw, ax in zip(pictures, axes, strict=True):
            draw(ax)
        self.axes_ = axes
        self.figure_ = axes[0].figure
        return self

    def _draw(self, ax):
        """Draw the first picture."""
        self.pictures[0](ax)

    def _draw_roc(self, ax):
        """Draw the ROC curve with its bands, and the diagonal of guesses."""
        curve = self.report.roc_curve_
        score = self.report.scores_.get("roc_auc")
        label = "ROC"
        if score is not None:
            label = f"AUC {score}"
        _bands(ax, curve)
        ax.plot(curve.x, curve.y, color="C0", label=label)
        ax.plot([0.0, 1.0], [0.0, 1.0], ":", color=text_color(ax), label="guessing")
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02))
        ax.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC curve")
        ax.legend(loc="lower right")

    def _draw_calibration(self, ax):
        """Draw the fraction of positives against the predicted probability, with intervals.

        The thin bar is the interval of noise and sampling, the thick bar that of the noise alone.
        """
        curve = self.report.calibration_curve_
        center = np.clip(curve.y, 0.0, 1.0)
        for (low, high), width, alpha in zip(
            (curve.interval, curve.noise_interval), (1.5, 4.0), (0.5, 0.5), strict=True
        ):
            ax.vlines(curve.x, low, high, color="C0", linewidth=width, alpha=alpha)
        ax.plot(curve.x, center, "o", color="C0", label="noisy fractions")
        ax.plot([0.0, 1.0], [0.0, 1.0], ":", color=text_color(ax), label="calibrated")
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02))
        ax.set(xlabel="predicted probability", ylabel="fraction of positives", title="Calibration")
        if self.report.roc_curve_ is None:
            ax.set(xlabel="probability of the predicted label", ylabel="fraction predicted right")
        ax.legend(loc="upper left")

    def _draw_confusion(self, ax):
        """Draw the noisy confusion matrix; colors are fractions of the rows of a true label."""
        matrix = self.report.confusion_matrix_
        counts = matrix.counts
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
        low, high = matrix.noise_interval
        for (i, j), count in np.ndenumerate(counts):
            text = f"{count:.0f}\n± {(high[i, j] - low[i, j]) / 2.0:.0f}"
            color = "black"
            if shares[i, j] > 0.5:
                color = "white"
            ax.text(j, i, text, ha="center", va="center", color=color)
        labels = [str(label) for label in np.asarray(matrix.classes).tolist()]
        ax.set_xticks(range(len(labels)), labels)
        ax.set_yticks(range(len(labels)), labels)
        ax.set(xlabel="predicted label", ylabel="true label", title="Confusion matrix")

    def _draw_scores(self, ax):
        """Draw one row per metric, with its intervals.

        The thin bar is the interval of noise and sampling, the thick bar that of the noise alone.
        """
        scores = {
            name: score
            for name, score in self.report.scores_.items()
            if name != "mean_squared_error" and np.isfinite(score.interval).all()
        }
        # Errors have the unit of the target, so each metric is drawn relative to its baseline, or
        # to itself.
        for place, (name, score) in enumerate(scores.items()):
            unit = 1.0
            if name != "r2":
                unit = self.report.baselines_.get(name) or float(score) or 1.0
            for interval, width in ((score.interval, 1.5), (score.noise_interval, 4.0)):
                ends = np.array(interval) / unit
                ax.plot(ends, [place, place], color="C0", linewidth=width, alpha=0.5)
            ax.plot(score / unit, place, "o", color="C0")
            ax.annotate(
                str(score), (score / unit, place), (0, 8), textcoords="offset points", ha="center"
            )
        ax.axvline(1.0, color=text_color(ax), linestyle=":")
        ax.set_yticks(range(len(scores)), [name.replace("_", " ") for name in scores])
        ax.margins(x=0.2)
        ax.set(ylim=(-0.6, len(scores) - 0.2), title="Metrics")
        ax.set_xlabel("R²; errors divided by that of guessing the mean, if it is known")


def _bands(ax, curve):
    """Draw the intervals of a ROC curve as bands over its false positive rate."""
    for (low, high), alpha in zip((curve.interval, curve.noise_interval), (0.15, 0.3), strict=True):
        # The intervals of neighboring points differ because of noise, so the band at each point is
        # the widest interval so far.
        low = np.maximum.accumulate(np.clip(low, 0.0, 1.0))
        high = np.maximum.accumulate(np.clip(high, 0.0, 1.0))
        ax.fill_between(
            curve.x,
            np.minimum(low, curve.y),
            np.maximum(high, curve.y),
            alpha=alpha,
            color="C0",
            linewidth=0.0,
        )
