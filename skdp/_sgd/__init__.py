"""The engine of noisy stochastic gradients: batches, sums of clipped gradients, noise.

Its mathematics is in ``docs/dp_sgd_engine.md``.
"""
