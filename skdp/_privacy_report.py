"""Privacy reports: one document on the guarantees of models and on the budgets of data sets."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from skdp._privacy_statement import PrivacyStatement
from skdp._privacy_totals import (
    Missing,
    PlainWrapper,
    Release,
    UnpublishedReleases,
    describe_combination,
    total_costs,
)
from skdp._version import __version__
from skdp.accounting import ApproximateDP, PureDP
from skdp.ledger import PrivacyAccountant
from skdp.ledger._report import BudgetReport, describe_relation, describe_unit
from skdp.ledger._state import Charge
from skdp.utils._documents import (
    PrintedDocument,
    Section,
    escape_control,
    html_fragment,
    html_text,
    markdown_text,
)
from skdp.utils._rounding import format_rounded_up
from skdp.utils._values import FrozenValue

ASSUMPTIONS = (
    "No one can predict the operating system's random generator.",
    "Recipients of releases see neither the data nor the time and memory that fitting took.",
    "Rows were chosen by their index and a public seed. Parameters were chosen without looking at "
    "the data, or by charged releases.",
)
NO_AUDIT = "No attack was run. The guarantees rest on their proofs."
AUDITED = (
    "An attack proves a lower bound on the privacy loss. Only the guarantee is an upper bound."
)
PLANNED_TOGETHER = (
    "Releases of one plan were charged together: their total is what the plan costs, not the sum "
    "of the costs that each would have alone."
)
UNIT_WORDS = {"row": "row", "person": "person", "group": "group of rows"}
# Largest epsilon that is put in words as a factor: the factor is then 22,026.
MAX_WORDS_EPSILON = 10.0
SOURCES = (
    "Fields after NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees "
    "(2025), and N. Ponomareva et al., How to DP-fy ML (2023), section 5.3.3."
)

# Function that finds the steps of an estimator that learn from rows without a charge; at most one.
# The package of pipelines knows these steps, but may not be imported here, so it registers it.
_uncovered_readers: list[Callable] = []


def register_uncovered_reader(describe_uncovered_steps):
    """Set the function that finds the steps that learn from rows without a charge.

    Parameters
    ----------
    describe_uncovered_steps : callable
        Function of an estimator that returns a list of pairs: the name of a step, "" for the
        estimator itself, and a description.
    """
    _uncovered_readers[:] = [describe_uncovered_steps]


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
        The hash of the last record of that ledger; empty if there are several.
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
    """The first page of a report: its conclusion, and the facts that it rests on.

    Parameters
    ----------
    conclusion : tuple of str
        The conclusion in plain words, one sentence or two per entry.
    facts : tuple of (str, str)
        Names and texts: totals of the model and of the data set, unit, relation, who, why, when,
        and what was assumed to be public.
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

    `privacy_report` creates it. Printing gives text, a notebook shows HTML.

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
        The total cost of the fits, the figure to quote. Several ledgers add up, unless their
        relations or privacy units differ: then there is one total per ledger.
    uncovered : tuple of str, default=()
        A sentence on each name in `without_statement`, with a remedy.
    missing : tuple of str, default=()
        Private releases of the reported models that are in no total: neither a statement nor a
        ledger of the report has their charges. These are fits and scores of searches and selectors.
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
        """The first page: the conclusion and the facts that it rests on, as a `Summary`."""
        return Summary(tuple(_conclusion(self)), tuple(_facts(self)))

    def to_dict(self):
        """Return the document as JSON values.

        Returns
        -------
        dict
            Statements, budgets and audits are converted by their `to_dict` methods.
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
            "assumptions": list(ASSUMPTIONS),
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
            The level of its heading. Headings of sections are one level deeper.

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

        The first page of the print is the summary.

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
        yield Section("Assumptions", notes=ASSUMPTIONS)
        yield Section("Audit", notes=(AUDITED if self.audits else NO_AUDIT,))
        yield from (audit.section() for audit in self.audits)
        origin = (("made", self.made), ("by", f"skdp {self.version}"))
        yield Section("About this document", origin, notes=(SOURCES,))


def _conclusion(report):
    """Yield the sentences of the conclusion of a report."""
    if not (report.statements or report.totals or report.missing or report.without_statement):
        yield "This report is about the budget of data, not about a model."
    names = ", ".join(report.without_statement)
    if names:
        yield (
            f"NOT COVERED by any guarantee: {names}. Therefore the whole has no guarantee of "
            "differential privacy."
        )
    for total in report.totals:
        cost = format_rounded_up(total.epsilon, total.delta)
        unit = _unit_of_total(report, total)
        subject = total.of[:1].upper() + total.of[1:]
        yield f"{subject} is ({cost})-differentially private for each {unit}."
        yield _plain_words(total, unit, "any result of that part" if names else "any result")
    if report.missing and not report.totals:
        yield (
            f"NO TOTAL: {' and '.join(report.missing)} are in no ledger of this report, which "
            "therefore does not know their cost."
        )
    elif report.statements and not (report.totals or _charged_later(report)):
        yield "Nothing was released, so nothing was charged."
    for statement in _charged_later(report):
        cost = format_rounded_up(statement.epsilon, statement.delta)
        place = "in no ledger"
        if statement.composition != "none":
            place = "charged when it is made"
        yield (
            f"The fit of {statement.estimator} charged nothing. Each of its later releases is "
            f"({cost})-differentially private for each {_unit_word(statement.unit)}, is {place}, "
            "and is in no total of the model."
        )
    if any(statement.seeded for statement in report.statements):
        yield "The noise was SEEDED: anyone who knows the seed can remove it."
    if any(getattr(audit, "violation", False) for audit in report.audits):
        yield "VIOLATION: an attack disproves a claim of this report."


def _charged_later(report):
    """Return the statements of estimators whose fit charges nothing, but whose releases do."""
    return [s for s in report.statements if s.stages and not s.charges]


def _unit_word(unit):
    """Return the word for a privacy unit, from its description."""
    return UNIT_WORDS.get(unit.partition(" ")[0].rstrip(",;"), unit)


def _plain_words(total, unit, result):
    """Return a description of a guarantee without symbols; `result` names what it is about."""
    if not total.epsilon <= MAX_WORDS_EPSILON:
        return (
            f"That is weak: what is released may say nearly everything about a {unit}, and the "
            "guarantee alone does not rule it out."
        )
    # Rounded up, like all costs.
    factor = math.ceil(100.0 * math.exp(total.epsilon)) / 100.0
    words = (
        f"Whether the data of one {unit} were used or not, {result} is at most {factor:,.2f} "
        f"times as likely with them as without, or the other way round"
    )
    if "replace" in total.neighbors.partition(":")[0]:
        words = (
            f"Whatever values the data of one {unit} have, {result} is at most {factor:,.2f} "
            "times as likely with them as with others"
        )
    if total.delta:
        words += f", apart from events of probability {format_rounded_up(total.delta)}"
    return f"{words}."


def _unit_of_total(report, total):
    """Return the word for the privacy unit of a total."""
    for budget in report.budgets:
        if total.head_hash and (budget.dataset, budget.head_hash) == (
            total.dataset,
            total.head_hash,
        ):
            return UNIT_WORDS[budget.unit]
    relation = total.neighbors.partition(":")[0]
    units = {s.unit for s in report.statements if s.relation == relation}
    neighbors = total.neighbors.partition(": ")[2]
    units = {s.unit for s in report.statements if s.neighbors == neighbors} or units
    units = units or {"row"}
    return " or ".join(sorted(map(_unit_word, units)))


def _facts(report):
    """Yield the facts of the first page as pairs of a name and a text."""
    if report.without_statement:
        yield "not covered", "; ".join(report.without_statement)
    for total in report.totals:
        place = "in no ledger of this report"
        if total.dataset:
            place = f"data set {total.dataset!r}"
        if total.parts:
            place = f"the sum of {'; '.join(total.parts)}"
        cost = _cost_in_words(total.epsilon, total.delta)
        if total.n_charges == 1:
            charges = "1 charge"
        else:
            charges = f"{total.n_charges} charges"
        part = "model"
        if report.without_statement:
            part = "private part"
        yield f"total of the {part}", f"{cost}; {charges}, {place}"
    for budget in report.budgets:
        n_charges = budget.n_charges
        if n_charges == 1:
            charges = "1 charge"
        else:
            charges = f"{n_charges} charges"
        if budget.shown:
            charges += f" (listed are those of {budget.shown})"
        limit = f"epsilon = {budget.limit[0]:.6g}, delta = {budget.limit[1]:.6g}"
        text = f"{_cost_in_words(*budget.spent)}; {charges}, of a limit of {limit}"
        if budget.reserved_from:
            name = f"total of the budget {budget.dataset!r}"
            yield name, f"{text}; all of it is among the charges of {budget.reserved_from!r}"
        else:
            yield f"total of data set {budget.dataset!r}", text
    roots = {budget.identity for budget in report.budgets if not budget.reserved_from}
    for name, identity in {(b.reserved_from, b.identity): None for b in report.budgets}:
        if name and identity not in roots:
            yield (
                f"total of data set {name!r}",
                "not known: only a budget that was reserved from it is in this report",
            )
    if not report.budgets:
        yield (
            "total of the data set",
            "not known: no ledger. The cost of all other releases from the same data must be added",
        )
    units = [statement.unit for statement in report.statements]
    units += [describe_unit(b.unit, b.max_rows, b.missing_ids) for b in report.budgets]
    yield "unit", "; ".join(dict.fromkeys(units))
    relations = [total.neighbors for total in report.totals]
    if not relations:
        relations = [f"{s.relation}: {s.neighbors}" for s in report.statements]
        relations += [budget.relation_in_words for budget in report.budgets]
    yield "relation", "; ".join(dict.fromkeys(relations))
    charges = _charges_of(report)
    users = dict.fromkeys(charge.user for charge in charges if charge.user)
    yield "who", ", ".join(users) or "not recorded (see `PrivacyAccountant.as_user`)"
    purposes = dict.fromkeys(charge.purpose for charge in charges if charge.purpose)
    yield "why", ", ".join(purposes) or "not recorded (see `PrivacyAccountant.as_user`)"
    times = sorted(charge.time for charge in charges if charge.time)
    when = "not recorded: no ledger"
    if times:
        if times[0] == times[-1]:
            when = times[0]
        else:
            when = f"{times[0]} to {times[-1]}"
    yield "when", when
    public = dict.fromkeys(text for s in report.statements for text in s.public)
    default = "nothing"
    if not report.statements and (report.totals or report.missing):
        default = "not known: no model with a statement was published"
    yield "assumed public", "; ".join(public) or default


def _cost_in_words(epsilon, delta):
    return f"epsilon = {format_rounded_up(epsilon)}, delta = {format_rounded_up(delta)}"


def _charges_of(report):
    """Return the charges that the models of a report paid for, with user and purpose.

    Those of a report without models are all charges of its budgets.
    """
    recorded = {charge.hash: charge for budget in report.budgets for charge in budget.charges}
    if not report.statements:
        return list(recorded.values())
    hashes = dict.fromkeys(c.hash for s in report.statements for c in s.charges if c.hash)
    return [recorded[hash_] for hash_ in hashes if hash_ in recorded]


def _release_table(statements):
    """Return the table of the releases of a report, with its head."""
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


def privacy_line(model):
    """Return one line on the privacy of a fitted pipeline or search; "" if nothing is fitted.

    No ledger is read, so the line holds what was charged for this model. Several charges are added
    up, which bounds their cost under every rule. Charges under different relations or for different
    units do not add up: the line has the sum of each.

    Parameters
    ----------
    model : estimator

    Returns
    -------
    str
    """
    contents = _ReportContents(reads_ledgers=False)
    try:
        contents.add(model, type(model).__name__)
    except ValueError:
        # A step is not fitted.
        return ""
    if not contents.statements:
        return ""
    statements = contents.statements
    costs = {(s.relation, s.unit): [] for s in statements}
    records = {}
    for statement in statements:
        for charge in statement.charges:
            if charge.hash and charge.hash not in records:
                records[charge.hash] = charge
                # The charge of a plan costs what the plan does, not what a step would alone.
                cost = contents.plan_costs.get(charge.hash, (charge.epsilon, charge.delta))
                costs[statement.relation, statement.unit].append(cost)
    for key, key_costs in costs.items():
        totals = contents.unrecorded_totals(key)
        key_costs += [(total.epsilon, total.delta) for total in totals]
    texts = []
    for (relation, unit), key_costs in costs.items():
        epsilon = math.fsum(cost[0] for cost in key_costs)
        delta = math.fsum(cost[1] for cost in key_costs)
        under = ""
        if len(costs) > 1:
            under = f" under {relation}"
        texts.append(f"{_cost_in_words(epsilon, delta)} per {unit}{under}")
    if len(texts) > 1:
        texts[-1] += " (costs under other relations or for other units do not add up)"
    datasets = dict.fromkeys(name for s in statements for name in s.datasets)
    hashes = ", ".join(hash_[:12] for hash_ in records)
    ledger = "none"
    if records:
        ledger = f"data set {', '.join(map(repr, datasets))}, record {hashes}"
    cost = ", and ".join(texts)
    line = f"Privacy: {cost}; ledger: {ledger}"
    if uncovered := contents.uncovered():
        names = ", ".join(uncovered)
        line = f"Privacy: NOT COVERED: {names}; the rest: {cost}; ledger: {ledger}"
    if any(s.seeded for s in statements):
        line += "; the noise is SEEDED"
    return line


def _sklearn_repr(estimator, n_char_max):
    """Return the representation of scikit-learn.

    Its printer breaks the lines of classes that inherit the method of `BaseEstimator`. So it prints
    an object of such a class, with the name and the parameters of the estimator.
    """

    def get_params(self, deep=True):
        return estimator.get_params(deep)

    kind = type(estimator)
    members = {"__init__": kind.__init__, "get_params": get_params}
    stand_in = type(kind.__name__, (BaseEstimator,), members)
    return BaseEstimator.__repr__(object.__new__(stand_in), n_char_max)


class PrivacyLineMixin:
    """Mixin that adds one line on privacy to scikit-learn's representations of an estimator."""

    def __repr__(self, N_CHAR_MAX=700):
        line = privacy_line(self)
        text = _sklearn_repr(self, N_CHAR_MAX)
        if line:
            return f"{text}\n{escape_control(line)}"
        return text

    def _html_repr(self):
        """Return the HTML of `ReprHTMLMixin` in scikit-learn, and the line."""
        line = privacy_line(self)
        html = super()._html_repr()
        if line:
            return html + html_fragment(f"<p>{html_text(line)}</p>")
        return html


