"""Accuracy and AUC of DPLogisticRegression at its defaults, beside what else there is.

Usage: SKDP_DATA=folder python docs/benchmarks/utility.py [fits] [tables]

Three tables (see ``_tables.py`` for their public encoding; Adult by its official split, the others
by a fixed split of three to one), delta = 1e-5 and 0, both relations; all mechanisms at delta =
1e-5 under add/remove, elsewhere mechanism="auto" and "output". Where
diffprivlib can be imported its LogisticRegression is fitted to the same rows with the same norm
bound; it takes delta = 0 only and protects replacement of a row. Where scikit-learn is not of a
version that both accept, run the script with ``peer`` in an environment of its own:

    python docs/benchmarks/utility.py peer [fits] [tables]
"""

import sys
import warnings

import numpy as np
from _tables import load
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

EPSILONS = (0.1, 0.5, 1.0, 4.0)
TABLES = (("adult", False), ("adult", True), ("bank_marketing", False), ("credit_default", False))
SETTINGS = ((1e-5, "add_remove"), (1e-5, "replace_one"), (0.0, "add_remove"), (0.0, "replace_one"))
MECHANISMS = ("auto", "objective", "gradient", "output")


def measure(model, test):
    X, y = test
    scores = model.decision_function(X)
    return np.mean((scores > 0) == y), roc_auc_score(y, scores)


def show(words, results):
    results = np.array(results)
    mean = results.mean(axis=0)
    error = results.std(axis=0, ddof=1) / np.sqrt(len(results)) if len(results) > 1 else (0.0, 0.0)
    print(
        f"  {words:<46} {mean[0]:.4f} ± {error[0]:.4f}   {mean[1]:.4f} ± {error[1]:.4f}", flush=True
    )
    return mean[0]


def accountant_for(relation):
    from skdp import PrivacyAccountant

    return PrivacyAccountant(1e9, 0.5, relation=relation)


def private_rows(table, fits):
    from skdp import DPLogisticRegression

    X, y, *test = table
    shortfall = 0.0
    for delta, relation in SETTINGS:
        accountant = accountant_for(relation)
        for epsilon in EPSILONS:
            means = {}
            for mechanism in MECHANISMS:
                if mechanism in ("objective", "gradient") and (delta, relation) != SETTINGS[0]:
                    continue
                model = DPLogisticRegression(
                    epsilon, delta=delta, mechanism=mechanism, accountant=accountant
                )
                results = [measure(model.fit(X, y), test) for _ in range(fits)]
                words = f"{relation}, δ = {delta:g}, ε = {epsilon:g}, {mechanism}"
                if mechanism == "auto":
                    words += f" ({model.mechanism_})"
                means[mechanism] = show(words, results)
            if delta and relation == "add_remove":
                shortfall = max(shortfall, max(means.values()) - means["auto"])
    print(f'  "auto" is at most {shortfall:.4f} below the best, at δ = 1e-5 under add_remove')


def peer_rows(table, fits):
    from diffprivlib.models import LogisticRegression as Peer

    X, y, *test = table
    for epsilon in EPSILONS:
        model = Peer(epsilon=epsilon, data_norm=1.0, max_iter=1000)
        results = [measure(model.fit(X, y), test) for _ in range(fits)]
        show(f"diffprivlib, δ = 0, ε = {epsilon:g}", results)


def main():
    arguments = sys.argv[1:]
    peer_only = "peer" in arguments
    fits = int(next((a for a in arguments if a.isdigit()), 10))
    warnings.simplefilter("ignore")
    names = [a for a in arguments if a in {name for name, _ in TABLES}]
    for name, bins in TABLES:
        if names and name not in names:
            continue
        table = load(name, bins)
        X, y, X_test, y_test = table
        words = ", numbers in public bins" if bins else ""
        print(f"\n{name}{words}: {len(y)} rows, {X.shape[1]} columns, {len(y_test)} to test on")
        print(f"  {'':<46} accuracy (± s.e.)   AUC (± s.e.)")
        if peer_only:
            peer_rows(table, fits)
            continue
        majority = max(y_test.mean(), 1 - y_test.mean())
        print(f"  {'majority class':<46} {majority:.4f}            0.5000")
        open_model = LogisticRegression(C=100.0, max_iter=5000).fit(X, y)
        show("without privacy, C = 100", [measure(open_model, (X_test, y_test))])
        private_rows(table, fits)
        try:
            peer_rows(table, fits)
        except ImportError:
            print("  diffprivlib is not installed")


if __name__ == "__main__":
    main()
