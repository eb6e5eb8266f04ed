"""What attacks certify, against what is claimed."""

import numpy as np
from sklearn.base import clone

from skdp.audit import audit_epsilon
from skdp.display._display import Display


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
        claims = np.array([audit.epsilon for audit in audits])
        bounds = np.array([audit.lower_bound for audit in audits])
        top = 1.1 * max(claims.max(), bounds.max())
        ends = np.array([0.0, top])
        ax.plot(ends, ends, "k--", label="the claim")
        ax.fill_between(ends, ends, top, color="C3", alpha=0.15, label="violation")
        confidence = audits[0].confidence
        (self.line_,) = ax.plot(
            claims, bounds, "o-", label=f"lower bound ({confidence:.0%} confidence)"
        )
        ax.set(
            xlim=(0.0, top), ylim=(0.0, top), xlabel="ε claimed", ylabel="ε that the attack proves"
        )
        ax.legend(loc="upper left")
