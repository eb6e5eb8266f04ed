"""A worker, or the scheduler, of a dask cluster is killed in the middle of a fit.

Usage: python docs/benchmarks/cluster_faults.py

All are processes of this machine, and die by SIGKILL while they compute a chunk in the second pass
after the charge. It prints what the fit raised, how many charges the ledger has, which fitted
attributes there are, and whether the released values are those of a fit in memory with the same
noise.
"""

import os
import signal
import tempfile
import time
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path

import dask.array as da
import numpy as np
from dask.distributed import Client, SubprocessCluster

from skdp import ChunkedArray, DPLogisticRegression, PrivacyAccountant

N_CHUNKS = 5
# The check of the rows before the charge, the rows' factors, and a gradient.
READS = 3 * N_CHUNKS + 2


def main(victim):
    X = np.random.default_rng(0).uniform(size=(4000, 5))
    y = X[:, 0] > 0.5
    with tempfile.TemporaryDirectory() as name:
        reads, killed, number = (Path(name) / each for each in ("reads", "killed", "number"))

        def killing(block):
            with open(reads, "ab") as file:
                file.write(b".")
            if reads.stat().st_size >= READS and not killed.exists():
                killed.touch()
                is_worker = victim == "a worker"
                os.kill(os.getpid() if is_worker else int(number.read_text()), signal.SIGKILL)
                time.sleep(1)
            return block

        # To close what has lost its scheduler fails.
        with suppress(OSError), ExitStack() as stack:
            cluster = SubprocessCluster(n_workers=2, worker_kwargs={"nthreads": 1})
            client = stack.enter_context(Client(stack.enter_context(cluster)))
            number.write_text(str(client.run_on_scheduler(os.getpid)))
            client.wait_for_workers(2)
            lazy = da.from_array(X, chunks=(800, 5)).map_blocks(killing, dtype=float)
            accountant = PrivacyAccountant(10.0, 0.1)
            model, raised = DPLogisticRegression(accountant=accountant, random_state=0), "nothing"
            try:
                model.fit(lazy, y)
            except RuntimeError as error:
                raised = error
        print(f"{victim} was killed: {killed.exists()}\nraised: {raised}")
        released = [key for key in vars(model) if key.endswith("_")]
    print(f"charges: {len(accountant.charges)}\nattributes: {', '.join(released) or 'none'}")
    if released:
        alone = DPLogisticRegression(random_state=0).fit(ChunkedArray(np.split(X, N_CHUNKS)), y)
        print(f"as in memory, to the last bit: {np.array_equal(model.coef_, alone.coef_)}")
    print()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for victim in ("a worker", "the scheduler"):
        main(victim)
