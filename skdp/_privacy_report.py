"""One document about the privacy of what was released: for people, programs and model cards."""

import json
from dataclasses import field
from datetime import UTC, datetime

from skdp._privacy_statement import PrivacyStatement
from skdp._version import __version__
from skdp.accounting._report import BudgetReport
from skdp.utils._documents import Section, html_fragment, html_text, markdown_text, printable
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
        lines = [printable(self.title), "=" * len(printable(self.title))]
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
        yield from (statement.section() for statement in self.statements)
        if self.without_statement:
            words = "says nothing of its privacy: what it learnt from rows is not covered."
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
    *sources : fitted estimator, PrivacyAccountant, PrivacyStatement or BudgetReport
        Of an estimator its `privacy_` and the ledger of its accountant are taken; of a pipeline,
        a column transformer or a search those of its parts, and which parts say nothing.
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
    found = [known for source in sources for known in _known_of(source, type(source).__name__)]
    reports = (known for known in found if isinstance(known, BudgetReport))
    budgets = {(report.dataset, report.head_hash): report for report in reports}
    audits = tuple(audits) if isinstance(audits, list | tuple) else (audits,)
    for audit in audits:
        if not (hasattr(audit, "to_dict") and hasattr(audit, "section")):
            raise ValueError(f"audits must be results of skdp.audit, got {audit!r}")
    return PrivacyReport(
        title=str(title),
        statements=tuple(known for known in found if isinstance(known, PrivacyStatement)),
        budgets=tuple(budgets.values()),
        audits=audits,
        without_statement=tuple(known for known in found if isinstance(known, str)),
    )


def _known_of(source, name):
    """Yield statements, reports of budgets, and the names of parts that say nothing."""
    if isinstance(source, PrivacyStatement | BudgetReport):
        yield source
    elif hasattr(source, "report") and hasattr(source, "charge"):
        yield source.report()
    elif hasattr(source, "get_params"):
        parts, parameters = _parts(source), source.get_params(deep=False)
        if hasattr(source, "privacy_"):
            yield source.privacy_
        elif "epsilon" in parameters:
            raise ValueError(f"{name} is not fitted, or publishes no privacy statement")
        elif not parts or hasattr(source, "best_estimator_"):
            # A search without a statement looked at scores of the same rows to choose its best
            # part.
            yield name
        if hasattr(parameters.get("accountant"), "report"):
            yield parameters["accountant"].report()
        for part, inner in parts:
            yield from _known_of(inner, f"{name}: {part} ({type(inner).__name__})")
    else:
        raise ValueError(f"cannot report on {source!r}")


def _parts(estimator):
    """Return names and fitted estimators of which another is made."""
    for attribute in ("steps", "transformers_", "transformer_list"):
        if entries := getattr(estimator, attribute, ()):
            return [(name, part) for name, part, *_ in entries if hasattr(part, "get_params")]
    best = getattr(estimator, "best_estimator_", None)
    return [] if best is None else [("best_estimator_", best)]
