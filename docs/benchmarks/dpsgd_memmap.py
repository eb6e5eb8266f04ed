"""Time and anonymous memory of noisy stochastic gradients on growing tables.

Usage: python docs/benchmarks/dpsgd_memmap.py [rows] [folder]

Writes a float32 table of 100 columns (4 GB for the default of 1e7 rows) as one raw file and as ten
``.npy`` files, trains an epoch of batches of 8192 rows on growing parts of it, and deletes it.
Memory is read as in ``memmap.py``.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from memmap import PeakMemory, anonymous_bytes, tables, write_table

from skdp._optim._batches import PoissonBatches
from skdp._optim._classification_losses import BinaryLogisticLoss
from skdp._optim._clipped_sums import ClippedSums
from skdp._optim._gradient_noise import GaussianNoise
from skdp.noise import RandomSource

BATCH = 8192


class Watch:
    """Seconds by the clock and of the processor; other work disturbs these less."""

    def __init__(self):
        self._start = self._now()

    def lap(self):
        """Return both since the last call."""
        start, self._start = self._start, self._now()
        return self._start - start

    def _now(self):
        return np.array([time.perf_counter(), time.process_time()])


def epoch(sums, n_rows, n_columns, n_steps):
    """Return the seconds of each step, by the clock and of the processor."""
    source, weights = RandomSource(), np.zeros(n_columns + 1)
    noise = GaussianNoise(1.0, weights.size, 1.0)
    batches = PoissonBatches(n_rows, min(1.0, BATCH / n_rows)).draw(n_steps, source.stream())
    watch, seconds = Watch(), []
    for rows, drawn in zip(batches, noise.draw(n_steps, source.stream()), strict=True):
        weights -= noise.add(sums.sums(weights, rows), drawn) * (0.5 / BATCH)
        seconds.append(watch.lap())
    return np.array(seconds)


def main():
    n_rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    parent = sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        y = write_table(Path(folder), n_rows).astype(np.float64)
        print(f"idle {anonymous_bytes() / 1e6:.0f} MB, {8 * n_rows / 1e6:.0f} MB of it targets")
        print("clock / processor:")
        for n, kind, X in tables(Path(folder), n_rows):
            with PeakMemory() as memory:
                watch = Watch()
                sums = ClippedSums(X, y[:n], BinaryLogisticLoss(), constant=1.0, clip=1.0)
                norms = watch.lap()
                steps = epoch(sums, n, X.shape[1], max(1, n // BATCH))
            whole, median, longest = (f(steps, axis=0) for f in (np.sum, np.median, np.max))
            print(
                f"  {n:>9} rows, {kind:<7} norms {norms[0]:6.2f} / {norms[1]:6.2f} s, "
                f"epoch {whole[0]:6.2f} / {whole[1]:6.2f} s, "
                f"median step {1e3 * median[0]:.2f} / {1e3 * median[1]:.2f} ms, "
                f"longest {1e3 * longest[0]:.0f} / {1e3 * longest[1]:.0f} ms, "
                f"RssAnon at most {memory.peak / 1e6:.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
