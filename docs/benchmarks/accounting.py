"""Privacy accounting beside dp-accounting (and prv_accountant and opacus where importable).

Run ``python docs/benchmarks/accounting.py [repeats]`` with one thread
(``OPENBLAS_NUM_THREADS=1``). Every figure is the median of the repeats after one warm-up run,
all libraries in the same process run. dp-accounting has a grid step of 1e-4.
"""

import importlib
import statistics
import sys
import time

import dp_accounting
from dp_accounting.rdp import RdpAccountant

from skdp.accounting import (
    Gaussian,
    Laplace,
    PoissonSampled,
    calibrate,
    get_epsilon,
    to_dp_accounting,
)
from skdp.accounting._events import leaves
from skdp.accounting._laws import privacy_of
from skdp.accounting._pld import pld_epsilon

STEP = 1e-4
SETTINGS = {
    "Poisson q=.01 sigma=1 T=1000": (PoissonSampled(0.01, Gaussian(1.0)) * 1000, 1e-5),
    "Poisson q=.004 sigma=.8 T=15000": (PoissonSampled(0.004, Gaussian(0.8)) * 15000, 1e-5),
    "Poisson q=.001 sigma=.6 T=1e5": (PoissonSampled(0.001, Gaussian(0.6)) * 100_000, 1e-5),
    "Laplace .1 x 100": (Laplace(0.1) * 100, 1e-6),
    "mix": (Laplace(0.2) + Gaussian(5.0) * 10 + PoissonSampled(0.02, Gaussian(1.2)) * 500, 1e-5),
}


def timed(function, repeats):
    """(median seconds, last value) after one warm-up run."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        value = function()
        times.append(time.perf_counter() - start)
    return statistics.median(times), value


def their_pld(event, delta):
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=STEP)
    accountant.compose(to_dp_accounting(event))
    return accountant.get_epsilon(delta)


def their_rdp(event, delta):
    accountant = RdpAccountant()
    accountant.compose(to_dp_accounting(event))
    return accountant.get_epsilon(delta)


def our_rdp(event, delta):
    privacy_of.cache_clear()
    return get_epsilon(event, delta, method="rdp")


def prv_epsilon(event, delta):
    prv = importlib.import_module("prv_accountant")
    mechanisms, counts = [], []
    for part, count in leaves(event).items():
        if isinstance(part, PoissonSampled):
            mechanism = prv.PoissonSubsampledGaussianMechanism(
                sampling_probability=part.sampling_rate,
                noise_multiplier=part.event.noise_multiplier,
            )
        elif isinstance(part, Laplace):
            mechanism = prv.LaplaceMechanism(mu=part.epsilon)
        else:
            mechanism = prv.GaussianMechanism(noise_multiplier=part.noise_multiplier)
        mechanisms.append(mechanism)
        counts.append(count)
    accountant = prv.PRVAccountant(
        prvs=mechanisms, max_self_compositions=counts, eps_error=0.01, delta_error=delta / 1000
    )
    return accountant.compute_epsilon(delta, counts)[2]


def opacus_rdp(event, delta):
    analysis = importlib.import_module("opacus.accountants.analysis.rdp")
    orders = [1 + x / 10.0 for x in range(1, 100)] + list(range(12, 64))
    total = 0.0
    for part, count in leaves(event).items():
        if not isinstance(part, PoissonSampled):
            raise ImportError("only sampled Gaussians")
        total = total + analysis.compute_rdp(
            q=part.sampling_rate,
            noise_multiplier=part.event.noise_multiplier,
            steps=count,
            orders=orders,
        )
    return analysis.get_privacy_spent(orders=orders, rdp=total, delta=delta)[0]


def show(name, ours, theirs):
    ratio = theirs[0] / ours[0]
    print(
        f"| {name} | {ours[1]:.6f} ({ours[0] * 1e3:.1f}) | {theirs[1]:.6f} "
        f"({theirs[0] * 1e3:.1f}) | {ratio:.1f} |",
        flush=True,
    )


def beside(name, function, event, delta, repeats):
    try:
        seconds, value = timed(lambda: function(event, delta), max(1, repeats // 3))
    except (ImportError, KeyError, ValueError, RuntimeError) as error:
        print(f"| {name} | not run: {type(error).__name__} |", flush=True)
        return
    print(f"| {name} | {value:.6f} ({seconds * 1e3:.1f}) |", flush=True)


def calibration(repeats):
    def make(sigma):
        return PoissonSampled(0.01, Gaussian(sigma)) * 1000

    def theirs():
        return dp_accounting.calibrate_dp_mechanism(
            lambda: dp_accounting.pld.PLDAccountant(value_discretization_interval=STEP),
            lambda sigma: to_dp_accounting(make(sigma)),
            1.0,
            1e-5,
            dp_accounting.ExplicitBracketInterval(0.5, 10.0),
            tol=1e-5,
        )

    ours = timed(lambda: calibrate(make, 1.0, 1e-5), repeats)
    show("calibrate sigma, epsilon=1, q=.01 T=1000", ours, timed(theirs, max(1, repeats // 3)))


def main(repeats=5):
    print("epsilon (median ms)\n\n| setting | skdp | dp-accounting | ratio |\n|---|---|---|---|")
    for name, (event, delta) in SETTINGS.items():
        # Not get_epsilon, which keeps its results.
        ours = timed(
            lambda: pld_epsilon(leaves(event), delta, "add_remove", 1e-4),  # noqa: B023
            repeats,
        )
        theirs = timed(lambda: their_pld(event, delta), repeats)  # noqa: B023
        show("PLD: " + name, ours, theirs)
        ours = timed(lambda: our_rdp(event, delta), repeats)  # noqa: B023
        show("RDP: " + name, ours, timed(lambda: their_rdp(event, delta), repeats))  # noqa: B023
    calibration(repeats)
    print("\n| other libraries | epsilon (ms) |\n|---|---|")
    for name, (event, delta) in SETTINGS.items():
        beside("prv_accountant, error .01: " + name, prv_epsilon, event, delta, repeats)
        beside("opacus RDP: " + name, opacus_rdp, event, delta, repeats)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
