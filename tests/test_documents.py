"""What the documents show runs, and what they link to is there."""

import doctest
import importlib
import os
import pkgutil
import re
import runpy
import subprocess
import sys
import types
from collections import Counter
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import skdp

ROOT = Path(__file__).parents[1]
DOCS = sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
FENCED = re.compile(r"^```.*?^```", flags=re.S | re.M)


def code_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.S | re.M)


def anchors(page):
    """Return the names of a page's headings as GitHub and MyST make them."""
    names, seen = set(), Counter()
    for heading in re.findall(r"^#{1,3} (.*)$", FENCED.sub("", page.read_text()), flags=re.M):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


@pytest.mark.thorough
def test_the_readme_runs_in_a_fresh_interpreter(tmp_path):
    script = "\n".join(code_blocks(ROOT / "README.md"))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script]
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    printed = re.search(
        r"prints:\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S
    )
    assert result.stdout == printed[1]
    assert (tmp_path / "model.png").stat().st_size > 10_000


def test_pages_are_of_a_length_that_is_read():
    """Pages outside theory and reference; code counts."""
    limited = [
        page
        for page in DOCS
        if page.parent.name in ("tutorials", "how_to", "other_tools", "development", "docs")
        and page.name not in ("glossary.md", "changelog.md")
    ]
    assert len(limited) > 50
    n_words = {page.name: len(page.read_text().split()) for page in limited}
    assert {name: n for name, n in n_words.items() if n > 1500} == {}


def test_the_page_of_files_is_up_to_date():
    """Each file of the package has a docstring, and the page was written after its last change."""
    script = runpy.run_path(str(ROOT / "docs" / "_file_index.py"))
    assert all(script["subject"](path) for path in (ROOT / "skdp").rglob("*.py"))
    assert script["file_index"](ROOT / "skdp") == script["PAGE"].read_text(encoding="utf-8")


def test_the_readme_counts_the_estimators():
    classes = [
        value for value in (getattr(skdp, name) for name in skdp.__all__) if isinstance(value, type)
    ]
    n_estimators = sum(issubclass(cls, BaseEstimator) for cls in classes)
    assert f"All {n_estimators} estimators" in (ROOT / "README.md").read_text()


ELSEWHERE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import joblib, pandas
rows = pandas.read_csv("people.csv", parse_dates=["joined"]).drop(columns="renewed")
labels = joblib.load("model.joblib").predict(rows)
assert labels.shape == (20_000,) and 0.2 < labels.mean() < 0.45
"""


PRINTED = re.compile(r"^( *)print\((.*)\)  # (.*\d.*)$", flags=re.M)
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")


def assert_printed(comment, texts):
    """Assert that each number of a comment was printed, to the digits that the comment has."""
    printed = [float(number) for number in NUMBER.findall(" ".join(texts))]
    for number in NUMBER.findall(comment):
        decimals = len(number.partition("e")[0].partition(".")[2]) + 400 * ("e" in number)
        assert any(round(value, decimals) == float(number) for value in printed), (comment, texts)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Skipping check")
@pytest.mark.parametrize("page", [p for p in DOCS if code_blocks(p)], ids=lambda p: p.name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """In this interpreter: another one for each page would spend its time importing."""
    monkeypatch.chdir(tmp_path)
    script = "\n".join(code_blocks(page))
    printed = {}
    annotated = PRINTED.sub(r"\1print_annotated(r'''\3''', \2)", script)
    # As the main module, so that what a page defines can be pickled.
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    main.print_annotated = lambda comment, *values: printed.setdefault(comment, []).append(
        " ".join(map(str, values))
    )
    exec(compile(annotated, page.name, "exec"), vars(main))
    for comment, texts in printed.items():
        assert_printed(comment, texts)
    if page.name == "getting_started.md":
        assert len([line for line in script.splitlines() if line]) <= 40
        subprocess.run([sys.executable, "-W", "error", "-c", ELSEWHERE], check=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", FENCED.sub("", page.read_text()))
    for target, anchor in links:
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def test_pages_that_the_code_names_are_there():
    sources = [p for folder in ("skdp", "examples") for p in (ROOT / folder).rglob("*.py")]
    named = {name for p in sources for name in re.findall(r"docs/[\w/]+\.md", p.read_text())}
    assert len(named) > 5
    assert not [name for name in named if not (ROOT / name).exists()]


@pytest.mark.quick_cases(every=4)
@pytest.mark.filterwarnings("ignore:Skipping check")
@pytest.mark.parametrize(
    "name", [m.name for m in pkgutil.walk_packages(skdp.__path__, "skdp.") if "." in m.name]
)
def test_examples_in_docstrings(name):
    if name.startswith("skdp._loops.numba_"):
        pytest.importorskip("numba", reason="numba is not installed")
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


WITHOUT = """
import runpy, sys
class Absent:
    def find_spec(self, name, *args):
        if name.partition(".")[0] in ("pandas", "matplotlib"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
sys.argv = ["quickstart.py"]
sys.path.insert(0, {folder!r})
runpy.run_path({folder!r} + "/quickstart.py")
"""


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("bare", [False, True])
def test_the_quickstart_is_one_screen_without_a_warning(bare, tmp_path):
    examples = str(ROOT / "examples")
    command = ["-c", WITHOUT.format(folder=examples)] if bare else [examples + "/quickstart.py"]
    result = subprocess.run(
        [sys.executable, "-W", "error", *command],
        cwd=tmp_path,
        # Threads that wait for one another take minutes where processors are busy.
        env={"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    screen = result.stdout.replace(str(tmp_path), "").splitlines()
    assert len(screen) < 24 and max(map(len, screen)) < 80
    for words in ("Promised", "epsilon 1 of 3 spent, 2 left", "matplotlib" if bare else "Picture:"):
        assert words in result.stdout
    found = [float(line.split()[-1]) for line in screen if "private" in line]
    assert len(found) == 2 and min(found) > 0.83
    assert (tmp_path / "quickstart.png").exists() != bare
