"""Record what seeded fits release, to compare two commits: a refactoring changes no released value.

Usage: python docs/benchmarks/seeded_fits.py FILE
       python docs/benchmarks/seeded_fits.py --compare OLD NEW

The first form fits every estimator of the tests with `random_state=0` (two budgets, both relations,
persons, arrays and frames, tables of 120 and of 1,500 rows), calls functions of `skdp.stats` and
`skdp.metrics`, and prices and calibrates several hundred events. It writes one line of JSON per
case: hashes of all that was published, of the predictions, of the charges and of the statement, or
the error. The second form prints the cases that differ, and counts those in which only the
statement does. Run both commits with the same packages, on the same machine, with
OMP_NUM_THREADS=1. It takes about a minute.
"""

import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).parents[2]))
import skdp.metrics
import skdp.stats
from skdp import PrivacyAccountant
from skdp.accounting import (
    Composed,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    calibrate,
    get_epsilon,
)
from tests import _estimators, _tables
from tests._public import takes_groups

SEED = 0


def digest(*values):
    """Return a short hash of nested values: arrays by their bytes, objects by their attributes."""
    state = hashlib.sha256()

    def add(value):
        state.update(type(value).__name__.encode())
        if isinstance(value, np.ndarray) and value.dtype != object:
            state.update(str((value.dtype, value.shape)).encode())
            state.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, dict):
            for key in value:
                add(key)
                add(value[key])
        elif isinstance(value, np.ndarray | list | tuple):
            for item in value:
                add(item)
        elif isinstance(value, pd.DataFrame):
            add({name: column.to_numpy() for name, column in value.items()})
        elif hasattr(value, "toarray"):
            add(value.toarray())
        elif isinstance(value, PrivacyAccountant) or callable(value):
            pass
        elif hasattr(value, "__dict__"):
            # A ledger is new in every run and a cached hash in every process; statements are hashed
            # apart.
            new = {"hash", "ledger", "record", "_hash", "privacy_"}
            names = sorted(value.__dict__.keys() - new)
            add({name: value.__dict__[name] for name in names})
        else:
            state.update(repr(value).encode())

    for value in values:
        add(value)
    return state.hexdigest()[:16]


def answers(model, X):
    """Return the predictions, probabilities or transformed rows of a fitted model."""
    for name in ("predict_proba", "decision_function", "predict", "transform", "sample"):
        if hasattr(model, name):
            if name == "sample":
                return model.sample(50, random_state=SEED)
            return getattr(model, name)(X[:50])
    return None


def larger_table(estimator, rng):
    """Return 1,500 rows of five columns in the ranges of the tests' table."""
    X, y = _tables.make_table(estimator)
    rows = rng.integers(0, len(X), 1500)
    noise = 0.0 if np.array_equal(X, np.floor(X)) else rng.normal(size=(1500, 3)) / 20.0
    X = np.clip(X[rows] + noise, X.min(0), X.max(0))
    return np.hstack([X, X[rng.permutation(1500), :2]]), y[rows]


