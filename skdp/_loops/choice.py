"""The choice between NumPy's loops and the loops that numba compiles."""

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec

NUMPY = "numpy"
NUMBA = "numba"
# Environment variable that forces one version for all fits, for comparisons and tests.
VARIABLE = "SKDP_LOOPS"
# Number of cells (public units times columns) from which compiled loops are used. Importing numba
# and loading loops from its cache takes about a second of processor time, once per process
# (docs/benchmarks/fast.py).
MIN_CELLS = 1 << 18
MODULES = {NUMPY: "skdp._loops.numpy_loops", NUMBA: "skdp._loops.numba_loops"}


def choose_loops(n_units, n_columns, min_cells=MIN_CELLS):
    """Return the version of the loops for a fit.

    Parameters
    ----------
    n_units : int
        Public number of rows, or of persons.
    n_columns : int
        Number of columns that the loops read.
    min_cells : int, default=MIN_CELLS
        Product of the two numbers from which compiled loops are used.

    Returns
    -------
    str
        "numba" if numba is installed and the table is large, otherwise "numpy". The environment
        variable ``SKDP_LOOPS`` forces one of them.

    Raises
    ------
    ValueError
        If the environment variable has an invalid value.
    ImportError
        If it is "numba" and numba is not installed.
    """
    forced = os.environ.get(VARIABLE, "auto")
    if forced not in ("auto", NUMPY, NUMBA):
        raise ValueError(
            f"The environment variable {VARIABLE} must be 'auto', 'numpy' or 'numba', got "
            f"{forced!r}."
        )
    if forced == NUMBA and not has_numba():
        raise ImportError(
            f"The environment variable {VARIABLE} is 'numba', but numba is not installed: install "
            "skdp[fast]."
        )
    if forced != "auto":
        return forced
    if n_units * n_columns >= min_cells and has_numba():
        return NUMBA
    return NUMPY


@cache
def has_numba():
    """Return True if numba is installed, without importing it."""
    return find_spec("numba") is not None


@cache
def get_loops(version):
    """Return the module of a version of the loops.

    Parameters
    ----------
    version : {"numpy", "numba"}
        Value of `choose_loops` in the process that runs the fit.

    Raises
    ------
    RuntimeError
        If the version is "numba" and this process, a worker, does not have numba.
    """
    try:
        return import_module(MODULES[version])
    except ImportError as error:
        raise RuntimeError(
            "The fit uses compiled loops, but a worker has no numba: install skdp[fast] on all "
            f"workers, or set {VARIABLE}=numpy where the fit is called."
        ) from error
