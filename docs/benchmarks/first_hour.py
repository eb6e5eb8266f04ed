"""What a user gets in the first hour, with nothing declared, from the best benchmark.

Usage: SKDP_DATA=folder python docs/benchmarks/first_hour.py [fits] [table ...]

`USER` is all that is written for a table: nine lines, imports included. "natural" takes a linear
model in the place of the additive one, as somebody would who knows scikit-learn. epsilon = 1,
delta = 1e-5, add/remove; bounds and categories are found privately within it, but those of a
regressor's target, which must be declared. Tables are read as they are: of bank_marketing
`duration` is left out, which is known only after the call, and of Adult the sampling weight. Adult
by its official split; of kdd a tenth is tested on, of the others a quarter. AUC or R² on the test
rows, means of `fits` (3) fits with standard errors. The best cells are those of ε = 1 in
``docs/how_to/which_estimator.md``, means of 10 fits.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

USER = """\
import joblib
import pandas as pd
from skdp import PrivacyAccountant, tabular_pipeline

X = pd.read_csv("train.csv", dtype_backend="numpy_nullable")
y = X.pop("target")
accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5, ledger="budget.db")
pipe = tabular_pipeline({estimator}, delta=1e-5, accountant=accountant{more})
joblib.dump(pipe.fit(X, y), "model.joblib")
"""
PRICES = ", target_bounds=(0, 500_001)"
# The name of the file, what is left out, the best cell at epsilon = 1.
TABLES = {
    "adult": ("adult_train", ["fnlwgt"], 0.910),
    "bank_marketing": ("bank_marketing", ["duration"], 0.791),
    "credit_default": ("credit_default", [], 0.767),
    "california_housing": ("california_housing", [], 0.720),
    "kddcup99": ("kddcup99_10pct", [], None),
}


def read(name):
    path = Path(os.environ["SKDP_DATA"]) / f"{name}.csv.gz"
    return pd.read_csv(path, dtype_backend="numpy_nullable")


def parts_of(table):
    """Return the rows to fit and to test on."""
    file, left_out, _ = TABLES[table]
    rows = read(file).drop(columns=left_out, errors="ignore")
    if table == "adult":
        return rows, read("adult_test").drop(columns=left_out, errors="ignore")
    order = np.random.default_rng(0).permutation(len(rows))
    cut = 9 * len(rows) // 10 if table == "kddcup99" else 3 * len(rows) // 4
    return rows.iloc[order[:cut]], rows.iloc[order[cut:]]


def quality(path, test):
    """Return the AUC or R² of a model that was saved, and what guessing has."""
    import joblib
    from sklearn.metrics import r2_score, roc_auc_score

    pipe, X = joblib.load(path), test.copy()
    y = X.pop("target").to_numpy(dtype=float)
    if not hasattr(pipe, "predict_proba"):
        return r2_score(y, pipe.predict(X)), np.nan, 0.0
    accuracy = np.mean(pipe.predict(X).astype(float) == y)
    return roc_auc_score(y, pipe.predict_proba(X)[:, 1]), accuracy, max(y.mean(), 1 - y.mean())


def main(fits, tables):
    print(f"{len(USER.splitlines())} lines with the empty one:\n{USER}")
    for table in tables:
        train, test = parts_of(table)
        best = TABLES[table][2]
        print(f"{table}: {len(train)} rows, best cell {best}", flush=True)
        regression = table == "california_housing"
        ways = {"additive": '"regressor"' if regression else '"classifier"'}
        ways["natural"] = "skdp.DPRidge" if regression else "skdp.DPLogisticRegression"
        for words, estimator in ways.items():
            found, start = [], time.process_time()
            for _ in range(fits):
                with tempfile.TemporaryDirectory() as folder:
                    os.chdir(folder)
                    train.to_csv("train.csv", index=False)
                    code = USER.format(estimator=estimator, more=PRICES if regression else "")
                    exec(code.replace("import joblib\n", "import joblib\nimport skdp\n"), {})
                    found.append(quality("model.joblib", test))
                    os.chdir("/")
            score, accuracy, guess = np.mean(found, axis=0)
            error = np.std([f[0] for f in found], ddof=min(1, fits - 1)) / np.sqrt(fits)
            short = "" if best is None else f"   {score - best:+.4f} from the best"
            seconds = (time.process_time() - start) / fits
            share = f"   accuracy {accuracy:.4f} (guessing {guess:.4f})" * (not regression)
            print(
                f"  {words:<9} {score:.4f} ± {error:.4f}{short}{share}   {seconds:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(int(arguments[0]) if arguments else 3, arguments[1:] or list(TABLES))
