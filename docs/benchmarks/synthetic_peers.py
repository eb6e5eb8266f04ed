"""Synthetic tables of other libraries beside `DPTableSynthesizer`: same CSV files, same judge.

Usage: SKDP_DATA=folder python docs/benchmarks/synthetic_peers.py OUTPUT PYTHON [tool ...]

PYTHON is the interpreter of an environment with the peers, which do not import beside skdp::

    python3.11 -m venv peers && peers/bin/pip install dpmm==0.1.9

OUTPUT is a folder for the files: the training rows as CSV, the declared schema as JSON, and the
rows that each tool draws. Tools: skdp, dpmm-mst, dpmm-aim, by default these, one after the other,
and smartnoise-mst and smartnoise-aim in an environment with ``smartnoise-synth==1.0.8``, at
epsilon = EPSILON (1) and delta = 1e-5 on TABLE (adult); SEED (0) is the first seed. Each fit is a
process of its own with one thread, stopped after LIMIT (60) minutes; the capital words are
environment variables. Processor seconds are those of fit and drawing, without imports and reading
the file, with all child processes.

Tools of dpmm get the declared domain. Their bins of numbers cost an epsilon of their own, for which
the default, a tenth of the budget, is taken from epsilon. Those of smartnoise-synth get bins of
equal width between the declared bounds, and read the categories off the rows.
"""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

DELTA = 1e-5
BINS_FRACTION = 0.1
# Number of bins of equal width of smartnoise-synth.
N_BINS = 32


def processor_seconds():
    usages = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def export(name, folder):
    """Write the training rows and the declared schema."""
    from synthetic import Table

    table = Table(name)
    table.train.to_csv(folder / f"{name}.csv", index=False)
    schema = {"bounds": table.bounds, "categories": table.categories}
    (folder / f"{name}.json").write_text(json.dumps(schema))


def fit(tool, name, epsilon, seed, folder):
    """Fit one tool in its own environment, draw as many rows, and write them."""
    import pandas as pd

    schema = json.loads((folder / f"{name}.json").read_text())
    types = dict.fromkeys(schema["categories"], str)
    train = pd.read_csv(folder / f"{name}.csv", dtype=types, keep_default_na=False)
    library = tool.partition("-")[0]
    draw, module = {
        "skdp": (draw_skdp, "skdp.synthesis"),
        "dpmm": (draw_dpmm, "dpmm.pipelines"),
        "smartnoise": (draw_smartnoise, "snsynth"),
    }[library]
    # What a tool imports is loaded before the clock starts.
    __import__(module)
    start = processor_seconds()
    rows = draw(tool, train, schema, epsilon, seed)
    seconds = processor_seconds() - start
    rows[list(train.columns)].to_csv(folder / f"{tool}_{name}_{epsilon}_{seed}.csv", index=False)
    print(f"{seconds:.1f} s of processor", flush=True)


def draw_skdp(_, train, schema, epsilon, seed):
    from skdp.synthesis import DPTableSynthesizer

    bounds = {column: tuple(pair) for column, pair in schema["bounds"].items()}
    synthesizer = DPTableSynthesizer(
        epsilon,
        delta=DELTA,
        bounds=bounds,
        categories=schema["categories"],
        target="target",
        random_state=seed,
    )
    return synthesizer.fit(train).sample(len(train), random_state=seed)


def draw_dpmm(tool, train, schema, epsilon, seed):
    from dpmm import pipelines

    pipeline = {"dpmm-mst": pipelines.MSTPipeline, "dpmm-aim": pipelines.AIMPipeline}[tool](
        epsilon=(1.0 - BINS_FRACTION) * epsilon,
        delta=DELTA,
        proc_epsilon=BINS_FRACTION * epsilon,
        n_jobs=1,
    )
    domain = {c: {"lower": low, "upper": high} for c, (low, high) in schema["bounds"].items()}
    domain |= {c: {"categories": labels} for c, labels in schema["categories"].items()}
    pipeline.fit(train, domain=domain, random_state=seed)
    return pipeline.generate(n_records=len(train), random_state=seed)


def draw_smartnoise(tool, train, schema, epsilon, _):
    import pandas as pd
    from snsynth import Synthesizer
    from snsynth.transform import BinTransformer, LabelTransformer, TableTransformer

    transformers = []
    for column in train.columns:
        if column in schema["bounds"]:
            low, high = schema["bounds"][column]
            transformer = BinTransformer(bins=N_BINS, lower=low, upper=high, nullable=False)
        else:
            transformer = LabelTransformer(nullable=False)
        transformers.append(transformer)
    synthesizer = Synthesizer.create(tool.partition("-")[2], epsilon=epsilon, delta=DELTA)
    transformer = TableTransformer(transformers)
    synthesizer.fit(train, transformer=transformer, preprocessor_eps=0.0)
    rows = pd.DataFrame(synthesizer.sample(len(train)), columns=train.columns)
    for column in schema["bounds"]:
        rows[column] = pd.to_numeric(rows[column])
        if train[column].dtype.kind == "i":
            rows[column] = rows[column].round().astype(int)
    return rows


def run(tool, python, name, epsilon, seed, folder, limit):
    """Fit one tool in a process, and judge its rows if it ends in time."""
    label = f"{tool}, {name}, epsilon {epsilon}, seed {seed}"
    command = [python, __file__, "fit", tool, name, str(epsilon), str(seed), str(folder)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    before = processor_seconds()
    start = time.time()
    try:
        done = subprocess.run(
            command,
            env=os.environ | threads,
            timeout=60 * limit,
            check=False,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        used = processor_seconds() - before
        minutes = (time.time() - start) / 60
        print(f"{label}: not ended after {minutes:.0f} min, {used:.0f} s of processor", flush=True)
        return
    if done.returncode:
        print(f"{label}: failed: {done.stderr.strip().splitlines()[-1]}", flush=True)
        return
    print(f"{label}: {done.stdout.strip()}", flush=True)
    file = folder / f"{tool}_{name}_{epsilon}_{seed}.csv"
    judge = Path(__file__).with_name("synthetic.py")
    subprocess.run([sys.executable, judge, "judge", name, file], check=True)


def main(folder, python, tools):
    folder.mkdir(parents=True, exist_ok=True)
    name = os.environ.get("TABLE", "adult")
    epsilon = float(os.environ.get("EPSILON", "1"))
    seed = int(os.environ.get("SEED", "0"))
    limit = float(os.environ.get("LIMIT", "60"))
    export(name, folder)
    for tool in tools:
        interpreter = sys.executable if tool == "skdp" else python
        run(tool, interpreter, name, epsilon, seed, folder, limit)


if __name__ == "__main__":
    if sys.argv[1] == "fit":
        tool, name, epsilon, seed, folder = sys.argv[2:]
        fit(tool, name, float(epsilon), int(seed), Path(folder))
    else:
        main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:] or ["skdp", "dpmm-mst", "dpmm-aim"])
