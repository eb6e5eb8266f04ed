"""One document about the privacy of what was released: for people, programs and model cards."""

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
from sklearn.frozen import FrozenEstimator

from skdp._privacy_statement import PrivacyStatement
from skdp._version import __version__
from skdp.ledger._report import BudgetReport, describe_composition
from skdp.ledger._state import LedgerConfig, composed_price
from skdp.utils._documents import Section, escape_control, html_fragment, html_text, markdown_text
from skdp.utils._rounding import format_rounded_up
from skdp.utils._values import FrozenValue

ASSUMPTIONS = (
    "Nobody can predict the operating system's random generator.",
    "Those who see releases see neither the data nor the time and memory that fitting took.",
    "Rows were chosen by their index and a public seed, parameters without a look at the data or "
    "by charged releases.",
)
NO_AUDIT = "No attack was run. The guarantees rest on their proofs."
AUDITED = (
    "An attack proves a lower bound: how private a model is, the guarantee says, not the attack."
)
SOURCES = (
    "Fields after NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees "
    "(2025), and N. Ponomareva et al., How to DP-fy ML (2023), section 5.3.3."
)


@dataclass(frozen=True)
class Total(FrozenValue):
    """What the reported releases from one data set cost together.

    Parameters
    ----------
    of : str
        The reported models, in words.
    epsilon, delta : float
        The guarantee of all of them together.
    neighbors : str
        Which tables are neighbors, in words.
    composition : str
        How the releases add up.
    dataset : str
        The ledger's name of the data set, empty for releases that are in no ledger of the report.
    head_hash : str
        The hash of the last record of that ledger.
    n_charges : int
        How many charges there are; a plan that was charged as one counts once.
    """

    of: str
    epsilon: float
    delta: float
    neighbors: str
    composition: str
    dataset: str
    head_hash: str
    n_charges: int

    def section(self):
        """Return it as a part of a document.

        Returns
        -------
        Section
        """
        cost = format_rounded_up(self.epsilon, self.delta)
        rows = [
            ("relation", self.neighbors),
            ("composition", self.composition),
            ("charges", str(self.n_charges)),
            ("data set", self.dataset or "none: these releases are in no ledger of this report"),
            ("ledger", self.head_hash),
        ]
        rows = tuple((name, words) for name, words in rows if words)
        return Section(f"Total: {self.of} is ({cost})-differentially private", rows)


@dataclass(frozen=True)
class PrivacyReport(FrozenValue):
    """What is known of the privacy of one or several releases, as one document.

    Make it with `privacy_report`. Printing gives text, a notebook shows HTML.

    Parameters
    ----------
    title : str
        The document's heading.
    statements : tuple of PrivacyStatement
        The guarantee of each private fit.
    budgets : tuple of BudgetReport
        What each ledger says of its data set.
    audits : tuple
        Results of attacks, from `skdp.audit`.
    without_statement : tuple of str
        Parts of the reported models that say nothing of their privacy.
    totals : tuple of Total, default=()
        What the fits cost together, for each data set: the figure to quote.
    made : str, default=now
        When the document was made, UTC.
    version : str, default=this version
        The version of skdp.
    """

    title: str
    statements: tuple
    budgets: tuple
    audits: tuple
    without_statement: tuple
    totals: tuple = ()
    made: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    version: str = __version__

    def to_dict(self):
        """Return the document as JSON values.

        Returns
        -------
        dict
            With the statements, budgets and audits as their own `to_dict` give them.
        """
        return {
            "title": self.title,
            "totals": [dict(vars(total)) for total in self.totals],
            "guarantees": [statement.to_dict() for statement in self.statements],
            "without_statement": list(self.without_statement),
            "budgets": [budget.to_dict() for budget in self.budgets],
            "audits": [audit.to_dict() for audit in self.audits],
            "assumptions": list(ASSUMPTIONS),
            "made": self.made,
            "version": self.version,
            "sources": SOURCES,
        }

    def to_json(self):
        """Return the document as JSON text; what is no finite number is null.

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
            The level of its heading; those of its parts are one deeper.

        Returns
        -------
        str
        """
        lines = [f"{'#' * level} {markdown_text(self.title)}"]
        for section in self._sections():
            lines += section.to_markdown(level + 1)
        return "\n".join(lines) + "\n"

    def to_html(self):
        """Return the document as an HTML page of its own.

        Returns
        -------
        str
        """
        style = "body { margin: 0; font-family: system-ui, sans-serif; } "
        style += "@media (prefers-color-scheme: dark) { body { background: #14181d; } }"
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
            '<meta name="viewport" content="width=device-width"/>'
            f"<title>{html_text(self.title)}</title><style>{style}</style></head>"
            f"<body>{self._repr_html_()}</body></html>\n"
        )

    def _repr_html_(self):
        sections = (section.to_html() for section in self._sections())
        return html_fragment(f"<h1>{html_text(self.title)}</h1>", *sections)

    __str__ = to_text

    def _sections(self):
        if len(self.statements) > 1:
            # One statement is the total itself.
            yield from (total.section() for total in self.totals)
        yield from (statement.section() for statement in self.statements)
        if self.without_statement:
            words = "says nothing of its privacy: what it learned from rows is not covered."
            notes = tuple(f"{part} {words}" for part in self.without_statement)
            yield Section("Not private, as far as is known", notes=notes)
        for budget in self.budgets:
            yield budget.section(f"Budget and ledger of {budget.dataset!r}")
        yield Section("Assumptions", notes=ASSUMPTIONS)
        yield Section("Audit", notes=(AUDITED if self.audits else NO_AUDIT,))
        yield from (audit.section() for audit in self.audits)
        made = (("made", self.made), ("by", f"skdp {self.version}"))
        yield Section("About this document", made, notes=(SOURCES,))


