"""The ledger in the memory of one process, for tests and for work that ends with the process."""

import os
import re
import threading
import uuid

from skdp.accounting._chain import NOTHING, Record, chain_end
from skdp.accounting._records import TableLedger
from skdp.exceptions import LedgerError

# The lock, the rows and the calls that are under way (one at most) of each ledger.
_kept: dict = {}


# A name of this process that no other one has; all threads find the same.
_process = [uuid.uuid4().hex]


def _rename_child():
    _process[0] = uuid.uuid4().hex


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rename_child)


class MemoryLedger(TableLedger):
    """A ledger that ends with its process and is in no other one.

    A handle that is pickled into another process, or used in a child that was forked, raises
    LedgerError there: what it charged would not be found by the others.

    Parameters
    ----------
    address : str
        What `address_of` returns.
    """

    def __init__(self, address):
        self._address = address

    @staticmethod
    def address_of(address):
        """Return the address of a ledger of this process; without a name, of a new one."""
        if re.match("memory://[0-9a-f]{32}/", address):
            return address
        return f"memory://{_process[0]}/{address.partition('://')[2] or uuid.uuid4().hex}"

    def create(self):
        """Begin the ledger unless it is there."""
        self._check_process()
        _kept.setdefault(self._address, (threading.RLock(), [], []))

    def records(self):
        """Return the records of every data set, in order."""
        return self._call(lambda rows: list(map(Record.from_row, rows)))

    def _select(self, rows, dataset, after):
        seen = {(row[0], row[-1]) for row in rows[after[0] - 1 :][:1]}
        if after != NOTHING and after not in seen:
            raise LedgerError("the ledger was replaced or cut while in use")
        return [Record.from_row(row) for row in rows[after[0] :] if row[1] == dataset]

    def _check(self, rows, whole=False):
        if whole or not rows:
            return chain_end(rows)
        return rows[-1][0], rows[-1][-1]

    def _commit(self, rows, record, end):
        rows.append(record.row)

    def _call(self, work, reading=False):
        """Return what `work` returns of the rows, under the ledger's lock."""
        self._check_process()
        if self._address not in _kept:
            raise LedgerError(f"there is no ledger at {self._address}")
        lock, rows, calls = _kept[self._address]
        with lock:
            if calls:
                raise LedgerError(
                    "the ledger is in use by this thread: nothing can be charged inside a charge, "
                    "as a signal handler or a finaliser would"
                )
            try:
                calls.append(work)
                return work(rows)
            finally:
                calls.clear()

    def _check_process(self):
        if not self._address.startswith(f"memory://{_process[0]}/"):
            raise LedgerError(f"the ledger {self._address} is in the memory of another process")
