"""What every picture does with matplotlib's axes."""

from abc import ABC, abstractmethod


class Display(ABC):
    """A picture that is drawn on axes, as scikit-learn's displays are."""

    _size = None

    def plot(self, ax=None):
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        Display
            Itself, with `ax_`, `figure_` and what was drawn, as the class lists it.
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
        """Draw it on axes and keep the artists."""
