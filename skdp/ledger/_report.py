"""The report of a data set's budget, for people and for programs."""

import json
from dataclasses import dataclass, replace

from skdp.accounting._composition import SCHEDULES
from skdp.accounting._events import Event
from skdp.utils._documents import PrintedDocument, Section, with_bar
from skdp.utils._rounding import format_rounded_up
from skdp.utils._values import FrozenValue

ROWS_BY_INDEX = (
    "The total holds if the rows of each release were chosen by their index and a public seed. "
    "Stratified folds depend on labels: under them the sum is no guarantee; "
    "use cv=KFold(k, shuffle=True, random_state=0)."
)
# The difference between two neighboring tables, by relation and unit.
NEIGHBORING = {
    ("add_remove", "row"): "a row is there or is replaced by a null row; the number of rows is "
    "public",
    ("replace_one", "row"): "a row has other values; the number of rows is public",
    ("add_remove", "person"): "a person is there, or all rows of the person are replaced by null "
    "rows; the number of persons is public, that of rows is not",
    ("replace_one", "person"): "all rows of a person change, their number too; the number of "
    "persons is public, that of rows is not",
    ("add_remove", "group"): "the rows of a group, at most {max_rows}, are there or are replaced "
    "by null rows; the number of rows is public",
    ("replace_one", "group"): "the rows of a group, at most {max_rows}, have other values; the "
    "number of rows is public",
}
# The same under "add_remove" where the number of units is private too.
PRIVATE_SIZES = {
    "row": "a row is there or is not; the number of rows is private",
    "person": "all rows of a person are there or are not; the numbers of persons and of rows are "
    "private",
    "group": "the rows of a group, at most {max_rows}, are there or are not; the number of rows is "
    "private",
}
SUB_LIMITS = (
    "A limit inside the data set's limit bounds what its users release themselves, and nothing if "
    "they see the results of others: the data set's limit alone is a guarantee."
)
SCORES = "Scores computed on private rows are not covered unless they were charged."


def describe_relation(relation, unit, max_rows, *, is_size_public=True):
    """Return in words what differs between two neighboring tables.

    Parameters
    ----------
    relation : {"add_remove", "replace_one"}
    unit : {"row", "person", "group"}
    max_rows : int
        The most rows of a group.
    is_size_public : bool, default=True
        False of a release under "add_remove" for which the number of units is private.

    Returns
    -------
    str
    """
    words = NEIGHBORING[relation, unit] if is_size_public else PRIVATE_SIZES[unit]
    return words.format(max_rows=max_rows)


def describe_unit(unit, max_rows, missing_ids="error"):
    """Return a unit in words, with its assumption."""
    if unit == "person":
        declared = "; rows without an id are declared to be of distinct persons"
        return f"person, whatever number of rows each has{declared * (missing_ids == 'distinct')}"
    return unit if unit == "row" else f"group of rows, at most {max_rows} of them in a table"


def describe_composition(composition):
    """Return a composition in words, with its assumption."""
    if composition in SCHEDULES:
        return f"{composition}, for releases whose parameters were fixed beforehand"
    return composition


def _as_json(value):
    return value.to_json() if isinstance(value, Event) else vars(value)


