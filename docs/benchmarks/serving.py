"""Time to answer one row and a thousand, as a ratio to HistGradientBoostingClassifier's.

Usage: OMP_NUM_THREADS=1 python docs/benchmarks/serving.py [n_columns] [repetitions]

Tables are an array of numbers, pandas frames of numbers (of one type, and of several), of words,
and of both. The peer answers the array of numbers of the same size: it is measured between the
others, in the same run. Each time is processor time, the least of the repetitions. With 5,000
columns most of the run is spent in fits.
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import skdp

N_TRAIN = 300
HEIGHTS = (1, 1000)
WORDS = np.array(["red", "green", "blue", "white", "black"])
EPSILON = {"epsilon": 1e6, "random_state": 0}


def tables(n_rows, n_columns):
    """Return each kind of table, by name."""
    rng = np.random.default_rng(n_rows)
    names = [f"x{j}" for j in range(n_columns)]
    numbers = rng.uniform(size=(n_rows, n_columns))
    words = pd.DataFrame(WORDS[rng.integers(len(WORDS), size=numbers.shape)], columns=names)
    frame = pd.DataFrame(numbers, columns=names)
    types = {name: (np.float64, np.float32, np.int64)[j % 3] for j, name in enumerate(names)}
    half = n_columns // 2
    return {
        "array": numbers,
        "frame": frame,
        "frame of 3 types": frame.astype(types),
        "words": words,
        "half words": pd.concat([frame.iloc[:, :half], words.iloc[:, half:]], axis=1),
    }


def models(table, name, n_columns):
    """Return the estimators that answer such a table, by name."""
    columns = list(range(n_columns)) if name == "array" else list(table.columns)
    of_words = {"words": columns, "half words": columns[n_columns // 2 :]}.get(name, [])
    of_numbers = columns[: n_columns - len(of_words)]
    declared = {
        "bounds": dict.fromkeys(of_numbers, (0.0, 1.0)),
        "categories": dict.fromkeys(of_words, WORDS.tolist()),
    }
    found = {
        "DPAdditiveClassifier": skdp.DPAdditiveClassifier(**declared),
        "DPRandomForestClassifier": skdp.DPRandomForestClassifier(
            n_estimators=10, max_depth=4, **declared
        ),
        "DPHistogramNB": skdp.DPHistogramNB(**declared),
        "DPTableVectorizer": skdp.DPTableVectorizer(**declared),
        "DPSimpleImputer": skdp.DPSimpleImputer(strategy="constant", fill_value="red"),
    }
    if not of_words:
        found["DPSimpleImputer"] = skdp.DPSimpleImputer(bounds=(0, 1))
        found["DPStandardScaler"] = skdp.DPStandardScaler(bounds=(0, 1))
        found["DPLogisticRegression"] = skdp.DPLogisticRegression(data_norm=1.0)
    if not of_numbers:
        words = {"categories": WORDS.tolist()}
        found["DPOneHotEncoder"] = skdp.DPOneHotEncoder(**words)
        found["DPTargetEncoder"] = skdp.DPTargetEncoder(**words)
    for model in found.values():
        model.set_params(**EPSILON)
    return found


def least_seconds(answer, rows, repetitions):
    """Return the least time that an answer takes."""
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        answer(rows)
        times.append(time.process_time() - start)
    return min(times)


def answer_of(model):
    """Return the method that answers rows."""
    return model.predict_proba if hasattr(model, "predict_proba") else model.transform


def main():
    n_columns = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    warnings.simplefilter("ignore")
    y = np.arange(N_TRAIN) % 2
    train = tables(N_TRAIN, n_columns)
    served = {height: tables(height, n_columns) for height in HEIGHTS}
    peer = HistGradientBoostingClassifier(max_iter=100).fit(train["array"], y)
    print(f"{n_columns} columns; seconds, and the ratio to HistGradientBoostingClassifier's")
    print(f"{'table':<18}{'estimator':<26}" + "".join(f"{h:>5} row(s)" + " " * 9 for h in HEIGHTS))
    for name, table in train.items():
        for model_name, model in models(table, name, n_columns).items():
            answer = answer_of(model.fit(table, y))
            shown = ""
            for height in HEIGHTS:
                own = least_seconds(answer, served[height][name], repetitions)
                theirs = least_seconds(peer.predict_proba, served[height]["array"], repetitions)
                shown += f"{own:10.4f} {own / theirs:6.1f} x  "
            print(f"{name:<18}{model_name:<26}{shown}", flush=True)


if __name__ == "__main__":
    main()
