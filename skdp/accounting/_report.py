"""What a ledger says about a data set, for people and for programs."""

from dataclasses import asdict, dataclass, fields, replace

from skdp.accounting._composition import SCHEDULES
from skdp.utils._documents import Section, html_fragment, html_stacks
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
HEAD_HASH = "An edited ledger could not keep its head hash: note it elsewhere."
SUB_CAPS = (
    "A cap inside the data set's cap bounds what its users release themselves, and nothing if they "
    "see the results of others: the data set's cap alone is a guarantee."
)
MOST_BARS = 24
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

    notes = (ROWS_BY_INDEX, SCORES, HEAD_HASH)
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
            *[("closed", self.closed)] * (self.closed is not None),
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
            number, words = numbers.get(entry.sequence), [entry.label]
            if number is None:
                words.append("[already charged]")
            elif part := entry.part:
                words.append(f"(part {part.index + 1} of {part.parts} of {part.partition!r})")
            words += ["[seeded]"] * entry.seeded
            words += [f"by {entry.user}"] * bool(entry.user)
            words += [f"for {entry.purpose}"] * bool(entry.purpose)
            costs = map(in_digits, (entry.epsilon, entry.delta)) if number else ("-", "-")
            rows.append((number or "", entry.time, " ".join(words).strip(), *costs))
        return rows

    def section(self, heading: str) -> Section:
        """Return it as a part of a document.

        Parameters
        ----------
        heading : str
            Of the part.

        Returns
        -------
        Section
        """
        tables: list = [(self.columns, *self.charges())]
        if self.shares:
            tables.insert(0, (("of", "spent", "cap", "left"), *self._of_shares()))
        limits = {"data set": (self.cap, self.spent)}
        limits |= {share.name: (share.cap, share.spent) for share in self.shares if share.cap}
        left = {
            name: {"spent": spent[0], "left": max(cap[0] - spent[0], 0.0)}
            for name, (cap, spent) in limits.items()
        }
        pictures = [html_stacks(left, caption="Epsilon, spent and left")]
        if self.spends:
            words = "Epsilon charged over time (UTC), each release at its own price"
            pictures.append(html_stacks(self._by_time(), caption=words))
        notes = (*self.notes, *[SUB_CAPS] * (len(left) > 1))
        return Section(heading, self.summary(), tuple(tables), notes, tuple(pictures))

    def _of_shares(self):
        for share in self.shares:
            amounts = (share.spent, share.cap, share.left)
            yield share.name, *("-" if pair is None else in_digits(*pair) for pair in amounts)

    def _by_time(self):
        """Return what each user charged by the hour, or by the shortest longer time that fits."""
        times = [spend.time for spend in self.spends]
        size = next(n for n in (13, 10, 7, 4, 0) if len({time[:n] for time in times}) <= MOST_BARS)
        amounts: dict[str, dict[str, float]] = {}
        for spend in self.spends:
            pieces = amounts.setdefault(spend.time[:size], {})
            pieces[spend.user or "-"] = pieces.get(spend.user or "-", 0.0) + spend.epsilon
        return amounts

    def __str__(self):
        return "\n".join(self.section("Privacy budget").to_text())

    def _repr_html_(self):
        return html_fragment(self.section("Privacy budget").to_html())
