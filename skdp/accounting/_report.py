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
    shares : tuple of dict
        Of the data set, of each sub-cap, and of each user and purpose that was named: what they
        `spent`, and the `cap` and what of it is `left` where there is one.
    closed : str or None
        Why the data set was closed, None if it is open.
    shown : str
        Which charges `spends` and `draws` are, if not all; see `select`.
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
    shown: str = ""

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
        asked = {"user": user, "purpose": purpose, "since": since}
        asked = {name: value for name, value in asked.items() if value is not None}

        def is_asked(entry):
            known = vars(entry) | {"since": min(since or "", entry.time)}
            return all(known[name] == value for name, value in asked.items())

        spends, draws = (tuple(filter(is_asked, some)) for some in (self.spends, self.draws))
        shown = ", ".join(f"{name} {value}" for name, value in asked.items())
        return replace(self, spends=spends, draws=draws, shown=shown)

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
            *[("charges", f"those of {self.shown}; what was spent is of all")] * bool(self.shown),
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
        kept = [share for share in self.shares if "cap" in share]
        left = {share["of"]: {name: share[name][0] for name in ("spent", "left")} for share in kept}
        words = "Epsilon charged over time (UTC), each release at its own price"
        pictures = (
            html_stacks(left, caption="Epsilon, spent and left"),
            html_stacks(self._by_time(), caption=words),
        )
        tables, names = [(self.columns, *self.charges())], ("spent", "cap", "left")
        if len(self.shares) > 1:
            costs = ([in_digits(*s[n]) if n in s else "-" for n in names] for s in self.shares)
            cells = ((s["of"], *each) for s, each in zip(self.shares, costs, strict=True))
            tables.insert(0, (("epsilon, delta of", *names), *cells))
        notes = (*self.notes, *[SUB_CAPS] * (len(kept) > 1))
        return Section(heading, tuple(self.summary()), tuple(tables), notes, pictures)

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
        whole = self.section("Privacy budget")
        notes = (*whole.notes, f"Head hash if not edited: {self.head_hash}")
        return "\n".join(replace(whole, rows=whole.rows[:-1], notes=notes).to_text())

    def _repr_html_(self):
        return html_fragment(self.section("Privacy budget").to_html())
