"""The accountant, a handle on the budget of one data set in a ledger."""

import atexit
import functools
import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Self

from skdp._version import __version__
from skdp.accounting._events import Event, readable_json
from skdp.exceptions import BudgetExceededError, LedgerError
from skdp.ledger._chain import Record
from skdp.ledger._registry import Ledger, normalize_address, open_ledger
from skdp.ledger._state import BudgetLimit, Charge, LedgerConfig, Part, State
from skdp.ledger._view import LedgerView, ledger_records
from skdp.utils._types import Composition, Relation, Unit
from skdp.utils._validation import check_boolean, check_integer, check_name

# The live handles, keyed by (address and data set, part, user, purpose), and the `_SharedState`
# that the handles of a data set share, keyed by (address, data set).
_live: "weakref.WeakValueDictionary[tuple, PrivacyAccountant | _SharedState]"
_live = weakref.WeakValueDictionary()
# The functions that `register_holder_checks` sets. The lists are empty until then, and have one
# entry afterwards.
_clone_checks: list[Callable] = []
_send_checks: list[Callable] = []


def register_holder_checks(check_clone, check_send):
    """Set the functions that are called when an object with an accountant is cloned or pickled.

    They check the tool that clones the object, or sends it to a worker process: a user-defined
    class may receive an accountant and create its private estimators only in `fit`, where a worker
    cannot detect the tool. `skdp.base` defines and registers them, because this module, which
    `skdp.base` imports, cannot import it.

    Parameters
    ----------
    check_clone : callable
        Receives the accountant, before scikit-learn's `clone` copies it. It does nothing for the
        parameters of a private estimator, which checks its clones itself.
    check_send : callable
        Receives the accountant, before it is pickled. It returns None, or an error, which the
        accountant in the worker process then raises when it is used.
    """
    _clone_checks[:] = [check_clone]
    _send_checks[:] = [check_send]


class _RefusedHandle:
    """Accountant in a worker process; using it raises the error with which it was refused.

    joblib would hide an error while pickling.

    Parameters
    ----------
    error : Exception
    """

    def __init__(self, error):
        self._error = error

    def __getattr__(self, name):
        # Copies and pickles look for special methods.
        if name.startswith("_"):
            raise AttributeError(name)
        raise self._error


