"""Reading a data set of a ledger: totals, charges and reports, by a handle."""

from skdp.accounting._bounds import get_epsilon
from skdp.accounting._events import Composed
from skdp.exceptions import LedgerError
from skdp.ledger._registry import normalize_address, open_ledger
from skdp.ledger._report import BudgetReport
from skdp.ledger._state import Charge, LedgerConfig, NotCopied, Part, Reuse, State, read_entries
from skdp.utils._documents import html_text


class LedgerView(NotCopied):
    """The part of a handle that reads; a subclass has `_ledger` and `_now`, the current state."""

    @property
    def dataset(self) -> str:
        """Name of the data set within the ledger."""
        return self._dataset

    @property
    def part(self) -> Part | None:
        """The part of the rows that this handle is for, None for all rows."""
        return self._part

    @property
    def user(self) -> str:
        """Name of the user who charges by this handle, "" without one."""
        return self._user

    @property
    def purpose(self) -> str:
        """Purpose of the charges by this handle, "" without one."""
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
    def relation(self) -> str:
        """The relation between neighboring data sets."""
        return self.config.relation

    @property
    def composition(self) -> str:
        """The method by which charges add up."""
        return self.config.composition

    @property
    def unit(self) -> str:
        """The privacy unit."""
        return self.config.unit

    @property
    def max_rows(self) -> int:
        """Largest number of rows of a unit, 1 unless the unit is a group."""
        return self.config.max_rows

    @property
    def identity(self) -> str:
        """The hash of the data set's opening record, which no other ledger has.

        A handle, its pickles and the models that hold it know it, and refuse another ledger in
        the place of theirs. A ledger whose file was moved keeps it.
        """
        return self._known.identity or self._now().identity

    @property
    def config(self) -> LedgerConfig:
        """Budget, relation, composition and unit, as one value."""
        return self._now().config

    @property
    def epsilon_spent(self) -> float:
        """The epsilon that everything charged costs together, at the limit's delta."""
        return self._now().spent[0]

    @property
    def delta_spent(self) -> float:
        """The delta at which `epsilon_spent` is stated."""
        return self._now().spent[1]

    @property
    def epsilon_remaining(self) -> float:
        """The limit on epsilon minus `epsilon_spent`; less where a sub-limit leaves `user` less."""
        return self._now().remaining(self._user, self._purpose)[0]

    @property
    def charges(self) -> list[Charge]:
        """Every charge, oldest first, as a list of `Charge`."""
        return list(read_entries(self._records(), "charge"))

    @property
    def reuses(self) -> list[Reuse]:
        """Every step that ran on a round charged before, oldest first, as a list of `Reuse`."""
        return list(read_entries(self._records(), "reuse"))

    def recompose(self, method: str = "auto", delta: float | None = None) -> float:
        """Return the epsilon of all charges by another method.

        The figure holds if all parameters had been fixed beforehand. Parts of partitions are
        counted as if they held the same rows.

        Parameters
        ----------
        method : str, default="auto"
            A method of `skdp.accounting.get_epsilon`.
        delta : float, default=None
            At which epsilon is stated; None takes the limit's.

        Returns
        -------
        float
        """
        config = self._now().config
        event = Composed(tuple(charge.event for charge in self.charges))
        delta = config.delta if delta is None else delta
        return get_epsilon(event, delta, method=method, **config.options)

    def verify(self) -> str:
        """Check the ledger's hash chain and return the hash of its last record.

        Returns
        -------
        str
            Keep it elsewhere: the chain finds an edit of a record, and only a hash kept
            elsewhere finds that the whole file was replaced or cut at its end.

        Raises
        ------
        LedgerError
            If a record was changed, removed, inserted or reordered, or another ledger is in the
            place of this one.
        """
        self._records()
        return self._ledger.verify()

    def report(self) -> BudgetReport:
        """Return the budget and every charge.

        Returns
        -------
        BudgetReport
            Text when printed, HTML in a notebook, and `to_dict`.
        """
        records = self._records()
        state = self._with_parent(self._check_opened(State().after(records)))
        shown = ("limit", "relation", "unit", "max_rows", "missing_ids", "composition")
        return BudgetReport(
            **{name: getattr(state.config, name) for name in shown},
            dataset=self._dataset,
            spent=state.spent,
            breakdown=state.breakdown(),
            closed=state.closed,
            charges=read_entries(records, "charge"),
            reuses=read_entries(records, "reuse"),
            head_hash=self.verify(),
        )

    def _records(self):
        """Return every record of the data set, of the ledger that this handle knows."""
        records = self._ledger.read(self._dataset)
        self._known.check_identity(records[0].hash if records else None)
        return records

    def _repr_html_(self):
        try:
            return self.report()._repr_html_()
        except LedgerError:
            # A model was loaded where its ledger is not.
            return html_text(repr(self))


def ledger_records(ledger, dataset=None, head=None):
    """Return the records of a ledger, oldest first, once its chain was checked.

    Parameters
    ----------
    ledger : str or path-like
        As `PrivacyAccountant` takes it; it must be there.
    dataset : str, default=None
        None takes every data set.
    head : str, default=None
        The hash of a record that was noted earlier: the chain must still hold it.

    Raises
    ------
    LedgerError
        If the ledger cannot be used, its chain is broken or does not hold `head`, or there is no
        such data set.
    """
    opened = open_ledger(normalize_address(ledger))
    opened.verify()
    records = opened.records()
    if head is not None and head not in {record.hash for record in records}:
        raise LedgerError(f"the ledger does not hold the hash {head}: it was replaced or cut")
    if dataset is None:
        return records
    selected = [record for record in records if record.dataset == dataset]
    if not selected:
        raise LedgerError(f"the ledger holds no data set {dataset!r}")
    return selected
