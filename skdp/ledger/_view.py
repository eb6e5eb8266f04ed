"""What a ledger says of a data set, to whoever has a handle on it."""

from operator import attrgetter

from skdp.accounting._bounds import get_epsilon
from skdp.accounting._events import Composed
from skdp.exceptions import LedgerError
from skdp.ledger._registry import one_address, open_ledger
from skdp.ledger._report import BudgetReport
from skdp.ledger._state import Charge, LedgerConfig, NotCopied, Part, Reuse, State, read_entries
from skdp.utils._documents import html_text


class LedgerView(NotCopied):
    """What is read of a data set; a handle knows its `_ledger`, and how to look at it `_now`."""

    dataset: str = property(attrgetter("_dataset"))
    part: Part | None = property(attrgetter("_part"))
    user: str = property(attrgetter("_user"))
    purpose: str = property(attrgetter("_purpose"))
    epsilon: float = property(attrgetter("config.epsilon"))
    delta: float = property(attrgetter("config.delta"))
    relation: str = property(attrgetter("config.relation"))
    composition: str = property(attrgetter("config.composition"))
    unit: str = property(attrgetter("config.unit"))
    max_rows: int = property(attrgetter("config.max_rows"))

    @property
    def identity(self) -> str:
        """The hash of the data set's opening record, which no other ledger has.

        A handle, its pickles and the models that hold it know it, and refuse another ledger in
        the place of theirs. A ledger whose file was moved keeps it.
        """
        return self._known.identity or self._now().identity

    @property
    def config(self) -> LedgerConfig:
        """BudgetLimit, relation, composition and unit, as one value."""
        return self._now().config

    @property
    def epsilon_spent(self) -> float:
        """The epsilon that everything charged costs together, at the limit's delta."""
        return self._now().spent[0]

    @property
    def delta_spent(self) -> float:
        """The delta that goes with `epsilon_spent`."""
        return self._now().spent[1]

    @property
    def epsilon_remaining(self) -> float:
        """The limit on epsilon minus `epsilon_spent`; less where a sub-limit leaves `user` less."""
        return self._now().left(self._user, self._purpose)[0]

    @property
    def charges(self) -> list[Charge]:
        """Every charge, oldest first, as a list of `Charge`."""
        return list(read_entries(self._records(), "charge"))

    @property
    def reuses(self) -> list[Reuse]:
        """Every step that ran on a round charged before, oldest first, as a list of `Reuse`."""
        return list(read_entries(self._records(), "reuse"))

    def recompose(self, method: str = "auto", delta: float | None = None) -> float:
        """Return what everything charged costs by another method.

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
        """Return the budget and every spend.

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
            shares=state.shares(),
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
    opened = open_ledger(one_address(ledger))
    opened.verify()
    records = opened.records()
    if head is not None and head not in {record.hash for record in records}:
        raise LedgerError(f"the ledger does not hold the hash {head}: it was replaced or cut")
    kept = [record for record in records if dataset in (None, record.dataset)]
    if dataset is not None and not kept:
        raise LedgerError(f"the ledger holds no data set {dataset!r}")
    return kept
