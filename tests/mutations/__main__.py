"""Run every mutation, print what happened to each, and write the table of the docs.

python -m tests.mutations             all of them; writes docs/reference/mutations.md
python -m tests.mutations pca group   those with such a word in their id; writes their rows
"""

import sys

from tests.mutations._mutant import run_tests
from tests.mutations._report import write_page
from tests.mutations.mutations import MUTATIONS


def main(words):
    chosen = [m for m in MUTATIONS if not words or any(word in m.id for word in words)]
    selections = list(dict.fromkeys(s for m in chosen for s in m.tests))
    whole = run_tests(selections)
    unusable = [s for s in selections if not whole.passed(s)]
    if whole.problem or unusable:
        sys.exit(f"not passed without a mutation: {unusable}\n{whole.problem}")
    print(
        f"{len(selections)} selections of tests pass without a mutation, {whole.seconds:.0f} s",
        flush=True,
    )
    caught, seconds = {}, 0.0
    for mutation in chosen:
        run = run_tests(mutation.tests, mutation)
        seconds += run.seconds
        by = run.failed[0] if run.is_caught else run.problem or "SURVIVED"
        print(f"{mutation.id:40} {run.seconds:6.1f} s  {by}", flush=True)
        if run.is_caught:
            caught[mutation.id] = by
    print(f"{len(caught)} of {len(chosen)} mutations were caught, {seconds:.0f} s")
    if len(caught) < len(chosen):
        sys.exit(1)
    print(f"wrote {write_page(MUTATIONS, caught)}")


if __name__ == "__main__":
    main(sys.argv[1:])
