"""The API reference lists every public name, and each docstring says what a user must know."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import skdp
from tests._public import public_names

DOCS = Path(__file__).parents[1] / "docs"
PACKAGES = [
    "skdp",
    *(
        f"skdp.{module.name}"
        for module in pkgutil.iter_modules(skdp.__path__)
        if module.ispkg and not module.name.startswith("_")
    ),
]

# Public names of `skdp.base`, which is no package.
FOR_AUTHORS = ["clip_features", "clip_rows", "exact_counts", "exact_sum", "sum_grid"]

# What numpydoc asks for and this house does not.
SWITCHED_OFF = {
    "ES01": "a summary that says it all needs no second paragraph",
    "SA01": "packages are small, and the reference shows neighbors beside each other",
    "SS05": "nouns like 'Quantiles' and 'Bounds' are taken for verbs of the third person",
    "GL01": "the summary starts beside the quotes, as in scikit-learn",
    "GL02": "a docstring of one line ends beside the quotes",
    "RT02": "'self : estimator' and named results, as in scikit-learn",
    "RT03": "the summary and the type with its shape say what is returned",
    "RT04": "a description may start with a symbol",
    "PR08": "a description may start with a symbol",
}
# Users meet these as what another call returns or raises; the example stands there.
SHOWN_ELSEWHERE = {
    "Allowance",
    "BoundedScore",
    "BudgetExceededError",
    "BudgetReport",
    "DPScorer",
    "DPScores",
    "Reuse",
    "EpsilonAudit",
    "LedgerError",
    "MembershipInference",
    "Part",
    "PipelineCheck",
    "PipelinePlan",
    "PrivacyReport",
    "PrivacyStatement",
    "RawDataWarning",
    "Reservation",
    "SeededNoiseWarning",
    "Charge",
}


def public_objects():
    """Return the public names with what they stand for, each once, at its first address."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in public_names(module):
            value = getattr(module, name)
            if all(value is not known for known in found.values()):
                found[f"{package}.{name}"] = value
    return found | {f"skdp.base.{name}": getattr(skdp.base, name) for name in FOR_AUTHORS}


PUBLIC = public_objects()
DOCUMENTED = {name: value for name, value in PUBLIC.items() if callable(value)}
ESTIMATORS = {
    name: value
    for name, value in DOCUMENTED.items()
    if inspect.isclass(value) and hasattr(value, "fit")
}


def listed_names():
    """Return the addresses that the page of the API reference lists."""
    names, module = [], None
    for line in (DOCS / "api" / "index.md").read_text().splitlines():
        if match := re.match(r"\.\. currentmodule:: ([\w.]+)", line):
            module = match[1]
        elif match := re.match(r"   ([A-Za-z][\w.]*)$", line):
            names.append(f"{module}.{match[1]}")
    return names


def resolve(address):
    """Return what a dotted address stands for."""
    value = skdp
    for part in address.split(".")[1:]:
        if not hasattr(value, part):
            importlib.import_module(f"{value.__name__}.{part}")
        value = getattr(value, part)
    return value


def members(address, value):
    """Yield the addresses of the public methods and properties that skdp gives to a class."""
    for name in dir(value) if inspect.isclass(value) else ():
        member = inspect.getattr_static(value, name)
        owner = next(c for c in value.__mro__ if name in vars(c))
        if name.startswith("_") or not owner.__module__.startswith("skdp."):
            continue
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        described = isinstance(member, property) and re.search(
            rf"^ +(\w+, )*{name}(, \w+)* : ", value.__doc__, flags=re.M
        )
        if not described and (inspect.isfunction(function) or isinstance(member, property)):
            yield f"{address}.{name}"


def test_the_reference_lists_every_public_name():
    listed = [resolve(name) for name in listed_names()]
    missing = [
        name
        for name, value in PUBLIC.items()
        if name != "skdp.__version__" and all(value is not known for known in listed)
    ]
    assert not missing, f"add to docs/api/index.md: {missing}"


def test_the_reference_lists_no_name_twice():
    names = listed_names()
    assert len(names) > 100 and len(set(names)) == len(names)


@pytest.mark.parametrize("address", DOCUMENTED)
def test_docstrings_say_what_numpydoc_asks_for(address):
    validate = pytest.importorskip("numpydoc.validate").validate
    faults = [(address, *error) for error in validate(address)["errors"]]
    if address.rsplit(".", 1)[1] in SHOWN_ELSEWHERE:
        faults = [fault for fault in faults if fault[1] != "EX01"]
    for member in members(address, DOCUMENTED[address]):
        errors = validate(member)["errors"]
        faults += [(member, *error) for error in errors if error[0] != "EX01"]
    assert not [fault for fault in faults if fault[1] not in SWITCHED_OFF]


# Packages whose public methods are annotated, too; for functions and constructors of all packages
# see test_types.py.
TYPED = ("skdp.accounting.", "skdp.ledger.", "skdp.mechanisms.", "skdp.stats.")


def is_annotated(function):
    signature = inspect.signature(function)
    given = [p for name, p in signature.parameters.items() if name not in ("self", "cls")]
    complete = all(p.annotation is not p.empty for p in given)
    return complete and (
        signature.return_annotation is not signature.empty or function.__name__ == "__init__"
    )


@pytest.mark.parametrize("address", [a for a in DOCUMENTED if a.startswith(TYPED)])
def test_public_methods_are_annotated(address):
    functions = {address: DOCUMENTED[address]}
    if inspect.isclass(DOCUMENTED[address]):
        functions = {
            name: getattr(function, "fget", getattr(function, "__func__", function))
            for name, function in vars(DOCUMENTED[address]).items()
            if not name.startswith("_")
        }
    functions = {n: f for n, f in functions.items() if inspect.isfunction(f)}
    assert not [name for name, function in functions.items() if not is_annotated(function)]


@pytest.mark.parametrize("address", ESTIMATORS)
def test_estimators_state_guarantee_source_and_proof(address):
    estimator = ESTIMATORS[address]
    doc = inspect.getdoc(estimator)
    assert re.search(r"differentially private|private", doc)
    for section in ("Parameters", "Attributes", "Raises", "Notes", "References", "Examples"):
        assert f"\n{section}\n---" in doc, section
    notes = doc[doc.index("\nNotes\n---") :]
    pages = [DOCS / f"{name}.md" for name in re.findall(r"``docs/([\w/]+)\.md``", notes)]
    assert pages and all(page.exists() for page in pages)
    named = any(estimator.__name__ in page.read_text() for page in pages)
    assert named, f"none of the pages that its Notes name speaks of {estimator.__name__}"


@pytest.mark.parametrize("address", ESTIMATORS)
def test_a_guarantee_has_its_place_among_the_numbered_ones(address):
    named = ESTIMATORS[address].__name__ in (DOCS / "theory" / "guarantees.md").read_text()
    assert named, f"give {ESTIMATORS[address].__name__} a section of docs/theory/guarantees.md"
