"""`import skdp` loads nothing that is not used, and all public names are there."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import skdp

ROOT = Path(skdp.__file__).parent

NAMES = """
import sys
import skdp
assert not {"numpy", "scipy", "sklearn", "pandas", "sqlite3"} & {*sys.modules}
assert {*skdp.__all__} <= {*dir(skdp)}
for name in dir(skdp):
    assert getattr(skdp, name) is getattr(skdp, name), name
assert not {name for name in dir(skdp) if name.startswith("_") and not name.startswith("__")}
try:
    skdp.DPRigde
except AttributeError as error:
    assert "module 'skdp' has no attribute 'DPRigde'" in str(error)
else:
    raise AssertionError
"""
FROM_PACKAGES = """
from sklearn.pipeline import make_pipeline
from skdp.linear_model import DPLogisticRegression
from skdp.pipeline import check_pipeline, split_budget
from skdp.preprocessing import DPStandardScaler

steps = make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLogisticRegression())
check = check_pipeline(steps)
assert "not known" not in str(check) and check.epsilon == 2.0, check
split_budget(steps, 1.0, 1e-6).fit([[0.0], [1.0]] * 5, [0, 1] * 5)
"""
THREADS = """
import threading
import skdp

barrier = threading.Barrier(4)
errors = []

def use(names):
    barrier.wait()
    try:
        for name in names:
            getattr(skdp, name)
    except Exception as error:
        errors.append(error)

names = list(skdp.__all__)
orders = [names, names[::-1], names[1::2] + names[::2], names[20:] + names[:20]]
threads = [threading.Thread(target=use, args=(order,)) for order in orders]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not errors, errors
"""


def imports_of_type_checkers():
    """Return the modules of the names that type checkers and editors see, by name."""
    tree = ast.parse((ROOT / "__init__.py").read_text())
    (branch,) = [node for node in tree.body if isinstance(node, ast.If) and len(node.body) > 1]
    return {alias.name: node.module for node in branch.body for alias in node.names}


def test_type_checkers_see_the_modules_that_are_imported():
    assert imports_of_type_checkers() == skdp._MODULES
    assert {*skdp._MODULES} == {*skdp.__all__} - {"__version__"}


def test_every_public_package_is_an_attribute():
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    packages |= {path.stem for path in ROOT.glob("*.py")}
    assert {name for name in packages if not name.startswith("_")} == {*skdp._PACKAGES}


@pytest.mark.parametrize(
    "code", [NAMES, THREADS, FROM_PACKAGES], ids=["names", "threads", "from packages"]
)
def test_names_are_imported_when_they_are_used(code):
    command = [sys.executable, "-W", "ignore", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr


def test_editors_see_the_names():
    jedi = pytest.importorskip("jedi")
    script = jedi.Script("import skdp\nskdp.DPRi", path=str(ROOT.parent / "example.py"))
    assert [each.name for each in script.complete(2, 9)] == ["DPRidge"]
    script = jedi.Script("import skdp\nskdp.DPRidge(", path=str(ROOT.parent / "example.py"))
    (signature,) = script.get_signatures(2, 13)
    assert signature.params[0].name == "epsilon"