class PrivacyAccountant(LedgerView):
    """Privacy budget that estimators share, recorded in a ledger.

    The object is a handle: its copies, clones and pickles refer to the same budget. Every charge,
    from any process or thread, is in the ledger before noise is drawn. A process has one live
    handle per ledger, data set, part, user and purpose.

    Parameters
    ----------
    epsilon : float
        The limit on epsilon, positive.
    delta : float
        The limit on delta, at least 0 and below 1.
    relation : {"add_remove", "replace_one"}, default="add_remove"
        The relation between neighboring data sets. Every estimator that receives this accountant
        computes its sensitivities for it. Adding or removing a record means replacing it with a
        null record that contributes nothing, so the number of rows is public.
    composition : str, default="basic"
        The composition theorem by which charges add up. "basic", "zcdp", "rdp" and "gdp" are
        privacy filters: they remain valid when a release is chosen after seeing earlier ones.
        "advanced", "pld" and "auto" (the smallest of all bounds) are tighter, but hold only for
        releases whose parameters were fixed beforehand; choosing one of them declares this.
    rdp_order : float, default=None
        The Rényi order of composition="rdp", above 1. It is fixed for the life of the ledger.
    unit : {"row", "person", "group"}, default="row"
        The privacy unit. "row" protects one row. "person" protects all rows of a person
        (user-level differential privacy) at the cost of a row: persons are identified by
        ``fit(X, y, groups=)``, and each row has weight 1 / (number of rows of that person)
        (``docs/theory/persons.md``). "group" protects a group of rows, each with weight 1.
    max_rows : int, default=1
        With unit="group", the largest number of rows of a person in a table; see
        `skdp.limit_rows`. Every epsilon, and the noise, is calibrated to this number of rows.
    missing_ids : {"error", "distinct"}, default="error"
        With unit="person", the treatment of rows whose entry in `groups` is missing. "error"
        refuses them. "distinct" declares that each is the only row of a separate person. The
        privacy statement reports this choice.
    on_raw_data : {"warn", "raise"}, default="warn"
        The reaction to a tool around a private estimator that, like `CalibratedClassifierCV`,
        computes results from the raw rows without a charge: a `RawDataWarning`, or a `ValueError`
        before any charge. The ledger stores this setting.
    ledger : str or path-like, default=None
        A file on a local disk, which is created unless it exists. A lock file is created next to it
        and is not removed. For analysts on several hosts, use ``postgresql://user@host/database``,
        which needs ``skdp[postgres]``. The address is pickled with every estimator, so it must not
        contain a password; libpq reads the password from its password file.
        `skdp.ledger.register_ledger` adds other kinds of ledgers. None creates a temporary file
        that this process removes when it ends.
    dataset : str, default="default"
        The data set within the ledger. Each data set has a separate configuration and limit.
        Tables that overlap must use the same data set.

    Attributes
    ----------
    part : Part or None
        The part of the rows that this handle covers; None for all rows.
    user, purpose : str
        The user who charges through this handle, and the purpose; see `as_user`.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    LedgerError
        If the ledger cannot be used, or contains this data set with another configuration.

    Notes
    -----
    All charged releases together are (`epsilon`, `delta`)-differentially private under `relation`,
    provided that the rows of each release were selected without looking at them: by index and a
    public seed. Folds of a stratified splitter depend on labels, so the total does not cover them.

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

    _address: str
    _shared: "_SharedState"

    def __new__(
        cls,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        relation: Relation = "add_remove",
        composition: Composition = "basic",
        rdp_order: float | None = None,
        unit: Unit = "row",
        max_rows: int = 1,
        missing_ids: Literal["error", "distinct"] = "error",
        on_raw_data: Literal["warn", "raise"] = "warn",
        ledger: str | os.PathLike[str] | None = None,
        dataset: str = "default",
    ) -> Self:
        if epsilon is None and delta is None:
            # skops and similar loaders create an empty object first and set its state afterwards.
            return object.__new__(cls)
        config = LedgerConfig(
            epsilon=epsilon,  # type: ignore[arg-type]  # LedgerConfig refuses None
            delta=delta,  # type: ignore[arg-type]  # as above
            relation=relation,
            unit=unit,
            max_rows=max_rows,
            composition=composition,
            rdp_order=rdp_order,
            missing_ids=missing_ids,
            on_raw_data=on_raw_data,
        )
        if ledger is None:
            ledger = _make_temporary_folder(os.getpid()) / f"{uuid.uuid4().hex}.db"
        user = os.environ.get("SKDP_USER", "")
        purpose = os.environ.get("SKDP_PURPOSE", "")
        handle = attach(normalize_address(ledger), dataset, None, user, purpose)
        handle._open(config)
        # The user who reserved a budget also makes the charges to it.
        owner = handle._parent() or handle
        return attach(handle._address, dataset, None, owner._user, owner._purpose)

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        relation: Relation = "add_remove",
        composition: Composition = "basic",
        rdp_order: float | None = None,
        unit: Unit = "row",
        max_rows: int = 1,
        missing_ids: Literal["error", "distinct"] = "error",
        on_raw_data: Literal["warn", "raise"] = "warn",
        ledger: str | os.PathLike[str] | None = None,
        dataset: str = "default",
    ):
        # `__new__` returned the live handle. Here `epsilon` and `delta` have no defaults, so
        # type checkers report when one is missing.
        if not vars(self):
            raise TypeError("epsilon and delta must be numbers, got None")

    def _open(self, config, reserved_from=None):
        """Open the data set unless it is open; return True if this call opened it.

        Parameters
        ----------
        config : LedgerConfig
            The configuration. If the data set is already open, it must have the same configuration.
        reserved_from : dict, default=None
            For a reserved budget, the `dataset` and the `hash` of the charge that covers it.
        """
        if self._shared.identity is None:
            # A ledger that this process has read is never created again: if it is missing, a
            # later call raises an error.
            self._ledger.create()
        # The nonce gives two otherwise equal ledgers different hashes, so the hash of this
        # record identifies the data set of this particular ledger.
        body = config.settings() | {"nonce": uuid.uuid4().hex}
        if reserved_from is not None:
            body["reserved_from"] = reserved_from
        is_new = False

        def decide(state):
            """Return the record that opens a new data set, or None if it is open already."""
            nonlocal is_new
            is_new = state.config is None
            if is_new:
                return "open", body
            return None

        opened = self._append(decide, opening=True).config
        if not is_new and reserved_from is None and opened != config:
            raise LedgerError(
                f"data set {self.dataset!r} was opened with another configuration: {opened}, "
                f"not {config}; to change the limit, call change_limit"
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

        When this method returns, the record is on disk and was read back. Nothing is ever refunded.

        Parameters
        ----------
        event : Event
            The event of the mechanism, from `skdp.accounting`.
        label : str, default=""
            Description of the release. It is stored as plain text and must not contain data.
        epsilon, delta : float, default=None
            The (epsilon, delta) to which the release was calibrated; the event must satisfy it.
            Under basic composition this is the privacy cost for the unit. If it holds for one row
            but not for a group of rows, the cost for the group is computed from the event. With
            delta alone, epsilon is computed from the event at this delta. With neither, an event
            with a complete privacy profile, such as a Gaussian, is charged at half of the remaining
            delta, or at all of it if the budget suffices only then. Under other compositions, the
            charge describes only the event, at the budget's delta or at the delta of the event.
            This delta is not used up: totals are computed from all events together, at the budget's
            delta.
        seeded : bool, default=False
            Whether the noise comes from an integer seed.

        Returns
        -------
        Charge

        Raises
        ------
        BudgetExceededError
            If the charge exceeds the budget or a sub-limit; the ledger is unchanged.
        LedgerError
            If the ledger cannot be used, was edited or truncated since it was last used, or if
            the data set was closed.
        ValueError
            If the event cannot be read back from a ledger.
        """
        request = self._make_request(event, label, seeded)
        charge = request

        def decide(state):
            """Return the record of the charge, or raise an error if the budget does not suffice."""
            nonlocal charge
            charge = state.price_charge(request, epsilon, delta)
            return "charge", _charge_body(charge)

        # One transaction: open, begin, read, decide, append, read back.
        sequence, digest = self._append(decide).position
        return replace(charge, sequence=sequence, hash=digest)

    def _charge_step(self, request, epsilon, delta, step, entry):
        """Charge a run of a reserved plan for a step, or reuse a run without this step.

        Parameters
        ----------
        request : Charge
            The charge of a whole run.
        epsilon, delta : float
            The cost of a whole run.
        step : dict
            The `name` of the reservation, the index of the `step` and the number of `steps`.
        entry : Charge
            The release of the step alone.

        Returns
        -------
        Charge
            With the sequence and hash of the charge of the step's run.
        """
        charge = None
        run = None

        def decide(state):
            """Return the record of the reuse or of the charge; set `run` or `charge`, too."""
            nonlocal charge, run
            run = state.plan_runs(step["name"], step["steps"]).first_without(step["step"])
            if run is not None:
                body = _charge_body(entry)
                # The charge of the run records the cost and the part of the rows.
                for name in ("epsilon", "delta", "part"):
                    del body[name]
                return "reuse", body | {"reservation": step}
            charge = state.price_charge(request, epsilon, delta)
            return "charge", _charge_body(charge) | {"reservation": step}

        state = self._append(decide)
        if run is None:
            run = state.position
        sequence, digest = run
        return replace(charge or entry, sequence=sequence, hash=digest)

    def _plan_runs(self, reservation):
        """Return the `PlanRuns` of a reservation."""
        return self._current_state().plan_runs(reservation.key, len(reservation.planned))

    def can_afford(
        self, event: Event, *, epsilon: float | None = None, delta: float | None = None
    ) -> bool:
        """Return True if `charge` with the same arguments would be accepted now.

        Another process may charge before this one does.

        Parameters
        ----------
        event : Event
            The event of the mechanism, from `skdp.accounting`.
        epsilon, delta : float, default=None
            As in `charge`.

        Returns
        -------
        bool
        """
        state = self._current_state()
        if state.closed is not None:
            return False
        try:
            state.price_charge(self._make_request(event), epsilon, delta)
        except BudgetExceededError:
            return False
        return True

    def reserve(
        self, epsilon: float, delta: float = 0.0, *, label: str = "reserved"
    ) -> "PrivacyAccountant":
        """Charge a part of the budget now and return an accountant that can spend it.

        Use it for a planned cross-validation: none of its fits is refused because other users
        charged in the meantime. ``python -m skdp price`` computes the cost of a plan. An unspent
        remainder stays charged.

        Parameters
        ----------
        epsilon, delta : float
            The reserved budget.
        label : str, default="reserved"
            Its description in the ledger.

        Returns
        -------
        PrivacyAccountant
            An accountant of a separate data set in the same ledger. Its limit cannot be changed.

        Raises
        ------
        BudgetExceededError
            If the charge exceeds the budget; nothing was charged.
        ValueError
            If `composition` is not "basic", or the unit is a group of rows.

        Notes
        -----
        Both accountants use basic composition, so the charges to the reserved budget never
        add up to more than was charged for it.

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
            raise ValueError(
                "reserve needs an accountant with composition='basic' and without groups of rows, "
                f"got composition={config.composition!r} and max_rows={config.max_rows}"
            )
        charge = self.charge(limit.event, label=label, epsilon=epsilon, delta=delta)
        config = replace(config, epsilon=epsilon, delta=delta)
        name = f"{self._dataset} (reserved at {charge.sequence})"
        reserved_from = {"dataset": self._dataset, "hash": charge.hash}
        # The second name is used if an ordinary data set already has the first one.
        for dataset in (name, f"{name} {uuid.uuid4().hex}"):
            reserved = attach(self._address, dataset, None, self._user, self._purpose)
            if reserved._open(config, reserved_from):
                return reserved
        raise LedgerError(
            f"the ledger could not open a data set for the reserved budget {label!r}; "
            "the reservation stays charged"
        )

    def as_user(
        self, user: str | None = None, *, purpose: str | None = None
    ) -> "PrivacyAccountant":
        """Return a handle whose charges record a user and a purpose.

        Both are stored as plain text with every charge in the ledger, and stay with the handle in
        clones, workers and pickles. The defaults are the environment variables ``SKDP_USER`` and
        ``SKDP_PURPOSE`` at the time of ``PrivacyAccountant(...)``. They are not verified: no
        password is required.

        Parameters
        ----------
        user : str, default=None
            The name of the user, without surrounding blanks, in Unicode's normalization form NFC.
            None keeps the user of this handle.
        purpose : str, default=None
            The purpose of the charges. None keeps the purpose of this handle.

        Returns
        -------
        PrivacyAccountant
            A handle of the same data set. Its `epsilon_spent` covers all users.

        Raises
        ------
        ValueError
            If a name is invalid, or this is a reserved budget, whose user and purpose are fixed.

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
            raise ValueError(
                "user and purpose of a reserved budget cannot be changed: call as_user before "
                "reserve"
            )
        if user is None:
            user = self._user
        if purpose is None:
            purpose = self._purpose
        return self._same_data_set(self._part, user, purpose)

    def change_limit(self, epsilon: float, delta: float, *, reason: str) -> None:
        """Change the limit, and record the change and its reason in the ledger.

        Parameters
        ----------
        epsilon, delta : float
            The new limit. If it is below the amount spent, nothing more can be charged.
        reason : str
            Who decided, and why. It must not be empty.
        """
        epsilon, delta = BudgetLimit(epsilon, delta).params
        self._decide("change_limit", reason, {"epsilon": epsilon, "delta": delta})

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
        """Set or change a limit on some users or purposes within the data set's limit.

        A charge must respect the data set's limit and every sub-limit that applies to it. All
        limits are checked in the transaction that writes the charge. Earlier charges count too. The
        total of a sub-limit is computed by the data set's composition.

        Only the data set's limit is a guarantee about the data. A sub-limit bounds the releases of
        its users, which does not protect the data if they also see the results of other users.

        Parameters
        ----------
        name : str
            The name of the sub-limit. An existing name changes that sub-limit.
        epsilon, delta : float
            The sub-limit. A sub-limit as large as the data set's limit has no effect.
        users : sequence of str, default=()
            The users whose charges count toward this limit; all users by default.
        purposes : sequence of str, default=()
            The purposes whose charges count; all purposes by default. If both users and purposes
            are given, a charge counts if its user and its purpose are among them.
        reason : str
            Who decided, and why. It must not be empty.

        Raises
        ------
        ValueError
            If neither users nor purposes are named, a parameter is out of range, or this is a
            reserved budget, whose limits cannot be changed.

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
        limit = BudgetLimit(epsilon, delta, check_name(name, "name"), users, purposes)
        if not limit.users and not limit.purposes:
            raise ValueError(
                "users and purposes are both empty: name at least one, or call change_limit to "
                "change the limit of the data set"
            )
        body = asdict(limit)
        # Lists, as JSON reads them back.
        body["users"] = list(limit.users)
        body["purposes"] = list(limit.purposes)
        self._decide("sub_limit", reason, body)

    def close(self, *, reason: str) -> None:
        """Close the data set permanently: it no longer accepts charges, reuses or limits.

        Use it when the data are deleted or must no longer be used. The records of the charges
        stay. Reserved budgets are closed too, because each of their charges checks the data set.

        Parameters
        ----------
        reason : str
            Who decided, and why. It must not be empty.
        """
        self._decide("close", reason)

    def _decide(self, kind, reason, limit=None):
        """Record a change of a limit, or the closing; a second closing is not recorded."""
        if not _check_text(reason, "reason").strip():
            raise ValueError("reason is empty: state who decided and why")
        if limit and self._parent():
            raise ValueError(
                "the limit of a reserved budget cannot be changed: reserve another one"
            )
        body = {"reason": reason, "time": _current_time()}
        if limit:
            body = limit | body

        def decide(state):
            """Return the record to append; None if the budget is already closed."""
            if kind == "close" and state.closed:
                return None
            return kind, body

        self._append(decide)

    def disjoint(
        self, name: str, parts: int, *, by_index: bool = False
    ) -> "list[PrivacyAccountant]":
        """Return handles for disjoint parts of the rows (parallel composition).

        The total is the cost of the most expensive part. Under "replace_one", a changed row can
        leave one part and enter another, so the two most expensive parts add up, unless the
        part of a row is fixed by its index.

        The number of rows of each part is public, like that of a table: estimators divide by it,
        and `privacy_.sensitivity`, `privacy_.noise_scale` and results reveal it exactly. If parts
        depend on values, these numbers are counts of values. If such counts are not public,
        define the parts by index. Otherwise, fits protect the values of a row within its part, but
        not a change that moves the row to another part, because this changes two of the counts.

        Parameters
        ----------
        name : str
            The name of the partition. The same name always means the same parts.
        parts : int
            Number of parts, at least 2.
        by_index : bool, default=False
            Declares that the part of a row depends only on its index, and not on its values. If
            False, the number of rows in each part must be public.

        Returns
        -------
        list of PrivacyAccountant
            One handle per part. Its charges must be for releases computed from the rows of that
            part alone. The limits and totals that it reports cover the whole data set.

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
            raise ValueError("disjoint cannot be called on a handle of a part: parts do not nest")
        check_name(name, "name")
        parts = check_integer(parts, "parts", 2)
        by_index = check_boolean(by_index, "by_index")
        handles = []
        for index in range(parts):
            part = Part(name, index, parts, by_index)
            handles.append(self._same_data_set(part, self._user, self._purpose))
        return handles

    def _same_data_set(self, part, user, purpose):
        """Return a handle of the same data set in the same ledger."""
        identity = self._shared.identity
        return _restore_handle(self._address, self._dataset, part, user, purpose, identity)

    def _make_request(self, event, label="", seeded=False):
        """Return a charge without a cost; raise ValueError if a ledger could not read it back."""
        _check_text(label, "label")
        readable_json(event)
        return Charge(
            label=label,
            event=event,
            epsilon=0.0,
            delta=0.0,
            seeded=bool(seeded),
            time=_current_time(),
            version=__version__,
            part=self._part,
            user=self._user,
            purpose=self._purpose,
        )

    def _read_state(self):
        """Read the records since the last read, and return the state after them."""
        # Another thread may replace the shared state's `state` at any time, so it is read once.
        # Every state is a prefix of the ledger, so it does not matter which thread's is stored.
        before = self._shared.state
        records = self._ledger.read(self._dataset, before.position)
        return self._shared.store(before.with_records(records))

    def _current_state(self):
        """Read the ledger once and return the state; it is closed if its parent is closed."""
        return self._with_parent(self._check_opened(self._read_state()))

    def _append(self, decide, *, opening=False):
        """Append the record that `decide` returns for a state, and return the state after it.

        Parameters
        ----------
        decide : callable
            Function that is called once with the state, while no one else can append. It returns
            the kind and the body of a record, or None to append nothing. If it raises an error,
            nothing is appended.
        opening : bool, default=False
            True if the record opens the data set, which then need not exist yet.

        Raises
        ------
        LedgerError
            If the ledger cannot be used or the data set is closed. The data set from which this
            budget was reserved may be closed while the record is appended. A second check then
            raises an error after the append: the charge stays in the ledger, and nothing is
            released.
        """
        parent_closed = self._parent_closed()
        shared = self._shared
        before = shared.state

        def decide_on(records):
            """Return the result of `decide` for the state after new records, or raise an error."""
            state = before.with_records(records)
            shared.check_identity(state.identity)
            if state.config is None and not opening:
                raise self._not_opened_error()
            if parent_closed is not None:
                state = replace(state, closed=parent_closed)
            decision = decide(state)
            if decision is not None:
                # A record that cannot be read would make the data set permanently unusable, so each
                # record is applied before it is written. The ledger checks that JSON preserves the
                # body.
                record = Record(state.position[0] + 1, self._dataset, *decision, hash="")
                state.with_records([record])
            return decision

        records = self._ledger.append(self._dataset, before.position, decide_on)
        state = shared.store(before.with_records(records))
        if parent_closed is None:
            # Check again: a charge of a release must precede any closing in the ledger.
            parent_closed = self._parent_closed()
            if parent_closed is not None:
                replace(state, closed=parent_closed).check_not_closed()
        return state

    def _open_config(self):
        """Return the config; raise LedgerError for a data set that is known to be closed.

        Only the limit of a config can change, so a config that was read earlier is still valid. A
        charge reads the ledger, so it detects that a data set was closed in the meantime, or that a
        ledger no longer exists.
        """
        state = self._shared.state
        if state.config is None or state.reserved_from is not None:
            state = self._current_state()
        state.check_not_closed()
        return state.config

    def _check_opened(self, state):
        """Return the state unchanged; raise LedgerError if the data set was never opened."""
        if state.config is None:
            raise self._not_opened_error()
        return state

    def _not_opened_error(self):
        return LedgerError(f"the ledger has no data set {self._dataset!r}")

    def _with_parent(self, state):
        """Return the state, closed if the data set from which it was reserved is closed."""
        if state.closed is not None:
            return state
        parent_closed = self._parent_closed()
        if parent_closed is None:
            return state
        return replace(state, closed=parent_closed)

    def _parent_closed(self):
        """Return the reason why the parent of a reserved budget is closed, or None."""
        state = self._shared.state
        if state.config is not None and state.reserved_from is None:
            return None
        parent = self._parent()
        if parent is None:
            return None
        return parent._current_state().closed

    def _parent(self):
        """Return the handle that reserved this budget, or None if it is not a reserved budget.

        A reserved budget is another data set of the ledger, opened by `reserve`; a `Reservation` is
        a charged plan within one data set and has no parent. Whether there is a parent, and which
        one, is read from the opening record of the data set, never from its name.
        """
        shared = self._shared
        if shared.state.config is None:
            self._read_state()
        reserved_from = shared.state.reserved_from
        if shared.parent is None and reserved_from is not None:
            charges = attach(self._address, reserved_from["dataset"]).charges
            charges = [charge for charge in charges if charge.hash == reserved_from["hash"]]
            if not charges:
                raise LedgerError(
                    f"the ledger does not hold the charge that covers {self._dataset!r}"
                )
            shared.parent = attach(
                self._address,
                reserved_from["dataset"],
                user=charges[0].user,
                purpose=charges[0].purpose,
            )
        return shared.parent

    def _root(self):
        """Return the handle whose budget covers this one: itself unless the budget is reserved."""
        handle = self
        while (parent := handle._parent()) is not None:
            handle = parent
        return handle

    def _data_sets(self):
        """Return the names of this data set and of the one that bears its charges."""
        state = self._shared.state
        if state.config is not None and state.reserved_from is None:
            return self._dataset, self._dataset
        return self._dataset, self._root()._dataset

    def _ledger_identity(self):
        """Return the identity of the data set that bears the charges of this one."""
        state = self._shared.state
        if state.config is not None and state.reserved_from is None:
            # A handle that has charged knows its ledger's identity.
            return self._shared.identity or self.identity
        return self._root().identity

    def _handles_of(self, hashes):
        """Return a handle for each other data set of the ledger that has one of these records."""
        records = ()
        if hashes:
            records = self._ledger.records()
        names = dict.fromkeys(record.dataset for record in records if record.hash in hashes)
        return [attach(self._address, name) for name in names if name != self._dataset]

    @property
    def _ledger(self):
        """The ledger, created at the first use."""
        # No lock is used: a child process that is forked in the meantime would wait for it forever.
        if self._shared.ledger is None:
            self._shared.ledger = open_ledger(self._address)
        return self._shared.ledger

    def __sklearn_clone__(self, memo=None):
        # If a user-defined class holds an accountant and creates its private estimators in `fit`, a
        # tool around it can be detected only here, before the class is sent to worker processes.
        for check in _clone_checks:
            check(self)
        return super().__sklearn_clone__(memo)

    def __getstate__(self):
        return (
            self._address,
            self._dataset,
            self._part,
            self._user,
            self._purpose,
            self._shared.identity,
        )

    def __setstate__(self, pickled):
        # This object is not the live handle, but shares all of its attributes.
        self.__dict__ = vars(_restore_handle(*pickled))

    def __reduce__(self):
        for check in _send_checks:
            error = check(self)
            if error is not None:
                return _RefusedHandle, (error,)
        return _restore_handle, self.__getstate__()

    def __repr__(self):
        params = f"dataset={self._dataset!r}"
        if self._part is not None:
            params += f", part={self._part.index + 1} of {self._part.parts}"
        if self._user:
            params += f", user={self._user!r}"
        return f"PrivacyAccountant({params})"


