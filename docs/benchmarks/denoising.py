"""Noisy gradients, denoised by their posterior mean under a Student-t prior, beside none.

Usage: SKDP_DATA=folder python docs/benchmarks/denoising.py [fits]

A noisy mean gradient is y = g + noise of a known standard deviation s, entry by entry. The
posterior mean of g under the prior tau·t(3) shrinks small entries most. It is a function of what
was released, so that epsilon stays the same. The scale tau of the prior is

- constant: the clip over the root of the number of entries ("wide"), or a tenth of it ("narrow");
- or found from noisy gradients alone: tau² = max(mean of y² over the steps so far - s², s²/100),
  by a moving average with a weight of a tenth.

Rows are the training rows of Adult (every fourth of them held out) and scikit-learn's digits (the
split of ``digits.py``, every fourth training row held out): test rows are not read. delta = 1e-5.
"defaults" are those of DPSGDClassifier: all rows a step, Nesterov's method, averaged, with a check
at the end; the other runs take Poisson batches of 256 rows for five epochs, plain steps or Adam's,
each at the best of three learning rates for its own column. Accuracy, the mean of `fits` (10) fits,
with the standard error of the difference from none, from runs that share no noise.
"""

import os
import sys
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from scipy.stats import gamma
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from skdp import DPSGDClassifier
from skdp._sgd._plan import SGDPlan
from skdp.linear_model import _clipped_descent

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../examples"))
from example_table import make_encoder, read_adult

DELTA, DEGREES, HELD_OUT = 1e-5, 3.0, 4
WAYS = {"none": 0.0, "wide": 1.0, "narrow": 0.1, "found": 0.0}
RATES = (0.25, 1.0, 4.0)
# The Student-t prior is a mixture of Gaussians of these precisions, equally likely.
PRECISIONS = gamma.ppf((np.arange(40) + 0.5) / 40, DEGREES / 2.0, scale=2.0 / DEGREES)


def posterior_mean(noisy, deviation, scale):
    """Return the mean of g given g + noise, of g from scale times a Student-t law."""
    prior = scale**2 / PRECISIONS
    total = prior + deviation**2
    log_weight = -0.5 * (noisy[..., None] ** 2 / total + np.log(total))
    weight = np.exp(log_weight - log_weight.max(axis=-1, keepdims=True))
    return noisy * np.sum(weight * prior / total, axis=-1) / weight.sum(axis=-1)


@dataclass(frozen=True, kw_only=True)
class DenoisedPlan(SGDPlan):
    """A plan whose noisy gradients are denoised; those of its last steps, which check, are not."""

    way: str
    n_gradients: int

    def noisy_means(self, next_sum, source):
        deviation = self.scale / self.batches.expected_size
        scale, square = WAYS[self.way] * self.clip / np.sqrt(self.problem.size), None
        for taken, noisy in enumerate(super().noisy_means(next_sum, source)):
            if taken >= self.n_gradients:
                yield noisy
                continue
            if self.way == "found":
                now = np.mean(noisy**2)
                square = now if square is None else 0.9 * square + 0.1 * now
                scale = np.sqrt(max(square - deviation**2, deviation**2 / 100.0))
            yield posterior_mean(noisy, deviation, scale)


def denoised(way):
    """Return a context in which fits denoise their gradients."""
    run = _clipped_descent.run_sgd

    def run_denoised(plan, sums, update, *args, **options):
        own = DenoisedPlan(**vars(plan), way=way, n_gradients=update.n_steps)
        return run(plan if way == "none" else own, sums, update, *args, **options)

    return patch.object(_clipped_descent, "run_sgd", run_denoised)


def tables():
    """Yield name, rows to fit, labels, rows held out and labels, all of them training rows."""
    X, y, *_ = read_adult(os.environ["SKDP_DATA"])
    adult = make_encoder().fit(X).transform(X), y
    X, _, y, _ = train_test_split(*load_digits(return_X_y=True), random_state=0)
    digits = X / np.linalg.norm(X, axis=1, keepdims=True), y
    for name, (X, y) in {"Adult": adult, "digits": digits}.items():
        out = np.arange(len(y)) % HELD_OUT == 0
        yield name, X[~out], y[~out], X[out], y[out]


def settings():
    """Yield words and the parameters of every run in them: one, or one a learning rate."""
    yield "defaults", [{}]
    batches = {"sampling": "poisson", "batch_size": 256, "max_iter": 5}
    for optimizer, base, average in (
        ("sgd", 4.0, True),
        ("sgd", 4.0, False),
        ("adam", 0.05, False),
    ):
        own = batches | {"optimizer": optimizer, "average": average}
        words = f"{optimizer}, {'averaged' if average else 'last weights'}"
        yield words, [own | {"eta0": base * rate} for rate in RATES]


def best(X, y, X_out, y_out, runs, fits):
    """Return the accuracies of the run that is best in the mean."""
    found = [
        [DPSGDClassifier(**run).fit(X, y).score(X_out, y_out) for _ in range(fits)] for run in runs
    ]
    return max(found, key=np.mean)


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print("| table | run | ε | none | wide | narrow | found |")
    print("|---|---|---|---|---|---|---|")
    for name, *table in tables():
        for words, runs in settings():
            for epsilon in (0.25, 1.0, 4.0):
                of = [run | {"epsilon": epsilon, "delta": DELTA} for run in runs]
                cells, plain = [], None
                for way in WAYS:
                    with denoised(way):
                        found = best(*table, of, fits)
                    plain = found if plain is None else plain
                    gain = np.mean(found) - np.mean(plain)
                    error = np.sqrt((np.var(found, ddof=1) + np.var(plain, ddof=1)) / fits)
                    shown = f"{np.mean(found):.4f}"
                    cells.append(shown if way == "none" else f"{shown} ({gain:+.4f} ± {error:.4f})")
                print(f"| {name} | {words} | {epsilon:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
