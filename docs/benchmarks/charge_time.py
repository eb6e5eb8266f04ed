"""Compare the processor time of a charge in two copies of the repository.

Usage: python docs/benchmarks/charge_time.py OTHER [THIS] [--runs 15] [--charges 400]

OTHER and THIS are roots of repositories; THIS is the one of this script unless it is given. Each
run is a process of its own that opens a new ledger and charges it. Runs of the two repositories
alternate, and each pair gives one ratio, so that a machine that is busy for a while slows down
both. The median of the ratios is printed, with the quartiles.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

# A process of its own for each run. The first charges are not measured: they fill caches, and
# both repositories have them. The ledger is on a file system in memory where there is one, so
# that waiting for a disk does not count as the time of the system.
RUN = """
import os, shutil, sys, tempfile, time, warnings
warnings.simplefilter("ignore")
import skdp
from skdp import PrivacyAccountant
from skdp.accounting import Gaussian, PureDP
charges, composition = int(sys.argv[1]), sys.argv[2]
where = "/dev/shm" if os.path.isdir("/dev/shm") else None
folder = tempfile.mkdtemp(dir=where)
accountant = PrivacyAccountant(1e6, 1e-5, ledger=folder + "/budget.db", composition=composition)
event = PureDP(0.01) if composition == "basic" else Gaussian(500.0)
for i in range(20):
    accountant.charge(event, label="a count")
begun = time.process_time()
for i in range(charges):
    accountant.charge(event, label="a count")
print((time.process_time() - begun) / charges, skdp.__file__)
shutil.rmtree(folder)
"""


def milliseconds_of_a_charge(root, charges, composition):
    """Return the processor time of one charge, measured in a new process."""
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN, str(charges), composition]
    printed = subprocess.run(
        command, cwd=root, env=environment, check=True, capture_output=True, text=True
    )
    seconds, module = printed.stdout.split(maxsplit=1)
    if root not in Path(module.strip()).parents:
        raise SystemExit(f"{module.strip()} was measured, which is not in {root}")
    return 1e3 * float(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("other", type=Path)
    parser.add_argument("this", type=Path, nargs="?", default=Path(__file__).parents[2])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--charges", type=int, default=400)
    parser.add_argument("--composition", default="basic")
    options = parser.parse_args()
    times = []
    for run in range(options.runs):
        pair = [options.other, options.this]
        order = pair if run % 2 == 0 else pair[::-1]
        measured = {
            root: milliseconds_of_a_charge(root.resolve(), options.charges, options.composition)
            for root in order
        }
        times.append([measured[root] for root in pair])
    other, this = (statistics.median(column) for column in zip(*times, strict=True))
    ratios = [this_time / other_time for other_time, this_time in times]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"processor time of a charge: {other:.2f} ms in {options.other}, {this:.2f} ms here")
    print(f"ratio: {middle:.2f}, quartiles {low:.2f} to {high:.2f}, {options.runs} pairs")


if __name__ == "__main__":
    main()
