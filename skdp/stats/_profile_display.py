"""Picture of a table's description: a histogram per column, and the associations."""

import math

import numpy as np

from skdp.stats._profile import TableProfile
from skdp.utils._display import Display, text_color
from skdp.utils._documents import escape_control

# Number of panels side by side, and number of columns drawn by default.
N_PANEL_COLUMNS = 4
MAX_COLUMNS = 24
# Number of categories in a panel, and number of characters of their labels and of column names.
MAX_BARS = 8
MAX_LABEL = 16
# Size of a panel in inches, height of the table of associations per column, and its minimum.
PANEL_SIZE = (2.9, 2.1)
CELL_HEIGHT = 0.26
MIN_MATRIX_HEIGHT = 2.4
# Associations are written into the cells if the table has at most this many columns.
MAX_WRITTEN = 16
COLOR = "C0"


class ProfileDisplay(Display):
    """Display of a description of a table, from `dp_describe`.

    There is a panel for each column: the histogram of numbers, or the most frequent categories.
    Lines show the simultaneous 95 % band of the noise, which contains the counts of the raw rows in
    all bins of a panel with this probability. Below are the associations of pairs of columns; those
    not visible above chance and noise are blank.

    Parameters
    ----------
    profile : skdp.stats.TableProfile
        The description.
    columns : list of names, default=None
        Columns to draw; None draws the first 24.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        One for each column, then one for the associations, if they were released.
    figure_ : matplotlib Figure
        Figure that holds them.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp.display import ProfileDisplay
    >>> from skdp.stats import dp_describe
    >>> frame = pd.DataFrame({"age": np.random.default_rng(0).integers(17, 90, size=10_000)})
    >>> display = ProfileDisplay(dp_describe(frame, epsilon=1.0, bounds={"age": (17, 90)}))
    >>> display.columns
    ['age']
    """

    def __init__(self, profile: TableProfile, columns: list | None = None):
        self.profile = profile
        names = list(profile.columns)
        if columns is None:
            columns = names[:MAX_COLUMNS]
        unknown = [name for name in columns if name not in profile.columns]
        if unknown:
            raise ValueError(f"columns: the profile has no column {unknown[0]!r}")
        self.columns = list(columns)

    def plot(self, axes=None):
        """Draw the profile.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            One for each column, and one for the associations if they were released. None creates a
            new figure.

        Returns
        -------
        ProfileDisplay
            The display itself, with `axes_` and `figure_`.

        Raises
        ------
        ValueError
            If the number of axes is wrong.
        """
        n_axes = len(self.columns) + self._has_matrix
        if axes is None:
            axes = self._new_figure()
        else:
            axes = list(np.ravel(axes))
        if len(axes) != n_axes:
            raise ValueError(f"axes must be {n_axes} axes, got {len(axes)}")
        for name, ax in zip(self.columns, axes, strict=False):
            _draw_column(ax, self.profile.columns[name])
        if self._has_matrix:
            self._draw_associations(axes[-1])
        self.axes_ = axes
        self.figure_ = axes[0].get_figure(root=True)
        return self

    @property
    def _has_matrix(self):
        """True if the associations of the columns are drawn."""
        return bool(self.profile.associations) and len(self.columns) > 1

    def _new_figure(self):
        """Return the axes of a new figure: panels in rows, then one for the associations."""
        import matplotlib.pyplot as plt

        n_across = min(N_PANEL_COLUMNS, len(self.columns))
        n_rows = math.ceil(len(self.columns) / n_across)
        heights = [PANEL_SIZE[1]] * n_rows
        if self._has_matrix:
            heights.append(max(CELL_HEIGHT * len(self.columns) + 1.0, MIN_MATRIX_HEIGHT))
        width = PANEL_SIZE[0] * max(n_across, 2)
        figure = plt.figure(figsize=(width, sum(heights)), layout="constrained")
        # Long labels of the table below must not change the widths of the panels.
        panels = figure
        if self._has_matrix:
            panels, below = figure.subfigures(2, 1, height_ratios=[sum(heights[:-1]), heights[-1]])
        grid = panels.add_gridspec(n_rows, n_across)
        axes = []
        for i in range(len(self.columns)):
            axes.append(panels.add_subplot(grid[i // n_across, i % n_across]))
        if self._has_matrix:
            axes.append(below.add_subplot())
        return axes

    def _draw(self, ax):
        """Draw the first column."""
        _draw_column(ax, self.profile.columns[self.columns[0]])

    def _draw_associations(self, ax):
        """Draw the table of associations."""
        n = len(self.columns)
        positions = {name: i for i, name in enumerate(self.columns)}
        values = np.full((n, n), np.nan)
        for association in self.profile.associations:
            first, second = association.columns
            if first in positions and second in positions and association.is_visible:
                j, k = positions[first], positions[second]
                values[j, k] = values[k, j] = association.value
        image = ax.imshow(values, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        if n <= MAX_WRITTEN:
            for (i, j), value in np.ndenumerate(values):
                if np.isfinite(value):
                    color = "black"
                    if value > 0.55:
                        color = "white"
                    ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=color, size=7)
        labels = [_short(name) for name in self.columns]
        ax.set_xticks(range(n), labels, rotation=45, ha="right", size=8)
        ax.set_yticks(range(n), labels, size=8)
        ax.set_title("Associations visible above chance and noise", size=9)
        ax.figure.colorbar(image, ax=ax, label="0: independent, 1: determined", shrink=0.8)


def _draw_column(ax, column):
    """Draw the histogram or the categories of a column."""
    title = _short(column.name, 28)
    if column.missing > 3.0 * column.missing_std:
        title += f" ({100 * column.missing:.0f} % missing)"
    ax.set_title(title, size=9)
    ax.tick_params(labelsize=7)
    if column.kind == "label":
        _draw_categories(ax, column)
    else:
        _draw_histogram(ax, column.histogram)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _draw_histogram(ax, histogram):
    """Draw the counts of a numeric, date or duration column, and their bands, on axes `ax`."""
    import matplotlib.dates as mdates

    edges = histogram.edges
    if edges.dtype.kind == "m":
        edges = edges / np.timedelta64(1, "D")
        ax.set_xlabel("days", size=7)
    elif edges.dtype.kind == "M":
        edges = mdates.date2num(edges)
        locator = mdates.AutoDateLocator(maxticks=5)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator))
    ax.stairs(histogram.counts, edges, fill=True, color=COLOR, alpha=0.75)
    centers = 0.5 * (edges[1:] + edges[:-1])
    ax.vlines(centers, *histogram.band, color=text_color(ax), linewidth=0.9)
    ax.set_ylim(bottom=0.0)
    ax.set_xlim(edges[0], edges[-1])
    ax.locator_params(axis="y", nbins=4)
    if histogram.edges.dtype.kind != "M":
        ax.locator_params(axis="x", nbins=5)


def _draw_categories(ax, column):
    """Draw the counts of the most frequent categories, and their bands, on axes `ax`."""
    if not column.categories:
        ax.text(0.5, 0.5, "no category is visible", ha="center", transform=ax.transAxes, size=8)
        ax.set_axis_off()
        return
    labels = [_short(category) for category in column.categories[:MAX_BARS]]
    counts = column.counts[:MAX_BARS]
    positions = np.arange(len(labels))
    ax.barh(positions, counts, color=COLOR, alpha=0.75)
    ax.hlines(positions, *column.band[:, :MAX_BARS], color=text_color(ax), linewidth=0.9)
    ax.set_yticks(positions, labels, size=7)
    ax.invert_yaxis()
    ax.set_xlim(left=0.0)
    ax.locator_params(axis="x", nbins=4)
    n_more = len(column.categories) - len(labels)
    if n_more > 0:
        ax.set_xlabel(f"and {n_more} more", size=7)


def _short(text, length=MAX_LABEL):
    """Return printable text of limited length that is not parsed as mathematics."""
    text = escape_control(text).replace("$", r"\$")
    if len(text) <= length:
        return text
    return text[: length - 1] + "…"
