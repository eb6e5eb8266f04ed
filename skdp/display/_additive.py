"""Display of the terms of an additive model."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp.gam import _shapes
from skdp.gam._shapes import ShapeFunction
from skdp.utils._display import Display
from skdp.utils._documents import escape_control
from skdp.utils._validation import check_integer

# Maximum numbers of panels side by side, of classes with distinct colors, of bars in a panel, and
# of terms that the last panel lists.
N_PANEL_COLUMNS = 4
N_COLORS = 10
MAX_BARS = 12
MAX_LISTED = 10
# A term has a panel if its importance is at least this fraction of the largest importance.
MIN_PANEL_IMPORTANCE = 0.05
# Number of tables that represent a term of three columns.
MAX_SLICES = 3
# Sizes of a panel, of the space between panels and of the left, right, top and bottom margins, in
# inches. They are fixed, because matplotlib's constrained layout draws all text several times.
PANEL_SIZE = (2.3, 1.7)
PANEL_SPACE = (0.5, 1.25)
MARGINS = (0.75, 0.2, 0.75, 1.0)
LEGEND_HEIGHT = 0.3
# Fractions of a panel's height: the space below the curves for the noisy row counts, and the height
# of the largest count.
COUNT_SPACE = 0.22
COUNT_HEIGHT = 0.15
# The bin of a single value with many rows is too narrow to be seen, so it is drawn as a dot: a
# bin below this fraction of the panel's width and above this multiple of the median density.
MAX_DOT_WIDTH = 0.01
MIN_DOT_DENSITY = 5.0
# Half the height of an error band in standard errors. It was chosen so that, in 93 to 99 % of
# cells, bands cover the values that the steps give without noise (docs/benchmarks/bands.py).
BAND_WIDTH = 2.25
# Gray color, and its opacity.
COUNT_COLOR = ("0.5", 0.4)
# Degrees by which the labels of bars are rotated.
LABEL_ROTATION = 50


class AdditiveDisplay(Display):
    """Display of the curves, bars and tables of an additive model, the most important term first.

    Create it with `from_estimator`. It shows only released values, so it costs no budget. All
    panels have the same scale, in log-odds or in units of the target (with the Poisson loss, of
    its logarithm). Bands and error bars show how much the noise added by the fit may have changed
    the values: 2.25 standard errors on either side. They do not include the sampling error. The
    gray shapes at the bottom are the noisy counts of rows: where they are low, a curve is based on
    few rows. Dots are single values with many rows. Bars are the categories with the most rows, in
    the order in which they were declared or found. Missing values are drawn next to a curve if they
    account for at least 2 % of the rows. A term of three columns is drawn as tables of two of them,
    one for each of the three cells of the third that have the most rows. For terms of several
    columns in a model with several classes, the table of the first class is drawn. Terms of little
    importance share the last panel.

    Parameters
    ----------
    shapes : list of ShapeFunction
        The terms in the order of the panels. The last axis of their values is that of the outputs.
    outputs : list of str
        Classes whose scores are the sums of the terms; "the target" for a regressor.
    names : dict of int to str
        Names of the columns, by column index.
    n_terms : int
        Number of terms in the model.
    unit : str, default="score"
        Unit of the values, used as the label of the vertical axes.
    rest : dict of str to float, default=None
        Importance of each term that has no panel, by its name.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes that contain all panels.
    axes_ : list of matplotlib Axes
        One per term.
    rest_ax_ : matplotlib Axes or None
        The last panel, which lists the terms of little importance.
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
        unit: str = "score",
        rest: dict[str, float] | None = None,
    ):
        self.shapes = shapes
        self.outputs = outputs
        self.names = names
        self.n_terms = n_terms
        self.unit = unit
        self.rest = rest

    def __repr__(self):
        return f"{type(self).__name__}: {self._title}"

    @classmethod
    def from_estimator(cls, model, *, terms=None, max_terms=11, classes=None, ax=None):
        """Draw the terms of a fitted model.

        Parameters
        ----------
        model : DPAdditiveClassifier or DPAdditiveRegressor
            Fitted model.
        terms : list of str or int, default=None
            Names of terms, or their indices in `shape_functions_`; each of them has a panel. If
            None, terms with at least 5 % of the largest importance have panels, and a last panel
            lists the others.
        max_terms : int, default=11
            Maximum number of terms with a panel; the most important terms are chosen.
        classes : array-like, default=None
            The classes to draw; None draws the first ten.
        ax : matplotlib Axes, default=None
            Axes that are divided into panels; None creates a new figure.

        Returns
        -------
        AdditiveDisplay

        Raises
        ------
        ValueError
            If a term or class does not exist, or if `terms` or `classes` is empty.
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
                f"terms and classes must each name at least one; the classes are {outputs}"
            )
        max_terms = check_integer(max_terms, "max_terms", 1)
        output_indices = [outputs.index(label) for label in drawn]
        ranked = _shapes.ranked([shapes[t] for t in shown], len(shown))
        n_panels = min(max_terms, len(ranked))
        rest = {}
        if terms is None:
            min_importance = MIN_PANEL_IMPORTANCE * _shapes.importance(ranked[0])
            n_important = sum(_shapes.importance(shape) >= min_importance for shape in ranked)
            n_panels = min(n_panels, n_important)
            rest = {shape.name: _shapes.importance(shape) for shape in ranked[n_panels:]}
        panels = []
        for shape in ranked[:n_panels]:
            # Values and standard errors get a last axis for the outputs, even for a single output.
            by_output = (*shape.counts.shape, -1)
            standard_errors = shape.standard_errors
            if standard_errors is not None:
                standard_errors = standard_errors.reshape(by_output)[..., output_indices]
            values = shape.values.reshape(by_output)[..., output_indices]
            panels.append(replace(shape, values=values, standard_errors=standard_errors))
        names = {s.features[0]: s.name for s in shapes if len(s.features) == 1}
        return cls(
            panels, outputs=drawn, names=names, n_terms=len(shapes), unit=_unit(model), rest=rest
        ).plot(ax=ax)

    @property
    def _n_panels(self):
        return len(self.shapes) + bool(self.rest)

    @property
    def _grid(self):
        """Number of rows and of columns of panels."""
        return math.ceil(self._n_panels / N_PANEL_COLUMNS), min(N_PANEL_COLUMNS, self._n_panels)

    @property
    def _title(self):
        """Title of the figure: the number of terms drawn, and the output that they add to."""
        target = "the scores"
        if len(self.outputs) == 1:
            target = f"the score of {escape_control(self.outputs[0])}"
            if self.outputs[0] == "the target":
                target = "the prediction"
        n = len(self.shapes)
        return f"{n} of {self.n_terms} terms: what they add to {target}"

    def _new_axes(self):
        """Return the axes of a new figure that has the size of all panels."""
        import matplotlib.pyplot as plt

        n_rows, n_columns = self._grid
        left, right, top, bottom = MARGINS
        if len(self.outputs) > 1:
            top += LEGEND_HEIGHT
        width = n_columns * PANEL_SIZE[0] + (n_columns - 1) * PANEL_SPACE[0] + left + right
        height = n_rows * PANEL_SIZE[1] + (n_rows - 1) * PANEL_SPACE[1] + top + bottom
        figure = plt.figure(figsize=(width, height))
        figure.subplots_adjust(
            left=left / width,
            right=1.0 - right / width,
            top=1.0 - top / height,
            bottom=bottom / height,
        )
        return figure.add_subplot()

    def _draw(self, ax):
        """Divide axes into panels, and draw one term in each."""
        shown = [s.values.reshape(s.counts.size, -1)[_shapes.shown_cells(s)] for s in self.shapes]
        low = min(values.min(initial=0.0) for values in shown)
        high = max(values.max(initial=0.0) for values in shown)
        ax.set_axis_off()
        n_rows, n_columns = self._grid
        grid = ax.get_subplotspec().subgridspec(
            n_rows,
            n_columns,
            wspace=PANEL_SPACE[0] / PANEL_SIZE[0],
            hspace=PANEL_SPACE[1] / PANEL_SIZE[1],
        )
        self.axes_ = [ax.figure.add_subplot(grid[i]) for i in range(len(self.shapes))]
        self.rest_ax_ = None
        if self.rest:
            self.rest_ax_ = ax.figure.add_subplot(grid[len(self.shapes)])
        for i, (panel, shape) in enumerate(zip(self.axes_, self.shapes, strict=True)):
            panel.tick_params(labelsize="x-small")
            if len(shape.features) == 3:
                self._draw_triple(panel, shape, max(-low, high) or 1.0)
            elif len(shape.features) == 2:
                self._draw_pair(panel, shape, max(-low, high) or 1.0)
            else:
                self._draw_column(panel, shape, low, high, is_leftmost=i % n_columns == 0)
        if self.rest:
            draw_rest(self.rest_ax_, self.rest)
        self._draw_title(ax)

    def _draw_pair(self, panel, shape, largest):
        """Draw a term of two columns; with several outputs, draw that of the first one."""
        draw_table(panel, shape, largest)
        first, second = (short_text(self.names[j], 18) for j in shape.features)
        panel.set_xlabel(first, fontsize="x-small")
        panel.set_ylabel(second, fontsize="x-small", labelpad=2)
        title = short_text(shape.name, 24)
        if len(self.outputs) > 1:
            title += f"\n{short_text(self.outputs[0])}"
        panel.set_title(title, fontsize="small")

    def _draw_triple(self, panel, shape, largest):
        """Draw a term of three columns as tables of the last two, for some cells of the first."""
        shape = shortest_first(shape)
        slices = slices_of(shape)
        grid = panel.get_subplotspec().subgridspec(1, len(slices), wspace=0.08)
        panel.set_axis_off()
        first, second, third = (short_text(self.names[j], 12) for j in shape.features)
        title = f"{short_text(shape.name, 24)}, by {first}"
        if len(self.outputs) > 1:
            title += f"\n{short_text(self.outputs[0])}"
        panel.set_title(title, fontsize="small", pad=14)
        for number, (name, table) in enumerate(slices):
            axes = panel.figure.add_subplot(grid[number])
            axes.tick_params(labelsize="xx-small")
            has_bar = number == len(slices) - 1
            draw_table(axes, table, largest, has_bar=has_bar)
            axes.set_title(name, fontsize="xx-small", pad=2)
            axes.set_xlabel(second, fontsize="xx-small")
            if number == 0:
                axes.set_ylabel(third, fontsize="x-small", labelpad=2)
            else:
                axes.tick_params(labelleft=False)

    def _draw_column(self, panel, shape, low, high, is_leftmost):
        """Draw a term of one column on the common scale, which the leftmost panel shows."""
        draw = draw_curve
        if shape.kinds == ("label",):
            draw = draw_bars
        title = short_text(shape.name, 24) + draw(panel, shape)
        panel.set_title(title, fontsize="small")
        panel.axhline(0.0, color="0.5", linewidth=0.8)
        height = (high - low) or 1.0
        panel.set_ylim(low - COUNT_SPACE * height, high + 0.08 * height)
        panel.locator_params(axis="y", nbins=5)
        if is_leftmost:
            panel.set_ylabel(self.unit, fontsize="small")
            panel.yaxis.set_major_formatter(tick_writer(max(-low, high)))
        else:
            panel.tick_params(labelleft=False)

    def _draw_title(self, ax):
        """Draw the title of all panels and, with several outputs, a legend."""
        title = f"{short_text(self._title, 90)}\ngray: rows"
        if any(shape.standard_errors is not None for shape in self.shapes):
            title += "; bands: noise of the fit"
        has_legend = len(self.outputs) > 1
        # Space between the title and the panels, in points; the legend and the panels' titles are
        # in it.
        ax.set_title(title, fontsize="medium", pad=44 if has_legend else 26)
        if has_legend:
            lines = [self.axes_[0].plot([], color=f"C{k}")[0] for k in range(len(self.outputs))]
            height = ax.get_position().height * ax.figure.get_size_inches()[1]
            ax.legend(
                lines,
                map(short_text, self.outputs),
                loc="lower center",
                # Above the titles of the first panels.
                bbox_to_anchor=(0.5, 1.0 + 0.2 / height),
                ncols=5,
                fontsize="x-small",
                frameon=False,
            )


def _unit(model):
    """Return the unit of a model's values: log-odds, or the unit of the target or its logarithm."""
    if getattr(model, "loss", None) == "poisson":
        return "log of the target"
    if not hasattr(model, "classes_"):
        return "units of the target"
    if len(model.classes_) == 2:
        return "log-odds"
    return "log-odds, by class"


