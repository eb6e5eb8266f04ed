"""Each line of the pages about natural mistakes does what its table says."""

import re
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "how_to" / "natural_mistakes.md"
REFUSED_PAGE = DOCS / "reference" / "refused.md"
# Messages of 1.9: before, scikit-learn tells a step nothing of what is around it.
NEEDS_CALLBACKS = ("of scaled ones", "set data_norm to the norm of a row")
# What is said of words in a column of objects, as those of pandas 2 are: bounds make them numbers.
OF_OBJECTS = {"column 'job' is categorical": "column 'job' contains values that are not numbers"}


def _rows(heading, page=PAGE):
    section = page.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


REFUSED = [(code, words, 0.0) for code, words in _rows("Refused before the charge", REFUSED_PAGE)]
WARNED = [(code, words, float(spent)) for code, words, spent in _rows("With a warning")]
SILENT = [(code, "", float(spent)) for code, spent, _ in _rows("Without a warning")]


@pytest.fixture(scope="module")
def names():
    # Without a name, the classes of the page would look like those of Python.
    known = {"__name__": "natural_mistakes"}
    block = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)[1]
    exec(block, known)
    return known


def _happens(code, names):
    """Return the error of a line or None, its warnings in one text, and the epsilon it spent."""
    accountant = names["PrivacyAccountant"](20.0, 1e-4)
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(code.strip("`"), names | {"a": accountant})
        except (TypeError, ValueError, RuntimeError) as raised:
            error = raised
    return error, "\n".join(str(each.message) for each in caught), accountant.epsilon_spent


def test_the_page_has_forty_mistakes():
    assert len(REFUSED) >= 40
    assert len({code for code, *_ in REFUSED + WARNED + SILENT}) == len(REFUSED + WARNED + SILENT)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize(("code", "words", "spent"), REFUSED)
def test_a_mistake_is_refused_in_words_that_help_and_costs_nothing(code, words, spent, names):
    pytest.importorskip("polars")
    error, _, charged = _happens(code, names)
    if names["frame"]["job"].dtype == object:
        words = OF_OBJECTS.get(words, words)
    assert words in str(error)
    assert charged == spent


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(("code", "words", "spent"), WARNED)
def test_a_mistake_that_is_done_is_warned_of_and_costs_what_is_said(code, words, spent, names):
    if words.startswith(NEEDS_CALLBACKS):
        pytest.importorskip("sklearn.callback")
    error, warned, charged = _happens(code, names)
    assert error is None
    assert words in warned
    assert charged == pytest.approx(spent)


@pytest.mark.parametrize(("code", "words", "spent"), SILENT)
def test_a_mistake_without_a_warning_costs_what_is_said(code, words, spent, names):
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    error, warned, charged = _happens(code, names)
    assert error is None
    assert warned == words
    assert charged == pytest.approx(spent)


def test_fits_of_a_pipeline_that_was_checked_or_is_private_are_not_warned_of(names):
    allowed = (
        "split_budget(make_pipeline(StandardScaler(), DPLogisticRegression()), 1.0, 1e-6, a, "
        "public_steps=['standardscaler']).fit(X, y)"
    )
    private = "make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLogisticRegression()).fit(X, y)"
    for code in (
        allowed,
        private,
        "tabular_pipeline(DPLogisticRegression, bounds={'age': (18, 90)}).fit(frame, y)",
    ):
        error, warned, _ = _happens(code, names)
        assert (error, warned) == (None, "")
