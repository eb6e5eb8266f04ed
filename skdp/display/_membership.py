"""Displays of attacks against claims: ROC curves and certified lower bounds."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np
from sklearn.base import clone

from skdp.accounting import convert_relation
from skdp.audit import (
    EpsilonAudit,
    MembershipInference,
    audit_epsilon,
    membership_inference,
    success_bound,
)
from skdp.audit._outputs import relation_in
from skdp.utils._display import Display, text_color
from skdp.utils._types import Relation


class MembershipInferenceDisplay(Display):
    """Display of ROC curves of membership attacks, on logarithmic axes, and a claim's region.

    Create it with `from_estimator` or `from_results`. It contains results of attacks on private
    data: show it only to people who may see the data.

    Parameters
    ----------
    results : dict of str to MembershipInference
        Attacks by name.
    epsilon, delta : float or None
        The claim, whose allowed region is shaded; None shades nothing.
    relation : {"add_remove", "replace_one"}, default="add_remove"
        Neighboring relation of the claim. A fixed number of the candidates are members, so
        the attack compares data sets in which a row is replaced. A claim for "add_remove" is
        converted: it allows 2 epsilon and (1 + e^epsilon) delta for a replaced row.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that holds them.
    lines_ : list of matplotlib Line2D
        One line per result.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp.display import MembershipInferenceDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> display = MembershipInferenceDisplay.from_estimator(
    ...     DecisionTreeClassifier(random_state=0), X, y, attack="loss", random_state=0
    ... )
    >>> list(display.results)
    ['DecisionTreeClassifier']
    """

    def __init__(
        self,
        results: dict[str, MembershipInference],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        relation: Relation = "add_remove",
    ):
        self.results = results
        self.relation = relation
        self.epsilon = epsilon
        self.delta = delta

    @classmethod
    def from_estimator(cls, estimator, X, y, *, name=None, **options):
        """Attack an estimator, and draw the region of its claim if it has one.

        Parameters
        ----------
        estimator : estimator
            Estimator to attack, fitted or not.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        name : str, default=None
            Name in the legend; None uses the name of the estimator's class.
        **options
            Parameters of `skdp.audit.membership_inference`.

        Returns
        -------
        MembershipInferenceDisplay
        """
        result = membership_inference(estimator, X, y, **options)
        params = estimator.get_params()
        return cls(
            {name or type(estimator).__name__: result},
            epsilon=params.get("epsilon"),
            delta=params.get("delta", 0.0),
            relation=relation_in(estimator),
        )

    @classmethod
    def from_results(cls, results, *, epsilon=None, delta=0.0, relation="add_remove"):
        """Draw the results of several attacks.

        Parameters
        ----------
        results : dict of str to MembershipInference
            Attacks by name.
        epsilon, delta : float
            The claim, whose allowed region is shaded; epsilon=None shades nothing.
        relation : {"add_remove", "replace_one"}, default="add_remove"
            Neighboring relation of the claim.

        Returns
        -------
        MembershipInferenceDisplay
        """
        return cls(dict(results), epsilon=epsilon, delta=delta, relation=relation)

    def _draw(self, ax):
        """Draw the curves."""
        min_rate = min(0.5 / np.sum(~result.members) for result in self.results.values())
        rates = np.geomspace(min_rate, 1.0, 200)
        if self.epsilon is not None:
            claim = convert_relation(self.epsilon, self.delta, self.relation, "replace_one")
            allowed = success_bound(rates, *claim)
            label = f"allowed by ({self.epsilon:g}, {self.delta:g})-DP"
            ax.fill_between(rates, min_rate, allowed, color="C2", alpha=0.15, label=label)
        self.lines_ = []
        for name, result in self.results.items():
            label = f"{name} (AUC {result.auc.value:.2f})"
            # A logarithmic axis has no 0, so 0 is drawn at its lower end.
            curve = np.maximum(result.fpr, min_rate), np.maximum(result.tpr, min_rate)
            self.lines_ += ax.step(*curve, where="post", label=label)
        ax.loglog(rates, rates, ":", color=text_color(ax), label="guessing")
        ax.set(xlim=(min_rate, 1.0), ylim=(min_rate, 1.0))
        ax.set_xlabel("others taken for members (false-positive rate)")
        ax.set_ylabel("members found (true-positive rate)")
        ax.legend(loc="lower right")


class EpsilonAuditDisplay(Display):
    """Display of certified lower bounds on epsilon against the claimed epsilon.

    Create it with `from_estimator` or `from_audits`. A bound below its claim shows the limits of
    the attack; it does not show that privacy is better than claimed.

    Parameters
    ----------
    audits : list of EpsilonAudit
        One per claim.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the points.
    figure_ : matplotlib Figure
        Figure that holds them.
    line_ : matplotlib Line2D
        The certified bounds.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> from skdp.display import EpsilonAuditDisplay
    >>> display = EpsilonAuditDisplay.from_estimator(
    ...     DPLogisticRegression(mechanism="output"), epsilons=[1.0, 4.0], n_fits=50
    ... )
    >>> [audit.epsilon for audit in display.audits]
    [1.0, 4.0]
    """

    def __init__(self, audits: Sequence[EpsilonAudit]):
        self.audits = audits

    @classmethod
    def from_estimator(cls, estimator, X=None, y=None, *, epsilons, **options):
        """Audit an estimator at several claims.

        Parameters
        ----------
        estimator : estimator
            Estimator with a parameter `epsilon`.
        X, y : array-like, default=None
            Data for `skdp.audit.audit_epsilon`.
        epsilons : array-like of float
            The claims.
        **options
            Parameters of `skdp.audit.audit_epsilon`.

        Returns
        -------
        EpsilonAuditDisplay
        """
        claims = [clone(estimator).set_params(epsilon=epsilon) for epsilon in epsilons]
        return cls([audit_epsilon(claimed, X, y, **options) for claimed in claims])

    @classmethod
    def from_audits(cls, audits):
        """Draw the results of several audits.

        Parameters
        ----------
        audits : list of EpsilonAudit
            One per claim.

        Returns
        -------
        EpsilonAuditDisplay
        """
        return cls(list(audits))

    def _draw(self, ax):
        """Draw the bounds and the claims."""
        audits = sorted(self.audits, key=attrgetter("epsilon"))
        points = np.array([(audit.epsilon, audit.lower_bound) for audit in audits])
        top = 1.1 * points.max()
        ends = np.array([0.0, top])
        ax.plot(ends, ends, "--", color=text_color(ax), label="the claim")
        ax.fill_between(ends, ends, top, color="C3", alpha=0.15, label="violation")
        label = f"lower bound ({audits[0].confidence:.0%} confidence)"
        (self.line_,) = ax.plot(*points.T, "o-", label=label)
        ax.set(xlim=(0.0, top), ylim=(0.0, top))
        ax.set(xlabel="ε claimed", ylabel="ε that the attack proves")
        ax.legend(loc="upper left")
