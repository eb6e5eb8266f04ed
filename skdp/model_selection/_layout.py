"""Which candidate is fitted on which rows, and what one row thereby takes part in."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """Which candidate is fitted on which splits.

    Parameters
    ----------
    splits : Splits
    of_candidate : tuple of tuple of int
        The splits on which each candidate is fitted and scored.
    """

    splits: object
    of_candidate: tuple

    @property
    def runs(self):
        """Every fit, as (candidate, split)."""
        return [(i, s) for i, splits in enumerate(self.of_candidate) for s in splits]

    def patterns(self):
        """Return what a row can take part in, as far as it matters for the price.

        The price of a run depends on its candidate and on the number of training rows, and a
        row that takes part in less than another one costs less.

        Returns
        -------
        list of (tuple of runs, bool)
            Which runs are trained on the row, and whether it is scored.
        """
        sizes, found = self.splits.train_sizes, {}
        for train, test in self.splits.memberships:
            train = set(train)
            runs = tuple(run for run in self.runs if run[1] in train)
            kinds = Counter((i, sizes[s]) for i, s in runs)
            found[frozenset(kinds.items()), bool(test)] = kinds, runs
        patterns = [(kinds, runs, scored) for (_, scored), (kinds, runs) in found.items()]
        most = [p for p in patterns if not any(_is_less(p, q) for q in patterns)]
        return sorted((runs, scored) for _, runs, scored in most)

    def sensitivity(self, score, relation):
        """Return by how much one row moves the score of any candidate."""
        sizes = np.asarray(self.splits.test_sizes)
        largest = 0.0
        for splits in set(self.of_candidate):
            weights = dict(zip(splits, score.weights(sizes[list(splits)]), strict=True))
            for _, test in self.splits.memberships:
                moved = math.fsum(
                    weights[s] * score.sensitivity(int(sizes[s]), relation)
                    for s in test
                    if s in weights
                )
                largest = max(largest, moved)
        # Scores of several splits are added up in floating point.
        return largest * (1.0 + 2.0**-40)

    def score(self, score, values, candidate):
        """Return a candidate's score from those of its runs."""
        splits = list(self.of_candidate[candidate])
        weights = score.weights(np.asarray(self.splits.test_sizes)[splits])
        return math.fsum(w * values[candidate, s] for w, s in zip(weights, splits, strict=True))


def _is_less(pattern, other):
    (kinds, runs, scored), (other_kinds, other_runs, other_scored) = pattern, other
    if scored > other_scored or (len(runs), scored) == (len(other_runs), other_scored):
        return False
    return len(runs) <= len(other_runs) and kinds <= other_kinds
