"""A small ledger that keeps the contract, and others that break it in one way each."""

import os
import threading
from contextlib import contextmanager, nullcontext

from skdp import LedgerError
from skdp.ledger import Record, chain_end, next_record

START = chain_end([])


class WholeLedger:
    """Records in the memory of one process, at ``scheme://name``."""

    # The rows, the lock and the threads that hold it, by address.
    kept: dict = {}

    def __init__(self, address):
        self.address = address

    @staticmethod
    def address_of(address):
        scheme, _, name = address.partition("://")
        return address if "/" in name else f"{scheme}://{os.getpid()}/{name}"

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
            raise LedgerError("there is no such ledger")
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
            raise LedgerError("the record is not there")

    def decided(self, decide, records):
        return decide(records)

    def end(self, rows):
        return chain_end(rows)


class UnlockedLedger(WholeLedger):
    """Lets two threads decide at once."""

    def held(self, lock):
        return nullcontext()


class HangingLedger(WholeLedger):
    """Waits for itself where a charge is made inside a charge."""

    def check_holders(self, holders):
        pass


class StuckLedger(WholeLedger):
    """Keeps its lock where a decision raises."""

    @contextmanager
    def held(self, lock):
        lock.acquire()
        yield
        lock.release()


class BlindLedger(WholeLedger):
    """Decides on no records."""

    def decided(self, decide, records):
        return decide([])


class AskingLedger(WholeLedger):
    """Asks for a decision twice."""

    def decided(self, decide, records):
        decide(records)
        return decide(records)


class TrustingLedger(WholeLedger):
    """Believes the records that are there, and returns the last hash unchecked."""

    def end(self, rows):
        return (rows[-1][0], rows[-1][-1]) if rows else START

    def check_position(self, rows, after):
        pass


class CheckedWhenAskedLedger(TrustingLedger):
    """Looks at the records in `verify` alone."""

    def verify(self):
        return self.locked(chain_end)[1]


class WithoutPositionsLedger(WholeLedger):
    """Checks the chain, and forgets what was seen of it."""

    def check_position(self, rows, after):
        pass


class ShortLedger(WholeLedger):
    """Keeps the last thirty records."""

    def since(self, rows, dataset, after):
        return super().since(rows, dataset, after)[-30:]


class CopiedLedger(WholeLedger):
    """Has no notion of a process: a child that was forked goes on with a copy."""

    @staticmethod
    def address_of(address):
        return address

    def check_process(self):
        pass


class MixingLedger(WholeLedger):
    """Returns the records of all data sets."""

    def since(self, rows, dataset, after):
        super().since(rows, dataset, after)
        return [Record.from_row(row) for row in rows[after[0] :]]


class RepeatingLedger(WholeLedger):
    """Returns what was seen before once more."""

    def since(self, rows, dataset, after):
        super().since(rows, dataset, after)
        return super().since(rows, dataset, START)


class HastyLedger(WholeLedger):
    """Appends what it was told to before, if a decision raises."""

    def decided(self, decide, records):
        try:
            return decide(records)
        except KeyboardInterrupt:
            return "charge", {}


class LendingLedger(WholeLedger):
    """Hands out its own records, which whoever reads can change."""

    lent: dict = {}

    def since(self, rows, dataset, after):
        found = super().since(rows, dataset, after)
        return [self.lent.setdefault(record.hash, record) for record in found]


class EagerLedger(WholeLedger):
    """Begins when it is made, and not when it is created."""

    def __init__(self, address):
        super().__init__(address)
        self.create()


class UnchainedLedger(WholeLedger):
    """Chains every record to the first."""

    def append(self, dataset, after, decide):
        records = super().append(dataset, after, decide)
        self.kept[self.address][0][-1:] = [next_record(START, dataset, "charge", {}).row]
        return records
