"""What `data_norm="auto"` costs where the norm is known, and saves where nobody knows it.

Usage: SKDP_DATA=folder python docs/benchmarks/norms.py [draws]

Rows and tables are those of ``fronts.py``; a front has .15 of epsilon, a scaler half of it. Means
of `draws` (4) draws of rows and noise with standard errors: AUC or R², and accuracy.
"""

import sys
import warnings

import numpy as np
from fronts import CLASSES, CLASSIFICATION, NUMBERS, load, score
from sklearn.pipeline import make_pipeline

from skdp import DPLogisticRegression, DPRidge, DPStandardScaler, DPTableVectorizer


def ways(kind, terms, epsilon, declared):
    """Yield words, a pipeline, and whether it takes the whole table or its numbers."""
    low, high = np.array(list(declared["bounds"].values()), dtype=float).T
    scaler = DPStandardScaler(epsilon / 2, bounds=(low, high))
    front = DPTableVectorizer(0.15 * epsilon, **declared)
    for norm in (1.0, "auto"):
        own = terms | {"data_norm": norm}
        yield f"numbers as they are, {norm}", make_pipeline(kind(epsilon, **own)), False
        yield f"scaled, {norm}", make_pipeline(scaler, kind(epsilon / 2, **own)), False
        yield f"front, {norm}", make_pipeline(front, kind(0.85 * epsilon, **own)), True


def measure(table, n, epsilon, draws):
    (X, y), held, declared = load(table)
    numbers, n = list(declared["bounds"]), min(n, len(y))
    is_regression = table == "california_housing"
    kind, terms = (DPRidge, NUMBERS) if is_regression else (DPLogisticRegression, CLASSES)
    found = {}
    for draw in range(draws):
        rows = np.random.default_rng(1000 + draw).permutation(len(y))[:n]
        for words, model, whole in ways(kind, terms, epsilon, declared):
            own, test = (X, held[0]) if whole else (X[numbers].to_numpy(), held[0][numbers])
            test = test if whole else test.to_numpy()
            model.fit(own.iloc[rows] if whole else own[rows], y[rows])
            scores = score(model, test, held[1]), model.score(test, held[1])
            found.setdefault(words, []).append(scores)
    print(f"{table}, {n} rows, ε = {epsilon:g}")
    for words, scores in found.items():
        mean, error = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1) / np.sqrt(draws)
        print(f"  {words:<30} {mean[0]:.3f} ± {error[0]:.3f}  ({mean[1]:.3f})", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for table in (*CLASSIFICATION, "california_housing"):
        for n in (1000, 10**6):
            for epsilon in (0.1, 1.0):
                measure(table, n, epsilon, int(sys.argv[1]) if len(sys.argv) > 1 else 4)