def privacy_report(
    *sources: BaseEstimator | PrivacyAccountant | PrintedDocument,
    audits: Sequence[PrintedDocument] = (),
    title: str = "Privacy",
) -> PrivacyReport:
    """Return one document on the privacy of models and on the budgets of data sets.

    The document contains the privacy statements of the fits and the ledgers' records, which are
    public, and the audits. Results of attacks on private rows are computed without privacy, and the
    document says so: leave them out when you publish it, or decide to disclose them.

    Parameters
    ----------
    *sources : fitted estimator, DPScores, PrivacyAccountant, PrivacyStatement or BudgetReport
        An estimator or noisy scores contribute `privacy_` and the ledger of their accountant. A
        pipeline, column transformer, frozen estimator or search contributes the statements of its
        steps and models, and the names of steps without a statement. A search and the models that
        it published count once in the total. The steps of one plan also count once, even if
        `split_budget` made the plan without an accountant.
    audits : sequence, default=()
        Results of `skdp.audit.audit_epsilon` and `skdp.audit.membership_inference`.
    title : str, default="Privacy"
        The document's heading.

    Returns
    -------
    PrivacyReport
        It has the methods `to_text`, `to_json`, `to_html` (a page), `to_markdown` (a section of a
        model card) and `to_dict`.

    Raises
    ------
    ValueError
        If there is no source, a source has another type, or an estimator is not fitted.
    LedgerError
        If a ledger cannot be read or its chain is broken.

    References
    ----------
    J. Near, D. Darais, N. Lefkovitz, G. Howarth, "Guidelines for Evaluating Differential Privacy
    Guarantees", NIST SP 800-226, 2025.
    N. Ponomareva et al., "How to DP-fy ML: A Practical Guide to Machine Learning with
    Differential Privacy", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMeanTransformer, PrivacyAccountant, privacy_report
    >>> accountant = PrivacyAccountant(1.0, 0.0, dataset="clinic")
    >>> mean = DPMeanTransformer(0.5, bounds=(0, 1), accountant=accountant).fit(np.eye(4))
    >>> report = privacy_report(mean)
    >>> report.statements[0].epsilon, report.budgets[0].spent
    (0.5, (0.5, 0.0))
    >>> report.summary.conclusion[0]
    'DPMeanTransformer is (0.5, 0)-differentially private for each row.'
    """
    if not sources:
        raise ValueError(
            "sources are missing: pass at least one fitted estimator, accountant, statement or "
            "budget report"
        )
    contents = _ReportContents()
    for source in sources:
        contents.add(source, type(source).__name__)
    if isinstance(audits, list | tuple):
        results = tuple(audits)
    else:
        results = (audits,)
    for audit in results:
        if not (hasattr(audit, "to_dict") and hasattr(audit, "section")):
            raise ValueError(f"audits must be results of skdp.audit, got {audit!r}")
    description = _describe_sources(sources)
    uncovered = contents.uncovered()
    if uncovered:
        description = f"the private part of {description}"
    return PrivacyReport(
        title=str(title),
        statements=tuple(contents.statements),
        totals=tuple(contents.totals(description)),
        budgets=tuple(contents.budgets.values()),
        audits=results,
        without_statement=tuple(uncovered),
        missing=tuple(dict.fromkeys(entry.text for entry in contents.missing)),
        uncovered=tuple(f"{name} {text}." for name, text in uncovered.items()),
    )


