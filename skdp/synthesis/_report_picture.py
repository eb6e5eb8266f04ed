"""Pictures of a report of a synthesizer as SVG, in the colors of the page around them."""

import math

from skdp.utils._documents import html_text

# Size in pixels of the picture of a column.
PANEL_SIZE = (176, 72)
# Maximum number of groups in a panel; for a categorical column, the most frequent ones are shown.
MAX_BARS = 32
# Lines extend this many standard errors of the noise in each direction.
LINE_STDS = 2.0
# Minimum and maximum size of a cell of the map of pairs, and size of the whole map, in pixels.
CELL_SIZES = (5.0, 22.0)
MAP_SIZE = 440.0
# Width in pixels of the names next to the map, and of one letter.
NAME_WIDTH = 150.0
MAX_NAME_LETTERS = 22
BAR_COLOR = "#5b8fc7"


def report_pictures(columns, pairs):
    """Return the pictures of a report as HTML: a panel per column, and the map of pairs.

    Parameters
    ----------
    columns : list of dict
        As in `SynthesisReport`.
    pairs : list of dict
        As in `SynthesisReport`.
    """
    panels = "".join(_column_panel(column) for column in columns)
    html = (
        f'<div style="display:flex;flex-wrap:wrap;gap:14px;margin:12px 0">{panels}</div>'
        "<p>Bars are the fractions of simulated rows in each group of a column, vertical lines the "
        f"released fractions ± {LINE_STDS:.0f} standard errors of the noise.</p>"
    )
    if pairs:
        html += (
            f'<div class="skdp-wide">{_pair_map(columns, pairs)}</div>'
            "<p>The bluer a square, the more two columns depend on each other by the released "
            "scores, up to their noise. Squares with a dot were measured: only their tables are "
            "kept.</p>"
        )
    return html


def _column_panel(column):
    """Return the panel of one column: bars of simulated rows, lines of released counts."""
    width, height = PANEL_SIZE
    places = range(len(column["groups"]))
    if column["is_categorical"]:
        places = sorted(places, key=lambda i: -column["simulated"][i])
    places = places[:MAX_BARS]
    ends = [column["released"][i] + LINE_STDS * column["standard_error"][i] for i in places]
    largest = max(1e-9, *ends, *(column["simulated"][i] for i in places))
    step = width / max(len(places), 4)
    marks = []
    for place, i in enumerate(places):
        error = LINE_STDS * column["standard_error"][i]
        released = column["released"][i]
        top, low, high = (
            height * (1.0 - min(max(value / largest, 0.0), 1.0))
            for value in (column["simulated"][i], released - error, released + error)
        )
        middle = (place + 0.5) * step
        text = (
            f"{column['groups'][i]}: simulated {column['simulated'][i]:.3f}, "
            f"released {released:.3f} ± {error:.3f}"
        )
        marks.append(
            f"<g><title>{html_text(text)}</title>"
            f'<rect x="{place * step + 0.5:.1f}" y="{top:.1f}" width="{max(step - 1.0, 0.5):.1f}" '
            f'height="{height - top:.1f}" fill="{BAR_COLOR}"/>'
            f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{high:.1f}" '
            f'y2="{max(low, high + 1.0):.1f}" stroke="currentColor" stroke-width="1.5"/></g>'
        )
    name = html_text(column["name"])
    if column["is_categorical"]:
        caption = ", ".join(column["groups"][i] for i in places[:2])
        if len(places) > 2:
            caption += ", ..."
    else:
        caption = f"{column['groups'][0]}, ..., {column['groups'][-1]}"
    return (
        '<figure style="margin:0">'
        f'<svg width="{width}" height="{height}" role="img" '
        f'aria-label="simulated and released fractions of {name}">'
        f'<line x1="0" x2="{width}" y1="{height - 0.5}" y2="{height - 0.5}" '
        f'stroke="currentColor" stroke-width="1"/>{"".join(marks)}</svg>'
        f'<figcaption style="max-width:{width}px;font-size:0.85em"><b>{name}</b><br>'
        f"{html_text(caption)}</figcaption></figure>"
    )


def _pair_map(columns, pairs):
    """Return the triangle of all pairs of columns."""
    names = [column["name"] for column in columns]
    places = {name: i for i, name in enumerate(names)}
    least, most = CELL_SIZES
    size = min(max(MAP_SIZE / len(names), least), most)
    largest = max(1e-9, *(pair["dependence"] for pair in pairs))
    marks = []
    for pair in pairs:
        column, row = sorted(places[name] for name in pair["columns"])
        x, y = NAME_WIDTH + column * size, row * size
        # The square root also makes weak dependence visible.
        opacity = 0.04 + 0.96 * math.sqrt(min(max(pair["dependence"] / largest, 0.0), 1.0))
        text = f"{names[column]} and {names[row]}: dependence {pair['dependence']:.3f}"
        dot = ""
        if pair["is_measured"]:
            text += ", measured"
            dot = (
                f'<circle cx="{x + size / 2:.1f}" cy="{y + size / 2:.1f}" r="{size / 7:.1f}" '
                'fill="currentColor"/>'
            )
        marks.append(
            f"<g><title>{html_text(text)}</title>"
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{size - 1.0:.1f}" height="{size - 1.0:.1f}" '
            f'fill="{BAR_COLOR}" fill-opacity="{opacity:.2f}"/>{dot}</g>'
        )
    font = min(size * 0.75, 12.0)
    for i, name in enumerate(names):
        y = (i + 0.7) * size
        if i:
            marks.append(_name(name, NAME_WIDTH - 5.0, y, font, "end"))
        if i < len(names) - 1:
            # The name of the column for the squares below is written on the diagonal.
            marks.append(_name(name, NAME_WIDTH + i * size + 4.0, y, font, "start"))
    height = len(names) * size
    width = NAME_WIDTH + len(names) * size + NAME_WIDTH / 2.0
    return (
        f'<svg width="{width:.0f}" height="{height + 2.0:.0f}" role="img" '
        f'aria-label="dependence of pairs of columns">{"".join(marks)}</svg>'
    )


def _name(name, x, y, font, anchor):
    """Return the name of a column as text of a picture."""
    text = str(name)
    if len(text) > MAX_NAME_LETTERS:
        text = text[: MAX_NAME_LETTERS - 1] + "…"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{font:.1f}" text-anchor="{anchor}" '
        f'fill="currentColor">{html_text(text)}</text>'
    )
