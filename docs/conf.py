"""Sphinx configuration. ``.ci/docs`` builds the pages."""

import re
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from _cards import CardPicture
from sphinx_gallery.sorting import ExplicitOrder

import skdp

# Seeds of examples repeat their pictures; a page does not need the warning in each output.
warnings.filterwarnings("ignore", category=skdp.SeededNoiseWarning)

project = "skdp"
author = "skdp developers"
copyright = "skdp developers, BSD 3-Clause License"
version = release = skdp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
default_role = "literal"
highlight_language = "text"

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist"]

autosummary_generate = True
# For file systems that do not tell letters of either case apart.
autosummary_filename_map = {"skdp.accounting.ZCDP": "skdp.accounting.ZCDP_event"}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 80
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/(plot_|quickstart)",
    "ignore_pattern": r"(^|/)(?!plot_|quickstart)\w+\.py$",
    "within_subsection_order": ExplicitOrder(["quickstart.py", "plot_additive_model.py", "*"]),
    "backreferences_dir": "api/generated/backreferences",
    "doc_module": ("skdp",),
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_title = "skdp"
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["skdp.css"]
html_sidebars = {"changelog": []}
html_theme_options = {
    "logo": {"text": "skdp"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    # The field with text next to the icon would wrap the bar on a laptop.
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

DOCS = Path(__file__).parent
# The parts of the documentation, in the order of the navigation bar.
PARTS = [
    "tutorials/index",
    "how_to/index",
    "reference/index",
    "api/index",
    "theory/index",
    "development/index",
    "auto_examples/index",
]
PAGE = re.compile(r"``docs/([\w/]+)\.md``")
REFERENCE = re.compile(r":ref:`([^`<]+?)\s*(?:<[^`]*>)?`")
FITTED = re.compile(r"(?<=[( ])(\w+_)(?=[,)])")


def link_pages(app, what, name, obj, options, lines):
    """Turn ``docs/page.md`` in a docstring into a link to that page."""
    lines[:] = [PAGE.sub(r":doc:`docs/\1.md </\1>`", line) for line in lines]


def unlink_inherited(app, what, name, obj, options, lines):
    """Take the references to scikit-learn's own guide from what is inherited from it."""
    if str(getattr(obj, "__module__", "")).startswith("sklearn."):
        lines[:] = [REFERENCE.sub(r"\1", line) for line in lines]


def quote_fitted(app, what, name, obj, options, lines):
    """Quote the fitted attributes in shapes, which docutils takes for references."""
    lines[:] = [FITTED.sub(r"`\1`", line) if "shape" in line else line for line in lines]


def skip_others(app, what, name, obj, skip, options):
    """Leave out the requests of metadata routing, and methods of dict and str."""
    routing = re.fullmatch(r"set_\w+_request|get_metadata_routing", name)
    is_built_in = str(getattr(obj, "__qualname__", "")).startswith(("dict.", "str."))
    return True if routing or is_built_in else None


def add_contents(app, docname, source):
    """Append tables of contents, which would be shown as code where Sphinx does not run.

    The index of a part lists the pages that it links to, in that order, in the groups that its bold
    lines name. The API reference is grouped by its headings.
    """
    if docname == "index":
        groups = [("", PARTS)]
    elif docname == "benchmarks/README":
        groups = [("", ["*"])]
    elif docname == "api/index":
        groups = []
        source[0] = with_captions(source[0])
    elif docname in PARTS:
        pages = linked_pages(source[0])
        # A page that is a part itself is in the navigation bar already.
        parts = [f"../{part}" for part in PARTS]
        groups = [(caption, [p for p in links if p not in parts]) for caption, links in pages]
    else:
        groups = []
    for caption, entries in groups:
        caption_line = f":caption: {caption}\n" if caption else ""
        contents = "\n".join(entries)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n{caption_line}\n{contents}\n```\n"


def linked_pages(text):
    """Return the groups of an index as pairs of a caption and the pages that it links to."""
    groups = [("", [])]
    for bold, link in re.findall(
        r"^(?:\*\*(.*)\*\*$|- \[[^]]*\]\(([\w./]+)\.md\))", text, flags=re.M
    ):
        if bold:
            groups.append((bold, []))
        else:
            groups[-1][1].append(link)
    return [(caption, links) for caption, links in groups if links]


def with_captions(text):
    """Return the API reference with each heading as the caption of its table of contents."""
    lines, heading = [], ""
    for line in text.split("\n"):
        if line.startswith("## "):
            heading = line.removeprefix("## ").partition(": ")
            heading = heading[2] or heading[0]
        lines.append(line)
        if line.strip() == ":toctree: generated":
            lines.append(line.replace(":toctree: generated", f":caption: {heading.capitalize()}"))
    return "\n".join(lines)


def setup(app):
    app.add_directive("card-picture", CardPicture)
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("autodoc-process-docstring", unlink_inherited)
    app.connect("autodoc-process-docstring", quote_fitted)
    app.connect("autodoc-skip-member", skip_others)
    app.connect("source-read", add_contents)