def _describe_sources(sources):
    """Return a description of the models, for the headline; ledgers are no releases."""
    names = []
    for source in sources:
        if isinstance(source, PrivacyStatement):
            names.append(source.estimator)
        elif not (hasattr(source, "charge") or isinstance(source, BudgetReport)):
            names.append(type(source).__name__)
    return describe_combination(names)


class _ReportContents:
    """Statements and budgets of the sources of a report.

    Attributes
    ----------
    statements : list of PrivacyStatement
    releases : list of Release
        Each statement with the containers that its estimator is nested in.
    unpublished : list of Release
        Further releases of wrappers, which have no statement.
    missing : list of Missing
        Releases of wrappers that are in no ledger of the report.
    budgets : dict
        Maps a data set's name and last hash to its `BudgetReport`.
    plan_costs : dict
        Maps the hash of a charge to the (epsilon, delta) of the plan that was charged as one.
    configs : dict
        Maps the same key to the `LedgerConfig`, which has the composition rule.
    """

    def __init__(self, *, reads_ledgers=True):
        self.reads_ledgers = reads_ledgers
        self.plan_costs = {}
        self.statements = []
        self.releases = []
        self.unpublished = []
        self.missing = []
        self.budgets = {}
        self.configs = {}
        # The plan of the container that is being added, if any, and the number of plans so far.
        self._plan = None
        self._n_plans = 0
        # The outermost wrapper without privacy of the estimator that is being added.
        self._wrapper = None
        # The outermost estimators without a statement, whose steps may learn without a charge.
        self._judged = []
        # True within one of them.
        self._is_judged = False
        # The estimators that the one that is being added is nested in.
        self._outer = ()

    def unrecorded_totals(self, unit_key):
        """Return the totals of the statements in no ledger, for one (relation, unit).

        Charges that are in a ledger are not counted here.
        """
        releases = []
        for release in self.releases:
            statement = release.statement
            charges = tuple(charge for charge in statement.charges if not charge.hash)
            if charges and (statement.relation, statement.unit) == unit_key:
                statement = replace(statement, charges=charges)
                releases.append(replace(release, statement=statement))
        return total_costs(releases, {}, {}, "")

    def add(self, source, name, outer_charges=()):
        """Add a source and its nested estimators.

        `outer_charges` are the charges of the search that published it.
        """
        if isinstance(source, PrivacyStatement):
            self._add_statement(source, outer_charges)
        elif isinstance(source, BudgetReport):
            self._add_budget(source)
        elif hasattr(source, "report") and hasattr(source, "charge"):
            self._add_ledger(source)
        elif isinstance(source, FrozenEstimator):
            self.add(source.estimator, type(source.estimator).__name__, outer_charges)
        elif hasattr(source, "get_params"):
            self._add_estimator(source, name, outer_charges)
        elif isinstance(getattr(source, "privacy_", None), PrivacyStatement):
            # Noisy scores, which are not an estimator.
            self._add_statement(source.privacy_, outer_charges)
            self._add_ledger(getattr(source, "accountant", None), source.privacy_.charges)
        else:
            raise ValueError(
                "sources must be fitted estimators, noisy scores, accountants, statements or "
                f"budget reports, got {source!r}"
            )

    def _add_statement(self, statement, outer_charges, nominal=(0.0, 0.0)):
        self.statements.append(statement)
        self.releases.append(Release(statement, outer_charges, self._plan, self._wrapper, nominal))

    def _add_budget(self, report, config=None):
        """Add the report of a data set, unless a more complete one was added before."""
        key = report.dataset, report.head_hash
        for other_key, other in list(self.budgets.items()):
            is_same = other.dataset == report.dataset and other.identity == report.identity
            if not (other_key == key or (is_same and report.identity)):
                continue
            # Totals are counted with all charges: a selection never replaces them.
            if (other.n_charges, not other.shown) > (report.n_charges, not report.shown):
                return
            config = config or self.configs.get(other_key)
            if other_key != key:
                del self.budgets[other_key]
        self.budgets[key] = report
        if config is not None:
            self.configs[key] = config

    def _add_ledger(self, accountant, charges=()):
        """Add the ledger of an accountant, and the data set from which its budget was reserved.

        `charges` are those of the model: earlier calls of partial_fit may have been charged to
        other data sets of the same ledger.
        """
        # A step of a plan is charged to the ledger of the whole plan.
        accountant = getattr(getattr(accountant, "reservation", None), "accountant", accountant)
        if not (self.reads_ledgers and hasattr(accountant, "report")):
            return
        handles = [accountant]
        if isinstance(accountant, PrivacyAccountant):
            known = {charge.hash for charge in accountant.charges}
            hashes = {charge.hash for charge in charges if charge.hash} - known
            handles += accountant._handles_of(hashes)
            handles = [*dict.fromkeys(handle._root() for handle in handles), *handles]
        for handle in dict.fromkeys(handles):
            self._add_budget(handle.report(), handle.config)

    def _add_estimator(self, source, name, outer_charges):
        if any(source is outer for outer in self._outer):
            # It refers to an estimator around it.
            return
        outer_estimators = self._outer
        self._outer = (*outer_estimators, source)
        nested_estimators = _nested_estimators(source, outer_estimators)
        parameters = source.get_params(deep=False)
        begins_wrapper = False
        was_judged = self._is_judged
        if hasattr(source, "privacy_"):
            self._is_judged = False
            nominal = parameters.get("epsilon", 0.0), parameters.get("delta", 0.0)
            self._add_statement(source.privacy_, outer_charges, nominal)
            outer_charges = (*outer_charges, *source.privacy_.charges)
            reservation = getattr(parameters.get("accountant"), "reservation", None)
            if reservation is not None:
                cost = reservation.epsilon, reservation.delta
                self.plan_costs |= {charge.hash: cost for charge in source.privacy_.charges}
        elif "epsilon" in parameters:
            raise ValueError(f"{name} is not fitted: it has no privacy statement")
        else:
            if not self._is_judged:
                self._judged.append((name, source))
                self._is_judged = True
            is_wrapper = bool(_wrapped_estimators(source))
            begins_wrapper = (
                self._wrapper is None and is_wrapper and not PlainWrapper.stores_all_fits(source)
            )
        charges = ()
        if hasattr(source, "privacy_"):
            charges = source.privacy_.charges
        self._add_ledger(parameters.get("accountant"), charges)
        # The plan of the outermost container covers all steps within it.
        plan = getattr(source, "_budget_plan", None)
        begins_plan = self._plan is None and plan is not None
        if begins_plan:
            self._plan = self._n_plans, plan
            self._n_plans += 1
        if begins_wrapper:
            self._wrapper = _with_inner_wrappers(PlainWrapper.of(source), nested_estimators)
        n_releases = len(self.releases)
        for nested_name, nested in nested_estimators:
            self.add(nested, f"{name}: {nested_name} ({type(nested).__name__})", outer_charges)
        is_wrapper = not hasattr(source, "privacy_") and not _steps_of(source)
        if is_wrapper and self.reads_ledgers and _is_fitted(source):
            published = [release.statement for release in self.releases[n_releases:]]
            self._add_unpublished(source, published)
        if begins_plan:
            self._plan = None
        if begins_wrapper:
            self._wrapper = None
        self._outer = outer_estimators
        self._is_judged = was_judged

    def _add_unpublished(self, wrapper, published):
        """Add the releases of a fitted wrapper that none of its published models has.

        Parameters
        ----------
        wrapper : estimator
            A search, a selector or another estimator without a statement.
        published : list of PrivacyStatement
            The statements of the models that it stores.
        """
        name = type(wrapper).__name__
        scores = Missing(f"scores that {name} may have made", is_certain=False)
        fits = Missing(f"fits that {name} may have made", is_certain=False)
        if _is_of_sklearn(wrapper):
            scores = Missing(f"the scores of {name}")
            fits = Missing(f"the fits of {name}")
        if self._has_outer_wrapper(wrapper):
            n_scores = None
        else:
            n_scores = _number_of_scores(wrapper)
        for scorer in _private_scorers(wrapper):
            self._add_releases_of(scorer, wrapper, published, n_scores, scores)
        published_classes = {statement.estimator for statement in published}
        for prototype in _private_prototypes(wrapper, ()):
            if type(prototype).__name__ not in published_classes:
                self._add_releases_of(prototype, wrapper, published, None, fits)

    def _has_outer_wrapper(self, wrapper):
        """Return True if another wrapper may have fitted copies of this one."""
        return any(
            not (_steps_of(outer) or PlainWrapper.stores_all_fits(outer))
            for outer in self._outer
            if outer is not wrapper
        )

    def _add_releases_of(self, source, wrapper, published, number, missing):
        """Add the charges of a scorer or an unfitted estimator that a wrapper has used.

        Those in a ledger are all charges with the label of its class, up to the last one of the
        published model in a search: the ledger does not say which fit made a charge. Without a
        ledger, `number` charges are added, or `missing` if the number is None.
        """
        accountant = source.accountant
        accountant = getattr(getattr(accountant, "reservation", None), "accountant", accountant)
        label = type(source).__name__
        kind = "scores"
        if hasattr(source, "fit"):
            kind = "fits"
        name = f"the {kind} of {type(wrapper).__name__}"
        if hasattr(accountant, "report") and hasattr(accountant, "config"):
            self._add_ledger(accountant)
            config = accountant.config
            charges = accountant.report().charges
            hashes = {charge.hash for statement in published for charge in statement.charges}
            sequences = [charge.sequence for charge in charges if charge.hash in hashes]
            last = math.inf
            if sequences and PlainWrapper.of(wrapper).publishes_last:
                last = max(sequences)
            charges = tuple(c for c in charges if c.label == label and c.sequence <= last)
            if charges:
                statement = UnpublishedReleases(
                    name,
                    config.relation,
                    describe_unit(config.unit, config.max_rows, config.missing_ids),
                    describe_relation(config.relation, config.unit, config.max_rows),
                    charges,
                )
                self.unpublished.append(Release(statement))
        elif accountant is None and published and number is not None:
            first = published[0]
            for _ in range(number):
                charge = _unrecorded_charge(label, source.epsilon, source.delta)
                statement = UnpublishedReleases(
                    name, first.relation, first.unit, first.neighbors, (charge,)
                )
                self.unpublished.append(Release(statement))
        else:
            self.missing.append(missing)

    def uncovered(self):
        """Return the descriptions of the steps that learn from rows without a charge.

        Returns
        -------
        dict
            Maps the name of each step or model to a description with a remedy.
        """
        descriptions = {}
        (describe_uncovered_steps,) = _uncovered_readers
        for name, estimator in self._judged:
            for step_name, description in describe_uncovered_steps(estimator):
                full_name = name
                if step_name:
                    full_name = f"{name}: {step_name}"
                descriptions[full_name] = description
        return descriptions

    def totals(self, description):
        """Yield the total cost of all statements; see `total_costs`."""
        releases = [*self.releases, *self.unpublished]
        for cost in total_costs(
            releases, self.budgets, self.configs, description, tuple(self.missing)
        ):
            yield Total(**vars(cost))


