"""The accountant: a handle on one data set's budget in a ledger."""

import atexit
import functools
import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from skdp._version import __version__
from skdp.accounting._events import Event, readable_json
from skdp.exceptions import BudgetExceededError, LedgerError
from skdp.ledger._chain import Record
from skdp.ledger._registry import normalize_address, open_ledger
from skdp.ledger._state import BudgetLimit, Charge, LedgerConfig, Part, State
from skdp.ledger._view import LedgerView, ledger_records
from skdp.utils._validation import check_boolean, check_integer, check_name

# The live handles, and the state that the handles of a data set share.
_live = weakref.WeakValueDictionary()


class PrivacyAccountant(LedgerView):
    """A privacy budget that estimators share, kept in a ledger.

    The object is a handle: copies, clones and pickles of it stand for the same budget, and
    what any of them charges, in whatever process or thread, is in the ledger before noise is
    drawn. There is one live handle for a ledger's data set, part and user in a process.

    Parameters
    ----------
    epsilon : float
        The limit on epsilon, positive.
    delta : float
        The limit on delta, at least 0 and below 1.
    relation : {"add_remove", "replace_one"}, default="add_remove"
        Which data sets are neighbors. Every estimator that is given this accountant takes
        its sensitivities from here. Adding or removing a record is read as replacing it by a
        null record that contributes nothing, so that the number of rows is public.
    composition : str, default="basic"
        How charges add up. "basic", "zcdp", "rdp" and "gdp" are filters: they stay valid when
        a release is chosen after seeing the ones before it. "advanced", "pld" and "auto" (the
        least of all bounds) are tighter and hold for a schedule of releases whose parameters
        were fixed beforehand; choosing one of them declares that.
    rdp_order : float, default=None
        The order at which "rdp" adds up, above 1; fixed for the life of the ledger.
    unit : {"row", "person", "group"}, default="row"
        What is protected: one row; all rows of a person, who are named by ``fit(X, y, groups=)``
        and count by shares, at the price of a row (``docs/persons.md``); or a group of rows that
        count one each.
    max_rows : int, default=1
        With unit="group", how many rows of a person can be in a table at most; see
        `skdp.utils.limit_rows`. Every epsilon is for that many rows, and so is the noise.
    missing_ids : {"error", "distinct"}, default="error"
        With unit="person", what a row is whose entry in `groups` is missing: refused, or declared
        to be the only row of a person of its own. It is part of the statement.
    on_raw_data : {"warn", "raise"}, default="warn"
        What happens where a tool around a private estimator computes from the raw rows what is
        charged nowhere, as `CalibratedClassifierCV` does: a `RawDataWarning`, or a `ValueError`
        and no charge. It is kept in the ledger.
    ledger : str or path-like, default=None
        A file, created unless it exists, on a local disk; beside it is a lock file, which
        stays. For analysts on several hosts, ``postgresql://user@host/database`` without a
        password (it is pickled with every estimator; libpq finds one in its password file); this
        needs ``skdp[postgres]``. Others by `skdp.ledger.register_ledger`.
        None is a temporary file that this process removes when it ends.
    dataset : str, default="default"
        The data set within the ledger; each has configuration and a limit of its own. Overlapping
        tables must share one.

    Attributes
    ----------
    part : Part or None
        The part of the rows that this handle is for, None for all rows.
    user, purpose : str
        Who charges by this handle, and why; see `as_user`.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    LedgerError
        If the ledger cannot be used, or holds this data set with another configuration.

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
    >>> charge = accountant.charge(PureDP(0.25), label="a count")
    >>> accountant.epsilon_spent, accountant.epsilon_remaining
    (0.25, 0.75)
    >>> accountant.can_afford(PureDP(0.8))
    False
    """

    def __new__(
        cls,
        epsilon=None,
        delta=None,
        *,
        relation="add_remove",
        composition="basic",
        rdp_order=None,
        unit="row",
        max_rows=1,
        missing_ids="error",
        on_raw_data="warn",
        ledger=None,
        dataset="default",
    ):
        if epsilon is delta is None:
            # Loaders that know no pickles make an empty object, and then set its state.
            return object.__new__(cls)
        config = LedgerConfig(
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            unit=unit,
            max_rows=max_rows,
            composition=composition,
            rdp_order=rdp_order,
            missing_ids=missing_ids,
            on_raw_data=on_raw_data,
        )
        if ledger is None:
            ledger = _temporary_folder(os.getpid()) / f"{uuid.uuid4().hex}.db"
        user = os.environ.get("SKDP_USER", "")
        purpose = os.environ.get("SKDP_PURPOSE", "")
        handle = attach(normalize_address(ledger), dataset, None, user, purpose)
        handle._open(config)
        # Charges of a reserved part are by the user who reserved it.
        owner = handle._parent() or handle
        return attach(handle._address, dataset, None, owner._user, owner._purpose)

    def __init__(self, *_, **__):
        if not vars(self):
            raise TypeError("PrivacyAccountant needs a limit: epsilon and delta")

    def _open(self, config, reserved_from=None):
        """Open the data set unless it is open; return True if this call opened it.

        Parameters
        ----------
        config : LedgerConfig
            What it is opened with. A data set that is open must have the same.
        reserved_from : dict, default=None
            For a reserved part, the `dataset` and the `hash` of the charge that pays for it.
        """
        if self._known.identity is None:
            # A ledger that this process knows is never begun anew: if it is missing, that is an
            # error.
            self._ledger.create()
        # By the nonce two ledgers that are otherwise alike have different hashes, so that the
        # hash of this record identifies the data set of this very ledger.
        body = asdict(config) | {"nonce": uuid.uuid4().hex}
        if reserved_from is not None:
            body["reserved_from"] = reserved_from
        is_new = False

        def decide(state):
            nonlocal is_new
            is_new = state.config is None
            return ("open", body) if is_new else None

        opened = self._append(decide, opening=True).config
        if not is_new and reserved_from is None and opened != config:
            raise LedgerError(
                f"data set {self.dataset!r} was opened with another configuration: {opened}, "
                f"not {config}; change_limit changes a limit"
            )
        return is_new

    def charge(
        self,
        event: Event,
        *,
        label: str = "",
        epsilon: float | None = None,
        delta: float | None = None,
        seeded: bool = False,
    ) -> Charge:
        """Charge a release before it is made.

        The record is on disk when this returns, and was read back. Nothing is ever refunded.

        Parameters
        ----------
        event : Event
            What the mechanism will do, from `skdp.accounting`.
        label : str, default=""
            What is released. It is stored in clear: put no data in it.
        epsilon, delta : float, default=None
            The (epsilon, delta) that the release was calibrated to; the event must satisfy it.
            Under basic composition this is the price, for the unit; what holds for one row and not
            for a group of rows is priced. With delta alone the event is priced there. With
            neither, a Gaussian, which has a whole curve of prices, is charged at half of the delta
            that is left, or at all of it if the budget can pay only so.
        seeded : bool, default=False
            Whether the noise comes from an integer seed.

        Returns
        -------
        Charge

        Raises
        ------
        BudgetExceededError
            If the budget or a sub-limit cannot pay; the ledger is unchanged.
        LedgerError
            If the ledger cannot be used, or was edited or cut since it was last used, or the data
            set was closed.
        ValueError
            If the event is none that a ledger can read back.
        """
        request = self._request(event, label, seeded)
        charge = request

        def decide(state):
            nonlocal charge
            charge = state.priced(request, epsilon, delta)
            return "charge", _body(charge)

        # One transaction: open, begin, read, decide, append, read back.
        sequence, digest = self._append(decide).position
        return replace(charge, sequence=sequence, hash=digest)

    def _charge_step(self, request, epsilon, delta, step, entry):
        """Charge a run of a reserved plan for a step, unless one is there that it was not in.

        Parameters
        ----------
        request : Charge
            The charge of a whole run, of which (epsilon, delta) is the price.
        step : dict
            The `name` of the reservation, the number of the `step` and how many `steps` it has.
        entry : Charge
            The release of the step alone.

        Returns
        -------
        Charge
            With the position of the charge that pays for the step's run.
        """
        charge = None
        run = None

        def decide(state):
            nonlocal charge, run
            run = state.plan_runs(step["name"], step["steps"]).first_without(step["step"])
            if run is not None:
                body = _body(entry)
                # The run's charge has the price, and says of which part of the rows.
                for name in ("epsilon", "delta", "part"):
                    del body[name]
                return "reuse", body | {"reservation": step}
            charge = state.priced(request, epsilon, delta)
            return "charge", _body(charge) | {"reservation": step}

        state = self._append(decide)
        sequence, digest = state.position if run is None else run
        return replace(charge or entry, sequence=sequence, hash=digest)

    def _plan_runs(self, reservation):
        """Return the `PlanRuns` of a reservation."""
        return self._now().plan_runs(reservation.key, len(reservation.planned))

    def can_afford(
        self, event: Event, *, epsilon: float | None = None, delta: float | None = None
    ) -> bool:
        """Return True if `charge` with the same arguments would be accepted now.

        Parameters
        ----------
        event : Event
            What would be released.
        epsilon, delta : float, default=None
            As in `charge`.

        Returns
        -------
        bool
            Whether it would be accepted. Another process may charge in between.
        """
        state = self._now()
        if state.closed is not None:
            return False
        try:
            state.priced(self._request(event), epsilon, delta)
        except BudgetExceededError:
            return False
        return True

    def reserve(
        self, epsilon: float, delta: float = 0.0, *, label: str = "reserved"
    ) -> "PrivacyAccountant":
        """Charge a part of the budget now, and return an accountant that can spend it.

        So a planned cross-validation is booked whole: none of its fits is refused because others
        have spent meanwhile. ``python -m skdp price`` says what one costs. What is left of the
        part stays charged.

        Parameters
        ----------
        epsilon, delta : float
            The part.
        label : str, default="reserved"
            What it is for, for the ledger.

        Returns
        -------
        PrivacyAccountant
            Of a data set of its own in the same ledger; its limit cannot be changed.

        Raises
        ------
        BudgetExceededError
            If the budget cannot pay; nothing was charged.
        ValueError
            If `composition` is not "basic", or the unit is a group of rows.

        Notes
        -----
        Both add up by basic composition, so that what the part pays for costs no more, one by
        one, than what was charged for it.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from sklearn.model_selection import KFold, cross_val_score
        >>> from skdp import DPLogisticRegression, PrivacyAccountant
        >>> X, y = make_classification(n_samples=1000, random_state=0)
        >>> accountant = PrivacyAccountant(epsilon=3.0, delta=1e-5)
        >>> folds = accountant.reserve(2.0, 4e-6, label="four folds")
        >>> model = DPLogisticRegression(epsilon=0.5, delta=1e-6, accountant=folds)
        >>> scores = cross_val_score(model, X, y, cv=KFold(4))  # for your eyes alone
        >>> accountant.epsilon_remaining, folds.epsilon_remaining
        (1.0, 0.0)
        """
        limit = BudgetLimit(epsilon, delta)
        epsilon, delta = limit.params
        config = self.config
        if config.composition != "basic" or config.max_rows > 1:
            raise ValueError("reserve needs composition='basic' and no groups of rows")
        charge = self.charge(limit.event, label=label, epsilon=epsilon, delta=delta)
        config = replace(config, epsilon=epsilon, delta=delta)
        name = f"{self._dataset} (reserved at {charge.sequence})"
        reserved_from = {"dataset": self._dataset, "hash": charge.hash}
        # The second name is for where an ordinary data set has the first.
        for part_name in (name, f"{name} {uuid.uuid4().hex}"):
            part = attach(self._address, part_name, None, self._user, self._purpose)
            if part._open(config, reserved_from):
                return part
        raise LedgerError(f"the ledger opened no data set for {label!r}, which stays charged")

    def as_user(
        self, user: str | None = None, *, purpose: str | None = None
    ) -> "PrivacyAccountant":
        """Return a handle whose charges say who makes them, and why.

        Both are stored with each charge in the ledger, in clear, and go with the handle into
        clones, workers and pickles. Without it they are what the variables ``SKDP_USER`` and
        ``SKDP_PURPOSE`` of the environment say when ``PrivacyAccountant(...)`` is called. They
        are not verified: no password is asked for.

        Parameters
        ----------
        user : str, default=None
            Who charges, without blanks around it, in Unicode's form NFC. None keeps what this
            handle says.
        purpose : str, default=None
            What for. None keeps what this handle says.

        Returns
        -------
        PrivacyAccountant
            Of the same data set; `epsilon_spent` is that of all users.

        Raises
        ------
        ValueError
            If it is no name, or this is a reserved part, which is whose it was reserved.

        Examples
        --------
        >>> from skdp import PrivacyAccountant
        >>> from skdp.accounting import PureDP
        >>> accountant = PrivacyAccountant(epsilon=1.0, delta=0.0)
        >>> ann = accountant.as_user("ann", purpose="the annual report")
        >>> charge = ann.charge(PureDP(0.25), label="a count")
        >>> charge.user, charge.purpose, accountant.epsilon_spent
        ('ann', 'the annual report', 0.25)
        """
        if self._parent():
            raise ValueError("a reserved part is spent by the user and for the purpose it was for")
        user = self._user if user is None else user
        purpose = self._purpose if purpose is None else purpose
        return self._same_data_set(self._part, user, purpose)

    def change_limit(self, epsilon: float, delta: float, *, reason: str) -> None:
        """Change the limit. The change and its reason are a record of the ledger.

        Parameters
        ----------
        epsilon, delta : float
            The new limit. It may be below what is spent; then nothing more can be charged.
        reason : str
            Who decided and why, not empty.
        """
        epsilon, delta = BudgetLimit(epsilon, delta).params
        self._decide("change_limit", reason, epsilon=epsilon, delta=delta)

    def sub_limit(
        self,
        name: str,
        epsilon: float,
        delta: float,
        *,
        users: Sequence[str] = (),
        purposes: Sequence[str] = (),
        reason: str,
    ) -> None:
        """Set a limit on some users or purposes inside the data set's limit, or change it.

        A charge must keep the data set's limit and every sub-limit that it counts towards; all are
        checked in the transaction that writes it. What was charged before counts too. The total
        of a sub-limit is that of its charges by the data set's composition.

        Only the data set's limit is a guarantee about the data. A sub-limit bounds what its users
        release themselves, and nothing if they see the results of others.

        Parameters
        ----------
        name : str
            Of the user, team or purpose; the same name again changes the sub-limit.
        epsilon, delta : float
            The sub-limit; one as large as the data set's limit has no effect.
        users : sequence of str, default=()
            The users whose charges count, together; by default those of all users.
        purposes : sequence of str, default=()
            The purposes for which charges count; by default all.
        reason : str
            Who decided and why, not empty.

        Raises
        ------
        ValueError
            If neither users nor purposes are named, or a parameter is out of range.

        Examples
        --------
        >>> from skdp import PrivacyAccountant
        >>> from skdp.accounting import PureDP
        >>> accountant = PrivacyAccountant(epsilon=3.0, delta=0.0)
        >>> accountant.sub_limit("team", 1.0, 0.0, users=["ann", "bob"], reason="the board")
        >>> charge = accountant.as_user("ann").charge(PureDP(0.75))
        >>> accountant.as_user("bob").can_afford(PureDP(0.5))
        False
        >>> accountant.epsilon_remaining, accountant.as_user("bob").epsilon_remaining
        (2.25, 0.25)
        """
        limit = asdict(BudgetLimit(epsilon, delta, check_name(name, "name"), users, purposes))
        if not limit["users"] + limit["purposes"]:
            raise ValueError("name users or purposes; change_limit changes the whole limit")
        named = {what: list(limit[what]) for what in ("users", "purposes")}
        self._decide("sub_limit", reason, **limit | named)

    def close(self, *, reason: str) -> None:
        """Close the data set for good: it accepts no charge, no draw and no limit any more.

        So where the data are deleted, or their time is over. The record of what was charged
        stays. The parts that were reserved ask the data set at each charge, and are closed too.

        Parameters
        ----------
        reason : str
            Who decided and why, not empty.
        """
        self._decide("close", reason)

    def _decide(self, kind, reason, **limit):
        """Append a decision about the limits, or the closing, which is recorded once."""
        if not _check_text(reason, "reason").strip():
            raise ValueError("reason must say who decided and why")
        if limit and self._parent():
            raise ValueError("a reserved part keeps its limit: reserve another one")
        body = limit | {"reason": reason, "time": _time()}
        closing = kind == "close"
        self._append(lambda now: None if now.closed and closing else (kind, body))

    def disjoint(
        self, name: str, parts: int, *, by_index: bool = False
    ) -> "list[PrivacyAccountant]":
        """Return handles for disjoint parts of the rows, which compose in parallel.

        The worst part counts. Under "replace_one" a row that changes can leave one part and
        enter another, so that the two largest count, unless its part is fixed by its index.

        The number of rows of each part is public, as that of a table is: estimators divide by it,
        and `privacy_.sensitivity`, `privacy_.noise_scale` and results tell it exactly. With parts
        by value these numbers are counts of values. If they are not public already, cut the
        parts by index; fits on parts by value protect what a row says within its part, and not
        a change that moves it to another one and so changes two of the numbers.

        Parameters
        ----------
        name : str
            The partition's name; the same name means the same parts.
        parts : int
            How many parts there are, at least 2.
        by_index : bool, default=False
            Declares that a row's part is fixed by its index, whatever its values. If not, the
            parts' numbers of rows must be public facts.

        Returns
        -------
        list of PrivacyAccountant
            One handle a part: what it charges must be computed from that part's rows alone.
            Caps and totals that it shows are those of the whole data set.

        Examples
        --------
        >>> from skdp import PrivacyAccountant
        >>> from skdp.accounting import PureDP
        >>> accountant = PrivacyAccountant(epsilon=1.0, delta=0.0)
        >>> for clinic in accountant.disjoint("clinic", 3, by_index=True):
        ...     charge = clinic.charge(PureDP(0.5))
        >>> accountant.epsilon_spent
        0.5
        """
        if self._part is not None:
            raise ValueError("a part cannot be partitioned again")
        check_name(name, "name")
        parts = check_integer(parts, "parts", 2)
        by_index = check_boolean(by_index, "by_index")
        handles = []
        for index in range(parts):
            part = Part(name, index, parts, by_index)
            handles.append(self._same_data_set(part, self._user, self._purpose))
        return handles

    def _same_data_set(self, part, user, purpose):
        """Return a handle of the same data set of the same ledger."""
        identity = self._known.identity
        return _restored(self._address, self._dataset, part, user, purpose, identity)

    def _request(self, event, label="", seeded=False):
        """Return a charge that has no price yet; ValueError for what a ledger could not read."""
        _check_text(label, "label")
        readable_json(event)
        return Charge(
            label=label,
            event=event,
            epsilon=0.0,
            delta=0.0,
            seeded=bool(seeded),
            time=_time(),
            version=__version__,
            part=self._part,
            user=self._user,
            purpose=self._purpose,
        )

    def _read(self):
        """Read what was appended since this data set was last read, and return the state."""
        # Threads share what is known, and another one may change `known.state` meanwhile: it is
        # looked at once. Any state is a true beginning of the ledger, so that it does not matter
        # whose is kept.
        before = self._known.state
        records = self._ledger.read(self._dataset, before.position)
        return self._known.learn(before.after(records))

    def _now(self):
        """Return the state by one look at the ledger; closed if its parent is closed."""
        return self._with_parent(self._check_opened(self._read()))

    def _append(self, decide, *, opening=False):
        """Append the record that `decide` returns for a state, and return the state after it.

        Parameters
        ----------
        decide : callable
            Called once with the state while nobody else can append. It returns the kind and the
            body of a record, or None to append nothing; if it raises, nothing is appended.
        opening : bool, default=False
            Whether the data set need not be open yet.
        """
        parent_closed = self._parent_closed()
        known = self._known
        before = known.state

        def decide_on(records):
            state = before.after(records)
            known.check_identity(state.identity)
            if state.config is None and not opening:
                raise self._not_opened()
            if parent_closed is not None:
                state = replace(state, closed=parent_closed)
            decision = decide(state)
            if decision is not None:
                # A record that cannot be read would close the data set for ever. That the body
                # is read as it is written, the ledger makes sure.
                state.after([Record(state.position[0] + 1, self._dataset, *decision, hash="")])
            return decision

        records = self._ledger.append(self._dataset, before.position, decide_on)
        state = known.learn(before.after(records))
        if parent_closed is None and (closed := self._parent_closed()) is not None:
            # Asked again: what is released stands in the ledger before any closing.
            replace(state, closed=closed).check_not_closed()
        return state

    def _open_config(self):
        """Return the config, by one look at the ledger, which must not be closed."""
        state = self._now()
        state.check_not_closed()
        return state.config

    def _check_opened(self, state):
        """Return a state; LedgerError if the data set was never opened."""
        if state.config is None:
            raise self._not_opened()
        return state

    def _not_opened(self):
        return LedgerError(f"the ledger holds no data set {self._dataset!r}")

    def _with_parent(self, state):
        """Return a state that is closed if the data set is or if the one that paid for it is."""
        parent_closed = None if state.closed is not None else self._parent_closed()
        return state if parent_closed is None else replace(state, closed=parent_closed)

    def _parent_closed(self):
        """Return why the data set is closed that paid for this reserved part, or None."""
        state = self._known.state
        if state.config is not None and state.reserved_from is None:
            return None
        parent = self._parent()
        return None if parent is None else parent._now().closed

    def _parent(self):
        """Return the handle by which this data set was reserved, None if it is no reserved part.

        The opening record says so, and never the name.
        """
        known = self._known
        if known.state.config is None:
            self._read()
        reserved_from = known.state.reserved_from
        if known.parent is None and reserved_from is not None:
            charges = attach(self._address, reserved_from["dataset"]).charges
            charges = [charge for charge in charges if charge.hash == reserved_from["hash"]]
            if not charges:
                raise LedgerError(
                    f"the ledger does not hold the charge that pays for {self._dataset!r}"
                )
            known.parent = attach(
                self._address,
                reserved_from["dataset"],
                user=charges[0].user,
                purpose=charges[0].purpose,
            )
        return known.parent

    @property
    def _ledger(self):
        # Without a lock, which a child that is forked meanwhile would wait for for ever.
        if self._known.ledger is None:
            self._known.ledger = open_ledger(self._address)
        return self._known.ledger

    def __getstate__(self):
        return (
            self._address,
            self._dataset,
            self._part,
            self._user,
            self._purpose,
            self._known.identity,
        )

    def __setstate__(self, known):
        # Another object than the live handle, of the same state.
        self.__dict__ = vars(_restored(*known))

    def __reduce__(self):
        return _restored, self.__getstate__()

    def __repr__(self):
        part = "" if self._part is None else f", part={self._part.index}"
        user = f", user={self._user!r}" if self._user else ""
        return f"PrivacyAccountant(dataset={self._dataset!r}{part}{user})"


