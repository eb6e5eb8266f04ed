"""The report of a data set's budget, for people and for programs."""

import json
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter

from skdp.accounting._composition import SCHEDULES
from skdp.accounting._events import Event
from skdp.utils._documents import PrintedDocument, Section, with_bar
from skdp.utils._rounding import format_rounded_up
from skdp.utils._types import Composition, Relation, Unit
from skdp.utils._values import FrozenValue

ROWS_BY_INDEX = (
    "The total holds if the rows of each release were chosen by their index and a public seed. "
    "Stratified folds depend on labels, so the total does not cover them; "
    "use cv=KFold(k, shuffle=True, random_state=0)."
)
# Descriptions of the difference between two neighboring tables, by (relation, unit).
NEIGHBORING = {
    ("add_remove", "row"): "a row is present or is replaced by a null row; the number of rows is "
    "public",
    ("replace_one", "row"): "a row has different values; the number of rows is public",
    ("add_remove", "person"): "a person is present, or all rows of the person are replaced by "
    "null rows; the number of persons is public, the number of rows is not",
    ("replace_one", "person"): "all rows of a person change, as may their number; the number of "
    "persons is public, the number of rows is not",
    ("add_remove", "group"): "the rows of a group, at most {max_rows}, are present or replaced "
    "by null rows; the number of rows is public",
    ("replace_one", "group"): "the rows of a group, at most {max_rows}, have different values; the "
    "number of rows is public",
}
# The same descriptions, by unit, for "add_remove" releases that keep the number of units private.
PRIVATE_SIZES = {
    "row": "a row is present or absent; the number of rows is private",
    "person": "all rows of a person are present or absent; the numbers of persons and of rows are "
    "private",
    "group": "the rows of a group, at most {max_rows}, are present or absent; the number of "
    "rows is private",
}


def _of_user(user):
    if user:
        return f"of user {user}"
    return "of no named user"


def _for_purpose(purpose):
    if purpose:
        return f"for purpose {purpose}"
    return "for no named purpose"


def _since(time):
    return f"since {time}"


# Functions that describe which charges were selected, by parameter of `BudgetReport.select`. Each
# text continues the words "only those".
FILTER_TEXTS = {"user": _of_user, "purpose": _for_purpose, "since": _since}
SUB_LIMITS = (
    "A sub-limit bounds only the releases that its users make, and bounds nothing if they also see "
    "the results of other users: only the data set's limit is a guarantee."
)
# Number of characters of a hash that tell ledgers apart.
SHORT_HASH = 12
# A larger number means any number of parts, as for calls that are not recorded in a ledger.
MAX_COUNTED_PARTS = 2**32
SCORES = "Scores computed on private rows are not covered unless they were charged."


@cache
def describe_relation(relation, unit, max_rows, *, is_size_public=True):
    """Return a description of the difference between two neighboring tables.

    Parameters
    ----------
    relation : {"add_remove", "replace_one"}
    unit : {"row", "person", "group"}
    max_rows : int
        The largest number of rows of a group.
    is_size_public : bool, default=True
        False for a release under "add_remove" that keeps the number of units private.

    Returns
    -------
    str
    """
    if is_size_public:
        template = NEIGHBORING[relation, unit]
    else:
        template = PRIVATE_SIZES[unit]
    return template.format(max_rows=max_rows)


@cache
def describe_unit(unit, max_rows, missing_ids="error"):
    """Return a description of a privacy unit and its assumptions."""
    if unit == "row":
        return "row"
    if unit == "group":
        return f"group of rows, at most {max_rows} of them in a table"
    description = "person, however many rows each has"
    if missing_ids == "distinct":
        description += "; rows without an id are declared to belong to distinct persons"
    return description


def describe_part(part, config):
    """Return a description of what was declared about the rows of a part, and of the total.

    Parameters
    ----------
    part : Part
    config : LedgerConfig
        Its unit and relation determine which parts add up.

    Returns
    -------
    str
    """
    basis = "any public rule"
    if part.by_index:
        basis = "their index"
    if part.parts > MAX_COUNTED_PARTS:
        n_parts = ""
    else:
        n_parts = f"{part.parts} "
    declared = (
        f"the rows were declared to be part {part.index + 1} of {n_parts}disjoint parts "
        f"{part.partition!r}, chosen by {basis}"
    )
    n_affected = config.n_affected_parts(part, part.parts)
    if n_affected == 1:
        return (
            f"{declared}: the cost of all parts together is that of the most expensive part, and "
            "releases from all rows add to it"
        )
    if config.unit == "person":
        reason = "a person may have rows in several parts"
    elif config.unit == "group":
        reason = "the rows of a group may be in several parts"
    else:
        reason = "a row with different values may be in another part"
    if n_affected >= part.parts:
        return f"{declared}: the costs of all parts add up, because {reason}"
    return (
        f"{declared}: the costs of the {n_affected} most expensive parts add up, because {reason}"
    )


