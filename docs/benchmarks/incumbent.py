"""Estimators of diffprivlib 0.6.6 and what takes their place, on the same rows in one run.

Usage: SKDP_DATA=folder python docs/benchmarks/incumbent.py PEER [fits] [part or model ...] [runs]

A part is "numbers", "clusters" or the name of a table; all of them without one. A model is one of
diffprivlib's names for two classes; all of them without one. "runs" is a file whose name ends in
".jsonl": each fit of centers and classes is written to it, and what it holds is not fitted again.

PEER is the Python of an environment with diffprivlib and scikit-learn 1.7.2, which both accept:

    python3 -m venv peer && peer/bin/pip install diffprivlib==0.6.6 scikit-learn==1.7.2

The script runs itself there. Epsilon is 0.1 and 1. diffprivlib has delta = 0 and the replacement
of a row; ours has that relation with delta = 0 and with 1e-5. Means of 20 fits with standard
errors, and by how many standard errors of the difference ours is ahead.

k-means: inertia over that of scikit-learn's k-means, and the adjusted Rand index with the true
labels; of california_housing, which has none, with those of scikit-learn's k-means. Ranges are
those of the columns. Classes: accuracy and AUC on test rows; numbers and categories with the public
ranges of ``_tables.py``: diffprivlib and DPGaussianNB get them scaled and one-hot, the others of
ours as they are. Beside each model of diffprivlib stand ours of that name (for naive Bayes the
better one of the two) and the best of all of ours, by the mean AUC of the fits that are shown. Of
kdd a tenth is read, and california_housing is cut at a price of 180 000.

Numbers: root mean square errors at epsilon = 1 under the replacement of a row, with delta = 1e-5
where diffprivlib's name needs one: of 4000 values of sensitivity 1 for mechanisms, and of 400
statistics and 100 fits (scaler, first component, predictions of a regression) of 10,000 rows.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _runs import Runs
from sklearn.metrics import adjusted_rand_score, roc_auc_score

EPSILONS = (0.1, 1.0)
DELTAS = (0.0, 1e-5)
# What diffprivlib has for two classes, and ours of that name.
MODELS = {
    "GaussianNB": ("DPHistogramNB", "DPGaussianNB"),
    "DecisionTreeClassifier": ("DPDecisionTreeClassifier",),
    "RandomForestClassifier": ("DPRandomForestClassifier",),
}
OURS = (*(name for names in MODELS.values() for name in names), "DPAdditiveClassifier")

MECHANISMS = """Laplace Snapping Staircase LaplaceTruncated LaplaceFolded LaplaceBoundedDomain
    LaplaceBoundedNoise Geometric GeometricTruncated GeometricFolded Gaussian GaussianAnalytic
    GaussianDiscrete"""


def cluster_quality(table, centers):
    distances = ((table["X"][:, None] - centers) ** 2).sum(axis=2)
    found = adjusted_rand_score(table["y"], distances.argmin(axis=1))
    return float(distances.min(axis=1).sum() / table["least"]), float(found)


def class_quality(model, X, y):
    scores = np.nan_to_num(model.predict_proba(X)[:, 1])
    return float(np.mean(model.predict(X) == y)), float(roc_auc_score(y, scores))


def peer_clusters(table, epsilon):
    from diffprivlib.models import KMeans

    bounds = (table["X"].min(axis=0), table["X"].max(axis=0))
    model = KMeans(int(table["k"]), epsilon=epsilon, bounds=bounds).fit(table["X"])
    return cluster_quality(table, model.cluster_centers_)


def peer_classes(name, table, epsilon):
    from diffprivlib import models

    more = {} if name == "GaussianNB" else {"classes": [0, 1]}
    model = getattr(models, name)(epsilon=epsilon, bounds=(0, 1), **more)
    return class_quality(model.fit(table["X"], table["y"]), table["X_test"], table["y_test"])


def made_numbers():
    X = np.random.default_rng(0).beta(2.0, 5.0, size=(10_000, 3))
    X[:, 1] = 0.7 * X[:, 0] + 0.3 * X[:, 1]
    return X


def with_gaps(x):
    return np.where(np.arange(len(x)) % 3, x, np.nan)


def root_mean_square(errors):
    return float(np.sqrt(np.mean(np.square(np.stack([np.ravel(each) for each in errors])))))


def fitted_numbers(scaler, pca, regression):
    """Return what is compared of fitted models: numbers that do not depend on a sign."""
    X = made_numbers()
    y = X.mean(axis=1)
    component = pca().fit(X).components_[0]
    scaler = scaler().fit(X)
    return {
        "StandardScaler": np.append(scaler.mean_, scaler.scale_),
        "PCA": component * np.sign(component[0]),
        "LinearRegression": regression().fit(X, y).predict(X),
    }


def errors_of_fits(models, n_fits):
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LinearRegression
    from sklearn.preprocessing import StandardScaler

    exact = fitted_numbers(StandardScaler, PCA, LinearRegression)
    fits = [fitted_numbers(*models) for _ in range(n_fits)]
    return {name: root_mean_square([f[name] - exact[name] for f in fits]) for name in exact}


def exact_numbers(X):
    """Return the statistics of a table of three columns, by diffprivlib's name."""
    x = X[:, 0]
    return {
        "mean": x.mean(),
        "sum": x.sum(),
        "var": x.var(),
        "std": x.std(),
        "quantile": np.quantile(x, 0.9),
        "percentile": np.percentile(x, 90),
        "median": np.median(x),
        "count_nonzero": np.count_nonzero(x > 0.5),
        "histogram": np.histogram(x, 10, (0, 1))[0],
        "histogram2d": np.histogram2d(x, X[:, 1], 10, [(0, 1), (0, 1)])[0],
        "histogramdd": np.histogramdd(X, 5, [(0, 1)] * 3)[0],
        "nanmean": np.nanmean(with_gaps(x)),
        "nanvar": np.nanvar(with_gaps(x)),
        "nanstd": np.nanstd(with_gaps(x)),
    }