class _SharedState:
    """The last read state of a data set, which its handles in this process share.

    Parameters
    ----------
    address, dataset : str
        The address of the ledger and the name of the data set.
    identity : str or None
        The hash of the data set's opening record, None before the first read. All later reads must
        begin with this record.

    Attributes
    ----------
    state : State
        The state after the last read.
    ledger : Ledger or None
        The ledger, None before its first use.
    parent : PrivacyAccountant or None
        For a reserved budget, the handle that reserved it.
    """

    def __init__(self, address: str, dataset: str, identity: str | None):
        self.address = address
        self.dataset = dataset
        self.identity = identity
        self.state = State()
        self.ledger: Ledger | None = None
        self.parent: PrivacyAccountant | None = None

    def check_identity(self, identity: str | None) -> None:
        """Raise LedgerError unless the identity is the one that was read earlier."""
        if self.identity is not None and identity != self.identity:
            problem = "begins with another record"
            if identity is None:
                problem = "holds no such data set"
            raise LedgerError(
                f"the ledger at {self.address} is not the ledger of this accountant or its "
                f"loaded model: the first record of data set {self.dataset!r} was "
                f"{self.identity}, but this ledger {problem}. Restore the original ledger, or "
                "create a new one at another address"
            )

    def store(self, state: State) -> State:
        """Store and return a state that was read; raise LedgerError for another ledger."""
        self.check_identity(state.identity)
        self.identity = state.identity
        self.state = state
        return state


