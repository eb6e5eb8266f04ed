"""Planning at no cost: the number of rows, or the epsilon, that a target error requires."""

from skdp.planning._required import required_epsilon, required_samples

__all__ = ["required_epsilon", "required_samples"]
