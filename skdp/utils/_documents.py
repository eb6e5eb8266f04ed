"""Text that others wrote, and tables of it, in HTML and Markdown."""

import re
import textwrap
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from skdp.utils._values import FrozenValue

STYLE = files("skdp.utils").joinpath("documents.css").read_text("utf-8")

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


def printable(text):
    """Return a text on one line in which every character can be seen."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


class Barred(str):
    """A number in words, before which HTML draws a bar."""

    style = ""


def barred(words, value, largest, middle=0.0):
    """Return words with a bar from some percent of its place to the right, or left if negative."""
    width = (100.0 - middle) * min(abs(value) / (largest or 1.0), 1.0)
    words = Barred(words)
    words.style = f"margin-left:{middle - width * (value < 0.0):.1f}%;width:{width:.1f}%"
    return words


def html_text(text):
    """Return a text as it may stand between tags and in attributes."""
    safe = escape(printable(text))
    if isinstance(text, Barred):
        return f'<span class="skdp-bar"><span style="{text.style}"></span></span>&#160;{safe}'
    return safe


def markdown_text(text):
    """Return a text of which Markdown makes itself and no markup."""
    return _MARKDOWN.sub(r"\\\1", printable(text))


def html_table(rows, *, head=None):
    """Return a table.

    Parameters
    ----------
    rows : iterable of sequences of str
        The first cell of a row names it, where there is no head.
    head : sequence of str, default=None
        Names of columns.
    """
    top = ""
    if head is not None:
        cells = "".join(f'<th scope="col">{html_text(name)}</th>' for name in head)
        top = f"<thead><tr>{cells}</tr></thead>"
    body = "".join(f"<tr>{_cells(row, head is None)}</tr>" for row in rows)
    return f'<div class="skdp-wide"><table>{top}<tbody>{body}</tbody></table></div>'


def html_fragment(*parts):
    """Return parts of a document with their style, as a notebook shows them."""
    return f'<div class="skdp-document"><style>{STYLE}</style>{"".join(parts)}</div>'


def aligned(rows):
    """Return lines of text in which the cells of a column stand below each other."""
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def wrapped(text, indent):
    """Return a text in lines of which all but the first are indented."""
    return textwrap.fill(
        printable(text), 92, initial_indent="  ", subsequent_indent=" " * indent, tabsize=1
    )


@dataclass(frozen=True)
class Section(FrozenValue):
    """A part of a document: rows of a name and words, tables and notes.

    Parameters
    ----------
    heading : str
    rows : sequence of (str, str), default=()
    tables : sequence of sequences of rows, default=()
        Of each table the first row names its columns.
    notes : sequence of str, default=()
    """

    heading: str
    rows: tuple = ()
    tables: tuple = ()
    notes: tuple = ()

    def to_text(self):
        """Return it as lines of plain text."""
        heading = printable(self.heading)
        width = max((len(name) for name, _ in self.rows), default=0) + 2
        lines = [heading, "-" * len(heading)]
        lines += [wrapped(f"{printable(n):<{width}}{v}", width + 2) for n, v in self.rows]
        for table in self.tables:
            lines += ["", *aligned(table), ""]
        return lines + [wrapped(note, 4) for note in self.notes]

    def to_markdown(self, level):
        """Return it as lines of Markdown, the heading of a level."""
        lines = ["", f"{'#' * level} {markdown_text(self.heading)}", ""]
        lines += [f"- **{markdown_text(n)}**: {markdown_text(v)}" for n, v in self.rows]
        for head, *rows in self.tables:
            cells = [" | ".join(map(markdown_text, row)) for row in (head, *rows)]
            cells.insert(1, " | ".join("---" for _ in head))
            lines += ["", *(f"| {row} |" for row in cells), ""]
        return lines + [f"- {markdown_text(note)}" for note in self.notes]

    def to_html(self):
        """Return it as HTML."""
        parts = [f"<h2>{html_text(self.heading)}</h2>"]
        parts += [html_table(self.rows)] if self.rows else []
        parts += [html_table(rows, head=head) for head, *rows in self.tables]
        return "".join([*parts, *(f"<p>{html_text(note)}</p>" for note in self.notes)])


class PrintedDocument:
    """An object that is its ``section()`` where it is printed, and where a notebook shows it."""

    def __str__(self):
        return "\n".join(self.section().to_text())

    def _repr_html_(self):
        return html_fragment(self.section().to_html())


def _cells(row, named):
    first, *others = (html_text(cell) for cell in row)
    first = f'<th scope="row">{first}</th>' if named else f"<td>{first}</td>"
    return first + "".join(f"<td>{cell}</td>" for cell in others)