def privacy_report(*sources, audits=(), title="Privacy"):
    """Gather what is known of the privacy of models and budgets into one document.

    The document holds what the fits published about themselves and what the ledgers say, which
    is public, and the audits. Results of attacks on private rows are computed without privacy,
    and say so: leave them out of a document that you publish, or decide to disclose them.

    Parameters
    ----------
    *sources : fitted estimator, DPScores, PrivacyAccountant, PrivacyStatement or BudgetReport
        Of an estimator, and of noisy scores, its `privacy_` and the ledger of its accountant are
        taken; of a pipeline, a column transformer, a frozen estimator or a search those of its
        parts, and which parts say nothing. A search and what it published count once in the total,
        and so does a plan that was charged as one, or that `split_budget` made without an
        accountant.
    audits : sequence, default=()
        Results of `skdp.audit.audit_epsilon` and `skdp.audit.membership_inference`.
    title : str, default="Privacy"
        The document's heading.

    Returns
    -------
    PrivacyReport
        With `to_text`, `to_json`, `to_html` (a page), `to_markdown` (a section of a model card)
        and `to_dict`.

    Raises
    ------
    ValueError
        If there is no source, or one is none of these, or an estimator is not fitted.
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
    >>> report.to_markdown().splitlines()[2]
    '### DPMeanTransformer is (0.5, 0)-differentially private'
    """
    if not sources:
        raise ValueError("name at least one fitted estimator, accountant, statement or report")
    found = _Found()
    for source in sources:
        found.add(source, type(source).__name__)
    audits = tuple(audits) if isinstance(audits, list | tuple) else (audits,)
    for audit in audits:
        if not (hasattr(audit, "to_dict") and hasattr(audit, "section")):
            raise ValueError(f"audits must be results of skdp.audit, got {audit!r}")
    return PrivacyReport(
        title=str(title),
        statements=tuple(found.statements),
        totals=tuple(found.totals(" and ".join(type(source).__name__ for source in sources))),
        budgets=tuple(found.budgets.values()),
        audits=audits,
        without_statement=tuple(found.without_statement),
    )