# Attributes in which scikit-learn's wrappers, which may themselves learn from rows, store the
# estimators that they fitted: all of these are reported. In other attributes private models are
# found, but no other estimators, such as encoders of labels.
BEST_ESTIMATOR = "best_estimator_"
WRAPPED_ESTIMATORS = ("estimators_", "estimator_", "regressor_", "final_estimator_", BEST_ESTIMATOR)
# Values of these packages, and of skdp itself, contain no fitted models.
PACKAGES_WITHOUT_MODELS = {"builtins", "numpy", "scipy", "pandas", "polars", "pyarrow", "skdp"}
# Larger containers hold a vocabulary or labels, and no models.
MAX_ENTRIES = 10_000
# Depth to which containers and objects are searched for models.
MAX_DEPTH = 6


def _nested_estimators(estimator, outer=()):
    """Return the names and fitted estimators of a container's steps, or of a wrapper.

    `outer` are the estimators that it is nested in.
    """
    if steps := _steps_of(estimator):
        return [(name, step) for name, step, *_ in steps if hasattr(step, "get_params")]
    return _wrapped_estimators(estimator, outer)


def _steps_of(estimator):
    """Return the steps of a pipeline, column transformer or union; () for other estimators."""
    for attribute in ("steps", "transformers_", "transformer_list"):
        if entries := getattr(estimator, attribute, ()):
            return entries
    return ()


