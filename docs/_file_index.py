"""Write ``reference/files.md``: each file of skdp, with the first sentence of its docstring.

Usage: python docs/_file_index.py
"""

import ast
import re
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "reference" / "files.md"
INTRODUCTION = (
    "# Files\n\nEach file of the package and its subject, which is the first sentence of its "
    "docstring. `python docs/_file_index.py` writes this page. "
    "[Architecture](../development/architecture.md) describes how the files work together.\n"
)


def subject(path):
    """Return the first paragraph of a module's docstring in Markdown, on one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    text = " ".join(docstring.partition("\n\n")[0].split())
    # reStructuredText marks code with two backticks, Markdown with one, and a formula with dollars.
    return re.sub(r":math:`(.*?)`", r"$\1$", text).replace("``", "`").replace("|", "\\|")


def file_index(package):
    """Return the text of the page.

    Parameters
    ----------
    package : Path
        The folder of the package.

    Returns
    -------
    str
    """
    lines = [INTRODUCTION]
    folders = [package, *sorted(path.parent for path in package.glob("*/__init__.py"))]
    for folder in folders:
        lines.append(f"## `{folder.relative_to(package.parent)}`\n")
        if folder != package:
            lines.append(f"{subject(folder / '__init__.py')}\n")
        lines += ["| file | subject |", "|---|---|"]
        files = (path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py")
        lines += [f"| `{path.name}` | {subject(path)} |" for path in files]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(file_index(DOCS.parent / "skdp"), encoding="utf-8")
