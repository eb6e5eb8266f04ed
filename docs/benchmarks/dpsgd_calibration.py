"""Processor time to find the noise of Poisson-sampled steps, and how much of it is too much.

Usage: python docs/benchmarks/dpsgd_calibration.py
"""

import itertools
import time

from skdp._optim._default_settings import LossSpec, SGDProblem
from skdp._optim._regression_losses import HuberLoss
from skdp._optim._sgd_plan import plan_sgd
from skdp.accounting import Gaussian, Guarantee, Neighbors, PoissonSampled, calibrate

N_ROWS, DELTA = 100_000, 1e-6
RELATIONS = ("add_remove", "replace_one")
EPSILONS = (0.01, 0.1, 1.0, 4.0, 20.0)
RATES_AND_STEPS = ((1e-4, 100), (1e-4, 100_000), (0.01, 1000), (0.01, 100_000), (0.1, 100))
RATES_AND_STEPS += ((0.5, 20), (0.5, 10_000), (1.0, 100))


def measure(relation, epsilon, rate, n_steps):
    """Return the seconds of a plan and by what part its noise exceeds the least."""
    neighbors = Neighbors(relation=relation)
    guarantee = Guarantee(epsilon=epsilon, delta=DELTA, neighbors=neighbors)
    sizes = {"n_rows": N_ROWS, "n_columns": 20, "norm": 1.0, "constant": 1.0}
    problem = SGDProblem(
        loss_spec=LossSpec(HuberLoss(), 1.0, 1.0, 1.0), guarantee=guarantee, **sizes
    )
    start = time.process_time()
    plan = plan_sgd(problem, 1.0, "poisson", round(rate * N_ROWS), n_steps)
    seconds = time.process_time() - start
    rate = plan.batches.rate
    least = calibrate(
        lambda z: PoissonSampled(rate, Gaussian(z)) * n_steps, epsilon, DELTA, relation=relation
    )
    return seconds, plan.step.event.noise_multiplier / least - 1.0


def main():
    print("| relation | ε | rate | steps | seconds | noise above the least |")
    print("|---|---|---|---|---|---|")
    found = []
    for relation, epsilon, (rate, n_steps) in itertools.product(
        RELATIONS, EPSILONS, RATES_AND_STEPS
    ):
        found.append(measure(relation, epsilon, rate, n_steps))
        seconds, excess = found[-1]
        line = f"| {relation} | {epsilon:g} | {rate:g} | {n_steps} | {seconds:.2f} | {excess:.1e} |"
        print(line, flush=True)
    worst = [max(column) for column in zip(*found, strict=True)]
    print(f"\nat most {worst[0]:.2f} s and {worst[1]:.1e}")


if __name__ == "__main__":
    main()
