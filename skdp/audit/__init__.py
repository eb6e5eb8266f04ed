"""What an attacker can learn from a fitted estimator."""

from skdp.audit._bounds import epsilon_from_rates as epsilon_from_rates
from skdp.audit._bounds import gaussian_epsilon_from_rates as gaussian_epsilon_from_rates
from skdp.audit._bounds import one_run_epsilon as one_run_epsilon
from skdp.audit._bounds import one_run_gaussian_epsilon as one_run_gaussian_epsilon
from skdp.audit._bounds import success_bound as success_bound
from skdp.audit._epsilon import EpsilonAudit as EpsilonAudit
from skdp.audit._epsilon import audit_epsilon as audit_epsilon
from skdp.audit._membership import MembershipInference as MembershipInference
from skdp.audit._membership import membership_inference as membership_inference
from skdp.audit._reconstruction import Reconstruction as Reconstruction
from skdp.audit._reconstruction import differencing as differencing
from skdp.audit._reconstruction import linear_reconstruction as linear_reconstruction
