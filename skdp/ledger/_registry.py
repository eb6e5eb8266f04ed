"""The protocol of ledgers, and the registry of their kinds by address.

A ledger is an append-only, hash-chained list of records. It stores records and does no accounting.
An append is one transaction: while no one else can append, a callback reads the current records and
decides whether to append at all.
"""

import os
import re
from collections.abc import Callable
from typing import Protocol

from skdp.exceptions import LedgerError
from skdp.ledger._chain import CHAIN_START
from skdp.ledger._postgres import PostgreSQLLedger
from skdp.ledger._sqlite import SQLiteLedger

# An address that may contain a user and a password, or connection keywords. In a path, a slash
# precedes these characters.
_SERVER_PATTERN = re.compile(r"[:：][^/\\]*@|^[^/\\]*[:：].*@|(^|[\s;?&])[^/\\]*=")
# A Windows path contains a colon, and an at sign may be part of a folder's name.
_WINDOWS_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_factories: dict[str, "Callable[[str], Ledger]"] = {
    "postgres": PostgreSQLLedger,
    "postgresql": PostgreSQLLedger,
}
_BUILT_IN = frozenset(_factories)
# The addresses of skdp's own ledgers, for messages and help texts.
BUILT_IN_ADDRESSES = "the path of a file, or postgresql://user@host/database"


class Ledger(Protocol):
    """The methods that an accountant calls on a ledger.

    The constructor opens nothing; the first call does. A ledger that is missing, locked, damaged
    or newer than the program raises LedgerError, and then nothing is released. A position is the
    sequence and the hash of a record, ``(0, "0" * 64)`` before the first one.

    All methods must be safe for several threads and processes at once. A ledger that other
    processes cannot see must raise LedgerError in them, and also in a forked child: its
    `address_of` adds an id of the process to the address. A signal handler may call a ledger
    inside the `decide` of an `append`. There, another `append` must raise LedgerError instead of
    waiting, and `read` and `verify` must either raise it too or return the result from before the
    append.

    Parameters
    ----------
    address : str
        The address of the records. If it is invalid or may contain a secret, ValueError is raised.

    Examples
    --------
    A ledger that prints each record and stores the records in a file.

    >>> import tempfile
    >>> from skdp import PrivacyAccountant
    >>> from skdp.accounting import PureDP
    >>> from skdp.ledger import open_ledger, register_ledger
    >>> class PrintingLedger:
    ...     def __init__(self, address):
    ...         self.ledger = open_ledger(address.removeprefix("printing://"))
    ...     def __getattr__(self, name):
    ...         return getattr(self.ledger, name)
    ...     def append(self, dataset, after, decide):
    ...         records = self.ledger.append(dataset, after, decide)
    ...         print(records[-1].sequence, records[-1].kind)
    ...         return records
    >>> register_ledger("printing", PrintingLedger)
    >>> folder = tempfile.TemporaryDirectory()
    >>> address = f"printing://{folder.name}/budget.db"
    >>> accountant = PrivacyAccountant(1.0, 0.0, ledger=address)
    1 open
    >>> charge = accountant.charge(PureDP(0.5))
    2 charge
    """

    def __init__(self, address: str):
        """Store the address."""

    def create(self) -> None:
        """Create the ledger unless it exists. Several processes may call this at once."""

    def read(self, dataset: str, after: tuple = CHAIN_START) -> list:
        """Return the records of a data set that follow a position.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        after : tuple of (int, str)
            The position of a record that the caller has read.

        Returns
        -------
        list of Record
            The records in order; empty if the data set has none.

        Raises
        ------
        LedgerError
            If the record at the position no longer exists, or a record of any data set was
            changed, removed, inserted or reordered.
        """

    def append(self, dataset: str, after: tuple, decide: Callable) -> list:
        """Append one record; `decide` is called while no one else can append.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        after : tuple of (int, str)
            The position of a record that the caller has read.
        decide : callable
            Function that is called once with the records of the data set since `after`. It returns
            ``(kind, body)`` of the next record, or None to append nothing. If it raises an error,
            nothing is appended.

        Returns
        -------
        list of Record
            The records since `after`. The appended one is last: it is the `next_record` of the
            chain's end, durable, and visible to all processes.

        Raises
        ------
        LedgerError
            As for `read`, or if the record cannot be written or cannot be read back.
        """

    def verify(self) -> str:
        """Check the chain from the first record to the last with `chain_end`.

        Returns
        -------
        str
            The hash of the last record. Store a copy elsewhere: the chain reveals edits, but only
            such a copy reveals that the chain was replaced or truncated.

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
            The records in order.
        """


