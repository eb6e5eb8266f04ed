"""What each column does to an additive model's answer."""

import math
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp.display._display import Display
from skdp.gam import _shapes as words
from skdp.utils._documents import printable
from skdp.utils._validation import check_integer

N_COLUMNS = 4
N_COLORS = 10
MOST_BARS = 12
# In parts of a panel's height: room for the noisy counts, and how high they are drawn.
FOOT = 0.22
COUNTS = 0.15
# A single value with many rows has a bin that is too narrow to be seen: it gets a dot. In parts of
# a panel's width, and of the usual density.
NARROW = 0.01
SPIKE = 5.0
LIGHT = {"color": "0.5", "alpha": 0.4}
TURNED = {"rotation": 50, "ha": "right", "rotation_mode": "anchor"}


class AdditiveDisplay(Display):
    """The curves, bars and tables of an additive model, the most important term first.

    Make it with `from_estimator`. It shows what the fit released and costs nothing. All panels have
    one scale of values, so that what is small is seen to be small. The gray shapes at the foot are
    the noisy numbers of rows: where they are low, a curve rests on little. Dots are single values
    that many rows have. Bars are the categories with the most rows, in the order of their values.
    What is missing stands beside a curve, if it is 2 % of the rows at least. Of a pair with several
    classes the table of the first one is drawn.

    Parameters
    ----------
    shapes : list of ShapeFunction
        The terms in the order of the panels. Their values have a last axis of outputs.
    outputs : list of str
        The classes to whose scores values add, "the target" for a regressor.
    names : dict of int to str
        The columns' names, by their place in the table.
    n_terms : int
        How many terms the model has.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The place of all panels.
    axes_ : list of matplotlib Axes
        One a term.
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

    def __init__(self, shapes, *, outputs, names, n_terms):
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
            The names or places of terms in `shape_functions_`; None takes all.
        max_terms : int, default=16
            How many of them are drawn at most: the most important ones.
        classes : array-like, default=None
            With several classes, those to draw; None takes all, the first ten of more.
        ax : matplotlib Axes, default=None
            One of a figure's subplots, whose place is divided; None makes a new figure.

        Returns
        -------
        AdditiveDisplay

        Raises
        ------
        ValueError
            If there is no such term or class, or none is asked for.
        """
        model = model.steps[-1][1] if hasattr(model, "steps") else model
        check_is_fitted(model)
        shapes = model.shape_functions_
        chosen = (
            range(len(shapes)) if terms is None else [words.term_index(shapes, t) for t in terms]
        )
        outputs = words.output_names(model)
        known = outputs[:N_COLORS] if classes is None else [str(label) for label in classes]
        if not (chosen and known and set(known) <= set(outputs)):
            raise ValueError(f"terms and classes must name some; the scores are of {outputs}")
        max_terms = check_integer(max_terms, "max_terms", 1)
        kept = [outputs.index(label) for label in known]
        # A last axis of outputs, also if there is one.
        most = words.ranked([shapes[t] for t in chosen], max_terms)
        flat = [replace(s, values=s.values.reshape(*s.counts.shape, -1)[..., kept]) for s in most]
        names = {s.features[0]: s.name for s in shapes if len(s.features) == 1}
        return cls(flat, outputs=known, names=names, n_terms=len(shapes)).plot(ax=ax)

    @property
    def _size(self):
        n = len(self.shapes)
        return 1.0 + 3.0 * min(N_COLUMNS, n), 0.8 + 2.6 * math.ceil(n / N_COLUMNS)

    def _draw(self, ax):
        """Divide the place of axes, and draw a panel a term."""
        n = len(self.shapes)
        several = len(self.outputs) > 1
        seen = [s.values.reshape(s.counts.size, -1)[words.shown_cells(s)] for s in self.shapes]
        low = min(values.min(initial=0.0) for values in seen)
        high = max(values.max(initial=0.0) for values in seen)
        room = (high - low) or 1.0
        ax.set_axis_off()
        place = ax.figure.add_subfigure(ax.get_subplotspec())
        grid = place.add_gridspec(math.ceil(n / N_COLUMNS), min(N_COLUMNS, n))
        self.axes_ = [place.add_subplot(grid[i]) for i in range(n)]
        for panel, shape in zip(self.axes_, self.shapes, strict=True):
            panel.tick_params(labelsize="x-small")
            title = plain(shape.name, 24)
            if len(shape.features) == 2:
                draw_table(panel, shape, max(-low, high) or 1.0)
                first, second = (plain(self.names[j]) for j in shape.features)
                panel.set(xlabel=first, ylabel=second)
                title += f"\n{plain(self.outputs[0])}" if several else ""
            else:
                title += (draw_bars if shape.kinds == ("label",) else draw_curve)(panel, shape)
                panel.axhline(0.0, color="0.5", linewidth=0.8)
                panel.set_ylim(low - FOOT * room, high + 0.05 * room)
            panel.set_title(title, fontsize="medium")
        target = "the scores" if several else f"the score of {plain(self.outputs[0])}"
        title = f"What {n} of {self.n_terms} terms add to {target}; gray: rows"
        place.suptitle(title, fontsize="medium")
        if several:
            lines = [self.axes_[0].plot([], color=f"C{k}")[0] for k in range(len(self.outputs))]
            place.legend(lines, map(plain, self.outputs), loc="outside lower center", ncols=5)


