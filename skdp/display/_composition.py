"""What repeated releases cost, by several methods."""

import numpy as np

from skdp.accounting import get_epsilon, rdp, rdp_to_epsilon
from skdp.display._display import Display

NAMES = {
    "basic": "basic",
    "advanced": "advanced",
    "zcdp": "zCDP",
    "rdp_order": "RDP at order {order:g}",
    "rdp": "RDP, best order",
    "pld": "PLD",
}
# For Gaussian releases zCDP and RDP at the best order are one line; the wide one shows below.
STYLES = {
    "basic": {"linestyle": ":"},
    "advanced": {"linestyle": "-."},
    "zcdp": {"linewidth": 5, "alpha": 0.35},
    "rdp_order": {"linestyle": "--"},
}


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
            Which data sets are neighbours.

        Returns
        -------
        CompositionDisplay
        """
        counts = np.asarray(counts)
        epsilons = {}
        for method in list(NAMES) if methods is None else methods:
            if method not in NAMES:
                raise ValueError(f"methods must be among {sorted(NAMES)}, got {method!r}")
            if method == "rdp_order":
                cost = rdp(event, rdp_order, relation=relation)
                values = [rdp_to_epsilon(n * cost, rdp_order, delta) for n in counts]
            else:
                values = [
                    get_epsilon(event * int(n), delta, relation=relation, method=method)
                    for n in counts
                ]
            epsilons[method] = np.array(values)
        return cls(counts, epsilons, delta=delta, rdp_order=rdp_order)

    def _draw(self, ax):
        """Draw the lines."""
        self.lines_ = []
        for method, values in self.epsilons.items():
            label = NAMES[method].format(order=self.rdp_order)
            self.lines_ += ax.plot(self.counts, values, label=label, **STYLES.get(method, {}))
        ax.set(xlabel="number of releases", ylabel=f"ε at δ = {self.delta:g}")
        ax.legend()
