"""Processor time of imports, beside scikit-learn's.

Usage: python docs/benchmarks/import_time.py [processes]

Each statement runs in fresh processes, one after the other in turn. Medians are printed, in
seconds and relative to the packages of scikit-learn that a user of skdp needs.
"""

import statistics
import subprocess
import sys

SKLEARN = (
    "import sklearn.linear_model, sklearn.preprocessing, sklearn.compose, sklearn.pipeline, "
    "sklearn.model_selection"
)
STATEMENTS = (
    SKLEARN,
    "import skdp",
    "from skdp import PrivacyAccountant",
    "from skdp import DPStandardScaler",
    "from skdp import DPLogisticRegression",
    "from skdp import DPAdditiveClassifier",
    "from skdp import DPGridSearchCV",
    "from skdp import *",
)
MEASURED = "import time; start = time.process_time(); {}; print(time.process_time() - start)"


def seconds_of(statement):
    code = MEASURED.format(statement)
    if statement.endswith("*"):
        code = code.replace("; ", "\n")
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main():
    n_processes = int(sys.argv[1]) if sys.argv[1:] else 15
    seconds = {statement: [] for statement in STATEMENTS}
    for _ in range(n_processes):
        for statement, values in seconds.items():
            values.append(seconds_of(statement))
    medians = {statement: statistics.median(values) for statement, values in seconds.items()}
    print("| | seconds | of scikit-learn's |\n|---|---|---|")
    for statement, median in medians.items():
        print(f"| `{statement}` | {median:.2f} | {median / medians[SKLEARN]:.2f} |")


if __name__ == "__main__":
    main()
