"""Linear algebra on one thread, so that products are rounded in the same way on all machines."""

from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

_lock = Lock()
_limits: list = []


@contextmanager
def one_thread():
    """Context manager in which BLAS uses one thread.

    The limit applies to the process. It is lifted when the last thread leaves this context.
    """
    with _lock:
        _take_control()
        _limits.append(_libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            _take_control()
            # Later limits restore one thread; the first one, which is popped last, restores the
            # number of threads before this context.
            _limits.pop().restore_original_limits()
            _take_control()


@cache
def _libraries():
    # The result is cached, because searching for libraries takes longer than a short fit.
    return ThreadpoolController().select(user_api="blas")


def _take_control():
    """Let the current thread set limits, because libraries obey the limits of only one thread."""
    for library in _libraries().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)