def _wrapped_estimators(estimator, outer=()):
    """Return the names and fitted estimators of a search or of another wrapper.

    `outer` are the estimators that it is nested in, which are not found again.
    """
    # The statement of a private model covers its inner estimators. Only the model that a search
    # published has a separate statement.
    is_private = hasattr(estimator, "privacy_")
    nested = []
    for attribute in (BEST_ESTIMATOR,) if is_private else WRAPPED_ESTIMATORS:
        value = getattr(estimator, attribute, None)
        if isinstance(value, list | tuple | np.ndarray):
            values = value
        else:
            values = [value]
        for index, item in enumerate(values):
            if hasattr(item, "get_params"):
                nested.append((f"{attribute}{index}" if len(values) > 1 else attribute, item))
    if is_private or _steps_of(estimator) or not hasattr(estimator, "__dict__"):
        return nested
    seen = {id(item) for _, item in nested} | {id(item) for item in outer} | {id(estimator)}
    for attribute, value in list(vars(estimator).items()):
        if attribute.endswith("_") and not attribute.startswith("_"):
            nested += _models_within(value, attribute, seen, (*outer, estimator))
    return nested


def _is_of_sklearn(estimator):
    return type(estimator).__module__.partition(".")[0] == "sklearn"


def _is_fitted(estimator):
    """Return True if an estimator has fitted attributes."""
    names = getattr(estimator, "__dict__", ())
    return any(name.endswith("_") and not name.startswith("_") for name in names)


