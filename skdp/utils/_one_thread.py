"""Linear algebra on one thread, so that products are rounded the same way whoever computes them."""

from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_lock = Lock()
_limits = []


@contextmanager
def one_thread():
    """Hold BLAS at one thread until all threads of this process that ask for it have ended.

    A limit is one of the process: what was before comes back with the last, not with the first.
    """
    with _lock:
        _take_control()
        _limits.append(_libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            _take_control()
            # The later ones found one thread; the first, which is last here, what was before.
            _limits.pop().restore_original_limits()
            _take_control()


@cache
def _libraries():
    # To find them takes longer than a short fit.
    return ThreadpoolController().select(user_api="blas")


def _take_control():
    """Let whichever thread comes next set limits: those of all but one are silently ignored."""
    for library in _libraries().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)
