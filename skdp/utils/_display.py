"""Base class of displays."""

from abc import ABC, abstractmethod


class Display(ABC):
    """Base class of displays, which draw on matplotlib axes like scikit-learn's displays."""

    _size = None

    def __repr__(self):
        return f"{type(self).__name__} of skdp; its picture is `figure_`"

    def plot(self, ax=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        Display
            The display itself, with `ax_`, `figure_` and the artists that its class lists.
        """
        if ax is None:
            ax = self._new_axes()
        self._draw(ax)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _new_axes(self):
        """Return the axes of a new figure."""
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=self._size, layout="constrained")
        return ax

    @abstractmethod
    def _draw(self, ax):
        """Draw on axes, and set the artists as attributes."""


def text_color(ax):
    """Return the color of the axes' text, because black lines would be invisible in a dark style.

    Parameters
    ----------
    ax : matplotlib Axes
    """
    return ax.xaxis.label.get_color()
