"""One line about the privacy of a fitted pipeline or search, for its representations."""

import math

from sklearn.base import BaseEstimator

from skdp._reports._contents import ReportContents
from skdp._reports._summary import cost_in_words, seeded_noise
from skdp.utils._documents import escape_control, html_fragment, html_text


def privacy_line(model):
    """Return one line on the privacy of a fitted pipeline or search; "" if nothing is fitted.

    No ledger is read, so the line contains only the charges for this model. Several charges are
    added up, which bounds their cost under every rule. Charges under different relations or for
    different units cannot be added together, so the line shows a sum for each.

    Parameters
    ----------
    model : estimator

    Returns
    -------
    str
    """
    contents = ReportContents(reads_ledgers=False)
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
                # A plan's charge has the cost of the plan, not that of a single step.
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
        texts.append(f"{cost_in_words(epsilon, delta)} per {unit}{under}")
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
    noise = seeded_noise(statements)
    if noise:
        line += f"; {noise} is SEEDED"
    return line


def _sklearn_repr(estimator, n_char_max):
    """Return the representation of scikit-learn.

    scikit-learn's printer breaks lines only for classes that inherit the method from
    `BaseEstimator`. Therefore, an object of such a class, with the estimator's name and parameters,
    is printed.
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
