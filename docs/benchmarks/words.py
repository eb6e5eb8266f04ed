"""A table of numbers and words, larger than what is measured of it elsewhere: as files, in memory.

Usage: SKDP_DATA=folder python docs/benchmarks/words.py [rows]

Adult's training rows are repeated to about so many and written to a folder of Parquet files.
`DPAdditiveClassifier` with declared bounds and categories is fitted to the folder, and to the frame
of pandas that it becomes in memory, each in a process of its own. Printed are the peak of its
memory in MB, the interpreter and its libraries included, the seconds of the fit and of reading the
frame, and whether the two released the same.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from _tables import SCHEMAS, read_rows

from skdp import ChunkedArray, DPAdditiveClassifier

FILES = 8
BOUNDS, CATEGORIES = SCHEMAS["adult"]
DECLARED = {"bounds": BOUNDS, "categories": {k: v.split() for k, v in CATEGORIES.items()}}


def write(folder, n_rows):
    rows = read_rows("adult_train")
    frame = pd.DataFrame(rows)[[*BOUNDS, *CATEGORIES]]
    frame = frame.astype(dict.fromkeys(BOUNDS, int) | dict.fromkeys(CATEGORIES, "string"))
    copies = max(1, round(n_rows / len(frame)))
    for number, own in enumerate(np.array_split(np.arange(copies), FILES)):
        if len(own):
            part = pd.concat([frame] * len(own), ignore_index=True)
            part.to_parquet(folder / f"{number}.parquet", row_group_size=1 << 17)
    np.save(folder / "y.npy", np.tile([int(row["target"]) for row in rows], copies))


def measure(folder, where):
    paths, y = sorted(Path(folder).glob("*.parquet")), np.load(Path(folder) / "y.npy")
    start = time.perf_counter()
    if where == "frame":
        X = pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True)
    else:
        X = ChunkedArray(paths)
    read = time.perf_counter() - start
    fit, digest = 0.0, ""
    if where != "imports":
        model = DPAdditiveClassifier(**DECLARED, random_state=0).fit(X, y)
        fit = time.perf_counter() - start - read
        shapes = b"".join(shape.values.tobytes() for shape in model.shape_functions_)
        digest = hashlib.sha256(shapes).hexdigest()[:8]
    most = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    print(f"{int(most) / 1024:.0f} | {read:.1f} | {fit:.1f} | {digest}")


def main(n_rows=1_000_000):
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), n_rows)
        size = sum(path.stat().st_size for path in Path(folder).glob("*.parquet"))
        n_rows = len(np.load(Path(folder) / "y.npy"))
        print(
            f"rows {n_rows}, columns {len(BOUNDS) + len(CATEGORIES)}, {size / 1e6:.0f} MB of files"
        )
        print("| | MB | seconds, reading | seconds, fit | released |")
        print("|---|---|---|---|---|")
        for where in ("imports", "files", "frame"):
            terms = [sys.executable, __file__, folder, where]
            print(f"| {where} | {subprocess.check_output(terms, text=True).strip()} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        measure(*sys.argv[1:])
    else:
        main(*map(int, sys.argv[1:]))