def _private_scorers(estimator):
    """Return the private scorers in the parameters of an estimator, each once."""
    scorers = []
    for value in estimator.get_params(deep=False).values():
        if isinstance(value, dict):
            values = value.values()
        else:
            values = [value]
        # The class, which cannot be imported here, is known by its attributes.
        scorers += [
            scorer
            for scorer in values
            if getattr(type(scorer), "releases_privately", False) is True
            and hasattr(scorer, "accountant")
        ]
    return scorers


def _number_of_scores(search):
    """Return the number of scores of a search for each of its scorers; None if it is unknown."""
    results = getattr(search, "cv_results_", None)
    if not (isinstance(results, dict) and "params" in results and hasattr(search, "n_splits_")):
        return None
    n_tables = 1 + bool(getattr(search, "return_train_score", False))
    return len(results["params"]) * search.n_splits_ * n_tables


def _private_prototypes(estimator, outer):
    """Yield the private estimators in the parameters of a wrapper, of which it fits copies.

    Frozen estimators are not fitted.
    """
    if isinstance(estimator, FrozenEstimator) or any(estimator is other for other in outer):
        return
    for value in estimator.get_params(deep=False).values():
        if isinstance(value, list | tuple):
            entries = value
        else:
            entries = [value]
        for entry in entries:
            for part in entry if isinstance(entry, list | tuple) else [entry]:
                if not hasattr(part, "get_params") or isinstance(part, type):
                    continue
                params = part.get_params(deep=False)
                if "epsilon" in params and "accountant" in params:
                    yield part
                else:
                    yield from _private_prototypes(part, (*outer, estimator))


