"""The page of the docs that lists the mutations."""

import re

from tests.mutations._mutant import ROOT

PAGE = ROOT / "docs" / "reference" / "mutations.md"

HEAD = """# Mutations

Each line of this list is a change to skdp that breaks its privacy in one place: a missing clip,
half of the noise, a row that is counted twice. The tests detect every change that was tried; the
last column names the test, or says "not tried". The list covers the core: charges, sensitivities,
noise, clips, samplers, prices, the reading of rows, and the reporting of seeds.

```sh
python -m tests.mutations          # runs all of them, and writes this page
python -m tests.mutations pca      # only those with "pca" in their name
python -m pytest -m slow tests/mutations  # the same, as tests
```

- **The change** is made by a rule on the syntax tree of a function, a class or a module, such as
  "the call to `clip` is dropped" or "the result is halved". If a rule no longer matches the code,
  that is an error, and a quick test checks this, so that the list stays up to date. A change
  follows its function to another module.
- **The run**: the module is changed in memory, in a separate process, before anything imports it.
  Only the tests that the list names for the change run. They pass without the change, and at least
  one of them fails with it.
- **Not in the list**: changes that leave the guarantee intact, such as a threshold that only costs
  accuracy.

To add a change, add it to `tests/mutations/mutations.py`. Mutants of the accountant's formulas are
also in `tests/accounting/test_pld.py`, and many tests include a mutant of the function that
they test. [Auditing](../how_to/auditing.md) describes attacks on whole estimators, and
[architecture](../development/architecture.md) the modules.
"""
FIRST_TABLE = "## skdp."
COLUMNS = ("change", "where", "rule", "consequence", "caught by")


def heading(package, n):
    columns = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n"
    return f"{FIRST_TABLE}{package}: {n} changes\n\n{columns}"


def row(mutation):
    """The part of a row that follows from the list alone."""
    where = f"{mutation.place}.{mutation.where}" if mutation.where else mutation.module
    rule = mutation.rule.words.replace("|", "\\|").replace("`", "")
    return f"| {mutation.id} | `{where}` | `{rule}` | {mutation.why} | "


def write_page(mutations, caught):
    """Write the page; `caught` maps the id of a mutation to the test that failed.

    The test of a mutation that was not tried this time stays as the page has it.
    """
    before = PAGE.read_text()
    known = dict(re.findall(r"^\| ([\w-]+) \|.*\| `([^`]+)` \|$", before, re.MULTILINE))
    text = HEAD
    for package in dict.fromkeys(m.package for m in mutations):
        own = [m for m in mutations if m.package == package]
        text += "\n" + heading(package, len(own))
        for mutation in own:
            test = caught.get(mutation.id, known.get(mutation.id, "not tried"))
            text += row(mutation) + f"`{test.partition('[')[0].removeprefix('tests/')}` |\n"
    PAGE.write_text(text)
    return PAGE
