"""What attacks find, against what a claim allows: ROC curves and certified bounds."""

import numpy as np
from sklearn.base import clone

from skdp.accounting import convert_relation
from skdp.audit import audit_epsilon, membership_inference, success_bound
from skdp.audit._outputs import relation_in
from skdp.display._display import Display


class MembershipInferenceDisplay(Display):
    """ROC curves of membership attacks on logarithmic axes, over the region that a claim allows.

    Make it with `from_estimator` or `from_results`. It shows what attacks found in private data:
    show it only to those who may see the data.

    Parameters
    ----------
    results : dict of str to MembershipInference
        By name.
    epsilon, delta : float or None
        The claim whose region is shaded; None shades nothing.
    relation : {"add_remove", "replace_one"}, default="add_remove"
        What the claim is for. Members are so many of the candidates: in the place of a row that is
        none another is one. A claim for a removed row allows what it does for a replaced one,
        2 epsilon and (1 + e^epsilon) delta.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that holds them.
    lines_ : list of matplotlib Line2D
        One line a result.

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

    def __init__(self, results, *, epsilon=None, delta=None, relation="add_remove"):
        self.results = results
        self.relation = relation
        self.epsilon = epsilon
        self.delta = delta

    @classmethod
    def from_estimator(cls, estimator, X, y, *, name=None, **options):
        """Attack an estimator; its claim, if it has one, gives the region.

        Parameters
        ----------
        estimator : estimator
            Fitted or not.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        name : str, default=None
            None takes the estimator's class.
        **options
            Of `skdp.audit.membership_inference`.

        Returns
        -------
        MembershipInferenceDisplay
        """
        result = membership_inference(estimator, X, y, **options)
        parameters = estimator.get_params()
        claim = {"epsilon": parameters.get("epsilon"), "delta": parameters.get("delta", 0.0)}
        name = name or type(estimator).__name__
        return cls({name: result}, **claim, relation=relation_in(estimator))

    @classmethod
    def from_results(cls, results, *, epsilon=None, delta=0.0, relation="add_remove"):
        """Compare attacks that were made before.

        Parameters
        ----------
        results : dict of str to MembershipInference
            Attacks by name.
        epsilon, delta : float
            The claim whose region is shaded; without epsilon none is.
        relation : {"add_remove", "replace_one"}, default="add_remove"
            What the claim is for.

        Returns
        -------
        MembershipInferenceDisplay
        """
        return cls(dict(results), epsilon=epsilon, delta=delta, relation=relation)

    def _draw(self, ax):
        """Draw the curves."""
        least = min(0.5 / np.sum(~result.members) for result in self.results.values())
        rates = np.geomspace(least, 1.0, 200)
        if self.epsilon is not None:
            claim = convert_relation(self.epsilon, self.delta, self.relation, "replace_one")
            allowed = success_bound(rates, *claim)
            label = f"allowed by ({self.epsilon:g}, {self.delta:g})-DP"
            ax.fill_between(rates, least, allowed, color="C2", alpha=0.15, label=label)
        self.lines_ = []
        for name, result in self.results.items():
            label = f"{name} (AUC {result.auc.value:.2f})"
            # What is 0 has no place on a logarithmic axis and is drawn at its edge.
            curve = np.maximum(result.fpr, least), np.maximum(result.tpr, least)
            self.lines_ += ax.step(*curve, where="post", label=label)
        ax.loglog(rates, rates, "k:", label="guessing")
        ax.set(xlim=(least, 1.0), ylim=(least, 1.0))
        ax.set_xlabel("others taken for members (false-positive rate)")
        ax.set_ylabel("members found (true-positive rate)")
        ax.legend(loc="lower right")


class EpsilonAuditDisplay(Display):
    """Certified lower bounds on epsilon against the claims.

    Make it with `from_estimator` or `from_audits`. The distance of a bound from its claim is
    what the attack did not find; it is no sign of more privacy.

    Parameters
    ----------
    audits : list of EpsilonAudit
        What to show.

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

    def __init__(self, audits):
        self.audits = audits

    @classmethod
    def from_estimator(cls, estimator, X=None, y=None, *, epsilons, **options):
        """Audit an estimator at several claims.

        Parameters
        ----------
        estimator : estimator
            With a parameter `epsilon`.
        X, y : array-like, default=None
            As `skdp.audit.audit_epsilon` takes them.
        epsilons : array-like of float
            The claims.
        **options
            Of `skdp.audit.audit_epsilon`.

        Returns
        -------
        EpsilonAuditDisplay
        """
        claims = [clone(estimator).set_params(epsilon=epsilon) for epsilon in epsilons]
        return cls([audit_epsilon(claimed, X, y, **options) for claimed in claims])

    @classmethod
    def from_audits(cls, audits):
        """Show audits that were made before.

        Parameters
        ----------
        audits : list of EpsilonAudit
            What to show.

        Returns
        -------
        EpsilonAuditDisplay
        """
        return cls(list(audits))

    def _draw(self, ax):
        """Draw the bounds and the claims."""
        audits = sorted(self.audits, key=lambda audit: audit.epsilon)
        points = np.array([(audit.epsilon, audit.lower_bound) for audit in audits])
        top = 1.1 * points.max()
        ends = np.array([0.0, top])
        ax.plot(ends, ends, "k--", label="the claim")
        ax.fill_between(ends, ends, top, color="C3", alpha=0.15, label="violation")
        label = f"lower bound ({audits[0].confidence:.0%} confidence)"
        (self.line_,) = ax.plot(*points.T, "o-", label=label)
        ax.set(xlim=(0.0, top), ylim=(0.0, top))
        ax.set(xlabel="ε claimed", ylabel="ε that the attack proves")
        ax.legend(loc="upper left")