@dataclass(frozen=True)
class BudgetReport(PrintedDocument, FrozenValue):
    """A data set's budget and what was spent of it.

    Printing gives text, a notebook shows HTML, `to_dict` gives JSON values.

    Parameters
    ----------
    dataset : str
        The data set within the ledger.
    limit, spent : tuple of (float, float)
        (epsilon, delta).
    relation, unit : str
        What is protected, and whose.
    max_rows : int
        How many rows a unit has at most.
    composition : str
        How charges add up.
    charges : tuple of Charge
        Every charge, oldest first.
    head_hash : str
        The hash of the ledger's last record; the chain was verified for this report.
    reuses : tuple of Reuse
        Every step of a plan that ran on a round charged before, oldest first; each is paid for
        by a charge.
    missing_ids : str
        Whether rows without an id are declared to be of distinct persons.
    breakdown : tuple of dict
        One for the data set, each sub-limit, and each user and purpose that was named. Each has
        `of`, what it is about, and `spent`; where there is a limit, also `limit` and `remaining`.
    closed : str or None
        Why the data set was closed, None if it is open.
    shown : str
        Which charges `charges` and `reuses` are, if not all; see `select`.
    """

    dataset: str
    limit: tuple
    spent: tuple
    relation: str
    unit: str
    max_rows: int
    composition: str
    charges: tuple
    head_hash: str
    reuses: tuple = ()
    missing_ids: str = "error"
    breakdown: tuple = ()
    closed: str | None = None
    shown: str = ""

    notes = (ROWS_BY_INDEX, SCORES)
    columns = ("no.", "charged at", "release", "epsilon", "delta")

    @property
    def relation_in_words(self) -> str:
        """The relation, and what differs between two neighboring tables."""
        words = describe_relation(self.relation, self.unit, self.max_rows)
        return f"{self.relation}: {words}"

    def to_dict(self) -> dict:
        """Return the report as JSON values.

        Returns
        -------
        dict
        """
        values = dict(vars(self))
        amounts = zip(("epsilon", "delta"), values.pop("limit"), values.pop("spent"), strict=True)
        budget = {name: {"limit": limit, "spent": spent} for name, limit, spent in amounts}
        text = json.dumps(values | budget | {"notes": self.notes}, default=_as_json)
        # JSON has no infinity: what no epsilon bounds at the limit's delta is null.
        return json.loads(text, parse_constant=lambda word: None)

    def select(
        self, *, user: str | None = None, purpose: str | None = None, since: str | None = None
    ) -> "BudgetReport":
        """Return the report with some of the charges; totals stay those of all.

        Parameters
        ----------
        user, purpose : str, default=None
            Whose charges, and for what; None takes all, "" those that say nothing.
        since : str, default=None
            From which time on, ISO 8601, UTC.

        Returns
        -------
        BudgetReport
        """
        filters = {"user": user, "purpose": purpose, "since": since}
        filters = {name: value for name, value in filters.items() if value is not None}

        def is_selected(entry):
            if since is not None and entry.time < since:
                return False
            return (user is None or entry.user == user) and (
                purpose is None or entry.purpose == purpose
            )

        charges, reuses = (tuple(filter(is_selected, some)) for some in (self.charges, self.reuses))
        shown = ", ".join(f"{name} {value}" for name, value in filters.items())
        return replace(self, charges=charges, reuses=reuses, shown=shown)

    def summary(self) -> list[tuple[str, str]]:
        """Return the budget as pairs of a name and words, without the charges.

        Returns
        -------
        list of tuple of (str, str)
        """
        return [
            ("data set", self.dataset),
            ("epsilon", f"{format_rounded_up(self.spent[0])} spent of {self.limit[0]:.6g}"),
            ("delta", f"{format_rounded_up(self.spent[1])} spent of {self.limit[1]:.6g}"),
            ("relation", self.relation_in_words),
            ("unit", describe_unit(self.unit, self.max_rows, self.missing_ids)),
            ("composition", describe_composition(self.composition)),
            *[("closed", self.closed)] * (self.closed is not None),
            *[("charges", f"those of {self.shown}; what was spent is of all")] * bool(self.shown),
        ]

    def charge_rows(self) -> list[tuple[str, ...]]:
        """Return the charges and reuses as rows of words, oldest first.

        Returns
        -------
        list of tuple of str
            Number, time, release, epsilon and delta, as `columns` names them.
        """
        numbers = {charge.sequence: str(i) for i, charge in enumerate(self.charges, start=1)}
        largest = max((charge.epsilon for charge in self.charges), default=0.0)
        rows: list[tuple[str, ...]] = []
        for entry in sorted((*self.charges, *self.reuses), key=lambda entry: entry.sequence):
            number = numbers.get(entry.sequence)
            words = [entry.label]
            if number is None:
                words.append("[already charged]")
            elif part := entry.part:
                words.append(f"(part {part.index + 1} of {part.parts} of {part.partition!r})")
            words += ["[seeded]"] * entry.seeded
            words += [f"by {entry.user}"] * bool(entry.user)
            words += [f"for {entry.purpose}"] * bool(entry.purpose)
            costs = [
                format_rounded_up(cost) if number else "-" for cost in (entry.epsilon, entry.delta)
            ]
            costs[0] = with_bar(costs[0], entry.epsilon, largest)
            rows.append((number or "", entry.time, " ".join(words).strip(), *costs))
        return rows

    def section(self, heading: str = "Privacy budget") -> Section:
        """Return it as a part of a document.

        Parameters
        ----------
        heading : str, default="Privacy budget"
            Of the part.

        Returns
        -------
        Section
        """
        rows = [("epsilon, delta of", "spent", "limit", "remaining")]
        for entry in self.breakdown:
            limits = (
                format_rounded_up(*entry[name]) if name in entry else "-"
                for name in ("limit", "remaining")
            )
            (epsilon, delta), (limit, _) = entry["spent"], entry.get("limit", self.limit)
            rows.append(
                (entry["of"], with_bar(format_rounded_up(epsilon, delta), epsilon, limit), *limits)
            )
        tables = rows, (self.columns, *self.charge_rows())
        notes = (*self.notes, *[SUB_LIMITS] * any("limit" in entry for entry in self.breakdown[1:]))
        notes = (*notes, f"Head hash if not edited: {self.head_hash}")
        return Section(heading, tuple(self.summary()), tables, notes)
