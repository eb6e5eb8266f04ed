"""The page of the docs that lists the mutations."""

from tests.mutations._mutant import ROOT

PAGE = ROOT / "docs" / "mutations.md"

HEAD = """# How the tests are tested

A test that cannot fail protects nobody. Here is a list of changes to skdp that each break its privacy in one place: a
clip that is left out, noise that is halved, one row counted for two. The tests must notice every one of them.

```sh
python -m tests.mutations          # runs all of them and writes this page
python -m tests.mutations pca      # only those with "pca" in their name
```

- Each change is made by a **rule** on the syntax tree of one function, such as "the call of `clip` is dropped" or "the
  result is halved". A rule whose function or form is no longer there is an error, so that the list follows the code.
- The change is made in memory, in a process of its own, before anything imports the module. Only the tests that are
  named for it run. They must pass without the change, and one of them must fail with it.
- No change is in the list that leaves the guarantee as it was: thresholds that only lose accuracy, say.

"python -m pytest -m slow tests/mutations" runs the same. The fast tests check that every rule still finds its place.
To add one, add a line to `tests/mutations/mutations.py`; see [the architecture](architecture.md) for where things are
and [auditing](auditing.md) for attacks on whole estimators.

"""

COLUMNS = ("change", "where", "rule", "what it gives away", "caught by")


def heading(package, n):
    return f"## skdp.{package} ({n})\n\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n"


def row(mutation):
    """The part of a row that follows from the list alone."""
    where = f"{mutation.module}.{mutation.where}" if mutation.where else mutation.module
    rule = mutation.rule.words.replace("|", "\\|").replace("`", "")
    return f"| {mutation.id} | `{where}` | `{rule}` | {mutation.why} | "


def write_page(mutations, caught):
    """Write the page; `caught` holds the test that failed, by id."""
    text = HEAD + f"All {len(mutations)} changes below are caught.\n"
    for package in dict.fromkeys(m.package for m in mutations):
        own = [m for m in mutations if m.package == package]
        text += "\n" + heading(package, len(own))
        for mutation in own:
            test = caught[mutation.id].partition("[")[0].removeprefix("tests/")
            text += row(mutation) + f"`{test}` |\n"
    PAGE.write_text(text)
    return PAGE