def peer_numbers(n_releases):
    """Return the error of each statistic and mechanism of diffprivlib that has a counterpart."""
    from diffprivlib import mechanisms as m
    from diffprivlib import models
    from diffprivlib import tools as t

    X = made_numbers()
    x, gappy, ends = X[:, 0], with_gaps(X[:, 0]), {"epsilon": 1.0, "bounds": (0, 1)}
    one = {"epsilon": 1.0, "sensitivity": 1}
    cut = one | {"lower": 0.0, "upper": 10.0}
    releases = {
        "mean": lambda: t.mean(x, **ends),
        "sum": lambda: t.sum(x, **ends),
        "var": lambda: t.var(x, **ends),
        "std": lambda: t.std(x, **ends),
        "quantile": lambda: t.quantile(x, 0.9, **ends),
        "percentile": lambda: t.percentile(x, 90, **ends),
        "median": lambda: t.median(x, **ends),
        "count_nonzero": lambda: t.count_nonzero(x > 0.5, epsilon=1.0),
        "histogram": lambda: t.histogram(x, 1.0, 10, (0, 1))[0],
        "histogram2d": lambda: t.histogram2d(x, X[:, 1], 1.0, 10, [(0, 1), (0, 1)])[0],
        "histogramdd": lambda: t.histogramdd(X, 1.0, 5, [(0, 1)] * 3)[0],
        "nanmean": lambda: t.nanmean(gappy, **ends),
        "nanvar": lambda: t.nanvar(gappy, **ends),
        "nanstd": lambda: t.nanstd(gappy, **ends),
    }
    made = {
        "Laplace": m.Laplace(**one),
        "Snapping": m.Snapping(epsilon=1.0, sensitivity=1.0, lower=-100.0, upper=100.0),
        "Staircase": m.Staircase(**one),
        "LaplaceTruncated": m.LaplaceTruncated(**cut),
        "LaplaceFolded": m.LaplaceFolded(**cut),
        "LaplaceBoundedDomain": m.LaplaceBoundedDomain(**cut),
        "LaplaceBoundedNoise": m.LaplaceBoundedNoise(**one, delta=1e-5),
        "Geometric": m.Geometric(**one),
        "GeometricTruncated": m.GeometricTruncated(**one, lower=0, upper=10),
        "GeometricFolded": m.GeometricFolded(**one, lower=0, upper=10),
        "Gaussian": m.Gaussian(epsilon=1.0, delta=1e-5, sensitivity=1),
        "GaussianAnalytic": m.GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1),
        "GaussianDiscrete": m.GaussianDiscrete(epsilon=1.0, delta=1e-5, sensitivity=1),
    }
    exact = exact_numbers(X)
    fitted = (
        lambda: models.StandardScaler(**ends),
        lambda: models.PCA(1, data_norm=np.sqrt(3), **ends),
        lambda: models.LinearRegression(epsilon=1.0, bounds_X=(0, 1), bounds_y=(0, 1)),
    )
    found = errors_of_fits(fitted, n_releases // 4) | {
        name: root_mean_square([release() - exact[name] for _ in range(n_releases)])
        for name, release in releases.items()
    }
    for name, mechanism in made.items():
        value = 5 if name.startswith("Geometric") or "Discrete" in name else 5.0
        errors = [mechanism.randomize(value) - value for _ in range(10 * n_releases)]
        found[name] = root_mean_square(errors)
    return found


