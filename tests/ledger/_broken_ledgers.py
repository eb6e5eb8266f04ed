"""Ledgers that break the contract in one way each."""

import json
import os
import tempfile
import threading
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

from skdp import LedgerError
from skdp.ledger import Record, chain_end, next_record
from tests._memory_ledger import START, MemoryLedger


class UnlockedLedger(MemoryLedger):
    """Lets two threads decide at once."""

    def held(self, lock):
        return nullcontext()


class HangingLedger(MemoryLedger):
    """Waits for itself where a charge is made inside a charge."""

    def check_holders(self, holders):
        pass


class StuckLedger(MemoryLedger):
    """Keeps its lock where a decision raises."""

    @contextmanager
    def held(self, lock):
        lock.acquire()
        yield
        lock.release()


class BlindLedger(MemoryLedger):
    """Decides on no records."""

    def decided(self, decide, records):
        return decide([])


class AskingLedger(MemoryLedger):
    """Asks for a decision twice."""

    def decided(self, decide, records):
        decide(records)
        return decide(records)


class TrustingLedger(MemoryLedger):
    """Believes the records that are there, and returns the last hash unchecked."""

    def end(self, rows):
        return (rows[-1][0], rows[-1][-1]) if rows else START

    def check_position(self, rows, after):
        pass


class CheckedWhenAskedLedger(TrustingLedger):
    """Looks at the records in `verify` alone."""

    def verify(self):
        return self.locked(chain_end)[1]


class WithoutPositionsLedger(MemoryLedger):
    """Checks the chain, and forgets what was seen of it."""

    def check_position(self, rows, after):
        pass


class ShortLedger(MemoryLedger):
    """Keeps the last thirty records."""

    def since(self, rows, dataset, after):
        return super().since(rows, dataset, after)[-30:]


class CopiedLedger(MemoryLedger):
    """Has no notion of a process: a child that was forked goes on with a copy."""

    @staticmethod
    def address_of(address):
        return address

    def check_process(self):
        pass


class MixingLedger(MemoryLedger):
    """Returns the records of all data sets."""

    def since(self, rows, dataset, after):
        super().since(rows, dataset, after)
        return [Record.from_row(row) for row in rows[after[0] :]]


class RepeatingLedger(MemoryLedger):
    """Returns what was seen before once more."""

    def since(self, rows, dataset, after):
        super().since(rows, dataset, after)
        return super().since(rows, dataset, START)


class HastyLedger(MemoryLedger):
    """Appends what it was told to before, if a decision raises."""

    def decided(self, decide, records):
        try:
            return decide(records)
        except KeyboardInterrupt:
            return "charge", {}


class LendingLedger(MemoryLedger):
    """Hands out its own records, which whoever reads can change."""

    lent: dict = {}

    def since(self, rows, dataset, after):
        found = super().since(rows, dataset, after)
        return [self.lent.setdefault(record.hash, record) for record in found]


class ThreadLockedLedger(CopiedLedger):
    """Keeps its records in a file, with a lock that holds between threads only."""

    folder = tempfile.TemporaryDirectory()

    @property
    def path(self):
        return Path(self.folder.name) / self.address.partition("://")[2]

    def create(self):
        super().create()
        if not self.path.exists():
            self.path.write_text("[]")

    def locked(self, work):
        def work_on_file(_):
            rows = [tuple(row) for row in json.loads(self.path.read_text())]
            n_rows = len(rows)
            result = work(rows)
            if len(rows) > n_rows:
                # Another process has the time to write here.
                time.sleep(0.002)
                written = self.path.with_suffix(f".{os.getpid()}")
                written.write_text(json.dumps(rows))
                written.replace(self.path)
            return result

        if not self.path.exists():
            raise LedgerError(f"there is no ledger at {self.address}")
        self.kept.setdefault(self.address, ([], threading.Lock(), set()))
        return super().locked(work_on_file)


class EagerLedger(MemoryLedger):
    """Begins when it is made, and not when it is created."""

    def __init__(self, address):
        super().__init__(address)
        self.create()


class UnchainedLedger(MemoryLedger):
    """Chains every record to the first."""

    def append(self, dataset, after, decide):
        records = super().append(dataset, after, decide)
        self.kept[self.address][0][-1:] = [next_record(START, dataset, "charge", {}).row]
        return records
