"""The examples are what the gallery needs, and each runs; benchmarks import what there is."""

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PICTURES = [path for path in EXAMPLES if path.name.startswith("plot_")]
BENCHMARKS = sorted((ROOT / "docs" / "benchmarks").glob("*.py"))
by_name = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
picture_by_name = pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)


@by_name
def test_an_example_compiles_and_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


@picture_by_name
def test_a_page_of_the_gallery_has_a_title_and_a_picture(path):
    source = path.read_text()
    title, line, *_ = ast.get_docstring(ast.parse(source)).split("\n")
    assert len(title) == len(line) > 10 and set(line) == {"="}
    assert "plt.show()" in source


def test_what_has_no_picture_has_no_place_in_the_gallery():
    settings = (ROOT / "docs" / "conf.py").read_text("utf-8")
    ignored = re.compile(re.search(r'"ignore_pattern": r"(.*)"', settings)[1])
    shown = [path.name for path in EXAMPLES if not ignored.search(path.name)]
    assert sorted(shown) == sorted([*(path.name for path in PICTURES), "quickstart.py"])


def test_the_index_of_benchmarks_lists_each_script():
    rows = [
        line.split("|")[1]
        for line in (ROOT / "docs" / "benchmarks" / "README.md").read_text("utf-8").splitlines()
        if line.startswith("| `")
    ]
    listed = re.findall(r"`(\w+\.py)`", " ".join(rows))
    scripts = [path.name for path in BENCHMARKS if not path.name.startswith("_")]
    assert sorted(listed) == scripts


@pytest.mark.parametrize("path", EXAMPLES + BENCHMARKS, ids=lambda path: path.stem)
def test_what_an_example_or_a_benchmark_imports_of_skdp_is_there(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "skdp":
            package = importlib.import_module(node.module)
            assert all(hasattr(package, alias.name) for alias in node.names)


@pytest.mark.thorough
def test_examples_and_benchmarks_use_names_that_exist():
    """Mypy reports attributes and parameters of skdp that were renamed or removed."""
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports=silent"]
    result = subprocess.run(
        [*command, *map(str, EXAMPLES + BENCHMARKS)], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode < 2, result.stderr
    renamed = re.findall(r'.*(?:"[A-Z]\w+"|Module) has no attribute .*', result.stdout)
    renamed += re.findall(r".*Unexpected keyword argument .*", result.stdout)
    assert [line for line in renamed if "list[" not in line] == []


@pytest.mark.slow
@picture_by_name
def test_a_picture_is_drawn(path, tmp_path):
    if "/proc/self/status" in path.read_text() and not Path("/proc/self/status").exists():
        pytest.skip("reads what Linux tells about memory")
    result = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:matplotlib", str(path)],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert not list(tmp_path.iterdir())
