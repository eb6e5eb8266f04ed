"""Small pictures for the cards of the front page, drawn when the pages are built.

They are inline SVG whose colors are variables of the theme, so that they follow its light and dark
mode. A picture has no text; the card's title says what it is about.
"""

import math

from docutils import nodes
from docutils.parsers.rst import Directive

WIDTH, HEIGHT = 240, 80
MAIN = "var(--pst-color-primary)"
ACCENT = "var(--pst-color-secondary)"
MUTED = "var(--pst-color-text-muted)"
LINE = f'fill="none" stroke="{MAIN}" stroke-width="3" stroke-linecap="round"'
AXIS = f'fill="none" stroke="{MUTED}" stroke-width="1.5"'


def _path(points, style, *, closed=False):
    """Return a path through points, whose y axis points up."""
    text = " L".join(f"{x:.1f},{HEIGHT - y:.1f}" for x, y in points)
    return f'<path d="M{text}{"Z" if closed else ""}" {style}/>'


def _box(x, y, width, height, style):
    """Return a rectangle with rounded corners; y is its lower edge."""
    top = HEIGHT - y - height
    return f'<rect x="{x}" y="{top}" width="{width}" height="{height}" rx="3" {style}/>'


def _dot(x, y, radius, color):
    return f'<circle cx="{x:.1f}" cy="{HEIGHT - y:.1f}" r="{radius}" fill="{color}"/>'


def _axes(left=30, right=210):
    return _path([(left, 74), (left, 8), (right, 8)], AXIS)


def draw_first_model():
    """Draw a curve of an additive model with its error band."""
    xs = range(36, 208, 4)
    curve = [(x, 40 + 24 * math.tanh((x - 110) / 45) - 0.0012 * (x - 110) ** 2) for x in xs]
    above = [(x, y + 6 + abs(x - 110) / 18) for x, y in curve]
    below = [(x, y - 6 - abs(x - 110) / 18) for x, y in curve]
    band = _path([*above, *reversed(below)], f'fill="{MAIN}" fill-opacity="0.2"', closed=True)
    return _axes() + band + _path(curve, LINE)


def draw_choose():
    """Draw bars of scores, of which the best one is marked."""
    widths = (150, 122, 96, 60)
    styles = (f'fill="{MAIN}"', *[f'fill="{MUTED}" fill-opacity="0.5"'] * 3)
    bars = (
        _box(36, 61 - 16 * i, width, 11, style)
        for i, (width, style) in enumerate(zip(widths, styles, strict=True))
    )
    return _path([(30, 76), (30, 8)], AXIS) + "".join(bars)


def draw_persons():
    """Draw persons with different numbers of rows."""
    shapes = ""
    for x, n_rows in ((50, 1), (120, 4), (190, 2)):
        color = ACCENT if n_rows == 4 else MAIN
        shapes += _dot(x, 64, 8, color)
        shapes += f'<path d="M{x - 13},40 a13,13 0 0 1 26,0 z" fill="{color}" fill-opacity="0.85"/>'
        shapes += "".join(
            _box(x - 22, 26 - 8 * i, 44, 5, f'fill="{color}" fill-opacity="0.4"')
            for i in range(n_rows)
        )
    return shapes


def draw_pipeline():
    """Draw three steps above one bar of budget that is split among them."""
    shapes = _path([(40, 54), (200, 54)], AXIS)
    opacities = (0.35, 0.6, 1.0)
    for x, opacity in zip((22, 92, 162), opacities, strict=True):
        shapes += _box(x, 40, 56, 28, 'fill="var(--pst-color-background)"')
        shapes += _box(x, 40, 56, 28, f'fill="{MAIN}" fill-opacity="{opacity}"')
    left = 22
    for width, opacity in zip((40, 56, 100), opacities, strict=True):
        shapes += _box(left, 12, width - 2, 12, f'fill="{MAIN}" fill-opacity="{opacity}"')
        left += width
    return shapes


def draw_tune():
    """Draw noisy scores of candidates, of which one is chosen."""
    heights = (22, 40, 52, 63, 55, 38)
    shapes = _axes()
    for i, height in enumerate(heights):
        x = 48 + 28 * i
        color = ACCENT if height == max(heights) else MAIN
        style = f'stroke="{color}" stroke-width="2" fill="none"'
        shapes += _path([(x, height - 9), (x, height + 9)], style) + _dot(x, height, 5, color)
    return shapes


def draw_officer():
    """Draw a page with a check mark."""
    page = _box(80, 6, 80, 70, AXIS)
    lines = "".join(
        _box(92, 58 - 12 * i, width, 4, f'fill="{MUTED}" fill-opacity="0.6"')
        for i, width in enumerate((56, 48, 56, 30))
    )
    check = _path([(132, 22), (140, 14), (156, 34)], LINE.replace(MAIN, ACCENT))
    return page + lines + check


def draw_tools():
    """Draw a tool around a private model."""
    outer = f'<circle cx="120" cy="40" r="33" {AXIS} stroke-dasharray="5 4"/>'
    inner = f'<circle cx="120" cy="40" r="15" fill="{MAIN}"/>'
    satellites = "".join(
        _dot(120 + 33 * math.cos(angle), 40 + 33 * math.sin(angle), 6, ACCENT)
        for angle in (0.5, 1.9, 3.3, 5.0)
    )
    return outer + inner + satellites


def draw_attack():
    """Draw the success of an attack below the bound that epsilon = 1 sets."""
    rates = [i / 40 for i in range(41)]
    bound = [min(math.e * rate, 1.0 - (1.0 - rate) / math.e) for rate in rates]
    attack = [rate + 0.15 * (high - rate) for rate, high in zip(rates, bound, strict=True)]

    def place(values):
        return [(30 + 180 * x, 8 + 62 * y) for x, y in zip(rates, values, strict=True)]

    limit = f'{AXIS} stroke-dasharray="5 4"'
    return _axes() + _path(place(bound), limit) + _path(place(attack), LINE)


def draw_move():
    """Draw an arrow from one library to another."""
    left = _box(34, 18, 56, 44, AXIS)
    right = _box(150, 18, 56, 44, f'fill="{MAIN}"')
    style = LINE.replace(MAIN, ACCENT)
    return (
        left
        + right
        + _path([(98, 40), (140, 40)], style)
        + _path([(130, 50), (141, 40), (130, 30)], style)
    )


PICTURES = {
    "first_model": draw_first_model,
    "choose": draw_choose,
    "persons": draw_persons,
    "pipeline": draw_pipeline,
    "tune": draw_tune,
    "officer": draw_officer,
    "tools": draw_tools,
    "attack": draw_attack,
    "move": draw_move,
}


class CardPicture(Directive):
    """Directive ``card-picture``, which inserts a picture of `PICTURES`."""

    required_arguments = 1

    def run(self):
        """Return the picture as raw HTML."""
        shapes = PICTURES[self.arguments[0]]()
        html = (
            f'<svg class="skdp-card-picture" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'aria-hidden="true">{shapes}</svg>'
        )
        return [nodes.raw("", html, format="html")]
