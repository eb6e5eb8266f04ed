"""Rules on how code reads."""

import ast
import re
from functools import cache
from pathlib import Path

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
# Nouns of numbers in texts, any of which may be 1: `count_of` writes both forms.
COUNTED = re.compile(
    r" (?:further |more |other )?(axes|booleans|calls|candidates|canaries|charges|classes|columns"
    r"|dimensions"
    r"|entries|estimators|features|folds|labels|lists|numbers|others|outputs|parts|probabilities"
    r"|records|releases|steps|tables|terms|values|warnings|weights)\b"
)
# Numbers that are at least 2, and words in the place of a number.
PLURALS = {"n_folds", "max_columns", "number_type", "its", "size"}
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


def faults(find):
    """Return what a function finds in the files of skdp, each with its file."""
    return [f"{relative(path)}: {fault}" for path in SOURCES for fault in find(path)]


def test_docstrings_are_complete_in_the_source():
    def placeholders(path):
        for name, text in docstrings(path):
            if re.search(r"^\s*\{\w+\}$", text, re.MULTILINE):
                yield name

    assert not faults(placeholders)


def test_functions_that_are_not_short_have_a_docstring():
    """Also inner functions: a reader of one file cannot guess what their callers need."""

    def undocumented(path):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                is_long = node.end_lineno - node.lineno >= 6
                if is_long and ast.get_docstring(node) is None:
                    yield node.name

    assert not faults(undocumented)


def test_nothing_is_made_behind_the_back_of_a_reader():
    def hidden(path):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and node.name not in INIT_SUBCLASS:
                methods = {getattr(statement, "name", "") for statement in node.body}
                if "__init_subclass__" in methods:
                    yield node.name
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
                called = getattr(node.value.func, "id", "")
                given = [type(argument) for argument in node.value.args]
                if called == "property" and ast.Lambda in given:
                    yield ast.unparse(node)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                yield f"write a function: {ast.unparse(node)}"

    assert not faults(hidden)


def test_docstrings_begin_with_a_noun_or_a_verb():
    def openings(path):
        for name, text in docstrings(path):
            if BANNED_OPENINGS.match(text):
                yield f"{name}: {text.splitlines()[0]}"

    assert not faults(openings)


def test_comments_are_sentences():
    assert not faults(lambda path: re.findall(r"^\s*# Of\b.*", path.read_text(), re.MULTILINE))


def test_sentences_have_no_banned_turn():
    def turns(path):
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
            if turn:
                yield turn.group()

    assert not faults(turns)


def test_names_are_words_of_the_field():
    def names(path):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Name | ast.arg):
                name = getattr(node, "id", getattr(node, "arg", ""))
                if name in BANNED_NAMES:
                    yield name
            for field in ("id", "attr", "name", "arg"):
                name = getattr(node, field, None)
                if isinstance(name, str) and BANNED_WORDS & set(name.lower().strip("_").split("_")):
                    yield name

    assert not faults(names)


def test_a_number_and_its_noun_agree():
    """A ledger held "1 records", and a table had "1 columns"."""

    def counts(path):
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.JoinedStr):
                continue
            for value, text in zip(node.values, node.values[1:], strict=False):
                if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                    continue
                name = ast.unparse(value.value)
                noun = COUNTED.match(text.value)
                is_constant = name.upper() == name
                is_text = value.conversion == ord("r") or "__name__" in name or "count_of" in name
                if noun and not (is_constant or is_text or name in PLURALS):
                    yield f"{name}{noun.group()}"

    assert faults(counts) == []
