"""What a ledger says about a data set, for people and for programs."""

from dataclasses import asdict, dataclass, fields, replace

from skdp.accounting._composition import SCHEDULES
from skdp.utils._documents import html_fragment, html_table, html_text, printable
from skdp.utils._rounding import in_digits

ROWS_BY_INDEX = (
    "The total holds if the rows of each release were chosen by their index and a public seed. "
    "Stratified folds depend on labels: under them the sum is no guarantee; "
    "use cv=KFold(k, shuffle=True, random_state=0)."
)
RELATION_WORDS = {
    "add_remove": "add_remove: a row is there or is replaced by a null row; the number of rows "
    "is public",
    "replace_one": "replace_one: a row has other values; the number of rows is public",
}
SCORES = "Scores computed on private rows are not covered unless they were charged."


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


@dataclass(frozen=True)
class BudgetReport:
    """A data set's budget and what was spent of it.

    Printing gives text, a notebook shows HTML, `to_dict` gives JSON values.

    Parameters
    ----------
    dataset : str
        The data set within the ledger.
    cap, spent : tuple of (float, float)
        (epsilon, delta).
    relation, unit : str
        What is protected, and whose.
    max_rows : int
        How many rows a unit has at most.
    composition : str
        How charges add up.
    spends : tuple of Spend
        Every charge, oldest first.
    head_hash : str
        The hash of the ledger's last record; the chain was verified for this report.
    draws : tuple of Draw
        Every step of a plan that ran on a round charged before, oldest first; each is paid for
        by a spend.
    missing_ids : str
        Whether rows without an id are declared to be of distinct persons.
    shares : tuple of Share
        Each sub-cap, and each user and purpose that was named, with what they spent.
    closed : str or None
        Why the data set was closed, None if it is open.
    """

    dataset: str
    cap: tuple
    spent: tuple
    relation: str
    unit: str
    max_rows: int
    composition: str
    spends: tuple
    head_hash: str
    draws: tuple = ()
    missing_ids: str = "error"
    shares: tuple = ()
    closed: str | None = None

    notes = (ROWS_BY_INDEX, SCORES)
    columns = ("no.", "charged at", "release", "epsilon", "delta")

    def to_dict(self) -> dict:
        """Return the report as JSON values.

        Returns
        -------
        dict
        """
        spends, draws = (
            [asdict(replace(entry, event=entry.event.to_json())) for entry in entries]
            for entries in (self.spends, self.draws)
        )
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        amounts = zip(("epsilon", "delta"), values.pop("cap"), values.pop("spent"), strict=True)
        budget = {name: {"cap": cap, "spent": spent} for name, cap, spent in amounts}
        return values | budget | {"spends": spends, "draws": draws, "notes": list(self.notes)}

    def summary(self) -> list[tuple[str, str]]:
        """Return the budget as pairs of a name and words, without the charges.

        Returns
        -------
        list of tuple of (str, str)
        """
        return [
            ("data set", self.dataset),
            ("epsilon", f"{in_digits(self.spent[0])} spent of {self.cap[0]:.6g}"),
            ("delta", f"{in_digits(self.spent[1])} spent of {self.cap[1]:.6g}"),
            ("relation", RELATION_WORDS[self.relation]),
            ("unit", describe_unit(self.unit, self.max_rows, self.missing_ids)),
            ("composition", describe_composition(self.composition)),
            ("head hash", self.head_hash),
        ]

    def charges(self) -> list[tuple[str, ...]]:
        """Return the charges and draws as rows of words, oldest first.

        Returns
        -------
        list of tuple of str
            Number, time, release, epsilon and delta, as `columns` names them.
        """
        numbers = {spend.sequence: str(i) for i, spend in enumerate(self.spends, start=1)}
        rows: list[tuple[str, ...]] = []
        for entry in sorted((*self.spends, *self.draws), key=lambda entry: entry.sequence):
            number, seeded = numbers.get(entry.sequence), " [seeded]" if entry.seeded else ""
            if number is None:
                rows.append(("", entry.time, f"{entry.label} [already charged]{seeded}", "-", "-"))
                continue
            part, where = entry.part, ""
            if part is not None:
                where = f" (part {part.index + 1} of {part.parts} of {part.partition!r})"
            label = entry.label + where + seeded
            costs = map(in_digits, (entry.epsilon, entry.delta))
            rows.append((number, entry.time, label, *costs))
        return rows

    def __str__(self):
        lines = ["Privacy budget", ""]
        *rows, (_, head) = self.summary()
        lines += [f"  {name:<12} {printable(value)}" for name, value in rows]
        lines += ["", f"  {'no.':>4}  {'charged at':<25}  {'epsilon':>9}  {'delta':>9}  release"]
        for number, time, label, epsilon, delta in self.charges():
            label = printable(label)
            lines.append(f"  {number:>4}  {time:<25}  {epsilon:>9}  {delta:>9}  {label}")
        notes = (*self.notes, f"Head hash, which an edited ledger could not keep: {head}")
        return "\n".join([*lines, "", *(f"  {note}" for note in notes)])

    def _repr_html_(self):
        notes = (f"<p>{html_text(note)}</p>" for note in self.notes)
        return html_fragment(
            html_table(self.summary(), caption="Privacy budget"),
            html_table(self.charges(), caption="Charges", head=self.columns),
            *notes,
        )
