"""Text that others wrote, and tables of it, in HTML and Markdown."""

import re
from html import escape
from importlib.resources import files

STYLE = files("skdp.utils").joinpath("documents.css").read_text("utf-8")

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


def printable(text):
    """Return a text on one line in which every character can be seen."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


class Markup(str):
    """A text that is HTML already."""


def html_text(text):
    """Return a text as it may stand between tags and in attributes."""
    return text if isinstance(text, Markup) else escape(printable(text))


def html_bar(value, largest):
    """Return a number with a bar to the right of the middle, or the left of it if negative."""
    width = 50.0 * min(abs(value) / (largest or 1.0), 1.0)
    bar = f"margin-left:{50.0 - width * (value < 0.0):.1f}%;width:{width:.1f}%"
    return Markup(f'<span class="skdp-bar"><span style="{bar}"></span></span>&#160;{value:+.4g}')


def markdown_text(text):
    """Return a text of which Markdown makes itself and no markup."""
    return _MARKDOWN.sub(r"\\\1", printable(text))


def html_table(rows, *, caption=None, head=None):
    """Return a table.

    Parameters
    ----------
    rows : iterable of sequences of str
        The first cell of a row names it, where there is no head.
    caption : str, default=None
    head : sequence of str, default=None
        Names of columns.
    """
    top = "" if caption is None else f"<caption>{html_text(caption)}</caption>"
    if head is not None:
        cells = "".join(f'<th scope="col">{html_text(name)}</th>' for name in head)
        top += f"<thead><tr>{cells}</tr></thead>"
    body = "".join(f"<tr>{_cells(row, head is None)}</tr>" for row in rows)
    return f'<div class="skdp-wide"><table>{top}<tbody>{body}</tbody></table></div>'


def html_fragment(*parts):
    """Return parts of a document with their style, as a notebook shows them."""
    return f'<div class="skdp-document"><style>{STYLE}</style>{"".join(parts)}</div>'


class PrintedDocument:
    """An object that a notebook shows as it prints: a title, rows of a name and words, notes."""

    def _repr_html_(self):
        title, *lines = str(self).splitlines()
        cells = [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines]
        notes = (f"<p>{html_text(*row)}</p>" for row in cells if len(row) == 1)
        rows = [row for row in cells if len(row) == 2]
        return html_fragment(html_table(rows, caption=title), *notes)


def _cells(row, named):
    first, *others = (html_text(cell) for cell in row)
    first = f'<th scope="row">{first}</th>' if named else f"<td>{first}</td>"
    return first + "".join(f"<td>{cell}</td>" for cell in others)