def _unrecorded_charge(label, epsilon, delta):
    """Return a charge that is in no ledger."""
    if delta:
        event = ApproximateDP(epsilon, delta)
    else:
        event = PureDP(epsilon)
    return Charge(label, event, epsilon, delta, False, "", __version__)


def _with_inner_wrappers(wrapper, nested_estimators):
    """Return the description of a wrapper after that of the wrappers in it.

    The number of fits is unknown if one of these makes fits that it does not store.
    """
    for _, estimator in nested_estimators:
        if hasattr(estimator, "privacy_"):
            continue
        if _wrapped_estimators(estimator) and not PlainWrapper.stores_all_fits(estimator):
            publishes_last = PlainWrapper.of(estimator).publishes_last
            wrapper = replace(
                wrapper, n_fits=None, publishes_last=wrapper.publishes_last and publishes_last
            )
        wrapper = _with_inner_wrappers(wrapper, _nested_estimators(estimator))
    return wrapper


def _models_within(value, name, seen, outer, depth=0):
    """Yield the names and the estimators with private models that an attribute contains.

    Lists, tuples, dicts and other objects are searched.

    Parameters
    ----------
    value : object
    name : str
        Name of the attribute.
    seen : set of int
        Ids of the objects that were searched, which is updated.
    outer : tuple
        The estimators that the value is nested in.
    depth : int, default=0
        Number of containers around the value.
    """
    if id(value) in seen or depth > MAX_DEPTH or isinstance(value, str | bytes | type):
        return
    if isinstance(value, list | tuple | dict | np.ndarray) and len(value) > MAX_ENTRIES:
        return
    seen.add(id(value))
    if hasattr(value, "get_params"):
        if _has_private_model(value, outer):
            yield name, value
        return
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        entries = [(f"{name}{i}" if len(value) > 1 else name, v) for i, v in enumerate(value)]
    elif isinstance(value, dict):
        entries = [(f"{name}[{key!r}]", entry) for key, entry in value.items()]
    elif type(value).__module__.partition(".")[0] in PACKAGES_WITHOUT_MODELS:
        return
    else:
        entries = [
            (f"{name}.{key}", entry) for key, entry in getattr(value, "__dict__", {}).items()
        ]
    for entry_name, entry in entries:
        yield from _models_within(entry, entry_name, seen, outer, depth + 1)


def _has_private_model(estimator, outer):
    """Return True if an estimator is a fitted private model or contains one."""
    if hasattr(estimator, "privacy_"):
        return True
    if isinstance(estimator, FrozenEstimator):
        return _has_private_model(estimator.estimator, outer)
    if any(estimator is other for other in outer):
        return False
    outer = (*outer, estimator)
    nested = _nested_estimators(estimator, outer)
    return any(_has_private_model(item, outer) for _, item in nested)
