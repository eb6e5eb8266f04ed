"""Coverage of the error bands of additive models.

Usage: SKDP_DATA=... python docs/benchmarks/bands.py [fits]

Each fit is made twice with one seed: as it is, and with the noise of its steps replaced by zeros.
Bins, counts, baseline and the noise of the shrinkage test are the same, so both models have the
same cells. The models have no tables of pairs, because other ones would be chosen without noise.
The script prints the fraction of cells in which the first model's value is within `BAND_WIDTH`
standard errors of the second one's: of the cells that a picture shows, over all fits.
"""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _tables import SCHEMAS

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from skdp._optim._gradient_noise import GaussianNoise
from skdp.display._additive import BAND_WIDTH
from skdp.gam._shapes import shown_cells

EPSILONS = (0.1, 1.0, 4.0)
ADD = GaussianNoise.add
# Bounds of california_housing, in its units.
HOUSING = {
    "longitude": (-125, -114),
    "latitude": (32, 42),
    "housing_median_age": (0, 52),
    "total_rooms": (0, 20_000),
    "total_bedrooms": (0, 4_000),
    "population": (0, 10_000),
    "households": (0, 4_000),
    "median_income": (0, 15),
}


def cases():
    """Yield names, tables, targets, estimators and parameters."""
    folder = Path(os.environ["SKDP_DATA"])
    for name, (bounds, categories) in SCHEMAS.items():
        file = "adult_train" if name == "adult" else name
        table = pd.read_csv(folder / f"{file}.csv.gz")
        y = table.pop("target")
        lists = {
            column: labels.split() if isinstance(labels, str) else list(labels)
            for column, labels in categories.items()
        }
        table = table[[*bounds, *lists]].astype(dict.fromkeys(lists, str))
        params = {"bounds": dict(bounds), "categories": lists}
        yield name, table, y, DPAdditiveClassifier, params
        if name == "adult":
            chosen = np.random.default_rng(0).permutation(len(y))[:2000]
            rows = table.iloc[chosen], y.iloc[chosen]
            yield "adult, 2,000 rows", *rows, DPAdditiveClassifier, params
            marital = lists["marital_status"]
            rest = {c: labels for c, labels in lists.items() if c != "marital_status"}
            params = {"bounds": dict(bounds), "categories": rest, "classes": marital}
            known = table["marital_status"].isin(marital)
            rows = (
                table.loc[known].drop(columns="marital_status"),
                table.loc[known, "marital_status"],
            )
            yield "adult's marital status", *rows, DPAdditiveClassifier, params
    table = pd.read_csv(folder / "california_housing.csv.gz")
    params = {"bounds": HOUSING, "target_bounds": (0, 500_000)}
    yield "california_housing", table[[*HOUSING]], table["target"], DPAdditiveRegressor, params


def add_nothing(self, values, noise):
    """Add zeros, on the grid of the noise."""
    return ADD(self, values, np.zeros_like(noise))


def distances(make, table, y):
    """Return the distances of a fit's values from those without noise, in standard errors."""
    noisy = make().fit(table, y).shape_functions_
    GaussianNoise.add = add_nothing
    try:
        exact = make().fit(table, y).shape_functions_
    finally:
        GaussianNoise.add = ADD
    found = []
    for shape, target in zip(noisy, exact, strict=True):
        assert np.array_equal(shape.counts, target.counts)
        cells = shown_cells(shape)
        scaled = (shape.values - target.values) / np.maximum(shape.standard_errors, 1e-300)
        found.append(np.ravel(scaled.reshape(shape.counts.size, -1)[cells]))
    return np.concatenate(found)


def main(n_fits=50):
    warnings.simplefilter("ignore")
    print(f"{n_fits} fits, bands of {BAND_WIDTH:g} standard errors\n")
    print(f"| table | {' | '.join(f'{epsilon:g}' for epsilon in EPSILONS)} |")
    print("|---" * (len(EPSILONS) + 1) + "|")
    means = []
    for name, table, y, model, params in cases():
        row = []
        for epsilon in EPSILONS:
            found = []
            for seed in range(n_fits):

                def make(seed=seed, epsilon=epsilon, model=model, params=params):
                    return model(epsilon, delta=1e-5, interactions=0, random_state=seed, **params)

                found.append(distances(make, table, y))
            row.append(float(np.mean(np.abs(np.concatenate(found)) <= BAND_WIDTH)))
        means.extend(row)
        print(f"| {name} | {' | '.join(f'{part:.3f}' for part in row)} |", flush=True)
    print(f"\nmean of the {len(means)} cells: {np.mean(means):.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