def register_ledger(scheme: str, factory: Callable[[str], Ledger]) -> None:
    """Register a kind of ledger for the addresses of a scheme.

    Every process that uses such a ledger must call this function, including workers. Call it in the
    module that defines the class, so importing the module is enough.

    Parameters
    ----------
    scheme : str
        The text before ``://`` in the addresses: lower-case letters, digits, "+", "-" and ".".
    factory : callable
        A class or function that accepts an address and returns a `Ledger`. Addresses are pickled
        with every estimator and are part of messages: refuse an address that may contain a secret
        with a ValueError that does not repeat it. The class may have a static method `address_of`,
        which returns the normalized address and leaves a normalized one unchanged.

    Raises
    ------
    ValueError
        If the scheme is invalid, or is one of skdp's own schemes.

    Examples
    --------
    >>> from skdp.ledger import register_ledger
    >>> register_ledger("postgresql", dict)
    Traceback (most recent call last):
    ...
    ValueError: scheme 'postgresql' is a ledger of skdp and cannot be registered again
    """
    if not _SCHEME.fullmatch(scheme):
        raise ValueError(f"scheme must be a word of lower-case letters, got {scheme!r}")
    if scheme in _BUILT_IN:
        raise ValueError(f"scheme {scheme!r} is a ledger of skdp and cannot be registered again")
    _factories[scheme] = factory


def open_ledger(address: str) -> Ledger:
    """Return the ledger at an address, without opening it.

    Parameters
    ----------
    address : str
        The path of a file, or ``scheme://...`` of a registered scheme, as for `PrivacyAccountant`.

    Returns
    -------
    Ledger

    Raises
    ------
    LedgerError
        If no ledger is registered in this process for the scheme.

    Examples
    --------
    >>> from skdp.ledger import open_ledger
    >>> type(open_ledger("budget.db")).__name__
    'SQLiteLedger'
    """
    return ledger_factory(address)(normalize_address(address))


def normalize_address(ledger):
    """Return the normalized address of a ledger, a path or a URL."""
    address = ""
    if isinstance(ledger, str | os.PathLike):
        address = os.fspath(ledger)
    if not isinstance(address, str) or address in ("", ":memory:"):
        # The value may contain a password, so the message does not repeat it.
        raise ValueError(f"ledger must be a path or an address, got a {type(ledger).__name__}")
    factory = ledger_factory(address)
    if hasattr(factory, "address_of"):
        return factory.address_of(address)
    return address


def ledger_factory(address):
    """Return the factory of the ledger at an address."""
    scheme, separator, _ = address.partition("://")
    if separator and scheme in _factories:
        return _factories[scheme]
    is_windows_path = os.name == "nt" and _WINDOWS_DRIVE.match(address) and not separator
    if not is_windows_path and (separator or _SERVER_PATTERN.search(address)):
        # The address may contain a password, so the message does not repeat it.
        name = "such an address"
        if _SCHEME.fullmatch(scheme):
            name = f"the scheme {scheme!r}"
        raise LedgerError(
            f"no ledger is registered in this process for {name}: import the module that calls "
            f"register_ledger, in every worker too, or give {BUILT_IN_ADDRESSES}"
        )
    return SQLiteLedger