@cache
def describe_composition(composition):
    """Return a description of a composition method and its assumption."""
    if composition in SCHEDULES:
        return f"{composition}, for releases whose parameters were fixed beforehand"
    return composition


def describe_head(head_hash):
    """Return a short description of the last hash of a ledger, to tell two ledgers apart.

    The report of a budget prints the whole hash.
    """
    return f"head hash {head_hash[:SHORT_HASH]}"


def _as_json(value):
    """Return an event as JSON text, and any other object as a dict of its attributes."""
    if isinstance(value, Event):
        return value.to_json()
    return vars(value)


@dataclass(frozen=True)
class BudgetReport(PrintedDocument, FrozenValue):
    """The budget of a data set, the amount spent, and all charges.

    It is printed as text and shown as HTML in a notebook, and `to_dict` returns JSON values.

    Parameters
    ----------
    dataset : str
        The data set within the ledger.
    limit, spent : tuple of (float, float)
        The (epsilon, delta) of the limit and of all charges together.
    relation, unit : str
        The relation between neighboring data sets and the privacy unit.
    max_rows : int
        The largest number of rows of a unit.
    composition : str
        The method by which charges add up.
    charges : tuple of Charge
        Every charge, oldest first.
    head_hash : str
        The hash of the ledger's last record. The chain was verified for this report.
    reuses : tuple of Reuse
        Every plan step that ran in a previously charged run, oldest first. Each is covered by a
        charge.
    missing_ids : str
        "distinct" if rows without an id are declared to belong to distinct persons, else "error".
    breakdown : tuple of dict
        One entry for the data set, for each sub-limit, and for each named user and purpose. Each
        entry has `of`, the name of its subject, and `spent`. An entry with a limit also has `limit`
        and `remaining`.
    closed : str or None
        The reason why the data set was closed, None if it is open.
    shown : str
        Description of the selected charges, such as "of user ann since 2026-01-01", "" if all are
        shown; see `select`.
    n_all_charges : int or None
        The number of all charges, of which `charges` are the selected ones; None if all are shown.
    reserved_from : str
        The data set from which this budget was reserved, "" if it was not reserved.
    identity : str
        The hash of the data set's opening record or, for a reserved budget, that of the data set in
        `reserved_from`.
    """

    dataset: str
    limit: tuple
    spent: tuple
    relation: Relation
    unit: Unit
    max_rows: int
    composition: Composition
    charges: tuple
    head_hash: str
    reuses: tuple = ()
    missing_ids: str = "error"
    breakdown: tuple = ()
    closed: str | None = None
    shown: str = ""
    n_all_charges: int | None = None
    reserved_from: str = ""
    identity: str = ""

    notes = (ROWS_BY_INDEX, SCORES)
    columns = ("no.", "charged at", "release", "epsilon", "delta")

    @property
    def relation_in_words(self) -> str:
        """The relation, with a description of the difference between two neighboring tables."""
        description = describe_relation(self.relation, self.unit, self.max_rows)
        return f"{self.relation}: {description}"

    def to_dict(self) -> dict:
        """Return the report as JSON values.

        Returns
        -------
        dict
        """
        values = dict(vars(self))
        limit = values.pop("limit")
        spent = values.pop("spent")
        values["epsilon"] = {"limit": limit[0], "spent": spent[0]}
        values["delta"] = {"limit": limit[1], "spent": spent[1]}
        values["notes"] = self.notes
        text = json.dumps(values, default=_as_json)
        # JSON has no infinity: an epsilon that is unbounded at the limit's delta becomes null.
        return json.loads(text, parse_constant=lambda constant: None)

    def select(
        self, *, user: str | None = None, purpose: str | None = None, since: str | None = None
    ) -> "BudgetReport":
        """Return the report with a selection of the charges; totals still cover all charges.

        Parameters
        ----------
        user, purpose : str, default=None
            The user and the purpose to select. None selects all, "" those without one.
        since : str, default=None
            The time of the earliest charge to select, ISO 8601, UTC.

        Returns
        -------
        BudgetReport
        """
        filters = {"user": user, "purpose": purpose, "since": since}

        def is_selected(entry):
            """Return True if an entry satisfies all given conditions."""
            if since is not None and entry.time < since:
                return False
            if user is not None and entry.user != user:
                return False
            return purpose is None or entry.purpose == purpose

        charges = tuple(charge for charge in self.charges if is_selected(charge))
        reuses = tuple(reuse for reuse in self.reuses if is_selected(reuse))
        shown = " ".join(
            describe(value)
            for name, describe in FILTER_TEXTS.items()
            if (value := filters[name]) is not None
        )
        n_all = self.n_charges
        return replace(self, charges=charges, reuses=reuses, shown=shown, n_all_charges=n_all)

    @property
    def n_charges(self) -> int:
        """The number of all charges, whether or not they are selected."""
        if self.n_all_charges is None:
            return len(self.charges)
        return self.n_all_charges

    def summary(self) -> list[tuple[str, str]]:
        """Return the budget as pairs of a name and a description, without the charges.

        `PrivacyReport.summary` is a property with another type, the first page of a document.

        Returns
        -------
        list of tuple of (str, str)
        """
        pairs = [
            ("data set", self.dataset),
            ("epsilon", f"{format_rounded_up(self.spent[0])} spent of {self.limit[0]:.6g}"),
            ("delta", f"{format_rounded_up(self.spent[1])} spent of {self.limit[1]:.6g}"),
            ("relation", self.relation_in_words),
            ("unit", describe_unit(self.unit, self.max_rows, self.missing_ids)),
            ("composition", describe_composition(self.composition)),
        ]
        if self.reserved_from:
            pairs.insert(1, ("reserved from", f"data set {self.reserved_from!r}"))
        if self.closed is not None:
            pairs.append(("closed", self.closed))
        if self.shown:
            text = f"only those {self.shown} are listed; the amounts spent cover all charges"
            pairs.append(("charges", text))
        return pairs

    def charge_rows(self) -> list[tuple[str, ...]]:
        """Return the charges and reuses as rows of texts, oldest first.

        Returns
        -------
        list of tuple of str
            Number, time, release, epsilon and delta, in the order of `columns`.
        """
        numbers = {charge.sequence: str(i) for i, charge in enumerate(self.charges, start=1)}
        max_epsilon = max((charge.epsilon for charge in self.charges), default=0.0)
        rows: list[tuple[str, ...]] = []
        for entry in sorted((*self.charges, *self.reuses), key=attrgetter("sequence")):
            number = numbers.get(entry.sequence)
            release = [entry.label]
            if number is None:
                release.append("[already charged]")
            elif entry.part:
                part = entry.part
                release.append(f"(part {part.index + 1} of {part.parts} of {part.partition!r})")
            if entry.seeded:
                release.append("[seeded]")
            if entry.user:
                release.append(f"by {entry.user}")
            if entry.purpose:
                release.append(f"for {entry.purpose}")
            epsilon = delta = "-"
            if number:
                epsilon = format_rounded_up(entry.epsilon)
                delta = format_rounded_up(entry.delta)
            epsilon = with_bar(epsilon, entry.epsilon, max_epsilon)
            rows.append((number or "", entry.time, " ".join(release).strip(), epsilon, delta))
        return rows

    def section(self, heading: str = "Privacy budget") -> Section:
        """Return the report as a section of a document.

        Parameters
        ----------
        heading : str, default="Privacy budget"
            The heading of the section.

        Returns
        -------
        Section
        """
        rows = [("epsilon, delta of", "spent", "limit", "remaining")]
        for entry in self.breakdown:
            epsilon, delta = entry["spent"]
            max_epsilon = entry.get("limit", self.limit)[0]
            spent = with_bar(format_rounded_up(epsilon, delta), epsilon, max_epsilon)
            limit = remaining = "-"
            if "limit" in entry:
                limit = format_rounded_up(*entry["limit"])
            if "remaining" in entry:
                remaining = format_rounded_up(*entry["remaining"])
            rows.append((entry["of"], spent, limit, remaining))
        tables = rows, (self.columns, *self.charge_rows())
        notes = list(self.notes)
        # The first entry is the data set itself.
        if any("limit" in entry for entry in self.breakdown[1:]):
            notes.append(SUB_LIMITS)
        notes.append(f"Head hash if not edited: {self.head_hash}")
        return Section(heading, tuple(self.summary()), tables, tuple(notes))
