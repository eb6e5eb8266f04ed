"""The function that creates a privacy report of models, accountants and statements."""

from collections.abc import Sequence

from sklearn.base import BaseEstimator

from skdp._privacy_statement import PrivacyStatement
from skdp._reports._contents import ReportContents
from skdp._reports._document import PrivacyReport
from skdp._reports._totals import describe_combination
from skdp.ledger import PrivacyAccountant
from skdp.ledger._report import BudgetReport
from skdp.utils._documents import PrintedDocument


def privacy_report(
    *sources: BaseEstimator | PrivacyAccountant | PrintedDocument,
    audits: Sequence[PrintedDocument] = (),
    title: str = "Privacy",
) -> PrivacyReport:
    """Return one document on the privacy of models and on the budgets of data sets.

    The document contains the audits, the privacy statements of the fits and the records of the
    ledgers. Statements and records are public. Results of attacks on private rows are computed
    without privacy, and the document says so. Leave these results out of a published document
    unless you have decided to disclose them.

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
        If there is no source, if a source has another type, or if an estimator is not fitted.
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
    contents = ReportContents()
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
    """Return a description of the models for the headline; ledgers are not releases."""
    names = []
    for source in sources:
        if isinstance(source, PrivacyStatement):
            names.append(source.estimator)
        elif not (hasattr(source, "charge") or isinstance(source, BudgetReport)):
            names.append(type(source).__name__)
    return describe_combination(names)
