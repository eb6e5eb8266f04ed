"""The rendering of a privacy report as text, HTML, JSON and Markdown (model cards)."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

from skdp._reports._summary import conclusion_of, facts_of
from skdp._version import __version__
from skdp.utils._documents import Section, escape_control, html_fragment, html_text, markdown_text
from skdp.utils._rounding import format_rounded_up
from skdp.utils._values import FrozenValue

SECURE_NOISE = "No one can predict the operating system's random generator."
SECRET_SEEDS = "No one who sees a release knows a seed of its noise."
ASSUMPTIONS = (
    "Recipients of releases see neither the data nor the time and memory that fitting took.",
    "Rows were chosen by their index and a public seed. Parameters were chosen without looking at "
    "the data, or by charged releases.",
)
NO_AUDIT = "No attack was run. The guarantees rest on their proofs."
AUDITED = (
    "An attack proves a lower bound on the privacy loss. Only the guarantee is an upper bound."
)
PLANNED_TOGETHER = (
    "Releases of one plan were charged together: their total is the cost of the plan, not the sum "
    "of the costs that the releases would have separately."
)
SOURCES = (
    "The fields follow NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees "
    "(2025), and N. Ponomareva et al., How to DP-fy ML (2023), section 5.3.3."
)


@dataclass(frozen=True)
class Total(FrozenValue):
    """Total cost of the reported releases.

    Parameters
    ----------
    of : str
        Description of the reported models.
    epsilon, delta : float
        The guarantee of all of them together.
    neighbors : str
        Description of the neighboring tables.
    composition : str
        Description of the composition rule.
    dataset : str
        The data set's name in the ledger; empty for releases that no ledger of the report contains.
    head_hash : str
        The hash of that ledger's last record; empty if there are several ledgers.
    n_charges : int
        The number of charges. A plan with a single charge counts once.
    parts : tuple of str, default=()
        The costs that add up to this total, if the charges are in several ledgers.
    """

    of: str
    epsilon: float
    delta: float
    neighbors: str
    composition: str
    dataset: str
    head_hash: str
    n_charges: int
    parts: tuple = ()

    def section(self):
        """Return the total as a section of a document.

        Returns
        -------
        Section
        """
        cost = format_rounded_up(self.epsilon, self.delta)
        rows = [
            ("relation", self.neighbors),
            ("composition", self.composition),
            ("charges", str(self.n_charges)),
            ("sum of", "; ".join(self.parts)),
            ("data set", self.dataset or "none: these releases are in no ledger of this report"),
            ("ledger", self.head_hash),
        ]
        rows = tuple((name, text) for name, text in rows if text)
        return Section(f"Total: {self.of} is ({cost})-differentially private", rows)


@dataclass(frozen=True)
class Summary(FrozenValue):
    """The first page of a report: its conclusion, and the facts on which it is based.

    Parameters
    ----------
    conclusion : tuple of str
        The conclusion in plain words, one sentence or two per entry.
    facts : tuple of (str, str)
        Names and texts: the totals for the model and for the data set, the unit, the relation, who,
        why, when, and what was assumed to be public.
    """

    conclusion: tuple
    facts: tuple

    def section(self):
        """Return the summary as a section of a document.

        Returns
        -------
        Section
        """
        rows = (("conclusion", " ".join(self.conclusion)), *self.facts)
        return Section("In short", rows)


@dataclass(frozen=True)
class PrivacyReport(FrozenValue):
    """Document on the privacy of one or several releases.

    `privacy_report` creates it. It is printed as text and shown as HTML in a notebook.

    Parameters
    ----------
    title : str
        The document's heading.
    statements : tuple of PrivacyStatement
        The guarantee of each private fit.
    budgets : tuple of BudgetReport
        The budget and charges of each data set.
    audits : tuple
        Results of attacks, from `skdp.audit`.
    without_statement : tuple of str
        Names of the steps and models that no guarantee covers: they learn from rows without a
        charge, or may do so. Steps that learn nothing are omitted.
    totals : tuple of Total, default=()
        The total cost of the fits, the figure to quote. The totals of several ledgers add up,
        unless their relations or privacy units differ; in that case, there is one total per ledger.
    uncovered : tuple of str, default=()
        A sentence about each name in `without_statement`, with a remedy.
    missing : tuple of str, default=()
        Private releases of the reported models that are in no total: neither a statement nor a
        ledger of the report contains their charges. These are fits and scores of searches and
        selectors.
    made : str, default=now
        Time at which the document was created, UTC.
    version : str, default=this version
        The version of skdp.
    """

    title: str
    statements: tuple
    budgets: tuple
    audits: tuple
    without_statement: tuple
    totals: tuple = ()
    uncovered: tuple = ()
    missing: tuple = ()
    made: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    version: str = __version__

    @property
    def summary(self):
        """The first page: the conclusion and the facts on which it is based, as a `Summary`.

        `BudgetReport.summary` is a method, which returns pairs of texts.
        """
        return Summary(tuple(conclusion_of(self)), tuple(facts_of(self)))

    def _assumptions(self):
        """Return the assumptions of all guarantees, on the source of the noise first."""
        seeds = {call.seeded for s in self.statements for call in s.calls or (s,)}
        seeds |= {charge.seeded for budget in self.budgets for charge in budget.charges}
        if any(budget.shown for budget in self.budgets):
            # Some charges are not listed, and the totals cover them, too.
            seeds |= {False, True}
        on_noise = ()
        if False in seeds or not seeds:
            on_noise += (SECURE_NOISE,)
        if True in seeds:
            on_noise += (SECRET_SEEDS,)
        return (*on_noise, *ASSUMPTIONS)

    def to_dict(self):
        """Return the document as JSON values.

        Returns
        -------
        dict
            Statements, budgets and audits are converted with their `to_dict` methods.
        """
        return {
            "title": self.title,
            "summary": {"conclusion": list(self.summary.conclusion), **dict(self.summary.facts)},
            "totals": [dict(vars(total)) for total in self.totals],
            "guarantees": [statement.to_dict() for statement in self.statements],
            "without_statement": list(self.without_statement),
            "uncovered": list(self.uncovered),
            "missing": list(self.missing),
            "budgets": [budget.to_dict() for budget in self.budgets],
            "audits": [audit.to_dict() for audit in self.audits],
            "assumptions": list(self._assumptions()),
            "made": self.made,
            "version": self.version,
            "sources": SOURCES,
        }

    def to_json(self):
        """Return the document as JSON text; infinite and undefined numbers are null.

        Returns
        -------
        str
        """
        finite = json.loads(json.dumps(self.to_dict()), parse_constant=lambda name: None)
        return json.dumps(finite, indent=2)

    def to_text(self):
        """Return the document as plain text.

        Returns
        -------
        str
        """
        lines = [escape_control(self.title), "=" * len(escape_control(self.title))]
        for section in self._sections():
            lines += ["", *section.to_text()]
        return "\n".join(lines)

    def to_markdown(self, level=2):
        """Return the document as a section of a model card.

        Parameters
        ----------
        level : int, default=2
            The level of the document's heading. Section headings are one level deeper.

        Returns
        -------
        str
        """
        lines = [f"{'#' * level} {markdown_text(self.title)}"]
        for section in self._sections():
            lines += section.to_markdown(level + 1)
        return "\n".join(lines) + "\n"

    def to_html(self):
        """Return the document as a complete HTML page, which a browser prints or saves as PDF.

        When printed, its first page is the summary.

        Returns
        -------
        str
        """
        style = (
            "body { margin: 0; font-family: system-ui, sans-serif; } "
            "@media screen and (prefers-color-scheme: dark) { body { background: #14181d; } } "
            "@page { size: A4; margin: 18mm; }"
        )
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
            '<meta name="viewport" content="width=device-width"/>'
            f"<title>{html_text(self.title)}</title><style>{style}</style></head>"
            f"<body>{self._repr_html_()}</body></html>\n"
        )

    def _repr_html_(self):
        """Return the document as HTML, for notebooks."""
        first, *sections = (section.to_html() for section in self._sections())
        title = f"<h1>{html_text(self.title)}</h1>"
        first_page = f'<div class="skdp-first-page">{title}{first}</div>'
        return html_fragment(first_page, *sections)

    __str__ = to_text

    def _costs_more_than_its_statement(self):
        """Return True if a single statement is not the total, as for the best model of a search."""
        return any(
            total.epsilon > statement.epsilon or total.delta > statement.delta
            for total in self.totals
            for statement in self.statements
        )

    def _sections(self):
        """Yield the sections of the document in the order in which they are printed."""
        yield self.summary.section()
        if self.uncovered:
            yield Section("Not covered by any guarantee", notes=self.uncovered)
        if self.statements:
            is_planned = any("part of a plan" in s.composition for s in self.statements)
            notes = ()
            if is_planned:
                notes = (PLANNED_TOGETHER,)
            tables = (_release_table(self.statements),)
            yield Section("Releases of this report", tables=tables, notes=notes)
        if len(self.statements) != 1 or self._costs_more_than_its_statement():
            # A single statement is itself the total.
            yield from (total.section() for total in self.totals)
        yield from (statement.section() for statement in self.statements)
        for budget in self.budgets:
            yield budget.section(f"Budget and ledger of {budget.dataset!r}")
        yield Section("Assumptions", notes=self._assumptions())
        if self.audits:
            yield Section("Audit", notes=(AUDITED,))
        else:
            yield Section("Audit", notes=(NO_AUDIT,))
        yield from (audit.section() for audit in self.audits)
        origin = (("made", self.made), ("by", f"skdp {self.version}"))
        yield Section("About this document", origin, notes=(SOURCES,))


def _release_table(statements):
    """Return the table of the releases of a report, with its header."""
    rows = [("no.", "release", "epsilon", "delta", "mechanism", "ledger")]
    for i, statement in enumerate(statements, start=1):
        rows.append(
            (
                str(i),
                statement.estimator,
                format_rounded_up(statement.epsilon),
                format_rounded_up(statement.delta),
                statement.mechanism,
                ", ".join(map(repr, statement.datasets)) or "none",
            )
        )
    return tuple(rows)