class _SharedState:
    """The last read state of a data set, which its handles in this process share.

    Parameters
    ----------
    address, dataset : str
        Where it is.
    identity : str or None
        The hash of the data set's opening record, None until it was read. It is pinned: whatever
        is read later must begin with this record.

    Attributes
    ----------
    state : State
        The state when it was last read.
    ledger : Ledger or None
    parent : PrivacyAccountant or None
        For a reserved part, the handle by which it was reserved.
    """

    def __init__(self, address, dataset, identity):
        self.address = address
        self.dataset = dataset
        self.identity = identity
        self.state = State()
        self.ledger = None
        self.parent = None

    def check_identity(self, identity):
        """Raise LedgerError unless an opening record is the one that is known."""
        if self.identity is not None and identity != self.identity:
            problem = "begins with another record"
            if identity is None:
                problem = "holds no such data set"
            raise LedgerError(
                f"the ledger at {self.address} is not the one that this accountant, or the model "
                f"that it was loaded with, belongs to: data set {self.dataset!r} began with the "
                f"record {self.identity}, and the ledger that is there now {problem}. Put the "
                "right ledger back, or begin a new one at another address"
            )

    def learn(self, state):
        """Keep a state that was read, and return it; LedgerError if it is another ledger's."""
        self.check_identity(state.identity)
        self.identity = state.identity
        self.state = state
        return state


