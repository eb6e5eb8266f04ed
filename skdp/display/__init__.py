"""Pictures of privacy. They need matplotlib: ``pip install "skdp[plot]"``."""

from skdp.display._additive import AdditiveDisplay as AdditiveDisplay
from skdp.display._budget import BudgetDisplay as BudgetDisplay
from skdp.display._budget import CompositionDisplay as CompositionDisplay
from skdp.display._membership import EpsilonAuditDisplay as EpsilonAuditDisplay
from skdp.display._membership import MembershipInferenceDisplay as MembershipInferenceDisplay
from skdp.display._privacy_utility import PrivacyUtilityDisplay as PrivacyUtilityDisplay