def draw_curve(ax, shape):
    """Draw the steps of a number or a date, with what is missing beside them."""
    from matplotlib import dates

    (edges,), missing = shape.edges, shape.counts.size - 1
    ax.locator_params(axis="x", nbins=4)
    if shape.kinds == ("date",) and (found := words.dates_of(edges)).dtype.kind == "M":
        edges = dates.date2num(found)
        locator = dates.AutoDateLocator(minticks=2, maxticks=6)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    widths = np.diff(edges)
    whole = edges[-1] - edges[0]
    density = shape.counts[:-1] / widths
    usual = max(np.median(density), 1e-300)
    # Single values with many rows would leave no height for the others.
    foot = COUNTS * np.minimum(density / (2.0 * usual), 1.0)
    at_foot = ax.get_xaxis_transform()
    ax.stairs(foot, edges, fill=True, transform=at_foot, **LIGHT)
    spikes = (widths < NARROW * whole) & (density > SPIKE * usual)
    at = (edges[:-1] + 0.5 * widths)[spikes]
    dots = np.flatnonzero(spikes)
    if missing in words.shown_cells(shape):
        at = np.append(at, edges[-1] + 0.1 * whole)
        dots = np.append(dots, missing)
        ax.text(at[-1], -0.05, "missing", transform=at_foot, va="top", size=7, **TURNED)
    for k, own in enumerate(shape.values.T):
        ax.stairs(own[:-1], edges, baseline=None, color=f"C{k}", linewidth=1.5)
        ax.plot(at, own[dots], "o", color=f"C{k}", markersize=3)
    return ""


def draw_bars(ax, shape):
    """Draw the categories with the most rows: bars by value, or points of several classes."""
    (names,), shown = words.cell_names(shape), words.shown_cells(shape, MOST_BARS)
    shown = shown[np.argsort(shape.values[shown, 0])]
    at = np.arange(len(shown))
    foot = shape.counts[shown] / max(shape.counts.max(), 1.0)
    ax.bar(at, COUNTS * foot, width=0.9, transform=ax.get_xaxis_transform(), **LIGHT)
    if shape.values.shape[1] > 1:
        ax.plot(at, shape.values[shown], "o", markersize=4)
    else:
        ax.bar(at, shape.values[shown, 0], width=0.6, color="C0")
    ax.set_xticks(at, [plain(names[i], 18) for i in shown], **TURNED)
    n_all = len(words.shown_cells(shape))
    return f", {len(shown)} of {n_all}" if len(shown) < n_all else ""


def draw_table(ax, shape, largest):
    """Draw the first output's table of a pair of columns, the first one to the right."""
    first, second = map(np.unique, np.unravel_index(words.shown_cells(shape), shape.counts.shape))
    values = shape.values[np.ix_(first, second, [0])][..., 0]
    colors = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
    picture = ax.imshow(values.T, origin="lower", aspect="auto", **colors)
    ax.figure.colorbar(picture, ax=ax).ax.tick_params(labelsize="x-small")
    ax.set_xticks(*ticks(shape, 0, first), **TURNED)
    ax.set_yticks(*ticks(shape, 1, second))


def ticks(shape, axis, shown):
    """Return where a table's axis has ticks and their words: at edges of bins, or at cells."""
    kind = shape.kinds[axis]
    edges = shape.edges[axis]
    names = [plain(name, 12) for name in words.cell_names(shape)[axis]]
    if kind == "label":
        return np.arange(len(shown)), [names[i] for i in shown]
    places = np.arange(0, len(edges) - 1, 3)
    ends = words.edge_names(kind, edges)
    missing = shown[shown == len(edges) - 1]
    return [*(places - 0.5), *missing], [*(ends[i] for i in places), *(names[i] for i in missing)]


def plain(text, width=36):
    """Return somebody else's words as matplotlib writes them, not too long and with no formula."""
    text = printable(text)
    half = width // 2
    short = text if len(text) <= width else f"{text[:half]}…{text[1 - half :]}"
    return short.replace("$", r"\$")
