"""How often intervals of coef_standard_error_ cover, with little and with much privacy noise.

Usage: PYTHONPATH=. python docs/benchmarks/standard_errors.py [fits]

The settings of ``docs/theory/standard_errors.md``: 2000 rows, 3 features; from the root of the
repository, as they are those of ``tests/linear_model/test_standard_errors.py`` and more.
"""

import sys
import warnings

from tests.linear_model.test_standard_errors import SETTINGS, coverage

LOUD = (
    ("gradient", 1e-5, 0.5, 2, 3.0),
    ("objective", 1e-5, 0.5, 2, 3.0),
    ("objective", 0.0, 1.0, 2, 3.0),
    ("objective", 1e-5, 4.0, 3, 0.3),
    ("gradient", 1e-5, 1.0, 3, 0.3),
)


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    warnings.simplefilter("ignore")
    for setting in (*SETTINGS.values(), *LOUD):
        covered, ratio = coverage(*setting, fits)
        shares = " ".join(f"{share:.3f}" for share in covered.ravel() / fits)
        mechanism, delta, epsilon, n_classes, C = setting
        words = f"{mechanism}, {n_classes} classes, δ = {delta:g}, ε = {epsilon:g}, C = {C:g}"
        print(f"| {words} | {ratio:.1f} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
