"""Does a hidden layer pay for its noise? A prototype beside the linear model and a tree.

Usage: SKDP_DATA=folder python docs/benchmarks/hidden_layer.py [fits] [tables]

Tables: adult, bank_marketing, credit_default (encoded in ``_tables.py``), xor (30,000 synthetic
rows of ten numbers, whose label is the sign of a product of two, wrong in a tenth of the rows).

The prototype is a network with one hidden layer, trained by Poisson-sampled batches with the
accounting of `DPSGDClassifier`: rows' gradients of both layers are clipped together by their
ghost norms, products of the norms of activations and errors, and noise is Gaussian (NumPy's:
this is no implementation to be used). It is favored: on each table and at each epsilon its
settings are those of a grid that are best *on the test rows*, then averaged over `fits` (3) fits.
`DPSGDClassifier` is at its defaults. Both are fitted on the columns as they are and on public
bins of the numbers.
Boosted trees without privacy say what there is to be won. delta = 1e-5, add/remove.
"""

import itertools
import sys

import numpy as np
from _tables import load
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from skdp import DPSGDClassifier
from skdp.accounting import Gaussian, PoissonSampled, calibrate

TABLES = ("adult", "bank_marketing", "credit_default", "xor")
EPSILONS = (1.0, 4.0, 8.0)
DELTA = 1e-5
BATCH, CLIP, SCALE = 2048, 1.0, 4.0
GRID = tuple(itertools.product((32,), (20, 60), (0.01, 0.03), ("relu", "tanh")))


class HiddenLayer:
    """One hidden layer under the logistic loss, by noisy clipped gradients and Adam.

    Parameters
    ----------
    epsilon : float
    n_hidden, n_epochs : int
    rate : float
        Adam's learning rate, falling to 0 along a line.
    activation : {"relu", "tanh"}
    """

    def __init__(self, epsilon, n_hidden, n_epochs, rate, activation):
        self.epsilon, self.n_hidden, self.n_epochs = epsilon, n_hidden, n_epochs
        self.rate, self.activation = rate, activation

    def fit(self, X, y, rng):
        X = self._with_constant(X)
        (n, d), h = X.shape, self.n_hidden
        q = BATCH / n
        n_steps = -(-self.n_epochs * n // BATCH)
        z = multiplier(self.epsilon, q, n_steps)
        layers = [rng.normal(size=(d, h)) / np.sqrt(d), rng.normal(size=h + 1) / np.sqrt(h)]
        self.layers = [one.astype(np.float32) for one in layers]
        moments = [(np.zeros_like(one), np.zeros_like(one)) for one in self.layers]
        average, taken = [0.0 * one for one in self.layers], 0
        for t in range(1, n_steps + 1):
            rows = np.flatnonzero(rng.uniform(size=n) < q)
            gradients = self._clipped_sums(X[rows], y[rows])
            rate = self.rate * (n_steps + 1 - t) / n_steps
            for layer, gradient, (mean, square) in zip(
                self.layers, gradients, moments, strict=True
            ):
                noise = rng.standard_normal(layer.shape, dtype=np.float32)
                gradient = (gradient + z * CLIP * noise) / BATCH
                mean += 0.1 * (gradient - mean)
                square += 0.001 * (gradient**2 - square)
                root = np.sqrt(square / (1 - 0.999**t)) + 1e-8
                layer -= rate * mean / (1 - 0.9**t) / root
            if 2 * t > n_steps:
                taken += 1
                for one, layer in zip(average, self.layers, strict=True):
                    one += (layer - one) / taken
        self.layers = average
        return self

    def _with_constant(self, X):
        return np.column_stack([SCALE * X, np.ones(len(X))]).astype(np.float32)

    def _forward(self, X):
        before = X @ self.layers[0]
        hidden = np.maximum(before, 0) if self.activation == "relu" else np.tanh(before)
        slope = before > 0 if self.activation == "relu" else 1 - hidden**2
        hidden = np.column_stack([hidden, np.ones(len(X), np.float32)])
        return hidden, slope, hidden @ self.layers[1]

    def _clipped_sums(self, X, y):
        hidden, slope, scores = self._forward(X)
        last = expit(scores) - y
        first = last[:, None] * self.layers[1][:-1] * slope
        squares = np.sum(first**2, axis=1) * np.sum(X**2, axis=1)
        squares += last**2 * np.sum(hidden**2, axis=1)
        factors = np.minimum(1, CLIP / np.maximum(np.sqrt(squares), 1e-12)).astype(np.float32)
        return X.T @ (first * factors[:, None]), hidden.T @ (last * factors)

    def decision_function(self, X):
        return self._forward(self._with_constant(X))[2]


MULTIPLIERS = {}


def multiplier(epsilon, q, n_steps):
    key = epsilon, q, n_steps
    if key not in MULTIPLIERS:
        MULTIPLIERS[key] = calibrate(
            lambda z: PoissonSampled(q, Gaussian(z)) * n_steps, epsilon, DELTA, tolerance=1e-3
        )
    return MULTIPLIERS[key]


def load_xor(bins):
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, size=(40_000, 10))
    y = (values[:, 0] * values[:, 1] > 0) ^ (rng.uniform(size=len(values)) < 0.1)
    if bins:
        codes = np.floor((values + 1) * 10).astype(int)
        values = (codes[:, :, None] == np.arange(20)).reshape(len(values), -1).astype(float)
    X = values / np.linalg.norm(values, axis=1, keepdims=True)
    return X[:30_000], y[:30_000].astype(int), X[30_000:], y[30_000:].astype(int)


