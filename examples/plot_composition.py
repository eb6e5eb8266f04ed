"""
The cost of many Gaussian releases, by composition rule
=======================================================

Each release alone is (0.05, 1e-5)-differentially private. Basic composition adds the epsilons, as
if every release had its worst outcome. The other rules use the fact that this is very unlikely.
Basic, zCDP and RDP at one order stay valid when an analyst chooses each release after seeing the
previous ones. The others require a schedule that is fixed beforehand.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from skdp.accounting import Gaussian, gaussian_noise_multiplier
from skdp.display import CompositionDisplay

plt.style.use("tableau-colorblind10")
release = Gaussian(gaussian_noise_multiplier(0.05, 1e-5))
counts = np.unique(np.geomspace(1, 500, 25).astype(int))

# %%
# **Result:** the curve of basic composition leaves the figure before a hundred releases. zCDP and
# RDP at the best order give the same curve for Gaussian noise. RDP at a fixed order touches it
# where that order is the best. PLD, which is exact up to rounding, is the lowest.

display = CompositionDisplay.from_event(release, counts, delta=1e-5, rdp_order=12.0).plot()
display.ax_.set(ylim=(0, 5), title="Gaussian releases of ε = 0.05 each")
display.figure_.set_size_inches(6, 4)
if len(sys.argv) > 1:
    display.figure_.savefig(sys.argv[1], dpi=120)
else:
    plt.show()

# %%
# **Where the curves meet.** For Gaussian releases with noise of σ times the sensitivity, the best
# order for k releases solves (α - 1)² k / (2σ²) = ln(1/δ) in the conversion of Mironov 2017; there
# the curve of RDP at α touches that of zCDP. A widely used text states that for σ = 200 and δ =
# 1e-5 RDP at α = 20 meets zCDP near k = 300. By the formula, this is true for α = 60, and α = 20 is
# the best order for ten times as many releases.

for order in (20, 60):
    k = np.log(1 / 1e-5) * 2 * 200**2 / (order - 1) ** 2
    print(f"RDP at order {order} meets zCDP at k = {k:.0f}")
