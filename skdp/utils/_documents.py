"""Text that others wrote, and tables of it, in HTML and Markdown."""

import re
from html import escape

# Colours of the notebook or page around where it has any, else of the reader's light or dark
# scheme.
STYLE = """
.skdp-document {
  --skdp-text: var(--jp-content-font-color1, var(--pst-color-text-base,
    var(--vscode-editor-foreground, #1b1f24)));
  --skdp-page: var(--jp-layout-color0, var(--pst-color-background,
    var(--vscode-editor-background, #ffffff)));
  --skdp-line: var(--jp-border-color2, var(--pst-color-border, #c9d1d9));
  color-scheme: light dark;
  color: var(--skdp-text);
  background: var(--skdp-page);
  padding: 0.5em;
  max-width: 60em;
  line-height: 1.4;
}
@media (prefers-color-scheme: dark) {
  .skdp-document {
    --skdp-text: var(--jp-content-font-color1, var(--pst-color-text-base,
      var(--vscode-editor-foreground, #e6edf3)));
    --skdp-page: var(--jp-layout-color0, var(--pst-color-background,
      var(--vscode-editor-background, #14181d)));
    --skdp-line: var(--jp-border-color2, var(--pst-color-border, #454c56));
  }
}
.skdp-document .skdp-wide { overflow-x: auto; }
.skdp-document table {
  border-collapse: collapse; margin: 0.5em 0 1em 0; color: inherit; background: transparent;
}
.skdp-document caption {
  color: inherit; caption-side: top; font-weight: bold; text-align: left; padding: 0.3em 0;
}
.skdp-document th, .skdp-document td {
  color: inherit; background: transparent; border: 0;
  border-bottom: 1px solid var(--skdp-line);
  padding: 0.25em 0.9em 0.25em 0; text-align: left; vertical-align: top;
  overflow-wrap: anywhere; max-width: 42em;
}
.skdp-document th { font-weight: 600; white-space: nowrap; }
.skdp-document p { margin: 0.4em 0; }
"""

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


def printable(text):
    """Return a text on one line in which every character can be seen."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def html_text(text):
    """Return a text as it may stand between tags and in attributes."""
    return escape(printable(text))


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


def _cells(row, named):
    first, *others = (html_text(cell) for cell in row)
    first = f'<th scope="row">{first}</th>' if named else f"<td>{first}</td>"
    return first + "".join(f"<td>{cell}</td>" for cell in others)
