"""Fit time and anonymous memory on tables larger than what should be in memory.

Usage: python docs/benchmarks/memmap.py [rows] [folder]

Writes a float32 table of 100 columns (4 GB for the default of 1e7 rows) in ten ``.npy`` files and
one raw file, fits on growing parts of it, and deletes it. Anonymous memory is what the process
holds beside mapped files: ``RssAnon`` of ``/proc/self/status`` (Linux), read every 10 ms.
"""

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from skdp import ChunkedArray, DPLinearSVC, DPLogisticRegression, DPRidge

WIDTH, PARTS, BLOCK = 100, 10, 50_000


def anonymous_bytes():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


class PeakMemory:
    """The largest anonymous memory while the context is open."""

    def __enter__(self):
        self.peak, self._open = anonymous_bytes(), True
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._open = False
        self._thread.join()

    def _watch(self):
        while self._open:
            self.peak = max(self.peak, anonymous_bytes())
            time.sleep(0.01)


def write_table(folder, n_rows):
    rng, w = np.random.default_rng(0), np.random.default_rng(1).normal(size=WIDTH)
    whole = np.memmap(folder / "table.raw", np.float32, "w+", shape=(n_rows, WIDTH))
    y, step = np.empty(n_rows, dtype=np.int8), n_rows // PARTS
    for start in range(0, n_rows, BLOCK):
        block = rng.standard_normal((min(BLOCK, n_rows - start), WIDTH), dtype=np.float32)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        whole[start : start + len(block)] = block
        y[start : start + len(block)] = block @ w + 0.5 * rng.normal(size=len(block)) > 0
    for part in range(PARTS):
        np.save(folder / f"part{part}.npy", whole[part * step : (part + 1) * step])
    whole.flush()
    return y


def tables(folder, n_rows):
    step = n_rows // PARTS
    raw = np.memmap(folder / "table.raw", np.float32, "r", shape=(n_rows, WIDTH))
    yield n_rows // 100, "memmap", raw[: n_rows // 100]
    yield n_rows // 10, "memmap", raw[: n_rows // 10]
    yield n_rows, "memmap", raw
    yield (
        step * PARTS,
        "chunks",
        ChunkedArray([folder / f"part{part}.npy" for part in range(PARTS)]),
    )


def main():
    n_rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    parent = sys.argv[2] if len(sys.argv) > 2 else None
    estimators = (DPLogisticRegression(C=0.01), DPLinearSVC(C=0.01), DPRidge(target_bounds=(0, 1)))
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        folder = Path(folder)
        y = write_table(folder, n_rows)
        gigabytes = n_rows * WIDTH * 4 / 1e9
        print(
            f"{n_rows} x {WIDTH} float32, {gigabytes:.1f} GB; idle {anonymous_bytes() / 1e6:.0f} MB"
        )
        for n, kind, X in tables(folder, n_rows):
            for estimator in estimators:
                with PeakMemory() as memory:
                    start, start_cpu = time.perf_counter(), time.process_time()
                    estimator.fit(X, y[:n])
                    seconds = time.perf_counter() - start
                    cpu = time.process_time() - start_cpu
                print(
                    f"  {n:>9} rows, {kind:<7} {type(estimator).__name__:<21} {seconds:7.2f} s, "
                    f"{1e9 * cpu / n:6.0f} ns per row (processor), "
                    f"RssAnon at most {memory.peak / 1e6:5.0f} MB"
                )


if __name__ == "__main__":
    main()
