"""The first page of a privacy report: its conclusion, and the list of the facts behind it."""

import math
from collections import Counter

from skdp.ledger._report import describe_head, describe_unit
from skdp.utils._documents import count_of
from skdp.utils._rounding import format_rounded_up

UNIT_WORDS = {"row": "row", "person": "person", "group": "group of rows"}
LEDGER_NOT_IN_REPORT = "the ledger is not in this report"
LEDGERS_NOT_IN_REPORT = "the ledgers are not in this report"
# Largest epsilon that is described as a factor, which is then 22,026.
MAX_WORDS_EPSILON = 10.0


def conclusion_of(report):
    """Yield the sentences of a report's conclusion."""
    if not (report.statements or report.totals or report.missing or report.without_statement):
        yield "This report is about the budget of a data set, not about a model."
    names = ", ".join(report.without_statement)
    if names:
        yield (
            f"NOT COVERED by any guarantee: {names}. Therefore the whole has no guarantee of "
            "differential privacy."
        )
    result = "any result"
    if names:
        result = "any result of that part"
    for total in report.totals:
        cost = format_rounded_up(total.epsilon, total.delta)
        unit = _unit_of_total(report, total)
        subject = total.of[:1].upper() + total.of[1:]
        yield f"{subject} is ({cost})-differentially private for each {unit}."
        yield _plain_words(total, unit, result)
    if report.missing and not report.totals:
        yield (
            f"NO TOTAL: {' and '.join(report.missing)} are in no ledger of this report, so their "
            "cost is unknown."
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
            "and is not part of any total of the model."
        )
    noise = seeded_noise(report.statements)
    if noise:
        yield f"{noise[:1].upper()}{noise[1:]} was SEEDED: anyone who knows the seed can remove it."
    if any(getattr(audit, "violation", False) for audit in report.audits):
        yield "VIOLATION: an attack disproves a claim of this report."


def seeded_noise(statements):
    """Return the subject of a sentence on seeded noise: all noise, or that of some fits or calls.

    Parameters
    ----------
    statements : list of PrivacyStatement

    Returns
    -------
    str
        "" if no noise was seeded.
    """
    seeded = [statement for statement in statements if statement.seeded]
    if not seeded:
        return ""
    if len(seeded) == len(statements) and not any(s.seeded_calls for s in seeded):
        return "the noise"
    names = []
    seeded_calls = Counter((statement.estimator, statement.seeded_calls) for statement in seeded)
    for (estimator, calls), count in seeded_calls.items():
        name = estimator
        same_name = [statement for statement in statements if statement.estimator == estimator]
        if count < len(same_name):
            name = f"{count} of {count_of(len(same_name), 'release')} by {estimator}"
        if calls:
            name += f" in {calls}"
        names.append(name)
    return f"the noise of {' and '.join(names)}"


def _charged_later(report):
    """Return the statements of estimators whose fit is not charged but whose releases are."""
    return [statement for statement in report.statements if statement.is_charged_later]


def _unit_word(unit):
    """Return the word for a privacy unit, from its description."""
    return UNIT_WORDS.get(unit.partition(" ")[0].rstrip(",;"), unit)


