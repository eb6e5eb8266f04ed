"""The accountant: a handle on one data set's budget in a ledger."""

import atexit
import functools
import math
import os
import shutil
import tempfile
import uuid
import weakref
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from skdp._version import __version__
from skdp.accounting._composition import claimed_price, composition_rule
from skdp.accounting._events import event_from_json
from skdp.accounting._ledger import open_ledger
from skdp.accounting._report import BudgetReport
from skdp.exceptions import BudgetExceededError, LedgerError
from skdp.utils._validation import check_privacy_parameters

__all__ = ["PrivacyAccountant", "Spend"]

_live = weakref.WeakValueDictionary()


@dataclass(frozen=True)
class Terms:
    """What a data set's budget was opened with; only the cap can change."""

    epsilon: float
    delta: float
    relation: str = "add_remove"
    composition: str = "basic"
    unit: str = "row"

    def __post_init__(self):
        epsilon, delta = check_privacy_parameters(self.epsilon, self.delta)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        if self.relation not in ("add_remove", "replace_one"):
            raise ValueError(
                f"relation must be 'add_remove' or 'replace_one', got {self.relation!r}"
            )
        if self.unit != "row":
            raise ValueError(f"unit must be 'row', got {self.unit!r}")
        composition_rule(self)

    @property
    def cap(self):
        """The budget as (epsilon, delta)."""
        return self.epsilon, self.delta


@dataclass(frozen=True)
class Spend:
    """One charge in the ledger.

    Parameters
    ----------
    label : str
        What was released, in the words of whoever charged.
    event : Event
        What the mechanism did, from which any method computes its cost.
    epsilon, delta : float
        The price of this release alone.
    seeded : bool
        Whether the noise came from an integer seed.
    time : str
        When it was charged, ISO 8601, UTC.
    version : str
        The version of skdp that charged.
    sequence : int
        The record's position in the ledger.
    hash : str
        The record's hash.
    """

    label: str
    event: object
    epsilon: float
    delta: float
    seeded: bool
    time: str
    version: str
    sequence: int
    hash: str


@dataclass(frozen=True)
class _State:
    """What the records of a data set up to `sequence` add up to."""

    sequence: int = 0
    terms: Terms | None = None
    total: object = None

    @property
    def rule(self):
        return composition_rule(self.terms)

    def after(self, record):
        """Return the state after one more record."""
        if record.kind == "open":
            terms = Terms(**record.body)
            return _State(record.sequence, terms, composition_rule(terms).zero)
        if record.kind == "change_cap":
            cap = {name: record.body[name] for name in ("epsilon", "delta")}
            return replace(self, sequence=record.sequence, terms=replace(self.terms, **cap))
        if record.kind == "charge":
            total = self.rule.add(self.total, _spend(record))
            return replace(self, sequence=record.sequence, total=total)
        raise LedgerError(f"record {record.sequence} is of the unknown kind {record.kind!r}")


def _spend(record):
    try:
        body = dict(record.body)
        event = event_from_json(body.pop("event"))
        return Spend(event=event, sequence=record.sequence, hash=record.hash, **body)
    except (KeyError, TypeError, ValueError) as error:
        raise LedgerError(f"record {record.sequence} cannot be read: {error}") from error