class _Found:
    """What the sources of a report hold.

    `statements` has all of them, and `around` the charges of the search that published each: these
    are counted with the search. `plans` has for each the number and the plan of the split budget
    that it is a step of, or None: copies of a pipeline have one plan, and are fitted apart.
    `budgets` maps a data set and its last hash to a report, `terms` to what its charges add up by.
    """

    def __init__(self):
        self.statements = []
        self.around = []
        self.without_statement = []
        self.plans = []
        self.plan = None
        self.n_plans = 0
        self.budgets = {}
        self.terms = {}

    def add(self, source, name, around=()):
        """Add a source and its parts; `around` has the charges of the search that published it."""
        if isinstance(source, PrivacyStatement):
            self._add_statement(source, around)
        elif isinstance(source, BudgetReport):
            self._add_budget(source)
        elif hasattr(source, "report") and hasattr(source, "charge"):
            self._add_budget(source.report(), source.config)
        elif isinstance(source, FrozenEstimator):
            self.add(source.estimator, type(source.estimator).__name__, around)
        elif hasattr(source, "get_params"):
            self._add_estimator(source, name, around)
        elif isinstance(getattr(source, "privacy_", None), PrivacyStatement):
            # Noisy scores, which are no estimator.
            self._add_statement(source.privacy_, around)
            self._add_ledger(getattr(source, "accountant", None))
        else:
            raise ValueError(f"cannot report on {source!r}")

    def _add_statement(self, statement, around):
        self.statements.append(statement)
        self.around.append(around)
        self.plans.append(self.plan)

    def _add_budget(self, report, terms=None):
        key = report.dataset, report.head_hash
        self.budgets[key] = report
        if terms is not None:
            self.terms[key] = terms

    def _add_ledger(self, accountant):
        # A step of a plan is charged to the ledger of the whole plan.
        accountant = getattr(getattr(accountant, "reservation", None), "accountant", accountant)
        if hasattr(accountant, "report"):
            self._add_budget(accountant.report(), accountant.config)

    def _add_estimator(self, source, name, around):
        parts = _parts(source)
        parameters = source.get_params(deep=False)
        if hasattr(source, "privacy_"):
            self._add_statement(source.privacy_, around)
            around = (*around, *source.privacy_.charges)
        elif "epsilon" in parameters:
            raise ValueError(f"{name} is not fitted, or publishes no privacy statement")
        elif not parts or _wrapped(source):
            # A search without a statement looked at scores of the same rows to choose its best
            # part, and other wrappers may have learned from them, too.
            self.without_statement.append(name)
        self._add_ledger(parameters.get("accountant"))
        # The plan of the outermost container is that of all steps within it.
        plan = getattr(source, "_budget_plan", None)
        begins_plan = self.plan is None and plan is not None
        if begins_plan:
            self.plan = self.n_plans, plan
            self.n_plans += 1
        for part, inner in parts:
            inner_name = f"{name}: {part} ({type(inner).__name__})"
            self.add(inner, inner_name, around)
        if begins_plan:
            self.plan = None

    def totals(self, of):
        """Yield what all statements cost together, for each data set."""
        ledgers = self.budgets.items()
        records = {charge.hash: (key, charge) for key, own in ledgers for charge in own.charges}
        charged = {}
        others = {}
        words_of = {}
        # Several steps that a search published have its one charge, as one object.
        seen = set()
        for plan, statement, around in zip(self.plans, self.statements, self.around, strict=True):
            key = unit = statement.relation, statement.unit
            unrecorded = []
            for charge in statement.charges:
                if charge.hash in records:
                    # A plan that was charged as one is the charge of several steps.
                    key, charge = records[charge.hash]
                    charged.setdefault(key, {})[charge.hash] = charge
                else:
                    key = unit
                    # What was fitted again since is a charge of its own.
                    if id(charge) not in seen and charge not in around:
                        unrecorded.append(charge)
                    seen.add(id(charge))
                words_of.setdefault(key, []).append(statement.neighbors)
            if unrecorded:
                others.setdefault(unit, []).append((plan, unrecorded))
        for key, charges in charged.items():
            terms = self.terms.get(key) or _terms_of(self.budgets[key])
            price = composed_price(tuple(charges.values()), terms)
            rule = describe_composition(terms.composition)
            words = f"{terms.relation}: {_common_neighbors(words_of[key])}"
            yield Total(of, *price, words, rule, *key, len(charges))
        for key, of_statements in others.items():
            relation, _ = key
            left, prices = _take_plans(of_statements, relation)
            rule = "basic, each split budget as the plan that it is" if prices else "basic"
            n_charges = len(prices) + sum(map(len, left))
            # Parts of one model's calls are disjoint from one another, not from other models'.
            basic = LedgerConfig(1.0, 0.0, relation=relation)
            prices += [composed_price(charges, basic) for charges in left]
            epsilon, delta = (math.fsum(amounts) for amounts in zip(*prices, strict=True))
            words = f"{relation}: {_common_neighbors(words_of[key])}"
            yield Total(of, epsilon, delta, words, rule, "", "", n_charges)


