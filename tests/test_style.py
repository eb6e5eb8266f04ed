"""Rules on how code reads."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import skdp

ROOT = Path(skdp.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))

# Openings of docstrings that have no subject and verb, or name nothing.
BANNED_OPENINGS = re.compile(
    r"(What|Say whether|Say how|Return what|Return how many|Do what|Of|That of|Those|Whose|Whether"
    r"|How|Refuse|Made)\b"
)
# Turns that are translated, that leave the subject to the reader, or that have a usual word.
BANNED_TURNS = re.compile(
    r"\b(so many|so manieth|whoever|whatever|that which|nothing but|likewise|moreover|made-up"
    r"|in (its|the|their) stead|in the place of|words in their place|is no guarantee|what is"
    r"|as far as|truth values?|by itself|by themselves|of its own|of their own|as which"
    r"|take[sn]? no sparse|gets? no column|at min_\w+|hangs? on|is told|stands? for|stands? in)\b"
    r"|\w's included\b|; [A-Z]\w+Error\b|\b(neighbour|colour|behaviour|centre)"
    r"|\b(regular|normal|optim|minim|maxim|random|general|recogn|standard)is(e|ed|es|ing|ation)\b",
    re.IGNORECASE,
)
# Words of identifiers that name nothing, or that the field calls otherwise.
BANNED_WORDS = {
    "bend",
    "bends",
    "booked",
    "kept",
    "moved",
    "needy",
    "own",
    "quiet",
    "said",
    "told",
    "turned",
    "worlds",
}
# Whole names of variables and arguments that name nothing.
BANNED_NAMES = {"each", "found", "given", "sought", "taken", "wanted", "what"}
# Classes that check their subclasses; nothing else is done behind the back of a reader.
INIT_SUBCLASS = {"BoundedScore"}


def relative(path):
    return str(path.relative_to(ROOT))


@cache
def parsed(path):
    return ast.parse(path.read_text())


def docstrings(path):
    """Yield the name and the docstring of a module and of all in it that have one."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "module"), text


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_docstrings_are_complete_in_the_source(path):
    for name, text in docstrings(path):
        assert not re.search(r"^\s*\{\w+\}$", text, re.MULTILINE), name


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_nothing_is_made_behind_the_back_of_a_reader(path):
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ClassDef) and node.name not in INIT_SUBCLASS:
            methods = {getattr(statement, "name", "") for statement in node.body}
            assert "__init_subclass__" not in methods, node.name
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            called = getattr(node.value.func, "id", "")
            given = [type(argument) for argument in node.value.args]
            assert not (called == "property" and ast.Lambda in given), ast.unparse(node)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            raise AssertionError(f"write a function: {ast.unparse(node)}")


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_docstrings_begin_with_a_noun_or_a_verb(path):
    for name, text in docstrings(path):
        assert not BANNED_OPENINGS.match(text), f"{name}: {text.splitlines()[0]}"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_comments_are_sentences(path):
    for line in path.read_text().splitlines():
        assert not re.match(r"\s*# Of\b", line), line


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_sentences_have_no_banned_turn(path):
    texts = [text for _, text in docstrings(path)]
    comments = re.findall(r"^\s*# (.*)$", path.read_text(), re.MULTILINE)
    messages = [
        node.value
        for raised in ast.walk(parsed(path))
        if isinstance(raised, ast.Raise)
        for node in ast.walk(raised)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for text in (*texts, " ".join(comments), *messages):
        turn = BANNED_TURNS.search(" ".join(text.split()))
        assert not turn, turn and turn.group()


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_names_are_words_of_the_field(path):
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Name | ast.arg):
            assert getattr(node, "id", getattr(node, "arg", "")) not in BANNED_NAMES
        names = [getattr(node, field, None) for field in ("id", "attr", "name", "arg")]
        for name in names:
            if isinstance(name, str):
                assert not BANNED_WORDS & set(name.lower().strip("_").split("_")), name
