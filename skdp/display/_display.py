"""Base class of displays."""

from abc import ABC, abstractmethod


class Display(ABC):
    """Base class of displays, which draw on matplotlib axes like scikit-learn's displays."""

    _size = None

    def plot(self, ax=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure.

        Returns
        -------
        Display
            The display itself, with `ax_`, `figure_` and the artists that its class lists.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=self._size, layout="constrained")
        self._draw(ax)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    @abstractmethod
    def _draw(self, ax):
        """Draw on axes, and set the artists as attributes."""
