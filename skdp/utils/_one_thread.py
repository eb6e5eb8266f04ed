"""Linear algebra on one thread, so that products are rounded the same way whoever computes them."""

from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

# To find the libraries takes longer than a short fit.
_libraries = cache(ThreadpoolController)
_lock, _limits = Lock(), []


@contextmanager
def one_thread():
    """Hold BLAS at one thread until all threads of this process that ask for it have ended.

    A limit is one of the process: what was before comes back with the last, not with the first.
    """
    with _lock:
        _limits.append(_libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            # The first to ask found what was before.
            last = _limits.pop()
            if not _limits:
                last.restore_original_limits()
