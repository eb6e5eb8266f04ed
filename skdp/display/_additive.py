"""Display of the terms of an additive model."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp.display._display import Display
from skdp.gam import _shapes
from skdp.gam._shapes import ShapeFunction
from skdp.utils._documents import escape_control
from skdp.utils._validation import check_integer

# Number of panels per row, of classes with distinct colors, and of bars in a panel.
N_PANEL_COLUMNS = 4
N_COLORS = 10
MAX_BARS = 12
# Fractions of a panel's height: the space below the curves for the noisy counts of rows, and the
# height of the largest count.
COUNT_SPACE = 0.22
COUNT_HEIGHT = 0.15
# A single value with many rows has a bin that is too narrow to be seen, so it is drawn as a dot: a
# bin below this fraction of the panel's width and above this multiple of the median density.
MAX_DOT_WIDTH = 0.01
MIN_DOT_DENSITY = 5.0
# Half the height of an error band in standard errors. Chosen so that bands cover the values that the
# steps give without noise in 93 to 99 % of cells (docs/benchmarks/bands.py).
BAND_WIDTH = 2.25
COUNT_STYLE = {"color": "0.5", "alpha": 0.4}
ROTATED_TEXT = {"rotation": 50, "ha": "right", "rotation_mode": "anchor"}


class AdditiveDisplay(Display):
    """Display of the curves, bars and tables of an additive model, the most important term first.

    Create it with `from_estimator`. It shows released values only, so it costs no budget. All
    panels have the same scale. The gray shapes at the bottom are the noisy counts of rows: where
    they are low, a curve rests on few rows. Dots are single values with many rows. Bars are the
    categories with the most rows, sorted by their values. Missing values are drawn beside a curve
    if they are at least 2 % of the rows. For a pair of columns and several classes, the table of
    the first class is drawn.

    Parameters
    ----------
    shapes : list of ShapeFunction
        The terms in the order of the panels. The last axis of their values is the axis of outputs.
    outputs : list of str
        Classes whose scores are the sums of the terms; "the target" for a regressor.
    names : dict of int to str
        Names of the columns, by column index.
    n_terms : int
        Number of terms of the model.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes that contain all panels.
    axes_ : list of matplotlib Axes
        One per term.
    figure_ : matplotlib Figure
        Figure that holds them.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveClassifier
    >>> from skdp.display import AdditiveDisplay
    >>> X = np.arange(2000)[:, None] % [100, 50]
    >>> model = DPAdditiveClassifier(bounds=(0, 100)).fit(X, X[:, 0] > 50)
    >>> display = AdditiveDisplay.from_estimator(model, max_terms=1)
    >>> [shape.name for shape in display.shapes], display.n_terms
    (['x0'], 2)
    """

    def __init__(
        self,
        shapes: Sequence[ShapeFunction],
        *,
        outputs: Sequence[str],
        names: dict[int, str],
        n_terms: int,
    ):
        self.shapes = shapes
        self.outputs = outputs
        self.names = names
        self.n_terms = n_terms

    @classmethod
    def from_estimator(cls, model, *, terms=None, max_terms=16, classes=None, ax=None):
        """Draw the terms of a fitted model.

        Parameters
        ----------
        model : DPAdditiveClassifier or DPAdditiveRegressor
            Fitted.
        terms : list of str or int, default=None
            Names of terms, or their indices in `shape_functions_`; None takes all.
        max_terms : int, default=16
            Maximum number of terms; the most important ones are drawn.
        classes : array-like, default=None
            The classes to draw; None takes the first ten.
        ax : matplotlib Axes, default=None
            Axes that are divided into panels; None makes a new figure.

        Returns
        -------
        AdditiveDisplay

        Raises
        ------
        ValueError
            If a term or class does not exist, or the list of them is empty.
        """
        if hasattr(model, "steps"):
            model = model.steps[-1][1]
        check_is_fitted(model)
        shapes = model.shape_functions_
        shown = list(range(len(shapes)))
        if terms is not None:
            shown = [_shapes.term_index(shapes, term) for term in terms]
        outputs = _shapes.output_names(model)
        drawn = outputs[:N_COLORS]
        if classes is not None:
            drawn = [str(label) for label in classes]
        if not (shown and drawn and set(drawn) <= set(outputs)):
            raise ValueError(
                f"terms and classes must name at least one each; the classes are {outputs}"
            )
        max_terms = check_integer(max_terms, "max_terms", 1)
        output_indices = [outputs.index(label) for label in drawn]
        panels = []
        for shape in _shapes.ranked([shapes[t] for t in shown], max_terms):
            # An axis of outputs is added, also for a single output.
            values = shape.values.reshape(*shape.counts.shape, -1)[..., output_indices]
            panels.append(replace(shape, values=values))
        names = {s.features[0]: s.name for s in shapes if len(s.features) == 1}
        return cls(panels, outputs=drawn, names=names, n_terms=len(shapes)).plot(ax=ax)

    @property
    def _size(self):
        n = len(self.shapes)
        return 1.0 + 3.0 * min(N_PANEL_COLUMNS, n), 0.8 + 2.6 * math.ceil(n / N_PANEL_COLUMNS)

    def _draw(self, ax):
        """Divide axes into panels, and draw one term in each."""
        n = len(self.shapes)
        has_classes = len(self.outputs) > 1
        shown = [s.values.reshape(s.counts.size, -1)[_shapes.shown_cells(s)] for s in self.shapes]
        low = min(values.min(initial=0.0) for values in shown)
        high = max(values.max(initial=0.0) for values in shown)
        height = (high - low) or 1.0
        ax.set_axis_off()
        subfigure = ax.figure.add_subfigure(ax.get_subplotspec())
        grid = subfigure.add_gridspec(math.ceil(n / N_PANEL_COLUMNS), min(N_PANEL_COLUMNS, n))
        self.axes_ = [subfigure.add_subplot(grid[i]) for i in range(n)]
        for panel, shape in zip(self.axes_, self.shapes, strict=True):
            panel.tick_params(labelsize="x-small")
            title = short_text(shape.name, 24)
            if len(shape.features) == 2:
                draw_table(panel, shape, max(-low, high) or 1.0)
                first, second = (short_text(self.names[j]) for j in shape.features)
                panel.set(xlabel=first, ylabel=second)
                title += f"\n{short_text(self.outputs[0])}" if has_classes else ""
            else:
                draw = draw_bars if shape.kinds == ("label",) else draw_curve
                title += draw(panel, shape)
                panel.axhline(0.0, color="0.5", linewidth=0.8)
                panel.set_ylim(low - COUNT_SPACE * height, high + 0.05 * height)
            panel.set_title(title, fontsize="medium")
        target = "the scores" if has_classes else f"the score of {short_text(self.outputs[0])}"
        title = f"What {n} of {self.n_terms} terms add to {target}; gray: rows"
        subfigure.suptitle(title, fontsize="medium")
        if has_classes:
            lines = [self.axes_[0].plot([], color=f"C{k}")[0] for k in range(len(self.outputs))]
            subfigure.legend(
                lines, map(short_text, self.outputs), loc="outside lower center", ncols=5
            )


def draw_curve(ax, shape):
    """Draw the steps of a number or a date, with missing values beside them; return no title."""
    from matplotlib import dates

    (edges,) = shape.edges
    # The last cell contains missing values.
    missing = shape.counts.size - 1
    ax.locator_params(axis="x", nbins=4)
    if shape.kinds == ("date",) and (days := _shapes.dates_of(edges)).dtype.kind == "M":
        edges = dates.date2num(days)
        locator = dates.AutoDateLocator(minticks=2, maxticks=6)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    widths = np.diff(edges)
    total_width = edges[-1] - edges[0]
    density = shape.counts[:-1] / widths
    median_density = max(np.median(density), 1e-300)
    # Clipped, as a single value with many rows would leave no height for the other bins.
    heights = COUNT_HEIGHT * np.minimum(density / (2.0 * median_density), 1.0)
    # Vertical positions are fractions of the panel's height.
    transform = ax.get_xaxis_transform()
    ax.stairs(heights, edges, fill=True, transform=transform, **COUNT_STYLE)
    is_dot = (widths < MAX_DOT_WIDTH * total_width) & (density > MIN_DOT_DENSITY * median_density)
    positions = (edges[:-1] + 0.5 * widths)[is_dot]
    dots = np.flatnonzero(is_dot)
    if missing in _shapes.shown_cells(shape):
        positions = np.append(positions, edges[-1] + 0.1 * total_width)
        dots = np.append(dots, missing)
        ax.text(
            positions[-1], -0.05, "missing", transform=transform, va="top", size=7, **ROTATED_TEXT
        )
    for k, values in enumerate(shape.values.T):
        ax.stairs(values[:-1], edges, baseline=None, color=f"C{k}", linewidth=1.5)
        ax.plot(positions, values[dots], "o", color=f"C{k}", markersize=3)
    return ""


def draw_bars(ax, shape):
    """Draw the categories with the most rows, as bars, or as points if there are several classes.

    Return the end of the title: the number of categories that are shown, if not all are.
    """
    (names,) = _shapes.cell_names(shape)
    shown = _shapes.shown_cells(shape, MAX_BARS)
    shown = shown[np.argsort(shape.values[shown, 0])]
    positions = np.arange(len(shown))
    heights = COUNT_HEIGHT * shape.counts[shown] / max(shape.counts.max(), 1.0)
    transform = ax.get_xaxis_transform()
    ax.bar(positions, heights, width=0.9, transform=transform, **COUNT_STYLE)
    if shape.values.shape[1] > 1:
        ax.plot(positions, shape.values[shown], "o", markersize=4)
    else:
        ax.bar(positions, shape.values[shown, 0], width=0.6, color="C0")
    ax.set_xticks(positions, [short_text(names[i], 18) for i in shown], **ROTATED_TEXT)
    n_all = len(_shapes.shown_cells(shape))
    return f", {len(shown)} of {n_all}" if len(shown) < n_all else ""


def draw_table(ax, shape, largest):
    """Draw the table of a pair of columns for the first output; the first column is horizontal."""
    first, second = map(np.unique, np.unravel_index(_shapes.shown_cells(shape), shape.counts.shape))
    values = shape.values[np.ix_(first, second, [0])][..., 0]
    colors = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
    picture = ax.imshow(values.T, origin="lower", aspect="auto", **colors)
    ax.figure.colorbar(picture, ax=ax).ax.tick_params(labelsize="x-small")
    ax.set_xticks(*ticks(shape, 0, first), **ROTATED_TEXT)
    ax.set_yticks(*ticks(shape, 1, second))


def ticks(shape, axis, shown):
    """Return the tick positions and labels of a table's axis: edges of bins, or cells."""
    kind = shape.kinds[axis]
    edges = shape.edges[axis]
    names = [short_text(name, 12) for name in _shapes.cell_names(shape)[axis]]
    if kind == "label":
        return np.arange(len(shown)), [names[i] for i in shown]
    places = np.arange(0, len(edges) - 1, 3)
    ends = _shapes.edge_names(kind, edges)
    missing = shown[shown == len(edges) - 1]
    return [*(places - 0.5), *missing], [*(ends[i] for i in places), *(names[i] for i in missing)]


def short_text(text, width=36):
    """Return text of the user in at most `width` characters, without matplotlib's math mode."""
    text = escape_control(text)
    half = width // 2
    short = text if len(text) <= width else f"{text[:half]}…{text[1 - half :]}"
    return short.replace("$", r"\$")
