"""Constants of `DPTableSynthesizer`, compared on parts of the training rows alone.

Usage: SKDP_DATA=folder python docs/benchmarks/synthetic_constants.py [fits] [comparison ...]

Comparisons: ``choice`` (weight of target tables and least gain of a table), ``counts`` (how the
columns share the budget of their counts), ``prior`` and ``sweeps`` (ridge and steps of the chain),
``triples`` (tables of three columns with the target). Each prints a line per candidate: the mean
utility over all cases, the standard error of its difference from the present constants (paired by
fit), and the figures of each case. ``triples`` fits Adult at epsilon = 4 with a workload of the
triples whose target depends most on two columns together, chosen without noise from the fitted
rows, so that its figures are a bound on what any private choice of triples reaches.

Cases: the training rows of Adult, bank and credit default at epsilon = .1 and 1, and 2,000 of the
training rows of Adult at epsilon = 1. Of these rows two thirds are fitted and a third is judged;
the test rows of synthetic.py are not read. The utility of a fit is the mean of the two areas under
the ROC curve less the mean distance of pairs of columns; it was fixed before the first comparison.
Fits with the same number have the same seed for all candidates.
"""

import itertools
import sys
import warnings
from unittest import mock

import numpy as np
from synthetic import DELTA, Table, areas, distances

from skdp.synthesis import DPTableSynthesizer, _chain, _model, _pair_choice, _plan

FITTED_FRACTION = 2.0 / 3.0
SMALL = 2_000
SEED = 11
CASES = [
    ("adult", 0.1),
    ("adult", 1.0),
    ("bank_marketing", 0.1),
    ("bank_marketing", 1.0),
    ("credit_default", 0.1),
    ("credit_default", 1.0),
    ("adult_small", 1.0),
]
# Each candidate is a dict of (module, name of the constant) to value; {} are the present constants.
WEIGHT = (_pair_choice, "TARGET_WEIGHT")
GAIN = (_pair_choice, "MIN_GAIN")
COMPARISONS = {
    "choice": [{WEIGHT: 8.0}, {WEIGHT: 12.0}, {WEIGHT: 4.0}, {GAIN: 8.0}, {WEIGHT: 8.0, GAIN: 8.0}],
    "counts": [{(_plan, "COUNT_COST_EXPONENT"): e} for e in (0.0, 1.0 / 3.0, 2.0 / 3.0)],
    "prior": [{(_model, "PRIOR_FACTORS"): (low, 4.0)} for low in (1.0, 1.5, 2.5)],
    "sweeps": [{(_chain, "SWEEPS"): n} for n in (3, 6, 12)],
}


class TrainingPart(Table):
    """A table whose test rows are a third of its training rows."""

    def __init__(self, name):
        super().__init__(name.removesuffix("_small"))
        order = np.random.default_rng(SEED).permutation(len(self.train))
        cut = int(FITTED_FRACTION * len(order))
        fitted = order[:cut]
        if name.endswith("_small"):
            fitted = fitted[:SMALL]
        rows = self.train
        self.train = rows.iloc[fitted].reset_index(drop=True)
        self.test = rows.iloc[order[cut:]].reset_index(drop=True)


def figures(table, epsilon, seed, **params):
    """Return the distance of pairs and the two areas of one fit."""
    synthesizer = DPTableSynthesizer(
        epsilon,
        delta=DELTA,
        bounds=table.bounds,
        categories=table.categories,
        target="target",
        random_state=seed,
        **params,
    )
    rows = synthesizer.fit(table.train).sample(len(table.train), random_state=seed)
    return [distances(table, rows)[1], *areas(table, rows)]


def figures_of_candidate(candidate, tables, fits):
    """Return an array of shape (cases, fits, 3)."""
    patches = [mock.patch.object(*place, value) for place, value in candidate.items()]
    for patch in patches:
        patch.start()
    try:
        return np.array(
            [
                [figures(tables[name], epsilon, seed) for seed in range(fits)]
                for name, epsilon in CASES
            ]
        )
    finally:
        for patch in patches:
            patch.stop()


def utilities(results):
    """Return the utility of each case and fit."""
    return results[..., 1:].mean(axis=-1) - results[..., 0]


def compare(candidates, tables, fits):
    present = utilities(figures_of_candidate({}, tables, fits))
    print(f"{'present constants':44s} {present.mean():.4f}", flush=True)
    for candidate in candidates:
        results = figures_of_candidate(candidate, tables, fits)
        differences = utilities(results) - present
        error = np.sqrt((differences.var(axis=1, ddof=1) / fits).sum()) / len(CASES)
        label = ", ".join(f"{name} {value}" for (_, name), value in candidate.items())
        cases = "  ".join(
            f"{pairs:.4f} {boosting:.4f} {logistic:.4f}"
            for pairs, boosting, logistic in results.mean(axis=1)
        )
        print(
            f"{label:44s} {utilities(results).mean():.4f} ({differences.mean():+.4f} ± {error:.4f})"
            f"  {cases}",
            flush=True,
        )


def interaction_scores(table, n_sweeps=20):
    """Return how far the target and each two columns are from having no joint interaction.

    The score is the total variation distance of their table from the one of maximum entropy with
    the same tables of pairs, which iterative proportional fitting computes.
    """
    codes, sizes = table.codes(table.train)
    target = len(sizes) - 1
    scores = {}
    for j, k in itertools.combinations(range(target), 2):
        shape = (sizes[target], sizes[j], sizes[k])
        joint = np.ravel_multi_index((codes[target], codes[j], codes[k]), shape)
        counts = np.bincount(joint, minlength=np.prod(shape)).reshape(shape) / len(joint)
        fitted = np.full(shape, 1.0 / counts.size)
        for _ in range(n_sweeps):
            for axis in range(3):
                sums = fitted.sum(axis=axis, keepdims=True)
                fitted *= counts.sum(axis=axis, keepdims=True) / np.maximum(sums, 1e-12)
        # Sampling alone moves a cell by about the root of its expected count.
        chance = np.sqrt(2.0 / np.pi * fitted / len(joint)).sum()
        scores[j, k] = 0.5 * (np.abs(counts - fitted).sum() - chance)
    return scores


def compare_triples(table, epsilon, fits, numbers=(0, 4, 8, 16)):
    """Print the figures of fits with the tables of the first triples."""
    scores = interaction_scores(table)
    names = list(table.train.columns)
    ordered = sorted(scores, key=scores.get, reverse=True)
    print("highest scores:", [(names[j], names[k], round(scores[j, k], 4)) for j, k in ordered[:5]])
    for number in numbers:
        triples = [("target", names[j], names[k]) for j, k in ordered[:number]]
        runs = [figures(table, epsilon, seed, workload=triples) for seed in range(fits)]
        means = "  ".join(f"{mean:.4f}" for mean in np.mean(runs, axis=0))
        error = np.std(runs, axis=0)[1] / np.sqrt(fits - 1)
        print(f"{number} triples, epsilon {epsilon}: {means} (boosting ± {error:.4f})", flush=True)


def main(fits, names):
    if "triples" in names:
        compare_triples(TrainingPart("adult"), 4.0, fits)
        names = [name for name in names if name != "triples"]
    if not names:
        return
    tables = {name: TrainingPart(name) for name in dict.fromkeys(name for name, _ in CASES)}
    print("utility (difference from the present constants); per case: 2-way distance, areas of")
    print("boosting and logistic regression. Cases: " + ", ".join(f"{n} {e}" for n, e in CASES))
    for name in names:
        compare(COMPARISONS[name], tables, fits)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4, sys.argv[2:] or [*COMPARISONS, "triples"])
