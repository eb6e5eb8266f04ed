"""Released metrics: numbers and arrays with intervals."""

from dataclasses import dataclass

import numpy as np

from skdp.utils._values import FrozenValue


class NoisyScore(float):
    """A released metric: a number with two 95 % intervals.

    It is a `float` and can be used as one. It cannot be changed.

    Parameters
    ----------
    value : float
        The released value.
    name : str
        Name of the metric, as in scikit-learn.
    noise_std : float
        Standard deviation of the noise.
    std : float
        Standard deviation of noise and sampling together.
    noise_interval : tuple of (low, high)
        Interval for the metric of the raw rows, which reflects only the noise.
    interval : tuple of (low, high)
        Interval for the metric of the population from which the rows were drawn, which reflects
        noise and sampling. If the privacy unit is a person, each person counts as one draw.

    Examples
    --------
    >>> from skdp.metrics import dp_accuracy_score
    >>> score = dp_accuracy_score([0, 1, 1, 0] * 100, [0, 1, 1, 1] * 100, epsilon=1.0)
    >>> low, high = score.noise_interval
    >>> bool(low <= score <= high)
    True
    """

    __slots__ = ("_fields",)

    def __new__(cls, value, *, name, noise_std, std, noise_interval, interval):
        self = super().__new__(cls, value)
        fields = {
            "name": name,
            "noise_std": float(noise_std),
            "std": float(std),
            "noise_interval": tuple(map(float, noise_interval)),
            "interval": tuple(map(float, interval)),
        }
        object.__setattr__(self, "_fields", fields)
        return self

    def __setattr__(self, name, value):
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __delattr__(self, name):
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __reduce__(self):
        return _restored_score, (float(self), self._fields)

    @property
    def name(self):
        """Name of the metric."""
        return self._fields["name"]

    @property
    def noise_std(self):
        """Standard deviation of the noise."""
        return self._fields["noise_std"]

    @property
    def std(self):
        """Standard deviation of noise and sampling together."""
        return self._fields["std"]

    @property
    def noise_interval(self):
        """Interval (low, high) for the metric of the raw rows."""
        return self._fields["noise_interval"]

    @property
    def interval(self):
        """Interval (low, high) for the metric of the population."""
        return self._fields["interval"]

    def to_dict(self):
        """Return the score as JSON values.

        Returns
        -------
        dict
        """
        fields = {name: value for name, value in self._fields.items() if name != "name"}
        return {"value": float(self)} | {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in fields.items()
        }

    def __repr__(self):
        return f"NoisyScore({self.name!r}, {self})"

    def __str__(self):
        return f"{float(self):.4g} ± {self.noise_std:.2g}"


def _restored_score(value, fields):
    return NoisyScore(value, **fields)


@dataclass(frozen=True, eq=False)
class NoisyConfusionMatrix(FrozenValue):
    """A released confusion matrix: counts with two 95 % intervals.

    ``numpy.asarray`` returns its counts. Rows are true labels and columns are predicted ones, as in
    scikit-learn.

    Parameters
    ----------
    counts : ndarray of shape (n_classes, n_classes)
        Noisy numbers of rows, or of persons, not negative.
    classes : ndarray of shape (n_classes,)
        The labels.
    noise_std : float
        Standard deviation of the noise in each count.
    noise_interval, interval : tuple of (low, high)
        Arrays of the shape of the counts, as in `NoisyScore`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_confusion_matrix
    >>> matrix = dp_confusion_matrix([0, 1] * 500, [0, 1] * 500)
    >>> np.asarray(matrix).shape
    (2, 2)
    """

    counts: np.ndarray
    classes: np.ndarray
    noise_std: float
    noise_interval: tuple
    interval: tuple

    def __array__(self, dtype=None, copy=None):
        return np.array(self.counts, dtype=dtype)

    def to_dict(self):
        """Return the matrix as JSON values.

        Returns
        -------
        dict
        """
        return {
            "classes": np.asarray(self.classes).tolist(),
            "counts": self.counts.tolist(),
            "noise_std": self.noise_std,
            "noise_interval": [side.tolist() for side in self.noise_interval],
            "interval": [side.tolist() for side in self.interval],
        }


@dataclass(frozen=True, eq=False)
class NoisyCurve(FrozenValue):
    """A released curve with two 95 % intervals for the height of each single point.

    It can be unpacked like the result of scikit-learn's function.

    Parameters
    ----------
    name : str
        Name of the curve.
    x, y : ndarray of shape (n_points,)
        False and true positive rates of a ROC curve; mean predicted probabilities and fractions of
        positives of a calibration curve.
    noise_interval, interval : tuple of (low, high)
        Intervals of `y`, as in `NoisyScore`.
    thresholds : ndarray of shape (n_points,), default=None
        Thresholds of a ROC curve: a row counts as positive if its score is at least the threshold.
    bin_edges : ndarray of shape (n_points + 1,), default=None
        Edges of the bins of a calibration curve. A bin contains its upper edge.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_roc_curve
    >>> scores = np.linspace(0.0, 1.0, 1000)
    >>> curve = dp_roc_curve(scores > 0.5, scores)
    >>> len(curve.x) == len(curve.y)
    True
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    noise_interval: tuple
    interval: tuple
    thresholds: np.ndarray | None = None
    bin_edges: np.ndarray | None = None

    def __iter__(self):
        if self.name == "calibration":
            # scikit-learn returns the heights first.
            return iter((self.y, self.x))
        return iter((self.x, self.y, self.thresholds))

    def to_dict(self):
        """Return the curve as JSON values.

        Returns
        -------
        dict
        """
        values = {
            "x": self.x.tolist(),
            "y": self.y.tolist(),
            "noise_interval": [side.tolist() for side in self.noise_interval],
            "interval": [side.tolist() for side in self.interval],
        }
        if self.thresholds is not None:
            # JSON has no infinite numbers.
            values["thresholds"] = [
                float(t) if np.isfinite(t) else None for t in self.thresholds.tolist()
            ]
        if self.bin_edges is not None:
            values["bin_edges"] = self.bin_edges.tolist()
        return values