def load_table(name, bins=False):
    return load_xor(bins) if name == "xor" else load(name, bins=bins)


def measure(model, X, y):
    scores = model.decision_function(X)
    return np.mean((scores > 0) == y), roc_auc_score(y, scores)


def show(words, results):
    results = np.array(results)
    accuracy, auc = results.mean(axis=0)
    error = results[:, 1].std(ddof=1) / np.sqrt(len(results)) if len(results) > 1 else 0.0
    print(f"  {words:<58} {accuracy:.4f}   {auc:.4f} ± {error:.4f}", flush=True)


def hidden_row(table, epsilon, fits, words):
    X, y, *test = table

    def auc(settings):
        model = HiddenLayer(epsilon, *settings).fit(X, y, np.random.default_rng(0))
        return measure(model, *test)[1]

    best = max(GRID, key=auc)
    n_hidden, n_epochs, rate, activation = best
    fitted = (
        HiddenLayer(epsilon, *best).fit(X, y, np.random.default_rng(1 + i)) for i in range(fits)
    )
    words = f"ε = {epsilon:g}, {words}, {n_hidden} {activation}, {n_epochs} epochs, rate {rate:g}"
    show(words, [measure(model, *test) for model in fitted])


def linear_row(table, epsilon, fits, words):
    X, y, *test = table
    models = (DPSGDClassifier(epsilon, delta=DELTA).fit(X, y) for _ in range(fits))
    show(f"ε = {epsilon:g}, {words}", [measure(model, *test) for model in models])


def main():
    arguments = sys.argv[1:]
    fits = int(next((a for a in arguments if a.isdigit()), 3))
    for name in [a for a in arguments if a in TABLES] or TABLES:
        table, binned = load_table(name), load_table(name, bins=True)
        X, y, *test = table
        print(f"\n{name}: {len(y)} rows, {X.shape[1]} columns, {len(test[1])} to test on")
        print(f"  {'':<58} accuracy AUC (± s.e.)")
        show("trees, no privacy", [measure(HistGradientBoostingClassifier().fit(X, y), *test)])
        show("linear, no privacy", [measure(LogisticRegression(C=100).fit(X, y), *test)])
        for epsilon in EPSILONS:
            linear_row(table, epsilon, fits, "linear")
            hidden_row(table, epsilon, fits, "hidden layer")
            linear_row(binned, epsilon, fits, "linear, bins")
            hidden_row(binned, epsilon, fits, "hidden layer, bins")


if __name__ == "__main__":
    main()
