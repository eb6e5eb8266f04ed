"""The part of an accountant that only reads: totals, charges and reports of a data set."""

from typing import Protocol

from skdp.accounting._bounds import get_epsilon
from skdp.accounting._events import Composed
from skdp.exceptions import LedgerError
from skdp.ledger._registry import Ledger, normalize_address, open_ledger
from skdp.ledger._report import BudgetReport
from skdp.ledger._state import Charge, LedgerConfig, NotCopied, Part, Reuse, State, read_entries
from skdp.utils._documents import html_text
from skdp.utils._types import Composition, Method, Relation, Unit


class _Identified(Protocol):
    """The state that handles of a data set share: the hash of its opening record, if known."""

    identity: str | None

    def check_identity(self, identity: str | None) -> None:
        """Raise LedgerError unless the identity is the one that was read earlier."""


class _OpenedState(Protocol):
    """The `State` of a data set that was opened, so its configuration is known."""

    config: LedgerConfig
    identity: str
    closed: str | None

    @property
    def spent(self) -> tuple[float, float]:
        """The (epsilon, delta) of all charges."""

    def remaining(
        self, user: str = "", purpose: str = "", part: Part | None = None
    ) -> tuple[float, float]:
        """Return the remaining (epsilon, delta) of a user for a purpose, on a part of the rows."""

    def breakdown(self) -> tuple:
        """Return one dict for each limit and each named user and purpose, with its total."""


