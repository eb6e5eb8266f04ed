"""Synthetic tables for examples. No row describes a real person."""

from skdp.datasets._customers import make_customers

__all__ = ["make_customers"]
