"""How far a reader walks: the code that one call enters, and counts of the source code itself.

Usage: python docs/benchmarks/walks.py [--pairs N] [--source]

For each call it prints how many files, classes and functions of skdp are entered, how deep the
calls are nested, and, of a fit, at which function the estimator's own file is reached. Each call is
made once before it is counted, so that imports and caches do not count. ``--pairs N`` adds the most
frequent changes from one file to another. ``--source`` counts lines, long functions, plans and some
constructs of the source.
"""

import argparse
import ast
import inspect
import re
import statistics
import sys
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import skdp
from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPSGDClassifier,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp.accounting import PureDP

SKDP = Path(skdp.__file__).parent
SKLEARN = Path(inspect.getfile(StandardScaler)).parent.parent
TESTS = SKDP.parent / "tests"


class Walk:
    """A profiler that records which functions of a package are entered, in their order."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.files = []
        self.functions = []
        self.depth = 0
        self.max_depth = 0

    def __call__(self, frame, event, argument):
        code = frame.f_code
        if not code.co_filename.startswith(self.folder):
            return
        if event == "return":
            self.depth -= 1
        elif event == "call":
            self.depth += 1
            self.max_depth = max(self.max_depth, self.depth)
            self.files.append(code.co_filename)
            # Comprehensions are code objects of their own before Python 3.12.
            if not re.search("<(listcomp|genexpr|dictcomp|setcomp)>$", code.co_qualname):
                self.functions.append((code.co_filename, code.co_qualname))

    @property
    def classes(self):
        names = {
            (file, name.rpartition(".")[0].rpartition("<locals>.")[2])
            for file, name in self.functions
        }
        return {(file, name) for file, name in names if name and not name.endswith("<locals>")}


def walk(call, folder):
    """Return the walk of the second of two calls."""
    call()
    counted = Walk(folder)
    sys.setprofile(counted)
    try:
        call()
    finally:
        sys.setprofile(None)
    return counted


def make_calls():
    """Yield a name, a function to call, the package to look at, and the class that is fitted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    y = (X[:, 0] > 0).astype(int)
    accountant = PrivacyAccountant(epsilon=1e6, delta=0.5)
    options = {"epsilon": 1.0, "accountant": accountant}
    scaler = DPStandardScaler(bounds=(-3, 3), **options)
    output = DPLogisticRegression(classes=[0, 1], mechanism="output", delta=0.0, **options)
    logistic = DPLogisticRegression(classes=[0, 1], **options)
    sgd = DPSGDClassifier(classes=[0, 1], **options)
    search = DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), {"C": [0.1, 1.0]}, **options)
    event = PureDP(0.1)
    yield "charge", lambda: accountant.charge(event, label="a"), SKDP, None
    yield "StandardScaler of scikit-learn", lambda: StandardScaler().fit(X), SKLEARN, StandardScaler
    yield "DPStandardScaler", lambda: scaler.fit(X), SKDP, DPStandardScaler
    theirs = LogisticRegression()
    yield "LogisticRegression, theirs", lambda: theirs.fit(X, y), SKLEARN, LogisticRegression
    yield "DPLogisticRegression, output", lambda: output.fit(X, y), SKDP, DPLogisticRegression
    yield "DPLogisticRegression", lambda: logistic.fit(X, y), SKDP, DPLogisticRegression
    yield "DPSGDClassifier", lambda: sgd.fit(X, y), SKDP, DPSGDClassifier
    yield "DPGridSearchCV", lambda: search.fit(X, y), SKDP, DPGridSearchCV


def print_walks(n_pairs):
    print(f"{'call':32} files classes functions depth changes  own file at function")
    for name, call, folder, cls in make_calls():
        counted = walk(call, folder)
        files = counted.files
        changes = sum(last != file for last, file in pairwise(files))
        own = "" if cls is None else inspect.getfile(cls)
        reached = [file for file, _ in counted.functions].index(own) + 1 if own in files else "-"
        print(
            f"{name:32} {len(set(files)):5} {len(counted.classes):7} "
            f"{len(set(counted.functions)):9} {counted.max_depth:5} {changes:7,}  {reached}"
        )
        moves = Counter((last, file) for last, file in pairwise(files) if last != file)
        for (last, file), times in moves.most_common(n_pairs):
            last, file = (Path(path).relative_to(folder) for path in (last, file))
            print(f"{times:10,}  {last} -> {file}")


def is_tuple_packing(node):
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )


def print_source():
    """Print counts of the source code; their table is in docs/development/architecture.md."""
    sources = {path: ast.parse(path.read_text()) for path in sorted(SKDP.rglob("*.py"))}
    nodes = [node for tree in sources.values() for node in ast.walk(tree)]
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    lengths = [len(path.read_text().splitlines()) for path in sources]

    def code_lines(function):
        body = function.body
        if ast.get_docstring(function) is not None and len(body) > 1:
            body = body[1:]
        return function.end_lineno - body[0].lineno + 1

    longest = max(functions, key=code_lines)
    plans = [
        cls.name
        for cls in classes
        if {"event", "run"}
        <= {getattr(n, "name", "") for n in cls.body}
        | {
            t.id
            for n in cls.body
            if isinstance(n, ast.Assign)
            for t in n.targets
            if isinstance(t, ast.Name)
        }
    ]
    documented = [n for n in nodes if isinstance(n, ast.Module)] + classes + functions
    docstrings = [text for text in map(ast.get_docstring, documented) if text]
    firsts = [text.splitlines()[0].lower() for text in docstrings]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    private = re.compile(
        r"\bskdp(\.\w+)*\._[a-z]|from tests\._private import"
        r"|from skdp[.\w]* import (\([^)]*\b|.*\b)_[a-z]"
    )
    tests = [path.read_text() for path in TESTS.rglob("test_*.py")] if TESTS.exists() else []
    counts = {
        "lines of skdp": sum(lengths),
        "files: median, longest": (statistics.median(lengths), max(lengths)),
        "longest function": (longest.name, code_lines(longest)),
        "classes that define event and run": len(plans),
        "placeholders in docstrings": sum(
            len(re.findall(r"^\s*\{\w+\}$", text, re.MULTILINE)) for text in docstrings
        ),
        "lambdas": sum(isinstance(node, ast.Lambda) for node in nodes),
        "a, b = x, y": sum(map(is_tuple_packing, nodes)),
        "conditional expressions": sum(isinstance(node, ast.IfExp) for node in nodes),
        "**dict in calls": sum(any(k.arg is None for k in node.keywords) for node in calls),
        "docstrings": len(docstrings),
        'docstrings with "what" in the first line': sum("what" in first for first in firsts),
        "test files that reach private names": (
            sum(map(bool, map(private.search, tests))),
            len(tests),
        ),
    }
    for name, count in counts.items():
        print(f"{name:42} {count}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--source", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.source:
        print_source()
    else:
        print_walks(arguments.pairs)