class LedgerView(NotCopied):
    """The methods of an accountant that read.

    A subclass has the attributes declared here, and defines the methods and the property
    that raise `NotImplementedError`.
    """

    _dataset: str
    _part: Part | None
    _user: str
    _purpose: str
    _shared: _Identified

    @property
    def _ledger(self) -> Ledger:
        """The ledger."""
        raise NotImplementedError

    def _current_state(self) -> _OpenedState:
        """Read the ledger once and return the state."""
        raise NotImplementedError

    def _check_opened(self, state: State) -> _OpenedState:
        """Return the state unchanged; raise LedgerError for an unopened data set."""
        raise NotImplementedError

    def _with_parent(self, state: _OpenedState) -> _OpenedState:
        """Return the state, closed if the data set from which it was reserved is closed."""
        raise NotImplementedError

    def _root(self) -> "LedgerView":
        """Return the handle of the data set that pays for this one; itself unless reserved."""
        raise NotImplementedError

    @property
    def dataset(self) -> str:
        """Name of the data set within the ledger."""
        return self._dataset

    @property
    def part(self) -> Part | None:
        """The part of the rows that this handle covers, None for all rows."""
        return self._part

    @property
    def user(self) -> str:
        """Name of the user who charges through this handle, "" if none was named."""
        return self._user

    @property
    def purpose(self) -> str:
        """Purpose of the charges through this handle, "" if none was named."""
        return self._purpose

    @property
    def epsilon(self) -> float:
        """The limit on epsilon."""
        return self.config.epsilon

    @property
    def delta(self) -> float:
        """The limit on delta."""
        return self.config.delta

    @property
    def relation(self) -> Relation:
        """The relation between neighboring data sets."""
        return self.config.relation

    @property
    def composition(self) -> Composition:
        """The method by which charges add up."""
        return self.config.composition

    @property
    def unit(self) -> Unit:
        """The privacy unit."""
        return self.config.unit

    @property
    def max_rows(self) -> int:
        """Largest number of rows of a unit; 1 unless the unit is a group."""
        return self.config.max_rows

    @property
    def identity(self) -> str:
        """The hash of the data set's opening record, unique to this ledger.

        A handle, its pickles and the models that refer to it store this hash, and refuse another
        ledger at the same address. If the file of a ledger is moved, the ledger keeps its identity.
        """
        return self._shared.identity or self._current_state().identity

    @property
    def config(self) -> LedgerConfig:
        """Budget, relation, composition and unit, as one value."""
        return self._current_state().config

    @property
    def epsilon_spent(self) -> float:
        """The epsilon of all charges together, at the limit's delta."""
        return self._current_state().spent[0]

    @property
    def delta_spent(self) -> float:
        """The delta at which `epsilon_spent` is stated."""
        return self._current_state().spent[1]

    @property
    def epsilon_remaining(self) -> float:
        """The remaining epsilon of the limit, or of a sub-limit of `user` if that is smaller."""
        return self._current_state().remaining(self._user, self._purpose)[0]

    def _remaining_for_charge(self) -> float:
        """Return the largest epsilon that this handle can charge, with basic composition.

        It exceeds `epsilon_remaining` on a part with lower charges than other parts.
        """
        return self._current_state().remaining(self._user, self._purpose, self._part)[0]

    @property
    def charges(self) -> list[Charge]:
        """List of every `Charge`, oldest first."""
        return list(read_entries(self._records(), "charge"))

    @property
    def reuses(self) -> list[Reuse]:
        """List of every `Reuse` (a step that ran in an already charged run), oldest first."""
        return list(read_entries(self._records(), "reuse"))

    def recompose(self, method: Method = "auto", delta: float | None = None) -> float:
        """Return the epsilon of all charges under another composition method.

        The figure is a guarantee only if the number of releases and the parameters of each were
        fixed before the first one, and not chosen after looking at earlier results. It changes
        neither the budget nor the rest of it. Parts of a partition are counted as if they
        contained the same rows.

        Parameters
        ----------
        method : str, default="auto"
            A method of `skdp.accounting.get_epsilon`: "auto", "basic", "advanced", "zcdp", "rdp" or
            "pld".
        delta : float, default=None
            The delta of the result; None means the limit's delta.

        Returns
        -------
        float
        """
        config = self._current_state().config
        event = Composed(tuple(charge.event for charge in self.charges))
        if delta is None:
            delta = config.delta
        return get_epsilon(
            event, delta, method=method, relation=config.relation, group_size=config.max_rows
        )

    def verify(self) -> str:
        """Check the ledger's hash chain and return the hash of its last record.

        Returns
        -------
        str
            Store a copy elsewhere: the chain reveals edits of records, but only such a copy
            reveals that the whole file was replaced or truncated.

        Raises
        ------
        LedgerError
            If a record was changed, removed, inserted or reordered, or if another ledger is at
            this address.
        """
        self._records()
        return self._ledger.verify()

    def report(self) -> BudgetReport:
        """Return a report of the budget and every charge.

        Returns
        -------
        BudgetReport
            It is printed as text, and shown as HTML in a notebook.
        """
        records = self._records()
        state = self._with_parent(self._check_opened(State().with_records(records)))
        config = state.config
        root = self._root()
        return BudgetReport(
            dataset=self._dataset,
            limit=config.limit,
            relation=config.relation,
            unit=config.unit,
            max_rows=config.max_rows,
            missing_ids=config.missing_ids,
            composition=config.composition,
            spent=state.spent,
            breakdown=state.breakdown(),
            closed=state.closed,
            charges=read_entries(records, "charge"),
            reuses=read_entries(records, "reuse"),
            head_hash=self.verify(),
            reserved_from="" if root is self else root.dataset,
            identity=root.identity,
        )

    def _records(self):
        """Return every record of the data set; raise LedgerError for another ledger's data set."""
        records = self._ledger.read(self._dataset)
        identity = None
        if records:
            identity = records[0].hash
        self._shared.check_identity(identity)
        return records

    def _repr_html_(self):
        """Return the budget report as HTML, for notebooks."""
        try:
            return self.report()._repr_html_()
        except LedgerError:
            # The model was loaded on a machine that has no access to its ledger.
            return html_text(repr(self))


def ledger_records(ledger, dataset=None, head=None):
    """Check the chain of a ledger and return its records, oldest first.

    Parameters
    ----------
    ledger : str or path-like
        As for `PrivacyAccountant`; it must exist.
    dataset : str, default=None
        Name of a data set. None selects all.
    head : str, default=None
        The hash of a record that was noted earlier. The chain must still contain it.

    Raises
    ------
    LedgerError
        If the ledger cannot be used, if its chain is broken or does not contain `head`, or if the
        data set does not exist.
    """
    opened = open_ledger(normalize_address(ledger))
    opened.verify()
    records = opened.records()
    if head is not None and head not in {record.hash for record in records}:
        raise LedgerError(f"the ledger does not contain the hash {head}: it was replaced or cut")
    if dataset is None:
        return records
    selected = [record for record in records if record.dataset == dataset]
    if not selected:
        raise LedgerError(f"the ledger has no data set {dataset!r}")
    return selected
