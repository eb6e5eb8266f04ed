"""What the documents show runs, and what they link to is there."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import skdp

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def code_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.S | re.M)


@pytest.mark.parametrize("page", [p for p in PAGES if code_blocks(p)], ids=lambda p: p.name)
def test_python_blocks_run(page, tmp_path):
    script = "\n".join(code_blocks(page))
    subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "name", [m.name for m in pkgutil.walk_packages(skdp.__path__, "skdp.") if "." in m.name]
)
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_the_quickstart_runs_on_bundled_data(tmp_path):
    script = ROOT / "examples" / "quickstart.py"
    code = (
        "import sys, runpy, sklearn.datasets\n"
        "def offline(*args, **kwargs): raise OSError\n"
        "sklearn.datasets.fetch_openml = offline\n"
        f"sys.argv = [{str(script)!r}]\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for words in ("taking breast cancer", "private, epsilon = 1", "differentially private"):
        assert words in output
    assert "epsilon      3 spent of 4" in output
