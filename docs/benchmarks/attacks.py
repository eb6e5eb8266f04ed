"""The epsilon that attacks on released floats certify, for skdp and for textbook noise.

Run from the repository's root: ``python docs/benchmarks/attacks.py [number of releases]``. The
attacks are those of ``tests/_attacks.py``; every certificate holds with a confidence of 99.9 %.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from skdp.mechanisms import GammaNormMechanism, GaussianMechanism, LaplaceMechanism
from skdp.noise import RandomSource
from tests._attacks import attack_floats

PAIRS = [(0.0, 1.0), (0.1, 1.0)]


def release_one_by_one(mechanism):
    source = RandomSource()
    return lambda value, n: np.array(
        [mechanism.release(value, random_state=source) for _ in range(n)]
    )


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rng = np.random.default_rng()
    laplace = LaplaceMechanism(1.0, 1.0)
    gaussian = GaussianMechanism(1.0, 1e-5, 1.0)
    gamma = GammaNormMechanism(1.0, 1.0)
    rows = [(m.name, m, release_one_by_one(m)) for m in (laplace, gaussian, gamma)]
    rows += [
        ("numpy Generator.laplace", laplace, lambda v, n: v + rng.laplace(0.0, laplace.scale, n)),
        ("numpy Generator.normal", gaussian, lambda v, n: v + rng.normal(0.0, gaussian.scale, n)),
        (
            "sum of four numpy normals",
            gaussian,
            lambda v, n: v + gaussian.scale * rng.normal(size=(4, n)).sum(axis=0) / 2,
        ),
        (
            "grid noise, value not rounded",
            laplace,
            lambda v, n: v + release_one_by_one(laplace)(0.0, n),
        ),
    ]
    print("| release, claimed epsilon 1 | values | precision | support | low bits | learned |")
    print("|---|---|---|---|---|---|")
    for name, mechanism, release in rows:
        for pair in PAIRS:
            outputs = [release(value, n) for value in pair]
            found = attack_floats(
                *outputs, values=pair, scale=mechanism.scale, delta=mechanism.delta
            )
            low = max(found["low bits"], found["grid bits"])
            figures = [found["precision"], found["support"], low, found["learned"]]
            cells = " | ".join(f"{x:.2f}" for x in figures)
            print(f"| {name} | {pair[0]:g}, {pair[1]:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
