"""Differentially private statistics with the shapes of numpy's."""

__all__ = []