def tick_writer(largest):
    """Return a function that formats the numbers on an axis up to `largest` for readers."""

    def write(value, position=None):
        """Return the text of a number; matplotlib also passes the position of the tick."""
        if largest >= 1e6 and value:
            return f"{value / 1e6:.4g} M"
        if largest >= 1e4:
            return f"{value:,.0f}"
        # Years and other numbers with up to four digits have no comma.
        return f"{value:.4g}"

    return write


def draw_rest(ax, importances):
    """List terms without a panel, each with a bar for its importance."""
    listed = list(importances.items())[:MAX_LISTED]
    positions = -np.arange(len(listed))
    sizes = [size for _, size in listed]
    ax.barh(positions, sizes, height=0.8, color=COUNT_COLOR)
    width = max(*sizes, 1e-300)
    for position, (name, size) in zip(positions, listed, strict=True):
        text = f" {short_text(name, 22)}: {size:.2g}"
        ax.text(0.0, position, text, va="center", fontsize="x-small")
    ax.set(xlim=(0.0, 1.05 * width), ylim=(0.6 - MAX_LISTED, 0.6), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    count = str(len(importances))
    if len(listed) < len(importances):
        count = f"{len(listed)} of {count}"
    ax.set_title(f"{count} further terms: mean size", fontsize="small")


def draw_curve(ax, shape):
    """Draw the steps of a number or date, with missing values beside them; return no title."""
    edges = _set_axis_of_edges(ax, shape)
    positions, dots = _draw_counts(ax, shape, edges)
    bands = band_of(shape)
    for k, values in enumerate(shape.values.T):
        if bands is not None:
            band = bands[:, k]
            ax.stairs(
                (values + band)[:-1],
                edges,
                baseline=(values - band)[:-1],
                fill=True,
                color=f"C{k}",
                alpha=0.25,
                linewidth=0.0,
            )
            draw_error_bars(ax, positions, values[dots], band[dots], color=f"C{k}")
        ax.stairs(values[:-1], edges, baseline=None, color=f"C{k}", linewidth=1.5)
        ax.plot(positions, values[dots], "o", color=f"C{k}", markersize=3)
    return ""


def _set_axis_of_edges(ax, shape):
    """Format the horizontal axis of a column, and return the edges of its bins on this axis."""
    from matplotlib import dates

    (edges,) = shape.edges
    ax.locator_params(axis="x", nbins=4)
    ax.xaxis.set_major_formatter(tick_writer(np.abs(edges).max()))
    if shape.kinds == ("duration",):
        ax.set_xlabel("days", fontsize="x-small")
    if shape.kinds == ("date",) and (days := _shapes.dates_of(edges)).dtype.kind == "M":
        edges = dates.date2num(days)
        locator = dates.AutoDateLocator(minticks=2, maxticks=6)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    return edges


def _draw_counts(ax, shape, edges):
    """Draw the density of rows; return the positions and cells that are to be drawn as dots.

    These are narrow bins with many rows, and missing values.
    """
    # The last cell contains missing values.
    missing = shape.counts.size - 1
    widths = np.diff(edges)
    total_width = edges[-1] - edges[0]
    density = shape.counts[:-1] / widths
    median_density = max(np.median(density), 1e-300)
    # Densities are clipped, because a single value with many rows would leave no height for the
    # other bins.
    heights = COUNT_HEIGHT * np.minimum(density / (2.0 * median_density), 1.0)
    # Vertical positions are fractions of the panel's height.
    transform = ax.get_xaxis_transform()
    ax.stairs(heights, edges, fill=True, transform=transform, color=COUNT_COLOR)
    is_dot = (widths < MAX_DOT_WIDTH * total_width) & (density > MIN_DOT_DENSITY * median_density)
    positions = (edges[:-1] + 0.5 * widths)[is_dot]
    dots = np.flatnonzero(is_dot)
    if missing in _shapes.shown_cells(shape):
        positions = np.append(positions, edges[-1] + 0.1 * total_width)
        dots = np.append(dots, missing)
        # Below the labels of the axis, the last of which may be wide.
        ax.text(
            positions[-1],
            -0.14,
            "missing",
            transform=transform,
            va="top",
            ha="right",
            size=7,
            rotation=LABEL_ROTATION,
            rotation_mode="anchor",
        )
    return positions, dots


def draw_bars(ax, shape):
    """Draw the categories with the most rows as bars, or as points if there are several classes.

    They are in the order in which they were declared or found.

    Return the end of the title: the number of categories shown, if some are left out.
    """
    (names,) = _shapes.cell_names(shape)
    shown = _shapes.shown_cells(shape, MAX_BARS)
    positions = np.arange(len(shown))
    heights = COUNT_HEIGHT * shape.counts[shown] / max(shape.counts.max(), 1.0)
    transform = ax.get_xaxis_transform()
    ax.bar(positions, heights, width=0.9, transform=transform, color=COUNT_COLOR)
    if shape.values.shape[1] > 1:
        ax.plot(positions, shape.values[shown], "o", markersize=4)
    else:
        ax.bar(positions, shape.values[shown, 0], width=0.6, color="C0")
    bands = band_of(shape)
    if bands is not None:
        for k in range(bands.shape[1]):
            color = f"C{k}"
            if bands.shape[1] == 1:
                # The bars of a single output have the color C0.
                color = "0.5"
            draw_error_bars(ax, positions, shape.values[shown, k], bands[shown, k], color=color)
    set_rotated_ticks(ax, positions, [short_text(names[i], 18) for i in shown])
    n_all = len(_shapes.shown_cells(shape))
    if len(shown) == n_all:
        return ""
    return f", {len(shown)} of {n_all}"


def set_rotated_ticks(ax, positions, labels):
    """Set rotated ticks on the horizontal axis so that long labels end at their ticks."""
    ax.set_xticks(positions, labels, rotation=LABEL_ROTATION, ha="right", rotation_mode="anchor")


def band_of(shape):
    """Return half the heights of a term's error bands, or None if they are unknown."""
    if shape.standard_errors is None or not np.isfinite(shape.standard_errors).all():
        return None
    return BAND_WIDTH * shape.standard_errors


def draw_error_bars(ax, positions, values, half_heights, color):
    """Draw a vertical line around each value."""
    ax.vlines(positions, values - half_heights, values + half_heights, colors=color, linewidth=1.2)


def shortest_first(shape):
    """Return a term of several columns, with the one that has the fewest cells first."""
    order = np.argsort(shape.counts.shape, kind="stable")
    rest = [axis for axis in range(len(order)) if axis != order[0]]
    axes = [int(order[0]), *rest]
    return replace(
        shape,
        features=tuple(shape.features[axis] for axis in axes),
        kinds=tuple(shape.kinds[axis] for axis in axes),
        edges=tuple(shape.edges[axis] for axis in axes),
        counts=np.transpose(shape.counts, axes),
        values=np.transpose(shape.values, [*axes, shape.values.ndim - 1]),
        standard_errors=None,
    )


def slices_of(shape):
    """Return the names and tables of those cells of the first column that have the most rows."""
    shown = np.unique(np.unravel_index(_shapes.shown_cells(shape), shape.counts.shape)[0])
    margins = shape.counts.sum(axis=(1, 2))
    most = sorted(shown, key=lambda cell: -margins[cell])[:MAX_SLICES]
    names = _shapes.cell_names(shape)[0]
    slices = []
    for cell in sorted(most):
        table = replace(
            shape,
            features=shape.features[1:],
            kinds=shape.kinds[1:],
            edges=shape.edges[1:],
            counts=shape.counts[cell],
            values=shape.values[cell],
        )
        name = names[cell]
        if shape.kinds[0] == "number" and cell < len(shape.edges[0]) - 1:
            low, high = shape.edges[0][cell : cell + 2]
            name = f"{low:.2g} to {high:.2g}"
        slices.append((short_text(name, 14), table))
    return slices


def draw_table(ax, shape, largest, *, has_bar=True):
    """Draw the table of a pair of columns for the first output; the first column is horizontal."""
    first, second = map(np.unique, np.unravel_index(_shapes.shown_cells(shape), shape.counts.shape))
    values = shape.values[np.ix_(first, second, [0])][..., 0]
    picture = ax.imshow(
        values.T,
        origin="lower",
        aspect="auto",
        cmap="RdBu_r",
        vmin=-largest,
        vmax=largest,
        interpolation="nearest",
    )
    if has_bar:
        bar = ax.figure.colorbar(picture, ax=ax)
        bar.ax.tick_params(labelsize="x-small")
        bar.formatter = tick_writer(largest)
    set_rotated_ticks(ax, *ticks(shape, 0, first))
    ax.set_yticks(*ticks(shape, 1, second))


def ticks(shape, axis, shown):
    """Return the tick positions and labels for a table's axis: edges of bins, or cells."""
    kind = shape.kinds[axis]
    edges = shape.edges[axis]
    names = [short_text(name, 12) for name in _shapes.cell_names(shape)[axis]]
    if kind == "label":
        return np.arange(len(shown)), [names[i] for i in shown]
    places = np.arange(0, len(edges) - 1, 3)
    ends = _shapes.edge_names(kind, edges)
    rounded = [float(f"{edge:.3g}") for edge in edges]
    if kind == "number" and len({rounded[i] for i in places}) == len(places):
        ends = list(map(tick_writer(np.abs(edges).max()), rounded))
    missing = shown[shown == len(edges) - 1]
    return [*(places - 0.5), *missing], [*(ends[i] for i in places), *(names[i] for i in missing)]


def short_text(text, width=36):
    """Return a name of the user as text for a plot.

    Control characters are escaped, a text of more than `width` characters loses its middle, and
    dollar signs do not begin matplotlib's math mode.
    """
    text = escape_control(text)
    half = width // 2
    if len(text) > width:
        text = f"{text[:half]}…{text[1 - half :]}"
    return text.replace("$", r"\$")
