"""The connections of this process to ledgers, of which there is one at a time."""

import os
import threading
from contextlib import contextmanager

from skdp.exceptions import LedgerError

# Held during every connection of this process, and during every fork. A fork while a database's
# library works in another thread would copy locked mutexes into the child. A child that inherits
# and closes a connection may delete files or end a session that the parent uses.
_connections = threading.RLock()
# The addresses of the ledgers that a call of this process is using.
_in_use: set = set()


# Functions, since `_connections` is another lock in a child.
def _acquire_before_fork():
    _connections.acquire()


def _release_after_fork():
    _connections.release()


def _reset_in_child():
    global _connections
    _connections = threading.RLock()
    _in_use.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_acquire_before_fork,
        after_in_parent=_release_after_fork,
        after_in_child=_reset_in_child,
    )


@contextmanager
def hold_connection(address):
    """Hold the only connection of this process in a context, to the ledger at an address.

    Raises
    ------
    LedgerError
        If a call of this thread is already using the ledger, as in a signal handler: it would
        wait forever for a lock of its thread.
    """
    with _connections:
        if address in _in_use:
            raise LedgerError(
                f"the ledger {address} is in use by this thread: a signal handler or a finalizer "
                "that runs inside a charge can neither charge nor read"
            )
        try:
            _in_use.add(address)
            yield
        finally:
            _in_use.discard(address)
