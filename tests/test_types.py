"""Type checkers, editors, Sphinx and `import *` see the true public names and parameters."""

import ast
import importlib
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests._public import ESTIMATORS
from tests.test_api_reference import DOCUMENTED, PACKAGES

ROOT = Path(__file__).parents[1]

# Each line that ends with "# wrong" must be reported, and no other.
USES = """
from pathlib import Path

import numpy as np
from pandas import DataFrame
from scipy.sparse import csr_array

from skdp import DPLogisticRegression, DPRidge, DPStandardScaler, PrivacyAccountant
from skdp.audit import audit_epsilon
from skdp.mechanisms import GaussianMechanism
from skdp.model_selection import dp_cross_val_score
from skdp.pipeline import split_budget
from skdp.stats import dp_mean

acc = PrivacyAccountant(1.0, 1e-6, unit="person", ledger=Path("budget.db"))
PrivacyAccountant(1.0)  # wrong
PrivacyAccountant(1.0, 0.0, relation="replace")  # wrong
PrivacyAccountant(1.0, 0.0, relation=acc.relation)
acc.epsilon_spent + 1.0
acc.epsilon_spent.upper()  # wrong

DPLogisticRegression(1.0, delta=1e-6, C="auto", accountant=acc)
DPLogisticRegression(acountant=acc)  # wrong
DPLogisticRegression(1.0, 2.0)  # wrong
DPLogisticRegression(mechanism="outptu")  # wrong
DPLogisticRegression(C="large")  # wrong
DPLogisticRegression(classes=["no", "yes"], class_weight={"no": 1.0, "yes": 2.0})
DPRidge(target_bounds=5.0)  # wrong
DPRidge(target_bounds=(0, 5))
DPStandardScaler(bounds=(0, 1))
DPStandardScaler(bounds=([0.0, 1.0], np.ones(2)))
DPStandardScaler(bounds={"age": (0, 100)})
DPStandardScaler(bounds=1.0)  # wrong

table = np.ones((4, 2))
for X in (table, table.tolist()):
    dp_cross_val_score(DPRidge(), X, [0.0] * 4)
dp_cross_val_score(DPRidge(), DataFrame(table), table[:, 0])
dp_cross_val_score(DPRidge(), csr_array(table), table[:, 0])
dp_cross_val_score(DPRidge(), Path("table.parquet"), table[:, 0])
dp_cross_val_score(DPRidge(), table, table[:, 0], epsilons=1.0)  # wrong
audit_epsilon(DPRidge(), method="two_words")  # wrong
dp_mean(table, bounds="automatic")  # wrong
GaussianMechanism(1.0, 1e-6, 1.0).noise_multiplier * 2.0
split_budget(DPRidge(), 1.0).predict(table)
DPRidge().fit(table, table[:, 0], groups=[1, 1, 2, 3])
DPRidge().fit(table, table[:, 0], group=[1, 1, 2, 3])  # wrong
DPRidge().predict(table, "proba")  # wrong
"""


@pytest.mark.thorough
def test_a_type_checker_reports_wrong_arguments_and_no_others(tmp_path):
    pytest.importorskip("mypy")
    path = tmp_path / "uses.py"
    path.write_text(USES)
    run = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(path)]
    result = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    reported = {
        int(line.split(":")[1]) for line in result.stdout.splitlines() if ": error:" in line
    }
    lines = enumerate(USES.splitlines(), 1)
    assert reported == {n for n, line in lines if line.endswith("# wrong")}, result.stdout


def signed_functions():
    """Return the public functions of skdp, and the constructors that it writes out, by address."""
    functions = {}
    for address, value in DOCUMENTED.items():
        function = inspect.getattr_static(value, "__init__") if inspect.isclass(value) else value
        function = inspect.unwrap(function)
        # A dataclass has a generated constructor, whose annotations are those of its fields.
        is_own = getattr(function, "__module__", "").startswith("skdp")
        if inspect.isfunction(function) and is_own:
            functions[address] = function
    return functions


FUNCTIONS = signed_functions()


@pytest.mark.parametrize("address", FUNCTIONS)
def test_public_functions_and_constructors_are_annotated(address):
    function = FUNCTIONS[address]
    signature = inspect.signature(function)
    parameters = [p for name, p in signature.parameters.items() if name not in ("self", "cls")]
    assert not [p.name for p in parameters if p.annotation is p.empty]
    is_constructor = inspect.isclass(DOCUMENTED[address])
    assert is_constructor or signature.return_annotation is not signature.empty


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_the_source_of_a_constructor_has_its_parameters(kind):
    """Editors, such as those that use jedi, read the source and run nothing."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind.__init__)))
    arguments = tree.body[0].args
    written = [arg.arg for arg in (*arguments.args, *arguments.kwonlyargs)]
    assert arguments.vararg is None and arguments.kwarg is None
    assert written == ["self", *inspect.signature(kind).parameters]


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_sphinx_shows_the_parameters(kind):
    sphinx = pytest.importorskip("sphinx.util.inspect")
    assert list(sphinx.signature(kind).parameters) == list(inspect.signature(kind).parameters)


@pytest.mark.parametrize("package", PACKAGES)
def test_import_star_gives_the_public_names_only(package):
    names = {}
    exec(f"from {package} import *", names)
    names.pop("__builtins__")
    assert sorted(names) == sorted(importlib.import_module(package).__all__)
