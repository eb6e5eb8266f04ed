"""Each line of the pages about other tools does what its page says, where the tool is installed."""

import re
import warnings
from pathlib import Path

import pytest

from skdp import RawDataWarning

HOW_TO = Path(__file__).parents[1] / "docs" / "how_to"
INTRODUCTION = (HOW_TO / "other_tools.md").read_text("utf-8")
PAGES = sorted((HOW_TO / "other_tools").glob("*.md"))
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
# Other tools may not be installed: other tests of documents do not run these blocks.
IMPORTS = re.compile(r"```py\n(.*?)```", re.DOTALL)
RESULT = re.compile(r"(works|no warning|warns|refused)(?:: `(.*)`)?")
SECTIONS = [s for page in PAGES for s in page.read_text("utf-8").split("\n## ")[1:]]
NAMES = BLOCK.findall(INTRODUCTION)[-1]


def lines():
    """Yield the imports of a section, and the code and the result of each line of its table."""
    for section in SECTIONS:
        imports = IMPORTS.search(section)
        for line in section.splitlines():
            if line.startswith("| `"):
                code, result = (cell.strip() for cell in line.strip("| ").split(" | ")[:2])
                yield pytest.param(imports[1], code.strip("`"), result, id=code.strip("`"))


def test_there_are_many_lines():
    assert len(list(lines())) > 100


def test_the_introduction_links_to_every_page():
    assert all(f"(other_tools/{page.name})" in INTRODUCTION for page in PAGES)


@pytest.mark.parametrize("block", [0, 1])
def test_the_examples_of_the_introduction_run(block):
    with warnings.catch_warnings():
        exec(BLOCK.findall(INTRODUCTION)[block], {})


@pytest.mark.quick_cases(every=18)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("imports", "code", "result"), list(lines()))
def test_a_tool_does_what_the_page_says(imports, code, result, tmp_path, monkeypatch):
    # Some tools write where they are called.
    monkeypatch.chdir(tmp_path)
    names = {"folder": str(tmp_path)}
    exec(NAMES, names)
    try:
        exec(imports, names)
    except ImportError as error:
        pytest.skip(str(error))
    happens, words = RESULT.fullmatch(result).groups()
    accountant = names["a"]
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(code, names)
        except ValueError as raised:
            error = raised
    texts = [str(w.message) for w in caught if issubclass(w.category, RawDataWarning)]
    if happens == "refused":
        assert str(error).count(words) == 1
        assert accountant.epsilon_spent == 0.0
        return
    assert error is None
    if happens == "warns":
        assert len(texts) == 1
        assert words in texts[0]
    else:
        assert texts == []