def our_numbers(n_releases):
    from skdp import DPPCA, DPLinearRegression, DPStandardScaler, PrivacyAccountant, stats
    from skdp.mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism

    X = made_numbers()
    x, bounds = X[:, 0], {"bounds": (0, 1)}
    terms = {"accountant": PrivacyAccountant(1e9, 0.5, relation="replace_one")}
    gaps, gappy = bounds | terms | {"nan_policy": "omit"}, with_gaps(x)
    releases = {
        "mean": lambda: stats.dp_mean(x, **bounds, **terms),
        "sum": lambda: stats.dp_sum(x, **bounds, **terms),
        "var": lambda: stats.dp_var(x, **bounds, **terms),
        "std": lambda: np.sqrt(stats.dp_var(x, **bounds, **terms)),
        "quantile": lambda: stats.dp_quantile(x, 0.9, **bounds, **terms),
        "percentile": lambda: stats.dp_quantile(x, 0.9, **bounds, **terms),
        "median": lambda: stats.dp_median(x, **bounds, **terms),
        "count_nonzero": lambda: stats.dp_count(x > 0.5, **terms),
        "histogram": lambda: stats.dp_histogram(x, range=(0, 1), **terms)[0],
        "histogram2d": lambda: stats.dp_histogram2d(x, X[:, 1], range=[(0, 1), (0, 1)], **terms)[0],
        "histogramdd": lambda: stats.dp_histogramdd(X, bins=5, range=[(0, 1)] * 3, **terms)[0],
        "nanmean": lambda: stats.dp_mean(gappy, **gaps),
        "nanvar": lambda: stats.dp_var(gappy, **gaps),
        "nanstd": lambda: np.sqrt(stats.dp_var(gappy, **gaps)),
    }
    laplace, geometric = LaplaceMechanism(1.0, 1.0), GeometricMechanism(1.0, 1)
    gaussian = GaussianMechanism(1.0, 1e-5, 1.0)
    exact = exact_numbers(X)
    rows = terms | {"delta": 0.0, "data_norm": np.sqrt(3)}
    fitted = (
        lambda: DPStandardScaler(**bounds, **terms),
        lambda: DPPCA(n_components=1, **rows),
        lambda: DPLinearRegression(target_bounds=(0, 1), **rows),
    )
    found = errors_of_fits(fitted, n_releases // 4) | {
        name: root_mean_square([release() - exact[name] for _ in range(n_releases)])
        for name, release in releases.items()
    }
    cut = {"Truncated", "Folded", "BoundedDomain"}
    for name in MECHANISMS.split():
        mechanism = geometric if name.startswith("Geometric") else laplace
        mechanism = gaussian if name.startswith("Gaussian") else mechanism
        value = 5 if mechanism is geometric else 5.0
        noisy = np.array([mechanism.release(value) for _ in range(10 * n_releases)])
        noisy = np.clip(noisy, 0, 10) if any(name.endswith(word) for word in cut) else noisy
        found[name] = root_mean_square(noisy - value)
    return found


def compare_numbers(python, n_releases):
    ours, (theirs,) = our_numbers(n_releases), ask_peer(python, {}, "numbers", 1.0, n_releases)
    print("\n| diffprivlib's name | error, skdp | error, diffprivlib | ratio |\n|---|---|---|---|")
    for name, error in theirs.items():
        print(f"| {name} | {ours[name]:.4g} | {error:.4g} | {ours[name] / error:.2f} |")


