"""How often intervals of coef_standard_error_ cover, with little and with much privacy noise.

Usage: PYTHONPATH=. python docs/benchmarks/standard_errors.py [fits]

The settings of ``docs/standard_errors.md``: 2000 rows, 3 features; from the root of the
repository, as they are those of ``tests/linear_model/test_standard_errors.py`` and more.
"""

import sys
import warnings

from tests.linear_model.test_standard_errors import SETTINGS, coverage

LOUD = {
    "gradient, C = 3, epsilon = 1": ("gradient", 1e-5, 1.0, 2, 3.0),
    "gradient, C = 3, epsilon = 0.5": ("gradient", 1e-5, 0.5, 2, 3.0),
    "objective, C = 3, epsilon = 0.5": ("objective", 1e-5, 0.5, 2, 3.0),
    "objective, delta = 0, C = 3, epsilon = 1": ("objective", 0.0, 1.0, 2, 3.0),
    "softmax by objective, C = 0.3, epsilon = 4": ("objective", 1e-5, 4.0, 3, 0.3),
    "softmax by gradient, C = 0.3, epsilon = 1": ("gradient", 1e-5, 1.0, 3, 0.3),
}


def main():
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    warnings.simplefilter("ignore")
    for name, setting in (SETTINGS | LOUD).items():
        covered, ratio = coverage(*setting, fits)
        shares = " ".join(f"{share:.3f}" for share in covered.ravel() / fits)
        print(f"{name}: error over that of sampling {ratio:.1f}, covered {shares}", flush=True)


if __name__ == "__main__":
    main()