class PrivacyAccountant:
    """A privacy budget that estimators share, kept in a ledger.

    The object is a handle: copies, clones and pickles of it stand for the same budget, and
    what any of them charges, in whatever process or thread, is in the ledger before noise is
    drawn. There is one live handle for a ledger's data set in a process.

    Parameters
    ----------
    epsilon : float
        The cap on epsilon, positive.
    delta : float
        The cap on delta, at least 0 and below 1.
    relation : {"add_remove", "replace_one"}, default="add_remove"
        Which data sets are neighbours. Every estimator that is given this accountant takes
        its sensitivities from here. Adding or removing a record is read as replacing it by a
        null record that contributes nothing, so that the number of rows is public.
    composition : {"basic", "zcdp"}, default="basic"
        How charges add up; both stay valid when a release is chosen after seeing the ones
        before it.
    unit : {"row"}, default="row"
        What is protected.
    ledger : str or path-like, default=None
        A file, created unless it exists; it must be on a local disk. None is a temporary file
        that this process removes when it ends.
    dataset : str, default="default"
        The data set within the ledger; each has terms and a cap of its own. Overlapping
        tables must share one.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    LedgerError
        If the ledger cannot be used, or holds this data set with other terms.

    Notes
    -----
    The guarantee is that everything charged here together is (`epsilon`, `delta`)-differentially
    private under `relation`, provided that the rows that went into each release were chosen
    without looking at them: by index and a public seed. Folds of a stratified splitter depend
    on labels; under them the sum is no guarantee.

    Examples
    --------
    >>> from skdp import PrivacyAccountant
    >>> from skdp.accounting import PureDP
    >>> accountant = PrivacyAccountant(epsilon=1.0, delta=0.0)
    >>> spend = accountant.charge(PureDP(0.25), label="a count")
    >>> accountant.epsilon_spent, accountant.epsilon_remaining
    (0.25, 0.75)
    >>> accountant.can_afford(PureDP(0.8))
    False
    """

    def __new__(
        cls,
        epsilon,
        delta,
        *,
        relation="add_remove",
        composition="basic",
        unit="row",
        ledger=None,
        dataset="default",
    ):
        terms = Terms(epsilon, delta, relation, composition, unit)
        address = _temporary_ledger() if ledger is None else _address(ledger)
        handle = _attach(address, dataset)
        handle._open(terms)
        return handle

    def _open(self, terms):
        def decide(records):
            if self._fold(records).terms is None:
                return "open", asdict(terms)

        self._ledger.create()
        self._state = self._fold(self._ledger.append(self.dataset, self._state.sequence, decide))
        if self._state.terms != terms:
            raise LedgerError(
                f"data set {self.dataset!r} was opened with other terms: {self._state.terms}, "
                f"not {terms}; change_cap changes a cap"
            )

    @property
    def dataset(self):
        """The data set within the ledger."""
        return self._dataset

    @property
    def epsilon(self):
        """The cap on epsilon."""
        return self._now().terms.epsilon

    @property
    def delta(self):
        """The cap on delta."""
        return self._now().terms.delta

    @property
    def relation(self):
        """Which data sets are neighbours."""
        return self._now().terms.relation

    @property
    def composition(self):
        """How charges add up."""
        return self._now().terms.composition

    @property
    def unit(self):
        """What is protected."""
        return self._now().terms.unit

    @property
    def epsilon_spent(self):
        """The epsilon that everything charged costs together, at the cap's delta."""
        state = self._now()
        return state.rule.spent(state.total, state.terms.cap)[0]

    @property
    def delta_spent(self):
        """The delta that goes with `epsilon_spent`."""
        state = self._now()
        return state.rule.spent(state.total, state.terms.cap)[1]

    @property
    def epsilon_remaining(self):
        """The cap on epsilon minus `epsilon_spent`."""
        state = self._now()
        return state.rule.left(state.total, state.terms.cap)[0]

    @property
    def spends(self):
        """Every charge, oldest first, as a list of `Spend`."""
        return [_spend(r) for r in self._ledger.read(self.dataset) if r.kind == "charge"]

    def charge(self, event, *, label="", epsilon=None, delta=None, seeded=False):
        """Book a release before it is made.

        The record is on disk when this returns. Nothing is ever refunded.

        Parameters
        ----------
        event : Event
            What the mechanism will do, from `skdp.accounting`.
        label : str, default=""
            What is released. It is stored in clear: put no data in it.
        epsilon, delta : float, default=None
            The (epsilon, delta) that the release was calibrated to; the event must satisfy it.
            Under basic composition this is the price. By default the price is computed from
            the event; a Gaussian, which has a whole curve of prices, is then booked at half of
            the delta that is left, or all of it if the budget can pay only so.
        seeded : bool, default=False
            Whether the noise comes from an integer seed.

        Returns
        -------
        Spend

        Raises
        ------
        BudgetExceededError
            If the budget cannot pay; the ledger is unchanged.
        LedgerError
            If the ledger cannot be used.
        """
        spend = None

        def decide(records):
            nonlocal spend
            self._state = state = self._fold(records)
            spend = self._priced(state, event, label, epsilon, delta, seeded)
            return "charge", _body(spend)

        records = self._ledger.append(self.dataset, self._state.sequence, decide)
        self._state = self._fold(records)
        return replace(spend, sequence=records[-1].sequence, hash=records[-1].hash)

    def can_afford(self, event, *, epsilon=None, delta=None):
        """Say whether `charge` with the same arguments would be accepted now."""
        try:
            self._priced(self._now(), event, "", epsilon, delta, False)
        except BudgetExceededError:
            return False
        return True

    def change_cap(self, epsilon, delta, *, reason):
        """Change the cap. The change and its reason are a record of the ledger.

        Parameters
        ----------
        epsilon, delta : float
            The new cap. It may be below what is spent; then nothing more can be charged.
        reason : str
            Who decided and why, not empty.
        """
        check_privacy_parameters(epsilon, delta)
        if not (isinstance(reason, str) and reason.strip()):
            raise ValueError("reason must say who decided and why")
        body = {
            "epsilon": float(epsilon),
            "delta": float(delta),
            "reason": reason,
            "time": _time(),
        }

        def decide(records):
            self._fold(records)
            return "change_cap", body

        records = self._ledger.append(self.dataset, self._state.sequence, decide)
        self._state = self._fold(records)

    def verify(self):
        """Check the ledger's hash chain and return the hash of its last record.

        Returns
        -------
        str
            Keep it elsewhere: the chain finds an edit of a record, and only a hash kept
            elsewhere finds that the whole file was replaced or cut at its end.

        Raises
        ------
        LedgerError
            If a record was changed, removed, inserted or reordered.
        """
        return self._ledger.verify()

    def report(self):
        """Return the budget and every spend as a `BudgetReport` (text, HTML, dict)."""
        state = self._now()
        return BudgetReport(
            dataset=self.dataset,
            cap=state.terms.cap,
            spent=state.rule.spent(state.total, state.terms.cap),
            relation=state.terms.relation,
            unit=state.terms.unit,
            composition=state.terms.composition,
            spends=tuple(self.spends),
            head_hash=self.verify(),
        )

    def _priced(self, state, event, label, epsilon, delta, seeded):
        rule, cap = state.rule, state.terms.cap
        if epsilon is None:
            price = rule.price(event, state.total, cap)
        else:
            price = claimed_price(event, epsilon, delta, state.terms.relation)
        spend = Spend(label, event, *price, seeded, _time(), __version__, 0, "")
        if price[0] == math.inf or not rule.within(rule.add(state.total, spend), cap):
            raise BudgetExceededError(price, rule.left(state.total, cap), cap)
        return spend

    def _now(self):
        self._state = state = self._fold(self._ledger.read(self.dataset, self._state.sequence))
        if state.terms is None:
            raise LedgerError(f"the ledger holds no data set {self.dataset!r}")
        return state

    def _fold(self, records):
        state = self._state
        for record in records:
            if record.sequence > state.sequence:
                state = state.after(record)
        return state

    def __sklearn_clone__(self):
        return self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _attach, (self._address, self._dataset)

    def __repr__(self):
        return f"PrivacyAccountant(dataset={self._dataset!r})"


def _attach(address, dataset):
    """Return the live handle of a ledger's data set, or a new one that has opened nothing."""
    if not (isinstance(dataset, str) and dataset):
        raise ValueError(f"dataset must be a name, got {dataset!r}")
    handle = object.__new__(PrivacyAccountant)
    handle._address, handle._dataset = address, dataset
    handle._ledger, handle._state = open_ledger(address), _State()
    return _live.setdefault((address, dataset), handle)


def _body(spend):
    return {
        "label": spend.label,
        "event": spend.event.to_json(),
        "epsilon": spend.epsilon,
        "delta": spend.delta,
        "seeded": spend.seeded,
        "time": spend.time,
        "version": spend.version,
    }


def _address(ledger):
    address = os.fspath(ledger)
    if not isinstance(address, str) or not address:
        raise ValueError(f"ledger must be a path, got {ledger!r}")
    return address if "://" in address else str(Path(address).resolve())


@functools.cache
def _temporary_folder(process):
    folder = Path(tempfile.mkdtemp(prefix="skdp-"))

    def remove():
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _temporary_ledger():
    return str(_temporary_folder(os.getpid()) / f"{uuid.uuid4().hex}.db")


def _time():
    return datetime.now(UTC).isoformat(timespec="seconds")
