"""How many rows, or how large an epsilon, a study needs: from public quantities, at no cost."""

from skdp.planning._required import required_epsilon as required_epsilon
from skdp.planning._required import required_samples as required_samples
