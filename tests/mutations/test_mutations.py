"""Every change that breaks privacy is noticed by the tests that are named for it."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.mutations import _rules as rules
from tests.mutations._mutant import ROOT, Mutation, run_tests
from tests.mutations._report import PAGE, row
from tests.mutations.mutations import MUTATIONS

SOURCE = """
LIMIT = {"one": 1, "two": 2}


class Noise:
    def scale(self, x):
        return max(clip(x, 0, 1), 2.0 * x)


def charge(x):
    y = touch(x)
    pay(x)
    if x < 3:
        raise ValueError
    return y


def plan(x):
    pay(split_epsilon(x, 0.2))
    return touch([1, x])
"""

CHANGES = [
    ("Noise.scale", rules.result_times(0.5), "return 0.5 * max(clip(x, 0, 1), 2.0 * x)"),
    ("Noise.scale", rules.call_dropped("clip"), "return max(x, 2.0 * x)"),
    ("Noise.scale", rules.call_dropped("max", keep=1), "return 2.0 * x"),
    ("Noise.scale", rules.term_dropped("2.0"), "return max(clip(x, 0, 1), x)"),
    ("Noise.scale", rules.call_renamed("max", "min"), "return min(clip(x, 0, 1), 2.0 * x)"),
    ("Noise.scale", rules.argument_put("clip", 2, "9"), "return max(clip(x, 0, 9), 2.0 * x)"),
    ("Noise.scale", rules.argument_times("clip", 0, 2.0), "max(clip(2.0 * x, 0, 1), 2.0 * x)"),
    ("charge", rules.assigned_times("y", 0.0), "y = 0.0 * touch(x)"),
    ("charge", rules.decided("x", False), "if False:"),
    ("charge", rules.flipped("x"), "if x > 3:"),
    ("charge", rules.statement_dropped("pay(x)"), "y = touch(x)\n    pass\n    if x < 3:"),
    ("charge", rules.refusals_dropped("ValueError"), "if x < 3:\n        pass\n    return y"),
    ("charge", rules.inserted("x = 2 * x", "pay(x)"), "x = 2 * x\n    pay(x)"),
    ("charge", rules.put_for("touch(_)", "x"), "y = x\n"),
    ("charge", rules.assigned("y", "0"), "y = 0\n"),
    ("plan", rules.share_forgotten(), "pay((0.2 * x, x))"),
    ("plan", rules.element_dropped("x"), "touch([1])"),
    ("", rules.entry_put("'two'", "1"), "LIMIT = {'one': 1, 'two': 1}"),
]


@pytest.mark.parametrize(("where", "rule", "expected"), CHANGES)
def test_rules_make_the_change_that_they_name(where, rule, expected):
    assert expected in rules.mutated(SOURCE, where, rule)


@pytest.mark.parametrize(
    ("where", "rule"),
    [
        ("Noise.gone", rules.result_times(0.5)),
        ("Noise", rules.call_dropped("gone")),
        ("charge", rules.put_for("x", "x")),
        ("charge", rules.both(rules.flipped("x"), rules.call_dropped("gone"))),
    ],
)
def test_a_place_that_is_gone_is_an_error(where, rule):
    with pytest.raises(rules.RuleError):
        rules.mutated(SOURCE, where, rule)


def test_every_mutation_still_has_its_place():
    for mutation in MUTATIONS:
        compile(mutation.source(), mutation.id, "exec")


def test_every_named_test_is_there():
    """A mutation whose test was renamed or removed is caught by nothing."""
    for selection in {selection for m in MUTATIONS for selection in m.tests}:
        file, _, name = selection.partition("[")[0].partition("::")
        assert f"\ndef {name}(" in (ROOT / "tests" / file).read_text(), selection


def test_the_core_of_the_guarantee_has_mutations():
    assert len({m.id for m in MUTATIONS}) == len(MUTATIONS) >= 75
    packages = Counter(m.package for m in MUTATIONS)
    core = "accounting ledger mechanisms noise _optim _data linear_model gam stats _fitting"
    assert min(packages[package] for package in core.split()) >= 3, packages


def test_a_mutation_follows_its_function_to_another_module():
    mutation = next(m for m in MUTATIONS if m.where)
    moved = replace(mutation, module="noise._source")
    assert moved.place == mutation.place and moved.source() == mutation.source()
    with pytest.raises(rules.RuleError):
        replace(mutation, where="no_such_function").source()


def test_the_page_lists_every_mutation():
    page = PAGE.read_text()
    missing = [m.id for m in MUTATIONS if row(m) not in page]
    assert not missing, f"run python -m tests.mutations: {missing}"


@pytest.mark.thorough
def test_one_is_caught_and_what_breaks_nothing_is_not():
    test = "mechanisms/test_sensitivity.py::test_sum"
    harmless = rules.put_for("'sensitivity'", "'the sensitivity'")
    caught = next(m for m in MUTATIONS if m.id == "replaced-sum-moves-once")
    other = Mutation("none", caught.module, caught.where, harmless, (test,), "nothing")
    assert run_tests(caught.tests, caught).is_caught
    run = run_tests(other.tests, other)
    assert run.passed(test) and not run.is_caught


@pytest.fixture(scope="module")
def unmutated():
    """What all named tests do without a mutation: a selection that fails catches nothing."""
    return run_tests(list(dict.fromkeys(s for m in MUTATIONS for s in m.tests)))


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.id)
def test_mutation_is_caught(mutation, unmutated):
    assert all(unmutated.passed(s) for s in mutation.tests), unmutated.problem
    run = run_tests(mutation.tests, mutation)
    assert run.is_caught, run.problem or f"{mutation.why}: no test noticed"
