"""One line that says how far a long computation is, where someone is looking."""

import sys

from joblib import Parallel


def run_jobs(jobs, *, n_jobs, verbose, what, n, n_done=0):
    """Run joblib's delayed calls and return their results.

    Parameters
    ----------
    jobs : iterable of delayed calls
    n_jobs : int or None
    verbose : int or None
        None writes a line to the standard error where that is a terminal or a notebook's;
        others are joblib's.
    what : str
        Who counts what: ``"audit_epsilon: {} of {} fits"``.
    n : int
        How many there are, with those of earlier calls that the same line counts.
    n_done : int, default=0
        How many of them earlier calls ran.

    Returns
    -------
    list
    """
    # That of a notebook, which says that it is no terminal.
    is_seen = sys.stderr.isatty() or type(sys.stderr).__module__ == "ipykernel.iostream"
    shown = verbose is None and is_seen
    results = []

    def tell():
        if shown:
            print(f"\r{what.format(n_done + len(results), n)}", end="", file=sys.stderr, flush=True)

    tell()
    for result in Parallel(n_jobs=n_jobs, verbose=verbose or 0, return_as="generator")(jobs):
        results.append(result)
        tell()
    if shown and n_done + len(results) == n:
        print(file=sys.stderr)
    return results
