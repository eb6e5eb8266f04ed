"""The page of the docs that lists the mutations."""

import re

from tests.mutations._mutant import ROOT

PAGE = ROOT / "docs" / "development" / "mutations.md"

# What stands before the first table is written by hand.
FIRST_TABLE = "## skdp."
COLUMNS = ("change", "where", "rule", "what it gives away", "caught by")


def heading(package, n):
    columns = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n"
    return f"{FIRST_TABLE}{package}: {n} changes\n\n{columns}"


def row(mutation):
    """The part of a row that follows from the list alone."""
    where = f"{mutation.place}.{mutation.where}" if mutation.where else mutation.module
    rule = mutation.rule.words.replace("|", "\\|").replace("`", "")
    return f"| {mutation.id} | `{where}` | `{rule}` | {mutation.why} | "


def write_page(mutations, caught):
    """Write the page; `caught` holds the test that failed, by id.

    The test of a mutation that was not tried this time stays as the page has it.
    """
    before = PAGE.read_text()
    known = dict(re.findall(r"^\| ([\w-]+) \|.*\| `([^`]+)` \|$", before, re.MULTILINE))
    text = before.partition(FIRST_TABLE)[0].rstrip() + "\n"
    for package in dict.fromkeys(m.package for m in mutations):
        own = [m for m in mutations if m.package == package]
        text += "\n" + heading(package, len(own))
        for mutation in own:
            test = caught.get(mutation.id, known.get(mutation.id, "not tried"))
            text += row(mutation) + f"`{test.partition('[')[0].removeprefix('tests/')}` |\n"
    PAGE.write_text(text)
    return PAGE
