"""Looking at a ledger without its terms, and without ever writing to it."""

from skdp.accounting._accountant import address_of, attach
from skdp.accounting._ledger import open_ledger
from skdp.exceptions import LedgerError

__all__ = ["ledger_records", "ledger_reports", "verify_ledger"]


def ledger_records(ledger, dataset=None):
    """Return the records of a ledger as dicts of JSON values, oldest first.

    Parameters
    ----------
    ledger : str or path-like
        As `PrivacyAccountant` takes it; it must be there.
    dataset : str, default=None
        None takes every data set.

    Raises
    ------
    LedgerError
        If the ledger cannot be used or holds no such data set.
    """
    records = [
        vars(record)
        for record in open_ledger(address_of(ledger)).records()
        if dataset in (None, record.dataset)
    ]
    if dataset is not None and not records:
        raise LedgerError(f"the ledger holds no data set {dataset!r}")
    return records


def ledger_reports(ledger, dataset=None):
    """Return a `BudgetReport` for each data set of a ledger, in the order of their opening."""
    names = dict.fromkeys(record["dataset"] for record in ledger_records(ledger, dataset))
    return [attach(address_of(ledger), name).report() for name in names]


def verify_ledger(ledger, head=None):
    """Check a ledger's hash chain and return its last hash and the number of its records.

    Parameters
    ----------
    ledger : str or path-like
    head : str, default=None
        The hash of a record that was noted earlier: the chain must still hold it.

    Raises
    ------
    LedgerError
        If the chain is broken, or does not hold `head`.
    """
    opened = open_ledger(address_of(ledger))
    last, records = opened.verify(), opened.records()
    if head is not None and head not in {record.hash for record in records}:
        raise LedgerError(f"the ledger does not hold the hash {head}: it was replaced or cut")
    return last, len(records)
