"""Optimization of linear and additive models: losses, noisy clipped gradients and solvers.

Losses are functions of scores, with the bounds on which sensitivities depend. The mathematics of
noisy gradients is in ``docs/theory/dp_sgd_engine.md``.
"""