def _plain_words(total, unit, result):
    """Return a description of a guarantee without symbols; `result` names its subject."""
    if not total.epsilon <= MAX_WORDS_EPSILON:
        return (
            f"This guarantee is weak: it alone does not rule out that the releases reveal nearly "
            f"everything about a {unit}."
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


def facts_of(report):
    """Yield the facts on the first page as (name, text) pairs."""
    if report.without_statement:
        yield "not covered", "; ".join(report.without_statement)
    yield from _facts_on_totals(report)
    yield from _facts_on_budgets(report)
    units = [statement.unit for statement in report.statements]
    units += [describe_unit(b.unit, b.max_rows, b.missing_ids) for b in report.budgets]
    yield "unit", "; ".join(dict.fromkeys(units))
    relations = [total.neighbors for total in report.totals]
    if not relations:
        relations = [f"{s.relation}: {s.neighbors}" for s in report.statements]
        relations += [budget.relation_in_words for budget in report.budgets]
    yield "relation", "; ".join(dict.fromkeys(relations))
    yield from _facts_on_charges(_charges_of(report), report)
    public = dict.fromkeys(text for s in report.statements for text in s.public)
    default = "nothing"
    if not report.statements and (report.totals or report.missing):
        default = "not known: no model with a statement was published"
    yield "assumed public", "; ".join(public) or default


def _facts_on_totals(report):
    """Yield the total cost of the models."""
    part = "model"
    if report.without_statement:
        part = "private part"
    for i, total in enumerate(report.totals, start=1):
        place = "in no ledger of this report"
        if total.dataset:
            place = f"data set {total.dataset!r}"
        if total.parts:
            place = f"the sum of {'; '.join(total.parts)}"
        name = f"total of the {part}"
        cost = cost_in_words(total.epsilon, total.delta)
        if len(report.totals) > 1:
            # Their relations or privacy units differ, so that they do not add up.
            name = f"total {i} of the {part}"
            relation = total.neighbors.partition(":")[0]
            cost += f" for each {_unit_of_total(report, total)} under {relation}"
        yield name, f"{cost}; {count_of(total.n_charges, 'charge')}, {place}"


def _facts_on_budgets(report):
    """Yield the total cost of all releases from each data set."""
    for budget in report.budgets:
        charges = count_of(budget.n_charges, "charge")
        if budget.shown:
            charges += f" (only those {budget.shown} are listed)"
        limit = f"epsilon = {budget.limit[0]:.6g}, delta = {budget.limit[1]:.6g}"
        text = f"{cost_in_words(*budget.spent)}; {charges}, of a limit of {limit}"
        same_name = [other for other in report.budgets if other.dataset == budget.dataset]
        of_ledger = ""
        if len(same_name) > 1:
            of_ledger = f" ({describe_head(budget.head_hash)})"
        if budget.reserved_from:
            name = f"total of the budget {budget.dataset!r}{of_ledger}"
            yield name, f"{text}; all of it is among the charges of {budget.reserved_from!r}"
        else:
            yield f"total of data set {budget.dataset!r}{of_ledger}", text
    roots = {budget.identity for budget in report.budgets if not budget.reserved_from}
    unread_roots = dict.fromkeys(
        (budget.reserved_from, budget.identity)
        for budget in report.budgets
        if budget.reserved_from and budget.identity not in roots
    )
    names = dict.fromkeys(name for name, _ in unread_roots)
    for name in names:
        label = f"total of data set {name!r}"
        if any(budget.dataset == name for budget in report.budgets):
            label += " of a ledger that is not in this report"
        yield label, "not known: this report has only budgets that were reserved from it"
    if not report.budgets:
        name = "total of the data set"
        datasets = dict.fromkeys(name for s in report.statements for name in s.datasets)
        if len(datasets) > 1:
            name = f"totals of data sets {', '.join(map(repr, datasets))}"
        reason = _reason_of_unread_ledgers(report) or "no ledger"
        yield (
            name,
            f"not known: {reason}. The cost of all other releases from the same data must be added",
        )


def _reason_of_unread_ledgers(report):
    """Return a clause on the ledgers that are not in the report; "" if all charges are in it."""
    recorded = {charge.hash for budget in report.budgets for charge in budget.charges}
    hashes = {c.hash for statement in report.statements for c in statement.charges if c.hash}
    unread = hashes - recorded
    if len({ledger for s in report.statements for ledger in s.datasets_of(unread)}) > 1:
        return LEDGERS_NOT_IN_REPORT
    if unread:
        return LEDGER_NOT_IN_REPORT
    return ""


def _facts_on_charges(charges, report):
    """Yield who made the charges, why, and when."""
    unknown = "not recorded (see `PrivacyAccountant.as_user`)"
    when = "not recorded: no ledger"
    reason = _reason_of_unread_ledgers(report)
    if not charges and reason:
        unknown = when = f"not known: {reason}"
    elif not any(s.charges for s in report.statements) and not (report.totals or report.missing):
        when = "nothing was charged"
    users = dict.fromkeys(charge.user for charge in charges if charge.user)
    yield "who", ", ".join(users) or unknown
    purposes = dict.fromkeys(charge.purpose for charge in charges if charge.purpose)
    yield "why", ", ".join(purposes) or unknown
    times = sorted(charge.time for charge in charges if charge.time)
    if times and times[0] == times[-1]:
        when = times[0]
    elif times:
        when = f"{times[0]} to {times[-1]}"
    yield "when", when


def cost_in_words(epsilon, delta):
    """Return epsilon and delta by name, rounded up."""
    return f"epsilon = {format_rounded_up(epsilon)}, delta = {format_rounded_up(delta)}"


def _charges_of(report):
    """Return the charges for the models of a report, with user and purpose.

    A report without models includes all charges of its budgets.
    """
    recorded = {charge.hash: charge for budget in report.budgets for charge in budget.charges}
    if not report.statements:
        return list(recorded.values())
    hashes = dict.fromkeys(c.hash for s in report.statements for c in s.charges if c.hash)
    return [recorded[hash_] for hash_ in hashes if hash_ in recorded]
