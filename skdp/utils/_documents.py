"""Documents in text, HTML and Markdown, with user-provided text escaped."""

import re
import textwrap
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from skdp.utils._values import FrozenValue

STYLE = files("skdp.utils").joinpath("documents.css").read_text("utf-8")

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


def escape_control(text):
    """Return text with each unprintable character, such as a line break, replaced."""
    characters = []
    for character in str(text):
        if not character.isprintable():
            character = "\N{REPLACEMENT CHARACTER}"
        characters.append(character)
    return "".join(characters)


def count_of(number, noun, plural=None):
    """Return a number with its noun, in the plural unless the number is 1.

    The plural is the noun with an "s", unless `plural` is given.
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number} {plural or f'{noun}s'}"


class TextWithBar(str):
    """A number as text, to which HTML adds a bar."""

    style = ""


def with_bar(text, value, largest, middle=0.0):
    """Return text with a bar for a value.

    The bar begins at `middle` percent of its cell. It extends to the right, or to the left for a
    negative value, and `largest` is the value whose bar reaches the end of the cell.
    """
    width = (100.0 - middle) * min(abs(value) / (largest or 1.0), 1.0)
    start = middle
    if value < 0.0:
        start = middle - width
    text = TextWithBar(text)
    text.style = f"margin-left:{start:.1f}%;width:{width:.1f}%"
    return text


def html_text(text):
    """Return text escaped for HTML elements and attributes, with its bar if it has one."""
    safe = escape(escape_control(text))
    if isinstance(text, TextWithBar):
        return f'<span class="skdp-bar"><span style="{text.style}"></span></span>&#160;{safe}'
    return safe


def markdown_text(text):
    """Return text escaped for Markdown."""
    return _MARKDOWN.sub(r"\\\1", escape_control(text))


def html_table(rows, *, head=None):
    """Return an HTML table.

    Parameters
    ----------
    rows : iterable of sequences of str
        Cells. Without a head, the first cell of each row is its header.
    head : sequence of str, default=None
        Names of the columns.
    """
    top = ""
    if head is not None:
        cells = "".join(f'<th scope="col">{html_text(name)}</th>' for name in head)
        top = f"<thead><tr>{cells}</tr></thead>"
    body = "".join(f"<tr>{_cells(row, head is None)}</tr>" for row in rows)
    return f'<div class="skdp-wide"><table>{top}<tbody>{body}</tbody></table></div>'


def html_fragment(*parts):
    """Return HTML parts as one document with its style, for notebooks."""
    return f'<div class="skdp-document"><style>{STYLE}</style>{"".join(parts)}</div>'


def align_columns(rows):
    """Return lines of text in which the cells of each column are aligned."""
    rows = [list(map(escape_control, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def wrap_text(text, indent):
    """Return text in lines of at most 92 characters; all but the first are indented."""
    return textwrap.fill(escape_control(text), 92, subsequent_indent=" " * indent, tabsize=1)


@dataclass(frozen=True)
class Section(FrozenValue):
    """A section of a document: rows with a name and a text, then tables, then notes.

    Parameters
    ----------
    heading : str
    rows : sequence of (str, str), default=()
    tables : sequence of sequences of rows, default=()
        The first row of a table is its head.
    notes : sequence of str, default=()
    """

    heading: str
    rows: tuple = ()
    tables: tuple = ()
    notes: tuple = ()

    def to_text(self):
        """Return the section as lines of text."""
        heading = escape_control(self.heading)
        width = max((len(name) for name, _ in self.rows), default=0) + 2
        lines = [heading, "-" * len(heading)]
        lines += [wrap_text(f"{escape_control(n):<{width}}{v}", width) for n, v in self.rows]
        for table in self.tables:
            lines += ["", *align_columns(table), ""]
        return lines + [wrap_text(note, 2) for note in self.notes]

    def to_markdown(self, level):
        """Return the section as lines of Markdown; `level` is the level of its heading."""
        lines = ["", f"{'#' * level} {markdown_text(self.heading)}", ""]
        lines += [f"- **{markdown_text(n)}**: {markdown_text(v)}" for n, v in self.rows]
        for head, *rows in self.tables:
            cells = [" | ".join(map(markdown_text, row)) for row in (head, *rows)]
            cells.insert(1, " | ".join("---" for _ in head))
            lines += ["", *(f"| {row} |" for row in cells), ""]
        return lines + [f"- {markdown_text(note)}" for note in self.notes]

    def to_html(self):
        """Return the section as HTML."""
        parts = [f"<h2>{html_text(self.heading)}</h2>"]
        if self.rows:
            parts.append(html_table(self.rows))
        parts += [html_table(rows, head=head) for head, *rows in self.tables]
        return "".join([*parts, *(f"<p>{html_text(note)}</p>" for note in self.notes)])


class PrintedDocument:
    """Base class of objects that are printed, and shown in notebooks, as their ``section()``."""

    def __str__(self):
        return "\n".join(self.section().to_text())

    def _repr_html_(self):
        return html_fragment(self.section().to_html())


def _cells(row, has_row_headers):
    """Return the HTML cells of a row."""
    first, *others = (html_text(cell) for cell in row)
    if has_row_headers:
        first = f'<th scope="row">{first}</th>'
    else:
        first = f"<td>{first}</td>"
    return first + "".join(f"<td>{cell}</td>" for cell in others)
