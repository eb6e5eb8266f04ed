"""Draws a second of the exact samplers, against published libraries.

Run with ``OPENBLAS_NUM_THREADS=1 python docs/benchmarks/noise.py``. Peers (opendp, diffprivlib) are
measured in the same run when they can be imported. Each figure is the median of several runs, in
processor time of one core, which other work on the machine disturbs less than the clock's.
"""

import statistics
import sys
import time

import numpy as np

from skdp.mechanisms import GammaNormMechanism, GaussianMechanism, LaplaceMechanism
from skdp.noise import RandomSource, discrete_gaussian, discrete_laplace

RUNS = 7
SCALE = 2.0**20


def rate(draw, n):
    """Median number of draws a second, after one run to warm up."""
    draw(n)
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        draw(n)
        times.append(time.process_time() - start)
    return n / statistics.median(times)


def ours():
    stream = RandomSource().stream()
    rows = []
    for scale in (3.0, SCALE, 2.0**36):
        rows.append(
            (
                f"skdp discrete Laplace, scale {scale:g}",
                lambda n, s=scale: discrete_laplace(s, n, stream),
            )
        )
        rows.append(
            (
                f"skdp discrete Gaussian, sigma {scale:g}",
                lambda n, s=scale: discrete_gaussian(s, n, stream),
            )
        )
    for mechanism in (
        LaplaceMechanism(1.0, 1.0),
        GaussianMechanism(1.0, 1e-5, 1.0),
        GammaNormMechanism(1.0, 1.0),
    ):
        rows.append(
            (
                f"skdp {mechanism.name}, release of a vector",
                lambda n, m=mechanism: m.release(np.zeros(n)),
            )
        )
    return [(name, rate(draw, 10**4 if "Gamma" in name else 10**6)) for name, draw in rows]


def integer_path():
    stream = RandomSource().stream()
    return [
        (
            "skdp discrete Laplace, all in integers",
            rate(lambda n: discrete_laplace(SCALE, n, stream, exact=True), 2000),
        ),
        (
            "skdp discrete Gaussian, all in integers",
            rate(lambda n: discrete_gaussian(SCALE, n, stream, exact=True), 2000),
        ),
    ]


def plain_numpy():
    rng = np.random.default_rng()
    return [
        ("numpy laplace (floats: no defense)", rate(lambda n: rng.laplace(0, SCALE, n), 10**6)),
        ("numpy normal (floats: no defense)", rate(lambda n: rng.normal(0, SCALE, n), 10**6)),
    ]


def opendp():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), SCALE)
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), SCALE)
    values = [0] * 10**5
    return [
        ("opendp discrete Laplace on a vector", rate(lambda n: laplace(values), 10**5)),
        ("opendp discrete Gaussian on a vector", rate(lambda n: gaussian(values), 10**5)),
    ]


def diffprivlib():
    from diffprivlib.mechanisms import GaussianDiscrete, Geometric

    gaussian = GaussianDiscrete(epsilon=1.0, delta=1e-5, sensitivity=1)
    geometric = Geometric(epsilon=1.0, sensitivity=1)

    def repeat(mechanism):
        return lambda n: [mechanism.randomize(0) for _ in range(n)]

    return [
        ("diffprivlib geometric", rate(repeat(geometric), 3000)),
        ("diffprivlib discrete Gaussian", rate(repeat(gaussian), 3000)),
    ]


def main():
    rows = ours() + integer_path() + plain_numpy()
    for peer in (opendp, diffprivlib):
        try:
            rows += peer()
        except ImportError as error:
            print(f"{peer.__name__} is left out: {error}", file=sys.stderr)
    laplace = next(r for name, r in rows if f"Laplace, scale {SCALE:g}" in name)
    gaussian = next(r for name, r in rows if f"Gaussian, sigma {SCALE:g}" in name)
    print("| sampler | million draws a second | ours at 2**20 is faster by |")
    print("|---|---|---|")
    for name, value in rows:
        base = gaussian if "aussian" in name or "normal" in name else laplace
        print(f"| {name} | {value / 1e6:.3g} | {base / value:.3g} |")


if __name__ == "__main__":
    main()
