"""Draw README's picture: AUC against epsilon on three tables, beside peers and no privacy.

Usage: SKDP_DATA=folder python docs/benchmarks/readme_picture.py PEER [fits] [picture] [table ...]

Figures of tables that are not named are those of an earlier run, from the JSON file beside the
picture.

PEER is the Python of an environment with the peers, which the script starts by itself:

    python3 -m venv peer
    peer/bin/pip install diffprivlib==0.6.6 scikit-learn==1.7.2 interpret-core==0.7.8 pandas

Every model is at its defaults. `DPAdditiveClassifier` and DP-EBM have delta = 1e-5 under
add/remove and read the raw table; diffprivlib has delta = 0 under replace-one, since it offers no
other relation, and reads columns scaled by public bounds and one-hot. Of diffprivlib the best of
logistic regression, Gaussian naive Bayes and random forest is shown, chosen for each table and
epsilon by the mean on these test rows, which favors it. Without privacy: scikit-learn's histogram
boosting. All read the same public bounds and categories (``_tables.py``). Means of `fits` (5) fits
on the test rows, with standard errors as bars. The figures are printed and written beside the
picture as JSON.
"""

import io
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

TABLES = {"adult": "Adult", "bank_marketing": "Bank marketing", "credit_default": "Credit default"}
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTA = 1e-5
OURS = "skdp, additive model"
PEERS = ("DP-EBM (interpret)", "diffprivlib, best of three")
PLAIN = "boosting without privacy"
STYLES = {
    OURS: {"color": "#0b5fa5", "marker": "o", "linewidth": 2.5},
    PEERS[0]: {"color": "#c8641b", "marker": "s"},
    PEERS[1]: {"color": "#6f8f3a", "marker": "^"},
}


def auc(model, X, y):
    """Return the AUC of the scores of a fitted classifier."""
    return float(roc_auc_score(y, np.nan_to_num(model.predict_proba(X)[:, 1])))


def peer_fits(table, epsilon, n_fits):
    """Return the AUC of each fit of each peer, by name; runs in the peers' environment."""
    import pandas as pd
    from diffprivlib import models
    from interpret.privacy import DPExplainableBoostingClassifier

    y, y_test = table["y"], table["y_test"]
    makers = {
        "LogisticRegression": lambda: models.LogisticRegression(epsilon=epsilon, data_norm=1.0),
        "GaussianNB": lambda: models.GaussianNB(epsilon=epsilon, bounds=(0, 1)),
        "RandomForestClassifier": lambda: models.RandomForestClassifier(
            epsilon=epsilon, bounds=(0, 1), classes=[0, 1]
        ),
    }
    results = {}
    for name, make in makers.items():
        # A bound on the norm of rows is what its logistic regression asks for.
        prefix = "normed" if name == "LogisticRegression" else "scaled"
        X, X_test = table[f"{prefix}_X"], table[f"{prefix}_X_test"]
        results[name] = [auc(make().fit(X, y), X_test, y_test) for _ in range(n_fits)]
    declared = json.loads(table["declared"].item())
    reading = {
        "dtype": dict.fromkeys(declared["categories"], str),
        "keep_default_na": False,
        "na_values": dict.fromkeys(declared["bounds"], [""]),
    }
    raw, raw_test = (
        pd.read_csv(io.StringIO(table[part].item()), **reading) for part in ("raw_X", "raw_X_test")
    )
    # DP-EBM refuses missing numbers; they get the low end of their column's public bounds.
    raw, raw_test = (
        frame.fillna({name: low for name, (low, _) in declared["bounds"].items()})
        for frame in (raw, raw_test)
    )
    kinds = ["nominal" if name in declared["categories"] else "continuous" for name in raw]
    bounds = {name: tuple(pair) for name, pair in declared["bounds"].items()}

    def boosting():
        return DPExplainableBoostingClassifier(
            feature_types=kinds, epsilon=epsilon, delta=DELTA, privacy_bounds=bounds, n_jobs=1
        )

    results["DP-EBM"] = [auc(boosting().fit(raw, y), raw_test, y_test) for _ in range(n_fits)]
    return results


def ask_peers(python, path, epsilon, n_fits):
    """Return what `peer_fits` returns in the peers' environment."""
    command = [python, __file__, "--peer", str(path), str(epsilon), str(n_fits)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout)