def peer_main(path, name, epsilon, fits):
    """Print what diffprivlib reaches on a table, a line of JSON for each fit."""
    table = dict(np.load(path))
    if name == "numbers":
        print(json.dumps(peer_numbers(fits)))
        return
    for _ in range(fits):
        if name == "KMeans":
            found = peer_clusters(table, epsilon)
        else:
            found = peer_classes(name, table, epsilon)
        print(json.dumps(found), flush=True)


def ask_peer(python, table, name, epsilon, fits):
    """Yield what diffprivlib's model of a name reaches in each fit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.npz")
        np.savez(path, **table)
        command = [python, __file__, "--peer", str(path), name, str(epsilon), str(fits)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
            for line in run.stdout:
                yield json.loads(line)
        if run.returncode:
            raise SystemExit(f"diffprivlib's {name} failed")


def cluster_tables():
    """Yield names and tables: rows, labels, the number of clusters and the least inertia found."""
    from _tables import read_rows
    from sklearn.cluster import KMeans
    from sklearn.datasets import load_digits, make_blobs
    from sklearn.decomposition import PCA

    X, y = load_digits(return_X_y=True)
    tables = {"digits, 8 components": (PCA(8, random_state=0).fit_transform(X), y, 10)}
    for d in (2, 5):
        X, y = make_blobs(10_000, d, centers=8, random_state=0)
        tables[f"blobs, {d} columns"] = (X, y, 8)
    bounds = {"longitude": (-125, -114), "latitude": (32, 42)}
    bounds |= {"housing_median_age": (1, 52), "median_income": (0, 15)}
    rows = read_rows("california_housing")
    columns = [
        (np.clip([float(r[c]) for r in rows], *ends) - ends[0]) / (ends[1] - ends[0])
        for c, ends in bounds.items()
    ]
    tables["california_housing, 4 columns"] = (np.column_stack(columns), None, 8)
    for name, (X, y, k) in tables.items():
        found = KMeans(k, n_init=10, random_state=0).fit(X)
        labels = found.labels_ if y is None else y
        yield name, {"X": X, "y": labels, "k": k, "least": found.inertia_}


def class_tables():
    """Yield names, what diffprivlib reads, and what ours does: rows, test rows and schema."""
    import additive
    import pandas as pd
    from _tables import load

    def scaled(frame, bounds, categories):
        parts = [
            (np.clip(frame[n].fillna(low), low, high) - low) / (high - low)
            for n, (low, high) in bounds.items()
        ]
        parts += [frame[name] == label for name, labels in categories.items() for label in labels]
        return np.column_stack(parts).astype(float)

    for name in ("adult", "bank_marketing", "credit_default"):
        X, y, X_test, y_test = load(name)
        encoded = {"X": X, "y": y, "X_test": X_test, "y_test": y_test}
        yield name, encoded, additive.classification(name)
    for name, table in (("california_housing", additive.housing), ("kddcup99", additive.kdd)):
        (X, y), (X_test, y_test), declared = table()
        if name == "kddcup99":
            X, y, X_test, y_test = X[::10], y[::10], X_test[::10], y_test[::10]
        else:
            y, y_test = ((each > 180_000).astype(int) for each in (y, y_test))
        ranges = tuple(declared.values())
        both = pd.concat([X, X_test])
        matrix = scaled(both, *ranges)
        encoded = {"X": matrix[: len(X)], "y": y, "X_test": matrix[len(X) :], "y_test": y_test}
        yield name, encoded, ((X, y), (X_test, y_test), declared)


def replacing(delta):
    from skdp import PrivacyAccountant

    accountant = PrivacyAccountant(1e9, 0.5, relation="replace_one")
    return {"delta": delta, "accountant": accountant}


def show(words, ours, theirs, signs):
    """Print means and standard errors, and by how many of the difference ours is ahead."""
    cells = []
    for one, other, sign in zip(np.transpose(ours), np.transpose(theirs), signs, strict=True):
        means, errors = zip(
            *[(x.mean(), x.std(ddof=1) / np.sqrt(len(x))) for x in (one, other)], strict=True
        )
        ahead = sign * (means[0] - means[1]) / max(np.hypot(*errors), 1e-12)
        pairs = [f"{m:.3f} ± {e:.3f}" for m, e in zip(means, errors, strict=True)]
        cells.append(f"{pairs[0]} | {pairs[1]} | {ahead:+.1f}")
    print(f"| {words} | {' | '.join(cells)} |", flush=True)


def head(name, one, other):
    columns = [f"{what}, {who}" for what in (one, other) for who in ("skdp", "diffprivlib")]
    columns = [*columns[:2], "ahead by", *columns[2:], "ahead by"]
    print(f"\n| {name} | {' | '.join(columns)} |\n|{'---|' * 7}", flush=True)


def compare_clusters(name, table, python, fits, runs):
    from skdp import DPKMeans

    head(name, "inertia", "Rand index")
    X = table["X"]
    for epsilon in EPSILONS:
        key = f"{name} | {epsilon} | diffprivlib's KMeans"
        theirs = runs.of(key, fits, partial(ask_peer, python, table, "KMeans", epsilon))
        for delta in DELTAS:
            model = DPKMeans(
                epsilon,
                n_clusters=table["k"],
                bounds=(X.min(axis=0), X.max(axis=0)),
                **replacing(delta),
            )
            ours = runs.of(
                f"{name} | {epsilon} | {delta:g} | DPKMeans",
                fits,
                lambda n, m=model: (
                    cluster_quality(table, m.fit(X).cluster_centers_) for _ in range(n)
                ),
            )
            show(f"ε = {epsilon}, δ = {delta:g}", ours, theirs, (-1, 1))


def our_fits(kind, encoded, rows, terms, n_fits):
    """Yield accuracy and AUC of fits of one of ours."""
    import skdp

    train, test, declared = rows
    if kind == "DPGaussianNB":
        train, test = ((encoded[f"X{part}"], encoded[f"y{part}"]) for part in ("", "_test"))
        declared = {"bounds": (0, 1)}
    model = getattr(skdp, kind)(**terms, **declared)
    for _ in range(n_fits):
        yield class_quality(model.fit(*train), *test)


def runs_of_ours(name, kind, epsilon, delta, encoded, rows, fits, runs):
    terms = {"epsilon": epsilon} | replacing(delta)
    key = f"{name} | {epsilon} | {delta:g} | {kind}"
    return runs.of(key, fits, partial(our_fits, kind, encoded, rows, terms))


def runs_of_peer(name, model, epsilon, encoded, python, fits, runs):
    key = f"{name} | {epsilon} | diffprivlib's {model}"
    return runs.of(key, fits, partial(ask_peer, python, encoded, model, epsilon))


def compare_classes(name, encoded, rows, python, fits, names, runs):
    head(f"{name}, {len(rows[0][1])} rows", "accuracy", "AUC")
    for epsilon in EPSILONS:
        theirs = {
            model: runs_of_peer(name, model, epsilon, encoded, python, fits, runs)
            for model in names
        }
        for delta in DELTAS:
            ours = {
                kind: runs_of_ours(name, kind, epsilon, delta, encoded, rows, fits, runs)
                for kind in OURS
            }

            by_auc = sorted(OURS, key=lambda kind, ours=ours: -np.mean(ours[kind], axis=0)[1])
            for model in names:
                own = next(kind for kind in by_auc if kind in MODELS[model])
                for kind, words in ((own, ""), (by_auc[0], " (best of skdp)")):
                    words = f"ε = {epsilon}, δ = {delta:g}, {kind}{words} for {model}"
                    show(words, ours[kind], theirs[model], (1, 1))


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--peer":
        path, name, epsilon, fits = sys.argv[2:]
        peer_main(path, name, float(epsilon), int(fits))
        return
    python, *words = sys.argv[1:]
    fits = int(next((word for word in words if word.isdigit()), 20))
    runs = Runs(next((word for word in words if word.endswith(".jsonl")), None))
    names = [name for name in MODELS if name in words] or list(MODELS)
    parts = [w for w in words if not w.isdigit() and w not in MODELS and w != runs.path]
    if not parts or "numbers" in parts:
        compare_numbers(python, 20 * fits)
    if not parts or "clusters" in parts:
        for name, table in cluster_tables():
            compare_clusters(name, table, python, fits, runs)
    if not parts or set(parts) - {"numbers", "clusters"}:
        for name, encoded, rows in class_tables():
            if not parts or name in parts:
                compare_classes(name, encoded, rows, python, fits, names, runs)


if __name__ == "__main__":
    main()