def attach(address, dataset, part=None, user="", purpose=""):
    """Return the live handle of a ledger's data set, or a new handle that has not opened it."""
    check_name(dataset, "dataset")
    # This raises an error if no kind of ledger is registered for the address.
    open_ledger(address)
    return _restore_handle(address, dataset, part, user, purpose)


def _restore_handle(address, dataset, part, user="", purpose="", identity=None):
    """Return the live handle like `attach`, without checking that the ledger can be opened.

    This allows a fitted model to be loaded even if the driver of its ledger is missing. The first
    use of the ledger then raises an error.
    """
    if user != "":
        user = check_name(user, "user")
    if purpose != "":
        purpose = check_name(purpose, "purpose")
    key = (address, dataset)
    shared = _live.get(key)
    if shared is not None and identity is not None and shared.identity not in (None, identity):
        # The ledger of this pickle was replaced by another one at the same address. The two must
        # not share a state. The unpickled handle raises an error when it is used.
        key = (address, dataset, identity)
    shared = _live.setdefault(key, _SharedState(address, dataset, identity))
    if shared.identity is None:
        shared.identity = identity
    handle = object.__new__(PrivacyAccountant)
    handle._address = address
    handle._dataset = dataset
    handle._part = part
    handle._user = user
    handle._purpose = purpose
    handle._shared = shared
    return _live.setdefault((key, part, user, purpose), handle)


