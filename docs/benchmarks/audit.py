"""What attacks find: over-fitted models, private ones, noise, and mechanisms of known epsilon.

``SKDP_DATA=folder python docs/benchmarks/audit.py [section ...]`` prints the tables of
``audit.md``; without a section all of them: models remember noise gaussian one_run time.
"""

import sys
import time

import numpy as np
from _tables import load
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skdp import DPLogisticRegression, DPSGDClassifier
from skdp.audit import audit_epsilon, membership_inference
from skdp.audit._distinguish import distinguish
from skdp.mechanisms import GaussianMechanism

ATTACKS = ("loss", "shadow", "lira", "rmia")
DELTA = 1e-5


def models():
    """One table: what each model leaks, without and with the defense of noise."""
    for name in ("adult", "credit_default"):
        X, y, *_ = load(name, bins=True)
        rows = np.random.default_rng(0).permutation(len(X))[:4000]
        X, y = X[rows], y[rows]
        undefended = {
            "deep forest": RandomForestClassifier(100, random_state=0),
            "logistic regression": LogisticRegression(C=1e4, solver="newton-cholesky"),
        }
        private = {
            f"skdp, epsilon = {e}": DPLogisticRegression(e, delta=DELTA) for e in (8, 1, 0.1)
        }
        print(f"{name}: 2000 rows fitted of {X.shape[1]} columns, 2000 others; LiRA, 64 shadows")
        print(
            f"{'model':<22}{'train':>7}{'test':>7}   {'attack without':<22}{'attack with':<22}"
            f"{'AUC':<22}{'found at .1 %':<22}found at 1 %"
        )
        plain = None
        for label, model in (undefended | private).items():
            found = membership_inference(model, X, y, attack="lira", random_state=0)
            without, defended = interval(found.accuracy), "-"
            if label in private:
                without, defended = plain, without
            plain = without
            rates = "".join(f"{interval(rate):<22}" for rate in found.tpr_at.values())
            print(
                f"{label:<22}{found.train_score:7.3f}{found.test_score:7.3f}   "
                f"{without:<22}{defended:<22}{interval(found.auc):<22}{rates}".rstrip()
            )
        print()


def interval(found):
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def remember():
    """Models that remember random labels."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 10)), rng.integers(0, 20, 2000)
    print("random labels of 20 classes, 1000 rows fitted, 1000 others; 64 shadows")
    for name, model in (
        ("1-NN", KNeighborsClassifier(1)),
        ("full-depth tree", DecisionTreeClassifier(random_state=0)),
    ):
        for attack in ATTACKS:
            found = membership_inference(model, X, y, attack=attack, random_state=0)
            print(f"  {name:<16}{attack:<8}AUC {interval(found.auc)}", flush=True)
    print()


class Noise(ClassifierMixin, BaseEstimator):
    """A linear model that looks at no row."""

    source = np.random.default_rng(0)

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.coef_ = self.source.normal(size=X.shape[1])
        return self

    def decision_function(self, X):
        return X @ self.coef_

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def noise():
    """How often the 95 % intervals hold guessing, where guessing is all there is."""
    X = np.random.default_rng(1).normal(size=(400, 5))
    y = (X[:, 0] > 0).astype(int)
    print("a model of noise alone, 400 rows, 16 shadows: of 100 repetitions the interval holds .5")
    for access in ("probabilities", "labels", "parameters"):
        for attack in ATTACKS:
            areas, rates = 0, 0
            for i in range(100):
                options = {"attack": attack, "access": access, "n_shadow": 16, "random_state": i}
                found = membership_inference(Noise(), X, y, **options)
                areas += found.auc.low <= 0.5 <= found.auc.high
                rates += found.accuracy.low <= 0.5 <= found.accuracy.high
            print(f"  {access:<14}{attack:<8}AUC {areas:3d}   accuracy {rates:3d}", flush=True)
    print()


def gaussian():
    """The Gaussian mechanism, whose epsilon is known."""
    n = 100_000
    print(f"Gaussian mechanism, delta = {DELTA:g}, {n} outputs a world, half of them to judge")
    for epsilon in (1.0, 4.0):
        mechanism = GaussianMechanism(epsilon, DELTA, sensitivity=1.0)
        bounds = {False: [], True: []}
        for _ in range(200):
            inside, outside = (
                mechanism.release(np.full(n, float(value)))[:, None] for value in (1, 0)
            )
            for assumed in bounds:
                options = {"delta": DELTA, "confidence": 0.95, "gaussian": assumed}
                bounds[assumed].append(
                    distinguish(inside, outside, names=["sum"], **options).epsilon
                )
        for assumed, name in ((False, "Clopper-Pearson"), (True, "mu-GDP")):
            found = np.array(bounds[assumed])
            print(
                f"  epsilon = {epsilon:g}, {name:<16} median {np.median(found):.3f} "
                f"({np.median(found) / epsilon:.2f} of it), worst {found.min():.3f}, "
                f"above it in {np.sum(found > epsilon)} of {len(found)}",
                flush=True,
            )
    print()


def one_run():
    """One fit of DPSGDClassifier with canaries in columns of their own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X[:, 0] > 0).astype(int)
    plain = {"average": False, "momentum": 0.0, "penalty": None, "fit_intercept": False}
    cases = [
        ("full batch, defaults", {"sampling": "full"}, 1000),
        ("full batch, plain steps", {"sampling": "full"} | plain, 1000),
    ]
    for q in (0.5, 0.2, 0.05, 0.01):
        batches = {"sampling": "poisson", "batch_size": int(q * 4500), "max_iter": 20}
        cases.append((f"q = {q:g}, plain steps", batches | plain, 1000))
    for m in (300, 100, 30):
        cases.append((f"full batch, plain steps, {m} columns", {"sampling": "full"} | plain, m))
    print("DPSGDClassifier(epsilon=8, delta=1e-5), one fit; medians, least and most of 10 such")
    for name, options, m in cases:
        model = DPSGDClassifier(8.0, delta=DELTA, **options)
        started = time.perf_counter()
        text = ""
        for assumed in (False, True):
            found = [
                audit_epsilon(
                    model, X, y, method="one_run", n_canaries=m, gaussian=assumed, random_state=i
                ).lower_bound
                for i in range(10)
            ]
            text += f"   {np.median(found):5.2f} [{min(found):.2f}, {max(found):.2f}]"
        seconds = (time.perf_counter() - started) / 20
        print(f"  {name:<38}{text}   {seconds:.1f} s a fit", flush=True)
    print("  left: for any mechanism; right: assuming a Gaussian trade-off curve\n")


def time_lira():
    """How long 64 shadow fits take."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 100))
    y = (X[:, 0] + rng.normal(size=20_000) > 0).astype(int)
    started = time.perf_counter()
    found = membership_inference(
        LogisticRegression(), X, y, attack="lira", n_jobs=2, verbose=5, random_state=0
    )
    seconds = time.perf_counter() - started
    print(f"LiRA, 64 shadows of a logistic regression on 20,000 x 100: {seconds:.1f} s")
    print(f"  AUC {interval(found.auc)}\n")


SECTIONS = {
    "models": models,
    "remember": remember,
    "noise": noise,
    "gaussian": gaussian,
    "one_run": one_run,
    "time": time_lira,
}

if __name__ == "__main__":
    for section in sys.argv[1:] or SECTIONS:
        SECTIONS[section]()
