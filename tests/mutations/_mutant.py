"""What a mutation is, and whether tests notice it."""

import ast
import json
import multiprocessing
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import perf_counter

from tests.mutations import _child
from tests.mutations._child import Orders
from tests.mutations._rules import RuleError, mutated

ROOT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 600
SLOW_TO_IMPORT = ["pytest", "hypothesis", "pandas", "scipy.stats", "sklearn.linear_model"]


@dataclass(frozen=True)
class Mutation:
    """One change that breaks privacy, and the tests that must notice it.

    Parameters
    ----------
    id : str
        A short name.
    module : str
        Of the package, without "skdp.", when the mutation was written.
    where : str
        Qualified name of a function, or "" for the statements of the module. A function that is
        no longer in `module` is looked for in the others, so that a move breaks no mutation.
    rule : callable
        One of `_rules`.
    tests : tuple of str
        Node ids, without "tests/"; those of a function are all of its parameters.
    why : str
        What the change gives away.
    """

    id: str
    module: str
    where: str
    rule: object
    tests: tuple
    why: str

    @property
    def package(self):
        return self.place.partition(".")[0]

    @property
    def place(self):
        """The module that holds the function now."""
        if not self.where or _defines(_path(self.module), self.where):
            return self.module
        name = self.where.partition(".")[0]
        files = [path for path in (ROOT / "skdp").rglob("*.py") if name in path.read_text()]
        found = [path for path in files if _defines(path, self.where)]
        if len(found) != 1:
            raise RuleError(f"{self.id}: {self.where} is in {len(found)} modules besides its own")
        return ".".join(found[0].relative_to(ROOT / "skdp").with_suffix("").parts)

    @property
    def path(self):
        return _path(self.place)

    def source(self):
        """Return the source of the module after the change, or raise RuleError."""
        return mutated(self.path.read_text(), self.where, self.rule)


def _path(module):
    return ROOT.joinpath("skdp", *module.split(".")).with_suffix(".py")


@cache
def _parsed(path):
    """Return the syntax tree of a file, which nobody changes, or None if there is no such file."""
    return ast.parse(path.read_text()) if path.exists() else None


def _defines(path, where):
    """Return whether a file exists and defines a function or class of this qualified name."""
    node = _parsed(path)
    for name in where.split("."):
        kinds = ast.FunctionDef | ast.ClassDef
        inside = [n for n in getattr(node, "body", []) if isinstance(n, kinds) and n.name == name]
        node = inside[0] if inside else None
    return node is not None


@dataclass(frozen=True)
class Run:
    """Outcomes of tests by node id, why pytest could not run them if so, and the seconds."""

    outcomes: dict
    problem: str
    seconds: float

    @property
    def failed(self):
        return [name for name, outcome in self.outcomes.items() if outcome == "failed"]

    @property
    def is_caught(self):
        """Whether a test failed, in a run that pytest itself could make."""
        return bool(self.failed) and not self.problem

    def passed(self, selection):
        """Whether some test of a selection passed and none failed."""
        name = f"tests/{selection}"
        inside = (name + "[", name + "::")
        own = [o for n, o in self.outcomes.items() if n == name or n.startswith(inside)]
        return "passed" in own and "failed" not in own


def run_tests(selections, mutation=None):
    """Run tests in a process of their own, on a mutant or on the package as it is."""
    start = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        outcomes, output = Path(folder, "outcomes.json"), Path(folder, "output.txt")
        tests = [f"tests/{s}" for s in selections]
        orders = Orders(str(ROOT), tests, str(outcomes), str(output))
        if mutation is not None:
            module, path = f"skdp.{mutation.place}", str(mutation.path)
            orders = replace(orders, module=module, path=path, source=mutation.source())
        # Forks of a process that has imported what is slow to import, but nothing of skdp.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(SLOW_TO_IMPORT)
        process = context.Process(target=_child.run, args=(orders,))
        process.start()
        process.join(None if mutation is None else TIMEOUT_SECONDS)
        problem = ""
        if process.exitcode is None:
            process.kill()
            problem = f"no end within {TIMEOUT_SECONDS} s"
        elif process.exitcode != 0:
            problem = output.read_text()[-3000:] if output.exists() else "it did not start"
        found = json.loads(outcomes.read_text()) if outcomes.exists() else {}
        return Run(found, problem, perf_counter() - start)
