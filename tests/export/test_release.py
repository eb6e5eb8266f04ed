"""What describes a release says the same of it."""

import re
import tomllib
from pathlib import Path

import pytest

import skdp

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE = (ROOT / "docs" / "conda" / "meta.yaml").read_text()


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("CITATION.cff", r"^version: (.*)$"),
        ("docs/images/badge_version.svg", r"<title>version: (.*)</title>"),
        ("docs/conda/meta.yaml", r'^{% set version = "(.*)" %}$'),
        ("CHANGELOG.md", r"^## (\S+)"),
    ],
)
def test_pages_are_of_this_version(page, words):
    assert re.search(words, (ROOT / page).read_text(), flags=re.M)[1] == skdp.__version__


def test_a_release_is_no_development_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", skdp.__version__)


def test_the_recipe_asks_for_what_the_package_asks_for():
    found = re.findall(r"^    - (joblib|numpy|scikit-learn|scipy) (>=\S+)$", RECIPE, flags=re.M)
    assert sorted(map("".join, found)) == sorted(PROJECT["dependencies"])


def test_the_badge_of_python_names_the_versions_of_the_classifiers():
    badge = (ROOT / "docs" / "images" / "badge_python.svg").read_text()
    named = re.findall(r"Python :: (\d+\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert re.search("<title>python: (.*)</title>", badge)[1].split(" | ") == named


def test_classifiers_name_no_python_that_is_not_asked_for():
    least = tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))
    named = re.findall(r"Python :: (\d+)\.(\d+)", "\n".join(PROJECT["classifiers"]))
    assert named and min(tuple(map(int, pair)) for pair in named) == least
