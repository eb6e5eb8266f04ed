"""Pages for users of other libraries: their names, beside names that are here."""

import importlib
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs/tutorials"
LIBRARIES = ["diffprivlib", "opacus", "opendp"]

# The public names of diffprivlib 0.6.6: those without a leading underscore that it defines.
MODELS = """DecisionTreeClassifier GaussianNB KMeans LinearRegression LogisticRegression PCA
    RandomForestClassifier StandardScaler"""
TOOLS = """count_nonzero histogram histogram2d histogramdd mean median nanmean nanstd nansum nanvar
    percentile quantile std sum var"""
MECHANISMS = """Binary Bingham DPMachine DPMechanism Exponential ExponentialCategorical
    ExponentialHierarchical Gaussian GaussianAnalytic GaussianDiscrete Geometric GeometricFolded
    GeometricTruncated Laplace LaplaceBoundedDomain LaplaceBoundedNoise LaplaceFolded
    LaplaceTruncated PermuteAndFlip Snapping Staircase TruncationAndFoldingMixin Uniform Vector"""
ACCOUNTANT = """check delta epsilon load_default pop_default remaining set_default slack spend
    spent_budget total"""
UTILS = """Budget BudgetError DiffprivlibCompatibilityWarning PrivacyLeakWarning check_random_state
    copy_docstring warn_unused_args"""
VALIDATION = "DiffprivlibMixin check_bounds check_epsilon_delta clip_to_bounds clip_to_norm"
NAMES = ["BudgetAccountant"] + [
    f"{place}.{name}"
    for place, names in {
        "models": MODELS,
        "tools": TOOLS,
        "mechanisms": MECHANISMS,
        "BudgetAccountant": ACCOUNTANT,
        "utils": UTILS,
        "validation": VALIDATION,
    }.items()
    for name in names.split()
]


def rows(library="diffprivlib"):
    """Return the cells of the rows of the table on a library's page."""
    page = (FOLDER / f"coming_from_{library}.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def names_of(cell):
    return [name.partition("(")[0] for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_of_diffprivlib_has_a_row(name):
    found = [row for row in rows() if name in names_of(row[0])]
    assert len(found) == 1
    assert names_of(found[0][1]) or found[0][1] == "none yet"


def resolve(name):
    """Return what a name stands for in skdp, or raise."""
    first, *rest = name.split(".")
    found = importlib.import_module("skdp")
    if not hasattr(found, first):
        found = importlib.import_module(f"skdp.{first}")
    else:
        rest = [first, *rest]
    for part in rest:
        found = getattr(found, part)
    return found


def test_every_name_of_skdp_in_that_table_is_there():
    named = {name for row in rows() for name in names_of(row[1])}
    assert len(named) > 30
    for name in named:
        assert resolve(name) is not None
    with pytest.raises((AttributeError, ImportError)):
        resolve("stats.dp_nothing")


# What is no class and in no package is a parameter, or an attribute of an object.
IS_NAME = re.compile(r"(DP|[a-z]+\.(?!privacy_|epsilon_spent)|Privacy|Randomized)\w+$")


@pytest.mark.parametrize("library", LIBRARIES[1:])
def test_names_on_the_other_pages_are_there(library):
    cells = [row[1] for row in rows(library)]
    named = {name for cell in cells for name in names_of(cell) if IS_NAME.match(name)}
    assert len(named) >= 3
    for name in named:
        assert resolve(name) is not None


def test_every_row_says_what_was_measured():
    assert all(len(row) == 4 and row[3] and "TODO" not in row[3] for row in rows())