def fit_case(estimator, table, budget, relation, container, groups):
    X, y = table
    params = {"random_state": SEED}
    accountant = PrivacyAccountant(1e6, 0.1, relation=relation, unit="person" if groups else "row")
    if "epsilon" in estimator.get_params(deep=False):
        params["epsilon"] = budget
    model = clone(estimator).set_params(accountant=accountant, **params)
    if container == "frame":
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    ids = {"groups": np.arange(len(y)) // 3} if groups else {}
    model.fit(X, y, **ids)
    released = {name: value for name, value in sorted(vars(model).items()) if name.endswith("_")}
    # The words of a statement may change where no released value does.
    statement = str(released.pop("privacy_"))
    charges = [charge.event for charge in accountant.charges]
    return [digest(released), digest(answers(model, X)), digest(charges), digest(statement)]


def fits():
    rng = np.random.default_rng(SEED)
    for number, estimator in enumerate(_estimators.ESTIMATORS):
        name = f"{number} {' '.join(repr(estimator).split())}"
        tables = {120: _tables.make_table(estimator), 1500: larger_table(estimator, rng)}
        settings = [
            (120, 1.0, "add_remove", "array", False),
            (1500, 1.0, "replace_one", "array", False),
            (1500, 8.0, "add_remove", "frame", False),
        ]
        if takes_groups(type(estimator)):
            settings.append((1500, 2.0, "add_remove", "array", True))
        for size, *setting in settings:
            yield f"{name} {size} {setting}", fit_case, (estimator, tables[size], *setting)


def functions():
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(2000, 3))
    frame = pd.DataFrame(X, columns=list("abc"))
    y = (X[:, 0] + rng.normal(size=2000) > 0).astype(int)
    scores = 1.0 / (1.0 + np.exp(-X[:, 0]))
    metrics, stats = skdp.metrics, skdp.stats
    calls = {
        "mean": (stats.dp_mean, (X,), {"bounds": (-4, 4), "axis": 0}),
        "mean, bounds found": (stats.dp_mean, (X,), {"delta": 1e-6, "axis": 0}),
        "variance": (stats.dp_var, (X,), {"bounds": (-4, 4), "axis": 0}),
        "quantile": (stats.dp_quantile, (X, [0.1, 0.5]), {"bounds": (-4, 4), "axis": 0}),
        "histogram": (stats.dp_histogram, (X[:, 0],), {"bins": 20, "range": (-4, 4)}),
        "covariance": (stats.dp_covariance, (X,), {"bounds": (-4, 4)}),
        "describe": (stats.dp_describe, (frame,), {"delta": 1e-6}),
        "accuracy": (metrics.dp_accuracy_score, (y, y[::-1]), {}),
        "confusion": (metrics.dp_confusion_matrix, (y, y[::-1]), {}),
        "AUC": (metrics.dp_roc_auc_score, (y, scores), {}),
        "Brier": (metrics.dp_brier_score, (y, scores), {}),
        "average precision": (metrics.dp_average_precision_score, (y, scores), {}),
        "R2": (metrics.dp_r2_score, (X[:, 0], X[:, 1]), {"target_bounds": (-4, 4)}),
    }
    for relation in ("add_remove", "replace_one"):
        for name, (function, arguments, options) in calls.items():
            yield f"{name} {relation}", call, (function, arguments, options, relation)


def call(function, arguments, options, relation):
    accountant = PrivacyAccountant(1e6, 0.1, relation=relation)
    result = function(*arguments, **options, accountant=accountant, random_state=SEED)
    return [digest(result), digest([charge.event for charge in accountant.charges])]


def prices():
    for scale in (0.3, 0.7, 1.0, 2.5, 20.0):
        events = {
            "gaussian": Gaussian(scale),
            "laplace": Laplace(1.0 / scale),
            "sampled gaussian": PoissonSampled(0.02, Gaussian(scale)),
            "sampled laplace": PoissonSampled(0.1, Laplace(1.0 / scale)),
            "two": Composed((Gaussian(scale), PureDP(0.1))),
        }
        for name, event in events.items():
            for relation in ("add_remove", "replace_one"):
                for delta in (1e-3, 1e-6):
                    for count in (1, 3, 50):
                        arguments = (event * count, delta, relation)
                        yield f"price {name} {scale} {arguments[1:]} {count}", price, arguments
    for budget in (0.1, 1.0, 8.0):
        for count in (1, 100):
            yield f"calibrate {budget} {count}", noise_multiplier, (budget, count)


def price(event, delta, relation):
    return [repr(get_epsilon(event, delta, relation=relation))]


def noise_multiplier(budget, count):
    multiplier = calibrate(lambda s: PoissonSampled(0.01, Gaussian(s)) * count, budget, 1e-6)
    return [repr(multiplier)]


def record():
    cases = {}
    for part in (fits, functions, prices):
        for name, function, arguments in part():
            try:
                result = function(*arguments)
                cases[name] = result
            except Exception as error:
                cases[name] = [f"{type(error).__name__}: {error}"]
    return cases


def compare(old, new):
    old, new = (json.loads(Path(path).read_text()) for path in (old, new))
    for name in sorted(old.keys() ^ new.keys()):
        print(f"only in one: {name}")
    common = sorted(old.keys() & new.keys())
    differing = [name for name in common if old[name][:3] != new[name][:3]]
    for name in differing:
        print(f"differs: {name}\n  {old[name]}\n  {new[name]}")
    n_statements = sum(old[name] != new[name] for name in common) - len(differing)
    print(f"{len(differing)} of {len(common)} cases differ, {n_statements} in the statement alone")
    return bool(differing)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--compare":
        sys.exit(compare(*sys.argv[2:4]))
    recorded = record()
    Path(sys.argv[1]).write_text(json.dumps(recorded, indent=0))
    errors = sum("Error" in case[0] for case in recorded.values())
    print(f"{len(recorded)} cases, {errors} errors")
