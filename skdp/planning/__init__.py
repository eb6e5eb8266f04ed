"""How many rows, or how large an epsilon, a study needs: from public quantities, at no cost."""

from skdp.planning._required import required_epsilon, required_samples

__all__ = ["required_epsilon", "required_samples"]
