"""What a budget was spent on and what is left, and what repeated releases cost."""

from textwrap import fill

import numpy as np

from skdp.accounting import get_epsilon, rdp, rdp_to_epsilon
from skdp.display._display import Display

TOGETHER = "all together"
LINE = 30
# For Gaussian releases zCDP and RDP at the best order are one line; the wide one shows below.
LINES = {
    "basic": {"label": "basic", "linestyle": ":"},
    "advanced": {"label": "advanced", "linestyle": "-."},
    "zcdp": {"label": "zCDP", "linewidth": 5, "alpha": 0.35},
    "rdp_order": {"label": "RDP at order {order:g}", "linestyle": "--"},
    "rdp": {"label": "RDP, best order"},
    "pld": {"label": "PLD"},
}


class BudgetDisplay(Display):
    """A budget's epsilon: spent by whom, spent in all, left.

    Make it with `from_accountant`. It shows what the ledger says, which is public.

    Parameters
    ----------
    epsilons : dict of str to float
        What the releases of each label cost by themselves, summed.
    spent : float
        What all of them cost together by the accountant's composition; below the sum of
        `epsilons` where that is tighter than addition, or where parts were disjoint.
    limit : tuple of (float, float)
        The budget, (epsilon, delta).
    dataset : str
        Whose budget it is.
    composition : str
        How charges add up.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the bars.
    figure_ : matplotlib Figure
        Figure that holds them.
    bars_ : list of matplotlib BarContainer
        What the labels spent, what was spent together, what is left.

    Examples
    --------
    >>> from skdp import PrivacyAccountant
    >>> from skdp.accounting import PureDP
    >>> from skdp.display import BudgetDisplay
    >>> accountant = PrivacyAccountant(1.0, 0.0)
    >>> for label in ("a mean", "a count", "a mean"):
    ...     charge = accountant.charge(PureDP(0.25), label=label)
    >>> display = BudgetDisplay.from_accountant(accountant)
    >>> display.epsilons, display.spent
    ({'a mean': 0.5, 'a count': 0.25}, 0.75)
    """

    def __init__(self, epsilons, spent, *, limit, dataset, composition):
        self.epsilons = epsilons
        self.spent = spent
        self.limit = limit
        self.dataset = dataset
        self.composition = composition

    @classmethod
    def from_accountant(cls, accountant):
        """Read a budget from its ledger.

        Parameters
        ----------
        accountant : PrivacyAccountant
            Whose ledger is read.

        Returns
        -------
        BudgetDisplay
        """
        report = accountant.report()
        epsilons = {}
        for charge in report.charges:
            label = charge.label or "unlabeled"
            epsilons[label] = epsilons.get(label, 0.0) + charge.epsilon
        shown = {name: getattr(report, name) for name in ("limit", "dataset", "composition")}
        return cls(epsilons, report.spent[0], **shown)

    def _draw(self, ax):
        """Draw a bar for each label, and one for all together with what is left."""
        epsilon, delta = self.limit
        left = max(epsilon - self.spent, 0.0)
        # A nested step's name is broken at its underscores.
        labels = [fill(s.replace("__", "__ "), LINE).replace("__ ", "__") for s in self.epsilons]
        by_label = ax.barh(labels, list(self.epsilons.values()), label="by itself")
        spent = ax.barh(TOGETHER, self.spent, color="C1", label=f"spent ({self.composition})")
        hatched = {"color": "none", "edgecolor": "C1", "hatch": "//"}
        rest = ax.barh(TOGETHER, left, left=self.spent, label="left", **hatched)
        ax.axvline(epsilon, color="C3", linestyle="--", label=f"limit ε = {epsilon:g}")
        ax.bar_label(by_label, fmt="%.3g", padding=3)
        ax.bar_label(spent, fmt="%.3g", label_type="center")
        ax.margins(x=0.1)
        ax.invert_yaxis()
        ax.set(xlabel=f"ε (δ = {delta:g})", title=f"budget of {self.dataset!r}")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4, ncols=2)
        self.bars_ = [by_label, spent, rest]


class CompositionDisplay(Display):
    """Epsilon of repeated releases against their number, one line a method.

    Make it with `from_event`.

    Parameters
    ----------
    counts : ndarray of shape (n_counts,)
        Numbers of releases.
    epsilons : dict of str to ndarray of shape (n_counts,)
        Epsilon by method.
    delta : float
        At which epsilon is stated.
    rdp_order : float
        The order of the method "rdp_order".

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the lines.
    figure_ : matplotlib Figure
        Figure that holds them.
    lines_ : list of matplotlib Line2D
        One line a method.

    Examples
    --------
    >>> from skdp.accounting import Gaussian
    >>> from skdp.display import CompositionDisplay
    >>> display = CompositionDisplay.from_event(Gaussian(20.0), [1, 10, 100], delta=1e-5)
    >>> sorted(display.epsilons)
    ['advanced', 'basic', 'pld', 'rdp', 'rdp_order', 'zcdp']
    """

    def __init__(self, counts, epsilons, *, delta, rdp_order):
        self.counts = counts
        self.epsilons = epsilons
        self.delta = delta
        self.rdp_order = rdp_order

    @classmethod
    def from_event(
        cls, event, counts, *, delta, methods=None, rdp_order=16.0, relation="add_remove"
    ):
        """Compose an event with itself.

        Parameters
        ----------
        event : Event
            One release, from `skdp.accounting`.
        counts : array-like of int
            Numbers of releases.
        delta : float
            At which epsilon is stated.
        methods : list of str, default=None
            Methods of `skdp.accounting.get_epsilon`, and "rdp_order" for RDP at one order fixed
            beforehand, which is a valid filter. None takes all that apply.
        rdp_order : float, default=16.0
            The order of "rdp_order".
        relation : {"add_remove", "replace_one"}, default="add_remove"
            Which data sets are neighbors.

        Returns
        -------
        CompositionDisplay
        """
        counts = np.asarray(counts)
        epsilons = {}
        for method in list(LINES) if methods is None else methods:
            if method not in LINES:
                raise ValueError(f"methods must be among {sorted(LINES)}, got {method!r}")
            if method == "rdp_order":
                cost = rdp(event, rdp_order, relation=relation)
                values = [rdp_to_epsilon(n * cost, rdp_order, delta) for n in counts]
            else:
                terms = {"relation": relation, "method": method}
                values = [get_epsilon(event * int(n), delta, **terms) for n in counts]
            epsilons[method] = np.array(values)
        return cls(counts, epsilons, delta=delta, rdp_order=rdp_order)

    def _draw(self, ax):
        """Draw the lines."""
        self.lines_ = []
        for method, values in self.epsilons.items():
            style = LINES[method] | {"label": LINES[method]["label"].format(order=self.rdp_order)}
            self.lines_ += ax.plot(self.counts, values, **style)
        ax.set(xlabel="number of releases", ylabel=f"ε at δ = {self.delta:g}")
        ax.legend()
