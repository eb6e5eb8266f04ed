"""Naive Bayes on private histograms and on moments, beside diffprivlib's.

Usage: SKDP_DATA=folder python docs/benchmarks/naive_bayes.py [fits] [table ...] [less_noise]

Tables: adult, credit_default, bank_marketing, marital (Adult's marital status, 7 classes), cut as
in ``additive.py``. Bounds and categories are declared. ``DPHistogramNB`` takes the raw table, the
Gaussian ones its columns of numbers, a gap being the lower bound. diffprivlib needs an older
scikit-learn: where it can be imported, its ``GaussianNB`` is fitted to the same numbers with the
same bounds; run the script in an environment of its own for that:

    pip install diffprivlib==0.6.6 scikit-learn==1.7.2 pandas
    python docs/benchmarks/naive_bayes.py 20

scikit-learn's own ``GaussianNB`` is fitted to the clipped numbers without privacy. Ours have
add/remove with delta = 1e-5, and replace-one with delta = 0 as diffprivlib. Means of `fits` (20)
fits with standard errors: accuracy, and the AUC of two classes. With "less_noise" only
``DPHistogramNB``, of epsilon from 0.1 to 1e10 with the log loss, also on sklearn's breast cancer
and diabetes (above 140), three quarters fitted, and on 3000 rows of ten
columns, one of which tells.
"""

import sys
import warnings
from importlib.util import find_spec

import numpy as np
from additive import LOADERS, quality
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import log_loss
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


def small_tables():
    """Yield the name, training rows, test rows and bounds of tables of few rows."""
    rng = np.random.default_rng(0)
    for name, load, cut in (("breast", load_breast_cancer, 0), ("diabetes", load_diabetes, 140)):
        X, y = load(return_X_y=True)
        order = rng.permutation(len(y))
        parts = [(X[part], y[part] > cut) for part in np.split(order, [3 * len(y) // 4])]
        yield name, *parts, {"bounds": (X.min(axis=0), X.max(axis=0))}
    X = rng.uniform(size=(13_000, 10))
    y = rng.uniform(size=13_000) < np.where(X[:, 0] > 0.5, 0.75, 0.25)
    yield "one of ten", (X[:3000], y[:3000]), (X[3000:], y[3000:]), {"bounds": (0, 1)}


def less_noise(name, train, test, declared, fits):
    prior = np.tile(np.unique(train[1], return_counts=True)[1] / len(train[1]), (len(test[1]), 1))
    print(f"{name}: log loss of guessing {log_loss(test[1], prior):.3f}", flush=True)
    for relation, delta in (("add_remove", 1e-5), ("replace_one", 0.0)):
        for epsilon in (0.1, 1.0, 10.0, 1e3, 1e10):
            found = []
            for _ in range(fits):
                accountant = PrivacyAccountant(1e15, 0.9, relation=relation)
                terms = {"epsilon": epsilon, "delta": delta, "accountant": accountant}
                model = DPHistogramNB(**terms | declared).fit(*train)
                chances = model.predict_proba(test[0])
                found.append((*quality(model, *test), log_loss(test[1], chances)))
            cells = "   ".join(f"{mean:.3f}" for mean in np.mean(found, axis=0))
            print(f"  {relation}, δ = {delta:g}, ε = {epsilon:<8g} {cells}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    names = [name for name in sys.argv[2:] if name != "less_noise"] or TABLES
    if "less_noise" in sys.argv:
        for table in (*small_tables(), *((name, *LOADERS[name]()) for name in names)):
            less_noise(*table, fits)
        sys.exit()
    for name in names:
        measure(name, fits)
