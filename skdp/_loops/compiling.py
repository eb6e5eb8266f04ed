"""Compilation of the loops by numba."""

# Without `fastmath`, no sum is reordered and no product is fused with an addition. The loops
# release Python's interpreter lock, so threads run them at the same time. Division by zero works as
# in NumPy.
OPTIONS = {"nogil": True, "fastmath": False, "error_model": "numpy"}


def compiled(function):
    """Return a function that numba compiles when it is first called.

    Machine code is cached in the first folder that can be written: next to the file, or in the
    user's cache. Without such a folder, each process compiles the loops.
    """
    import numba

    try:
        return numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError:
        # Numba raises this error if it has no folder for its cache.
        return numba.njit(**OPTIONS)(function)
