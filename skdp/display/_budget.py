"""What a budget was spent on, and what is left."""

from textwrap import fill

from skdp.display._display import Display

TOGETHER, LINE = "all together", 30


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
    cap : tuple of (float, float)
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
    ...     spend = accountant.charge(PureDP(0.25), label=label)
    >>> display = BudgetDisplay.from_accountant(accountant)
    >>> display.epsilons, display.spent
    ({'a mean': 0.5, 'a count': 0.25}, 0.75)
    """

    def __init__(self, epsilons, spent, *, cap, dataset, composition):
        self.epsilons = epsilons
        self.spent = spent
        self.cap = cap
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
        for spend in report.spends:
            label = spend.label or "unlabelled"
            epsilons[label] = epsilons.get(label, 0.0) + spend.epsilon
        shown = {name: getattr(report, name) for name in ("cap", "dataset", "composition")}
        return cls(epsilons, report.spent[0], **shown)

    def _draw(self, ax):
        """Draw a bar for each label, and one for all together with what is left."""
        epsilon, delta = self.cap
        left = max(epsilon - self.spent, 0.0)
        # A nested step's name is broken at its underscores.
        labels = [fill(s.replace("__", "__ "), LINE).replace("__ ", "__") for s in self.epsilons]
        by_label = ax.barh(labels, list(self.epsilons.values()), label="by itself")
        spent = ax.barh(TOGETHER, self.spent, color="C1", label=f"spent ({self.composition})")
        rest = ax.barh(
            TOGETHER, left, left=self.spent, color="none", edgecolor="C1", hatch="//", label="left"
        )
        ax.axvline(epsilon, color="C3", linestyle="--", label=f"cap ε = {epsilon:g}")
        ax.bar_label(by_label, fmt="%.3g", padding=3)
        ax.bar_label(spent, fmt="%.3g", label_type="center")
        ax.margins(x=0.1)
        ax.invert_yaxis()
        ax.set(xlabel=f"ε (δ = {delta:g})", title=f"budget of {self.dataset!r}")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0), borderaxespad=4, ncols=2)
        self.bars_ = [by_label, spent, rest]
