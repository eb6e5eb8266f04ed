"""Sphinx configuration. ``docs/README.md`` says how to build the pages."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import skdp

project = "skdp"
author = "skdp developers"
copyright = "skdp developers, BSD 3-Clause License"
version = release = skdp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "README.md"]
default_role = "literal"
highlight_language = "text"
# Guide pages of packages that come later are named by patterns.
suppress_warnings = ["toc.empty_glob"]

myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]

autosummary_generate = True
# For file systems that do not tell letters of either case apart.
autosummary_filename_map = {"skdp.accounting.ZCDP": "skdp.accounting.ZCDP_event"}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": None,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_title = "skdp"
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "skdp"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}

PAGE = re.compile(r"``docs/([\w/]+)\.md``")


def link_pages(app, what, name, obj, options, lines):
    """Turn ``docs/page.md`` in a docstring into a link to that page."""
    lines[:] = [PAGE.sub(r":doc:`docs/\1.md </\1>`", line) for line in lines]


def skip_routing(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to every class for metadata routing."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app):
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("autodoc-skip-member", skip_routing)
