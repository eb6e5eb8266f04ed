"""Displays of a budget, and of the cost of repeated releases."""

from textwrap import fill

import numpy as np

from skdp.accounting import get_epsilon, rdp, rdp_to_epsilon
from skdp.utils._display import Display

# Label of the bar for all releases, and maximum number of characters per line of a label.
TOTAL = "all together"
LABEL_WIDTH = 30
# For Gaussian releases, the lines of zCDP and of RDP at the best order coincide; that of zCDP is
# wide and transparent so that both are visible.
LINES = {
    "basic": {"label": "basic", "linestyle": ":"},
    "advanced": {"label": "advanced", "linestyle": "-."},
    "zcdp": {"label": "zCDP", "linewidth": 5, "alpha": 0.35},
    "rdp_order": {"label": "RDP at order {order:g}", "linestyle": "--"},
    "rdp": {"label": "RDP, best order"},
    "pld": {"label": "PLD"},
}


class BudgetDisplay(Display):
    """Display of a budget: the epsilon spent by each label and in total, and the remaining epsilon.

    Create it with `from_accountant`. It shows values of the ledger, which are public.

    Parameters
    ----------
    epsilons : dict of str to float
        Sum of the epsilons of the releases with each label.
    spent : float
        Epsilon of all releases under the accountant's composition. It is below the sum of
        `epsilons` if the composition is tighter than addition, or if releases used disjoint data.
    limit : tuple of (float, float)
        The budget, (epsilon, delta).
    dataset : str
        Name of the data set to which the budget belongs.
    composition : str
        Name of the accountant's composition.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the bars.
    figure_ : matplotlib Figure
        Figure that holds them.
    bars_ : list of matplotlib BarContainer
        Epsilon by label, epsilon of all releases, and remaining epsilon.

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

    def __init__(
        self,
        epsilons: dict[str, float],
        spent: float,
        *,
        limit: tuple[float, float],
        dataset: str,
        composition: str,
    ):
        self.epsilons = epsilons
        self.spent = spent
        self.limit = limit
        self.dataset = dataset
        self.composition = composition

    @classmethod
    def from_accountant(cls, accountant):
        """Draw the budget of an accountant.

        Parameters
        ----------
        accountant : PrivacyAccountant
            Accountant whose ledger is read.

        Returns
        -------
        BudgetDisplay
        """
        report = accountant.report()
        epsilons = {}
        for charge in report.charges:
            label = charge.label or "unlabeled"
            epsilons[label] = epsilons.get(label, 0.0) + charge.epsilon
        return cls(
            epsilons,
            report.spent[0],
            limit=report.limit,
            dataset=report.dataset,
            composition=report.composition,
        )

    def _draw(self, ax):
        """Draw a bar for each label, and a bar for the total and the remaining epsilon."""
        epsilon, delta = self.limit
        remaining = max(epsilon - self.spent, 0.0)
        # Long names of nested steps are wrapped at their underscores.
        labels = [
            fill(s.replace("__", "__ "), LABEL_WIDTH).replace("__ ", "__") for s in self.epsilons
        ]
        by_label = ax.barh(labels, list(self.epsilons.values()), label="by itself")
        spent = ax.barh(TOTAL, self.spent, color="C1", label=f"spent ({self.composition})")
        rest = ax.barh(
            TOTAL,
            remaining,
            left=self.spent,
            label="left",
            color="none",
            edgecolor="C1",
            hatch="//",
        )
        ax.axvline(epsilon, color="C3", linestyle="--", label=f"limit ε = {epsilon:g}")
        ax.bar_label(by_label, fmt="%.3g", padding=3)
        ax.bar_label(spent, fmt="%.3g", label_type="center")
        ax.margins(x=0.1)
        ax.invert_yaxis()
        ax.set(xlabel=f"ε (δ = {delta:g})", title=f"budget of {self.dataset!r}")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4, ncols=2)
        self.bars_ = [by_label, spent, rest]


class CompositionDisplay(Display):
    """Display of the epsilon of repeated releases against their number, one line per method.

    Create it with `from_event`.

    Parameters
    ----------
    counts : ndarray of shape (n_counts,)
        Numbers of releases.
    epsilons : dict of str to ndarray of shape (n_counts,)
        Epsilon by method.
    delta : float
        The delta of all epsilons.
    rdp_order : float
        The order of the method "rdp_order".

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the lines.
    figure_ : matplotlib Figure
        Figure that holds them.
    lines_ : list of matplotlib Line2D
        One line per method.

    Examples
    --------
    >>> from skdp.accounting import Gaussian
    >>> from skdp.display import CompositionDisplay
    >>> display = CompositionDisplay.from_event(Gaussian(20.0), [1, 10, 100], delta=1e-5)
    >>> sorted(display.epsilons)
    ['advanced', 'basic', 'pld', 'rdp', 'rdp_order', 'zcdp']
    """

    def __init__(
        self, counts: np.ndarray, epsilons: dict[str, np.ndarray], *, delta: float, rdp_order: float
    ):
        self.counts = counts
        self.epsilons = epsilons
        self.delta = delta
        self.rdp_order = rdp_order

    @classmethod
    def from_event(
        cls, event, counts, *, delta, methods=None, rdp_order=16.0, relation="add_remove"
    ):
        """Return a display of the epsilon of an event that is composed with itself.

        Parameters
        ----------
        event : Event
            One release, from `skdp.accounting`.
        counts : array-like of int
            Numbers of releases.
        delta : float
            The delta of all epsilons.
        methods : list of str, default=None
            Methods of `skdp.accounting.get_epsilon`, and "rdp_order" for RDP at one order fixed
            beforehand, which is a valid filter. None uses all methods that apply.
        rdp_order : float, default=16.0
            The order of "rdp_order".
        relation : {"add_remove", "replace_one"}, default="add_remove"
            Relation between neighboring data sets.

        Returns
        -------
        CompositionDisplay
        """
        counts = np.asarray(counts)
        by_default = methods is None
        if by_default:
            methods = list(LINES)
        epsilons = {}
        error = None
        for method in methods:
            if method not in LINES:
                raise ValueError(f"methods must be among {sorted(LINES)}, got {method!r}")
            try:
                values = cls._epsilons(event, counts, method, delta, rdp_order, relation)
            except ValueError as not_applicable:
                if not by_default:
                    raise
                error = not_applicable
            else:
                epsilons[method] = values
        # An invalid count or delta, for example, is refused by every method.
        if error is not None and not epsilons:
            raise error
        return cls(counts, epsilons, delta=delta, rdp_order=rdp_order)

    @staticmethod
    def _epsilons(event, counts, method, delta, rdp_order, relation):
        """Return the epsilon of each number of releases by one method; see `from_event`."""
        if method == "rdp_order":
            cost = rdp(event, rdp_order, relation=relation)
            return np.array([rdp_to_epsilon(n * cost, rdp_order, delta) for n in counts])
        composed = [event * int(n) for n in counts]
        return np.array(
            [get_epsilon(total, delta, relation=relation, method=method) for total in composed]
        )

    def _draw(self, ax):
        """Draw the lines."""
        self.lines_ = []
        for method, values in self.epsilons.items():
            style = LINES[method] | {"label": LINES[method]["label"].format(order=self.rdp_order)}
            self.lines_ += ax.plot(self.counts, values, **style)
        ax.set(xlabel="number of releases", ylabel=f"ε at δ = {self.delta:g}")
        ax.legend()
