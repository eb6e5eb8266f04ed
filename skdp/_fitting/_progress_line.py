"""Progress line of a long computation, in terminals and notebooks."""

import sys

from joblib import Parallel


def run_jobs(jobs, *, n_jobs, verbose, line_format, n, n_done=0):
    """Run joblib's delayed calls and return their results.

    Parameters
    ----------
    jobs : iterable of delayed calls
    n_jobs : int or None
    verbose : int or None
        None writes a progress line to the standard error if that is a terminal or a notebook.
        Other values are passed to joblib.
    line_format : str
        Format of the line, such as ``"audit_epsilon: {} of {} fits"``.
    n : int
        Number of jobs, including the jobs of earlier calls.
    n_done : int, default=0
        Number of jobs of earlier calls.

    Returns
    -------
    list
    """
    # The standard error of a notebook is not a terminal, but it is shown.
    is_visible = sys.stderr.isatty() or type(sys.stderr).__module__ == "ipykernel.iostream"
    shows_line = verbose is None and is_visible
    results = []

    def write_line():
        """Overwrite the progress line with the number of results so far."""
        if shows_line:
            print(
                f"\r{line_format.format(n_done + len(results), n)}",
                end="",
                file=sys.stderr,
                flush=True,
            )

    write_line()
    for result in Parallel(n_jobs=n_jobs, verbose=verbose or 0, return_as="generator")(jobs):
        results.append(result)
        write_line()
    if shows_line and n_done + len(results) == n:
        print(file=sys.stderr)
    return results
