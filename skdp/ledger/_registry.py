"""What a ledger is, and which kinds there are.

A ledger is an append-only, hash-chained list of records. It stores what it is given and knows no
theorem. Whoever appends decides, on the records that are there at that moment and while nobody
else can append, whether to append at all.
"""

import os
import re
from collections.abc import Callable
from typing import Protocol

from skdp.exceptions import LedgerError
from skdp.ledger._chain import NOTHING
from skdp.ledger._postgres import PostgreSQLLedger
from skdp.ledger._sql import MemoryLedger
from skdp.ledger._sqlite import SQLiteLedger

# A user and a password, or the keywords of an address; a path has a slash before them.
_LIKE_A_SERVER = re.compile(r"[:：][^/\\]*@|^[^/\\]*[:：].*@|(^|[\s;?&])[^/\\]*=")
# A path of Windows has a colon, and may have an at sign in a folder's name.
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_kinds: dict[str, "Callable[[str], Ledger]"] = {
    "memory": MemoryLedger,
    "postgres": PostgreSQLLedger,
    "postgresql": PostgreSQLLedger,
}
_BUILT_IN = frozenset(_kinds)


class Ledger(Protocol):
    """What an accountant needs of a ledger.

    Making one opens nothing; the first call does. What is not as described raises LedgerError,
    and then nothing is released: a ledger that is missing, locked, damaged, or newer than the
    program. A position is the sequence and the hash of a record, ``(0, "0" * 64)`` before the
    first. Everything may be called by several threads and processes at once. A ledger that other
    processes cannot see raises LedgerError in them, also in a child that was forked: its
    `address_of` puts a name of the process into the address. Inside the `decide` of an `append`, as
    a signal handler can call it, another `append` raises LedgerError, and must not wait; `read` and
    `verify` raise it too or answer as they would have before.

    Parameters
    ----------
    address : str
        Where the records are. One that cannot be used, or may hold a secret, is a ValueError.

    Examples
    --------
    A ledger that tells of each charge; the records stay where another one keeps them.

    >>> from skdp import PrivacyAccountant
    >>> from skdp.accounting import PureDP
    >>> from skdp.ledger import open_ledger, register_ledger
    >>> class Telling:
    ...     def __init__(self, address):
    ...         self.kept = open_ledger(address.replace("telling", "memory"))
    ...     def __getattr__(self, name):
    ...         return getattr(self.kept, name)
    ...     def append(self, dataset, after, decide):
    ...         records = self.kept.append(dataset, after, decide)
    ...         print(records[-1].sequence, records[-1].kind)
    ...         return records
    >>> register_ledger("telling", Telling)
    >>> accountant = PrivacyAccountant(1.0, 0.0, ledger="telling://example")
    1 open
    >>> charge = accountant.charge(PureDP(0.5))
    2 charge
    """

    def __init__(self, address: str):
        """Keep the address."""

    def create(self) -> None:
        """Create the ledger unless it is there. Several processes may race here."""

    def read(self, dataset: str, after: tuple = NOTHING) -> list:
        """Return the records of a data set that follow a position.

        Parameters
        ----------
        dataset : str
            Which data set; one without records has an empty list.
        after : tuple of (int, str)
            The position of a record that the caller has seen.

        Returns
        -------
        list of Record
            In order.

        Raises
        ------
        LedgerError
            If the record at the position is not there any more, or a record of whatever data set
            was changed, removed, inserted or reordered.
        """

    def append(self, dataset: str, after: tuple, decide: Callable) -> list:
        """Append one record, decided while nobody else can append.

        Parameters
        ----------
        dataset : str
            Which data set.
        after : tuple of (int, str)
            The position of a record that the caller has seen.
        decide : callable
            Called once with the records of the data set since `after`; returns ``(kind, body)``
            of the next record, or None to append nothing. If it raises, nothing is appended.

        Returns
        -------
        list of Record
            The records since `after`, the appended one last: the `next_record` of the chain's
            end, durable and seen by all.

        Raises
        ------
        LedgerError
            As `read`, or if the record cannot be written or is not there afterwards.
        """

    def verify(self) -> str:
        """Check the chain from the first record to the last by `chain_end`.

        Returns
        -------
        str
            The hash of the last record. Keep it elsewhere: the chain finds an edit, and only
            a hash kept elsewhere finds a chain that was replaced or cut at its end.

        Raises
        ------
        LedgerError
            If a record was changed, removed, inserted or reordered.
        """

    def records(self) -> list:
        """Return the records of every data set.

        Returns
        -------
        list of Record
            In order.
        """


def register_ledger(scheme: str, factory: Callable[[str], Ledger]) -> None:
    """Let addresses of a scheme stand for another kind of ledger.

    Each process must call it that uses such a ledger, workers included: do it where the class is
    defined, in a module that they import.

    Parameters
    ----------
    scheme : str
        What stands before ``://`` in the addresses: small letters, digits, "+", "-" and ".".
    factory : callable
        Called with an address; returns a `Ledger`. Addresses are pickled with every estimator
        and stand in messages: refuse one that may hold a secret, by a ValueError that does not
        repeat it. A class may have a static method `address_of` that returns the one spelling of
        an address, which it leaves as it is.

    Raises
    ------
    ValueError
        If the scheme is none, or one of skdp's own.

    Examples
    --------
    >>> from skdp.ledger import register_ledger
    >>> register_ledger("postgresql", dict)
    Traceback (most recent call last):
    ...
    ValueError: the scheme 'postgresql' is skdp's own
    """
    if not _SCHEME.fullmatch(scheme):
        raise ValueError(f"scheme must be a word of small letters, got {scheme!r}")
    if scheme in _BUILT_IN:
        raise ValueError(f"the scheme {scheme!r} is skdp's own")
    _kinds[scheme] = factory


def open_ledger(address: str) -> Ledger:
    """Return the ledger at an address, without touching it.

    Parameters
    ----------
    address : str
        A file's path, or ``scheme://...`` of a kind that is known, as `PrivacyAccountant` takes it.

    Returns
    -------
    Ledger

    Raises
    ------
    LedgerError
        If no such kind is registered in this process.

    Examples
    --------
    >>> from skdp.ledger import open_ledger
    >>> type(open_ledger("budget.db")).__name__
    'SQLiteLedger'
    """
    return kind_of_ledger(address)(one_address(address))


def one_address(ledger):
    """Return the one spelling of where a ledger is, a path or an address."""
    address = os.fspath(ledger) if isinstance(ledger, str | os.PathLike) else ""
    if not isinstance(address, str) or address in ("", ":memory:"):
        # What was meant as an address may hold a password: it is not repeated.
        raise ValueError(f"ledger must be a path or an address, got a {type(ledger).__name__}")
    return getattr(kind_of_ledger(address), "address_of", str)(address)


def kind_of_ledger(address):
    """Return what makes the ledger at an address."""
    scheme, separator, _ = address.partition("://")
    if separator and scheme in _kinds:
        return _kinds[scheme]
    is_windows_path = os.name == "nt" and _DRIVE.match(address) and not separator
    if not is_windows_path and (separator or _LIKE_A_SERVER.search(address)):
        # What was meant as an address of a server may hold a password: it is not repeated.
        what = f"the scheme {scheme!r}" if _SCHEME.fullmatch(scheme) else "such an address"
        raise LedgerError(
            f"no kind of ledger is registered in this process for {what}: import the module that "
            "calls register_ledger, in each worker too, or give the path of a file, or "
            "postgresql://user@host/database"
        )
    return SQLiteLedger