def _check_text(text, name):
    """Return the text unchanged; raise ValueError unless a report or an export can write it."""
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a str, got {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError:
        # With a lone surrogate, no file or terminal could show the record.
        raise ValueError(f"{name} must be text in Unicode, got {text!r}") from None
    return text


def _charge_body(charge):
    """Return the body of the record of a charge or a reuse, without its sequence and hash."""
    body = {
        "label": charge.label,
        "event": readable_json(charge.event),
        "epsilon": charge.epsilon,
        "delta": charge.delta,
        "seeded": charge.seeded,
        "time": charge.time,
        "version": charge.version,
        "part": None,
    }
    if charge.part is not None:
        body["part"] = asdict(charge.part)
    if charge.user:
        body["user"] = charge.user
    if charge.purpose:
        body["purpose"] = charge.purpose
    return body


def ledger_reports(ledger, dataset=None):
    """Return a `BudgetReport` for each data set in a ledger, in the order of opening."""
    names = dict.fromkeys(record.dataset for record in ledger_records(ledger, dataset))
    return [attach(normalize_address(ledger), name).report() for name in names]


@functools.cache
def _make_temporary_folder(process):
    """Create a folder for a process. Its id is the cache key, because forks copy the cache."""
    folder = Path(tempfile.mkdtemp(prefix="skdp-"))

    def remove():
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _current_time():
    """Return the current time in UTC as ISO 8601 text, in whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")
