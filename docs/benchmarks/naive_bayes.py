"""Naive Bayes on private histograms and on moments, beside diffprivlib's.

Usage: SKDP_DATA=folder python docs/benchmarks/naive_bayes.py [fits] [table ...]

Tables: adult, credit_default, bank_marketing, marital (Adult's marital status, 7 classes), cut as
in ``additive.py``. Bounds and categories are declared. ``DPHistogramNB`` takes the raw table, the
Gaussian ones its columns of numbers, a gap being the lower bound. diffprivlib needs an older
scikit-learn: where it can be imported, its ``GaussianNB`` is fitted to the same numbers with the
same bounds; run the script in an environment of its own for that:

    pip install diffprivlib==0.6.6 scikit-learn==1.7.2 pandas
    python docs/benchmarks/naive_bayes.py 20

scikit-learn's own ``GaussianNB`` is fitted to the clipped numbers without privacy. Ours have
add/remove with delta = 1e-5, and replace-one with delta = 0 as diffprivlib. Means of `fits` (20)
fits with standard errors: accuracy, and the AUC of two classes.
"""

import sys
import warnings
from importlib.util import find_spec

import numpy as np
from additive import LOADERS, quality
from sklearn.naive_bayes import GaussianNB

from skdp import DPGaussianNB, DPHistogramNB, PrivacyAccountant

TABLES = ("adult", "credit_default", "bank_marketing", "marital")


def numbers(X, bounds):
    return np.column_stack([X[name].fillna(low) for name, (low, _) in bounds.items()])


def show(words, make, train, test, fits):
    found = np.array([quality(make().fit(*train), *test) for _ in range(fits)])
    errors = found.std(axis=0, ddof=1) / np.sqrt(fits)
    cells = [
        f"{m:.4f} ± {e:.4f}" for m, e in zip(found.mean(axis=0), errors, strict=True) if m == m
    ]
    print(f"  {words:<52} {'   '.join(cells)}", flush=True)


def measure(name, fits):
    raw, raw_test, declared = LOADERS[name]()
    bounds, classes = declared["bounds"], {"classes": declared.get("classes")}
    low, high = np.array([*bounds.values()], dtype=float).T
    plain, test = ((numbers(X, bounds), y) for X, y in (raw, raw_test))
    clipped = [(np.clip(X, low, high), y) for X, y in (plain, test)]
    share = np.unique(raw_test[1], return_counts=True)[1].max() / len(raw_test[1])
    print(f"{name}: {len(raw[1])} rows, guessing {share:.4f}", flush=True)
    show("scikit-learn's GaussianNB, no privacy", GaussianNB, *clipped, 2)
    for epsilon in (0.1, 1.0):
        for relation, delta in (("add_remove", 1e-5), ("replace_one", 0.0)):
            accountant = PrivacyAccountant(1e9, 0.9, relation=relation)
            terms = {"epsilon": epsilon, "delta": delta, "accountant": accountant}
            words = f"ε = {epsilon:g}, {relation}, δ = {delta:g}"
            histogram = lambda t=terms: DPHistogramNB(**t | declared)  # noqa: E731
            show(f"DPHistogramNB, {words}", histogram, raw, raw_test, fits)
            gaussian = lambda t=terms: DPGaussianNB(bounds=(low, high), **t | classes)  # noqa: E731
            show(f"DPGaussianNB, {words}", gaussian, plain, test, fits)
        if find_spec("diffprivlib"):
            from diffprivlib import models

            peer = lambda e=epsilon: models.GaussianNB(epsilon=e, bounds=(low, high))  # noqa: E731
            show(f"diffprivlib, ε = {epsilon:g}, replace_one, δ = 0", peer, plain, test, fits)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for name in sys.argv[2:] or TABLES:
        measure(name, fits)