def _take_plans(of_statements, relation):
    """Return the charges of each statement that no plan covers, and the price of each plan."""
    plans = dict(plan for plan, _ in of_statements if plan is not None)
    steps = {number: list(plan.planned) for number, plan in plans.items()}
    covered = {number: [] for number in plans}
    left = []
    for plan, charges in of_statements:
        others = charges
        if plan is not None:
            number, _ = plan
            others = []
            for charge in charges:
                is_taken = _take_step(charge, steps[number], relation)
                (covered[number] if is_taken else others).append(charge)
        if others:
            left.append(others)
    prices = [_price_of_plan(covered[i], plan) for i, plan in plans.items() if covered[i]]
    return left, prices


def _take_step(charge, steps, relation):
    """Take the first step that covers a charge off the steps of a plan; return False without one.

    A step that was put into the plan later, or was fitted again, is covered only if it costs no
    more than a step of the plan that nothing else was charged for.
    """
    for step in steps:
        if _is_covered(charge, step, relation):
            steps.remove(step)
            return True
    return False


def _is_covered(charge, step, relation):
    """Return True if a charge costs at most what was planned for a step."""
    if step.exact:
        return step.covers(charge.event, relation)
    delta = getattr(step.event, "delta", 0.0)
    return charge.epsilon <= step.event.epsilon and charge.delta <= delta


def _price_of_plan(charges, plan):
    """Return the (epsilon, delta) of the steps of one split budget.

    All steps were planned before the first one ran, and what all of them cost is the plan's price.
    A few of them may cost less by themselves.
    """
    epsilon, delta = (math.fsum(getattr(c, n) for c in charges) for n in ("epsilon", "delta"))
    if epsilon <= plan.epsilon and delta <= plan.delta:
        return epsilon, delta
    return plan.epsilon, plan.delta


def _common_neighbors(words):
    """Return the neighboring tables of several releases together.

    Where one of them takes the number of units to be public, all of them together do.
    """
    with_public_size = [each for each in words if "is public" in each]
    return (with_public_size or words)[0]


def _terms_of(report):
    """Return terms under which the charges of a report add up; their sum always holds."""
    known = {name: getattr(report, name) for name in ("relation", "unit", "max_rows")}
    return LedgerConfig(*report.limit, missing_ids=report.missing_ids, **known)


# Where wrappers of scikit-learn, which may learn from rows themselves, keep what they fitted.
FITTED_PARTS = ("estimators_", "estimator_", "regressor_", "final_estimator_", "best_estimator_")


def _parts(estimator):
    """Return names and fitted estimators of which another is made."""
    for attribute in ("steps", "transformers_", "transformer_list"):
        if entries := getattr(estimator, attribute, ()):
            return [(name, part) for name, part, *_ in entries if hasattr(part, "get_params")]
    return _wrapped(estimator)


def _wrapped(estimator):
    """Return names and fitted estimators of a search or of another wrapper."""
    # What a private model is made of has no statement but the model's.
    is_private = hasattr(estimator, "privacy_")
    parts = []
    for attribute in FITTED_PARTS[-1:] if is_private else FITTED_PARTS:
        found = getattr(estimator, attribute, None)
        inner = found if isinstance(found, list | tuple | np.ndarray) else [found]
        numbered = enumerate(inner) if len(inner) > 1 else [("", part) for part in inner]
        parts += [
            (f"{attribute}{number}", part)
            for number, part in numbered
            if hasattr(part, "get_params")
        ]
    return parts
