"""The process that runs tests on a mutant: it replaces one module before anything imports it."""

import atexit
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Orders:
    """What to run and where to write it; `source` stands for the file of `module`, if any."""

    root: str
    tests: list
    outcomes: str
    output: str
    module: str = ""
    path: str = ""
    source: str = ""


class MutatedLoader(importlib.machinery.SourceFileLoader):
    """Compile the given source in the place of what the file holds."""

    def __init__(self, name, path, source):
        super().__init__(name, path)
        self.source = source

    def get_code(self, name):
        return compile(self.source, self.path, "exec")


class MutatedFinder:
    """Find one module by a loader of its own, and leave the others to Python."""

    def __init__(self, name, path, source):
        self.loader, self.is_used = MutatedLoader(name, path, source), False

    def find_spec(self, name, path=None, target=None):
        if name != self.loader.name:
            return None
        self.is_used = True
        return importlib.util.spec_from_file_location(name, self.loader.path, loader=self.loader)


class Outcomes:
    """A plugin of pytest that keeps the outcome of every test."""

    def __init__(self):
        self.of_test = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            if self.of_test.get(report.nodeid) != "failed":
                self.of_test[report.nodeid] = report.outcome


def run(orders):
    """Run pytest; end with 0 if it could run the tests, whether they passed or not."""
    output = os.open(orders.output, os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(orders.root)
    sys.path.insert(0, orders.root)
    if any(name.partition(".")[0] == "skdp" for name in sys.modules):
        sys.exit("skdp was imported before it could be changed")
    # What catches a mutation is in README's command or in the thorough rest, which .ci/run runs.
    options = ["-q", "-p", "no:cacheprovider", "-m", "not slow", "--tb=short"]
    finder = None
    if orders.source:
        options.append("-x")
        finder = MutatedFinder(orders.module, orders.path, orders.source)
        sys.meta_path.insert(0, finder)
    plugin = Outcomes()
    status = pytest.main([*options, *orders.tests], plugins=[plugin])
    Path(orders.outcomes).write_text(json.dumps(plugin.of_test))
    # A forked process would wait for the workers of tests, and leave their temporary folders.
    for worker in multiprocessing.active_children():
        worker.terminate()
    atexit._run_exitfuncs()
    if finder is not None and not finder.is_used:
        sys.exit(f"no test imports {orders.module}")
    # 0 and 1 are "all passed" and "some failed"; all else is an error of the run itself.
    sys.exit(0 if status in (0, 1) else 2)
