"""Fits that are given the releases of another fit: what else they read of the rows shows."""

from contextlib import ExitStack
from unittest import mock

from skdp._optim._gradient_noise import GaussianNoise, LaplaceNoise
from skdp.gam._descent import PerturbedObjective
from skdp.linear_model._objective_perturbation import ObjectivePerturbation
from skdp.linear_model._output_perturbation import OutputPerturbation
from skdp.mechanisms import (
    GammaNormMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    PermuteAndFlip,
)

RELEASES = [
    *((kind, "release") for kind in (GammaNormMechanism, GaussianMechanism, GeometricMechanism)),
    *((kind, "release") for kind in (LaplaceMechanism, PermuteAndFlip)),
    *((kind, "add") for kind in (GaussianNoise, LaplaceNoise)),
    *((kind, "run") for kind in (PerturbedObjective, ObjectivePerturbation, OutputPerturbation)),
]


def replayed(first, second):
    """Return what two functions return, of which the second is given the first one's releases."""
    tape, depth, replays = [], 0, False

    def taped(method):
        def run(self, *args, **options):
            nonlocal depth
            if depth:
                return method(self, *args, **options)
            if replays:
                return tape.pop(0)
            depth += 1
            try:
                tape.append(method(self, *args, **options))
            finally:
                depth -= 1
            return tape[-1]

        return run

    with ExitStack() as patches:
        for kind, name in RELEASES:
            patches.enter_context(mock.patch.object(kind, name, taped(getattr(kind, name))))
        one = first()
        replays = True
        other = second()
    assert not tape, "the second fit made fewer releases"
    return one, other
