"""Noisy stochastic gradients: batches, sums of clipped gradients, noise and the loop of steps.

The mathematics is in ``docs/theory/dp_sgd_engine.md``.
"""
