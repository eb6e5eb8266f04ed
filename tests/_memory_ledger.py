"""A ledger in the memory of one process, for tests; `tests/conftest.py` registers it.

``memory://`` is a new ledger each time, ``memory://name`` the one of that name.
"""

import os
import threading
import uuid

from skdp import LedgerError
from skdp.ledger import Record, chain_end, next_record

START = chain_end([])


class MemoryLedger:
    """Records in a list. A handle that reaches another process raises LedgerError there."""

    # The rows, the lock and the threads that hold it, by address.
    kept: dict = {}

    def __init__(self, address):
        self.address = address

    @staticmethod
    def address_of(address):
        scheme, _, name = address.partition("://")
        if "/" in name:
            return address
        return f"{scheme}://{os.getpid()}/{name or uuid.uuid4().hex}"

    def create(self):
        self.check_process()
        self.kept.setdefault(self.address, ([], threading.Lock(), set()))

    def read(self, dataset, after=START):
        return self.locked(lambda rows: self.since(rows, dataset, after))

    def append(self, dataset, after, decide):
        def work(rows):
            records = self.since(rows, dataset, after)
            decision = self.decided(decide, records)
            if decision is None:
                return records
            record = next_record(self.end(rows), dataset, *decision)
            rows.append(record.row)
            return [*records, record]

        return self.locked(work)

    def verify(self):
        return self.locked(self.end)[1]

    def records(self):
        return self.locked(lambda rows: list(map(Record.from_row, rows)))

    def locked(self, work):
        self.check_process()
        if self.address not in self.kept:
            raise LedgerError(f"there is no ledger at {self.address}")
        rows, lock, holders = self.kept[self.address]
        self.check_holders(holders)
        with self.held(lock):
            holders.add(threading.get_ident())
            try:
                return work(rows)
            finally:
                holders.discard(threading.get_ident())

    def check_process(self):
        if not self.address.split("://")[1].startswith(f"{os.getpid()}/"):
            raise LedgerError("it is in the memory of another process")

    def check_holders(self, holders):
        if threading.get_ident() in holders:
            raise LedgerError("a charge inside a charge")

    def held(self, lock):
        return lock

    def since(self, rows, dataset, after):
        self.end(rows)
        self.check_position(rows, after)
        return [Record.from_row(row) for row in rows[after[0] :] if row[1] == dataset]

    def check_position(self, rows, after):
        if after != START and after not in [(row[0], row[-1]) for row in rows]:
            raise LedgerError("the ledger was replaced or cut while in use")

    def decided(self, decide, records):
        return decide(records)

    def end(self, rows):
        return chain_end(rows)


def rewrite_memory(address, change):
    """Put `change(rows)` where the rows of a ledger are, and return them."""
    rows = MemoryLedger.kept[MemoryLedger.address_of(address)][0]
    rows[:] = change(list(rows))
    return list(rows)
