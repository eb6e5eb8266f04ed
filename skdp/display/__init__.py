"""Pictures of privacy. They need matplotlib: ``pip install "skdp[plot]"``."""

from skdp.display._additive import AdditiveDisplay
from skdp.display._budget import BudgetDisplay, CompositionDisplay
from skdp.display._epsilon_audit import EpsilonAuditDisplay
from skdp.display._membership import MembershipInferenceDisplay
from skdp.display._privacy_utility import PrivacyUtilityDisplay

__all__ = [
    "AdditiveDisplay",
    "BudgetDisplay",
    "CompositionDisplay",
    "EpsilonAuditDisplay",
    "MembershipInferenceDisplay",
    "PrivacyUtilityDisplay",
]
