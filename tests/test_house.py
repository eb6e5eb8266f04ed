"""What the layout of the package promises: one source of noise, imports that go down."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import skdp
from tests._public import public_names

ROOT = Path(skdp.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
TESTS = Path(__file__).parent

# A package may import from the ones behind it.
ORDER = [
    "testing",
    "export",
    "calibration",
    "model_selection",
    "__main__",
    "_command_line",
    "pipeline",
    "display",
    "audit",
    "planning",
    "synthesis",
    "metrics",
    "cluster",
    "decomposition",
    "ensemble",
    "impute",
    "naive_bayes",
    "tree",
    "gam",
    "preprocessing",
    "svm",
    "linear_model",
    "stats",
    "base",
    "_optim",
    "_fitting",
    "_tools",
    "_reports",
    "_privacy_statement",
    "datasets",
    "mechanisms",
    "_data",
    "ledger",
    "accounting",
    "noise",
    "_loops",
    "utils",
    "exceptions",
    "_version",
]


@cache
def parsed(path):
    return ast.parse(path.read_text())


@cache
def imported_modules(path):
    """Return the absolute names of what a file imports at any depth."""
    package = ("skdp", *path.relative_to(ROOT).parts[:-1])
    names = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            names.append(".".join((*base, *filter(None, [node.module]))))
    return names


def test_randomness_comes_from_one_package():
    roads = r"np\.random|numpy\.random|default_rng|RandomState|\.rvs\(|urandom|secrets|\brandom\."
    for path in SOURCES:
        if path.is_relative_to(ROOT / "noise"):
            continue
        code = re.sub(r'""".*?"""|#.*', "", path.read_text(), flags=re.S)
        assert not re.findall(roads, code), path
        assert not {"random", "secrets", "numpy.random"} & set(imported_modules(path)), path


def test_only_public_names_of_sklearn_are_imported():
    for path in SOURCES:
        for name in imported_modules(path):
            assert not re.match(r"sklearn(\..*)?\._", name), path


def test_sums_over_rows_let_other_threads_run():
    """`dot` does; `@` and the wrappers of BLAS hold the interpreter until a long product ends."""
    blas = r"import .*\bblas\b|linalg\.blas import|get_blas_funcs"
    for path in SOURCES:
        assert not re.search(blas, path.read_text()), path
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef) and re.match("_?add_|weighted_sum", node.name):
                for each in ast.walk(node):
                    place = f"{node.name} of {path}"
                    assert not isinstance(each, ast.MatMult), place
                    name = getattr(each, "attr", "")
                    assert name not in ("matmul", "tensordot", "inner"), place


def test_imports_go_down():
    for path in SOURCES:
        parts = path.relative_to(ROOT).with_suffix("").parts
        for name in imported_modules(path) if parts[0] != "__init__" else ():
            if name.startswith("skdp.") and name.split(".")[1] != parts[0]:
                assert ORDER.index(name.split(".")[1]) > ORDER.index(parts[0]), (path, name)


def test_modules_import_no_name_of_the_whole_package():
    """Such an import would wait for the lock of `skdp.__getattr__`, holding that of its module."""
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            assert getattr(node, "module", None) != "skdp", path


@pytest.mark.parametrize("path", sorted(ROOT.rglob("__init__.py")), ids=lambda p: p.parent.name)
def test_public_names_are_there(path):
    name = ".".join(("skdp", *path.parent.relative_to(ROOT).parts))
    package = importlib.import_module(name)
    nodes = parsed(path).body
    if path.parent == ROOT:
        # The names of skdp itself are imported when they are used; type checkers see the imports.
        nodes = [
            *nodes,
            *(each for node in nodes if isinstance(node, ast.If) for each in node.body),
        ]
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    imported = [alias.asname or alias.name for node in imports for alias in node.names]
    exported = getattr(package, "__all__", [])
    assert sorted(imported) == sorted(exported)
    assert sorted(exported) == sorted(public_names(package))


def private_rooms(path):
    """Yield the package of each private name of skdp that a file of the tests imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        base = [node.module] if isinstance(node, ast.ImportFrom) else []
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            top, *words = ".".join((*base, alias.name)).split(".")
            if top == "skdp" and any(re.match("_(?!_)", word) for word in words):
                yield words[0]


def test_tests_import_private_names_of_the_room_that_they_stand_among():
    """Others come from the modules that all tests share, `tests/_private.py` above all."""
    reaching = [
        (str(path), room)
        for path in sorted(TESTS.rglob("*.py"))
        if path.parent != TESTS or not path.name.startswith("_")
        for room in private_rooms(path)
        if room != path.relative_to(TESTS).parts[0]
    ]
    assert reaching == []
