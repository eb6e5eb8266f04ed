"""Displays of privacy. They need matplotlib: ``pip install ".[plot]"`` in the repository."""

from skdp.display._additive import AdditiveDisplay
from skdp.display._budget import BudgetDisplay, CompositionDisplay
from skdp.display._evaluation import EvaluationDisplay
from skdp.display._membership import EpsilonAuditDisplay, MembershipInferenceDisplay
from skdp.display._privacy_utility import PrivacyUtilityDisplay
from skdp.stats._profile_display import ProfileDisplay

__all__ = [
    "AdditiveDisplay",
    "BudgetDisplay",
    "CompositionDisplay",
    "EpsilonAuditDisplay",
    "EvaluationDisplay",
    "MembershipInferenceDisplay",
    "PrivacyUtilityDisplay",
    "ProfileDisplay",
]