def write_table(path, name, train, test, declared):
    """Write the encoded and the raw rows of a table for the peers."""
    from _tables import load

    X, y, X_test, y_test = load(name)
    norm = np.sqrt(X.shape[1])
    np.savez(
        path,
        y=y,
        y_test=y_test,
        normed_X=X,
        normed_X_test=X_test,
        scaled_X=np.clip(X * norm, 0, 1),
        scaled_X_test=np.clip(X_test * norm, 0, 1),
        raw_X=np.array(train.to_csv(index=False)),
        raw_X_test=np.array(test.to_csv(index=False)),
        declared=np.array(json.dumps(declared)),
    )


def summary(values):
    """Return the mean and its standard error."""
    values = np.asarray(values)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean()), float(error)


def measure(python, n_fits, tables, figures):
    """Measure tables, and return the AUC and its standard error by table, model and epsilon.

    The results are written to the file `figures` after each table, beside those that it holds.
    """
    import additive
    from sklearn.ensemble import HistGradientBoostingClassifier

    from skdp import DPAdditiveClassifier

    results = json.loads(figures.read_text()) if figures.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name in tables:
            (X, y), (X_test, y_test), declared = additive.classification(name)
            path = Path(folder, f"{name}.npz")
            write_table(path, name, X, X_test, declared)
            categories = declared["categories"]
            frames = [frame.astype(dict.fromkeys(categories, "category")) for frame in (X, X_test)]
            for column in categories:
                levels = frames[0][column].cat.categories
                frames[1][column] = frames[1][column].cat.set_categories(levels)
            plain = HistGradientBoostingClassifier(categorical_features="from_dtype")
            table = {PLAIN: auc(plain.fit(frames[0], y), frames[1], y_test)}
            table |= {label: {} for label in (OURS, *PEERS)}
            for epsilon in EPSILONS:
                ours = []
                for _ in range(n_fits):
                    model = DPAdditiveClassifier(epsilon, delta=DELTA, **declared).fit(X, y)
                    ours.append(auc(model, X_test, y_test))
                theirs = ask_peers(python, path, epsilon, n_fits)
                # JSON has texts as keys.
                key = str(epsilon)
                table[OURS][key] = summary(ours)
                table[PEERS[0]][key] = summary(theirs.pop("DP-EBM"))
                table[PEERS[1]][key] = max(summary(values) for values in theirs.values())
                line = ", ".join(
                    f"{label} {table[label][key][0]:.3f} ± {table[label][key][1]:.3f}"
                    for label in (OURS, *PEERS)
                )
                print(f"{name}, epsilon {epsilon:g}: {line}", flush=True)
            print(f"{name}: {PLAIN} {table[PLAIN]:.3f}", flush=True)
            results[name] = table
            figures.write_text(json.dumps(results, indent=1) + "\n")
    return {name: results[name] for name in TABLES if name in results}


def draw(results, path):
    """Draw one panel per table."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "skdp"
    figure, panels = plt.subplots(1, len(results), figsize=(10, 3.4), layout="constrained")
    for panel, (name, table) in zip(panels, results.items(), strict=True):
        panel.axhline(table[PLAIN], color="0.35", linestyle="--", linewidth=1.2, label=PLAIN)
        for label, style in STYLES.items():
            means = [table[label][str(epsilon)][0] for epsilon in EPSILONS]
            errors = [table[label][str(epsilon)][1] for epsilon in EPSILONS]
            panel.errorbar(EPSILONS, means, errors, label=label, capsize=2, markersize=5, **style)
        panel.set(title=TABLES[name], xscale="log", xlabel="ε", xticks=EPSILONS)
        panel.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        panel.minorticks_off()
        panel.grid(alpha=0.25)
    panels[0].set_ylabel("AUC on test rows")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, metadata={"Date": None})


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1] == "--peer":
        path, epsilon, n_fits = sys.argv[2:]
        print(json.dumps(peer_fits(dict(np.load(path)), float(epsilon), int(n_fits))))
        return
    python = sys.argv[1]
    n_fits = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    picture = Path(sys.argv[3] if len(sys.argv) > 3 else "comparison.svg")
    tables = sys.argv[4:] or list(TABLES)
    draw(measure(python, n_fits, tables, picture.with_suffix(".json")), picture)


if __name__ == "__main__":
    main()