def attach(address, dataset, part=None, user="", purpose=""):
    """Return the live handle of a ledger's data set, or a new one that has opened nothing."""
    check_name(dataset, "dataset")
    open_ledger(address)
    return _restored(address, dataset, part, user, purpose)


def _restored(address, dataset, part, user="", purpose="", identity=None):
    # A fitted model loads where the driver of its ledger is missing: the first use tells.
    names = {"_user": user, "_purpose": purpose}
    for name, word in names.items():
        names[name] = word if word == "" else check_name(word, name.removeprefix("_"))
    key = (address, dataset)
    known = _live.get(key)
    if known is not None and identity is not None and known.identity not in (None, identity):
        # A pickle of a ledger that another one has replaced: what is known of that one is not
        # known of this one, which is refused when it is used.
        key = (address, dataset, identity)
    known = _live.setdefault(key, _SharedState(address, dataset, identity))
    if known.identity is None:
        known.identity = identity
    handle = object.__new__(PrivacyAccountant)
    vars(handle).update(_address=address, _dataset=dataset, _part=part, _known=known, **names)
    return _live.setdefault((key, part, *names.values()), handle)


def _check_text(text, name):
    """Return a text that a report or an export can write; ValueError for any other value."""
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a str, got {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError:
        # A lone half of a surrogate pair: no file and no terminal could show the record.
        raise ValueError(f"{name} must be text in Unicode, got {text!r}") from None
    return text


def _body(charge):
    """Return the body of the record of a charge or a draw, without the record's own position."""
    body = {
        "label": charge.label,
        "event": readable_json(charge.event),
        "epsilon": charge.epsilon,
        "delta": charge.delta,
        "seeded": charge.seeded,
        "time": charge.time,
        "version": charge.version,
        "part": None if charge.part is None else asdict(charge.part),
    }
    if charge.user:
        body["user"] = charge.user
    if charge.purpose:
        body["purpose"] = charge.purpose
    return body


def ledger_reports(ledger, dataset=None):
    """Return a `BudgetReport` for each data set of a ledger, in the order of their opening."""
    names = dict.fromkeys(record.dataset for record in ledger_records(ledger, dataset))
    return [attach(normalize_address(ledger), name).report() for name in names]


@functools.cache
def _temporary_folder(process):
    folder = Path(tempfile.mkdtemp(prefix="skdp-"))

    def remove():
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _time():
    return datetime.now(UTC).isoformat(timespec="seconds")
