"""Choice of the tables to measure, by ranking pairs of columns, and of their budget fractions.

The scores of the pairs, computed in `skdp._data._pair_scores`, have been released with noise before
they are ranked. Everything in this module is post-processing of them and of public facts.
"""

import math

# Weight of a table with a target, relative to other tables. On training rows of three tables (see
# docs/benchmarks/synthetic_constants.py), weights of 4, 6, 8, 12 give a mean utility of .6822,
# .6836, .6848, .6851.
TARGET_WEIGHT = 12.0
# A table is worth measuring if its score is at least this multiple of a quarter of the error that
# it adds to all tables (L1 distance). On the same rows, 4 and 8 give a mean utility of .6836 and
# .6803; on those of Adult at epsilon = 1, multiples of 1, 4, 8, 16 choose 69, 41, 26, 21 pairs.
MIN_GAIN = 4.0
ERROR_FRACTION = 0.25
# A pair whose score is below this many standard deviations of its noise is not chosen.
MIN_SCORE_STDS = 1.5
# Exponent of the cost of a table with k cells and weight w, with Gaussian and with Laplace noise:
# the expected total error of the tables is minimal if fractions of the budget are proportional to
# (w k)**exponent, and is then proportional to the sum of these costs to the power 1 / exponent.
COST_EXPONENT = 2.0 / 3.0
PURE_COST_EXPONENT = 0.5
# Mean of the magnitude of a standard normal variable.
MEAN_ABS_NORMAL = math.sqrt(2.0 / math.pi)
# Every table receives at least this fraction of the tables' budget.
MIN_TABLE_FRACTION = 1e-4
# Maximum number of scored pairs: the noise added to the scores grows with the square root of this
# number, and the memory for tables grows with the number.
MAX_CANDIDATES = 2016


def candidate_pairs(n_columns, targets, required):
    """Return the sorted pairs of columns that are scored; all pairs for up to 64 columns.

    For wider tables, these are the required pairs, pairs with a target, and then pairs of columns
    that are close to each other, since forms and surveys ask related questions one after another.

    Parameters
    ----------
    n_columns : int
    targets : collection of int
    required : collection of (int, int)
        Pairs that are measured in any case.
    """
    pairs = []
    for j in range(n_columns):
        for k in range(j + 1, n_columns):
            distance = k - j
            if (j, k) in required or j in targets or k in targets:
                distance = 0
            pairs.append((distance, j, k))
    pairs.sort()
    n_required = sum(distance == 0 for distance, _, _ in pairs)
    return sorted((j, k) for _, j, k in pairs[: max(MAX_CANDIDATES, n_required)])


def table_weight(subset, targets):
    """Return the weight of a table's error."""
    if set(subset) & set(targets):
        return TARGET_WEIGHT
    return 1.0


def table_cost(subset, sizes, targets, exponent):
    """Return the cost of a table, to which its fraction of the budget is proportional."""
    n_cells = math.prod(sizes[j] for j in subset)
    return (table_weight(subset, targets) * n_cells) ** exponent


def choose_pairs(scores, score_std, sizes, targets, required, mean_error, exponent):
    """Return the pairs that are measured: the required ones, then others by score per cost.

    Parameters
    ----------
    scores : dict of (int, int) to float
        Noisy scores of the candidate pairs, minus those of independent columns.
    score_std : float
        Standard deviation of their noise.
    sizes : list of int
        Number of groups of each column.
    targets : collection of int
    required : list of tuple of int
        Tables that are measured in any case, as are pairs with a target.
    mean_error : float
        Mean magnitude of the noise added to a count if one table had the budget of all tables.
    exponent : float
        Exponent of the costs.

    Returns
    -------
    list of tuple of int
    """
    chosen = list(dict.fromkeys([*required, *(p for p in scores if set(p) & set(targets))]))
    costs = {p: table_cost(p, sizes, targets, exponent) for p in {*scores, *chosen}}
    total_cost = sum(costs[subset] for subset in chosen)

    def gain(pair):
        """Return the weighted score of a pair per cost, by which pairs are ranked."""
        return table_weight(pair, targets) * scores[pair] / costs[pair]

    for pair in sorted(set(scores) - set(chosen), key=gain, reverse=True):
        if scores[pair] <= MIN_SCORE_STDS * score_std:
            continue
        new_cost = total_cost + costs[pair]
        power = 1.0 / exponent
        added_error = mean_error * (new_cost**power - total_cost**power)
        weighted_score = table_weight(pair, targets) * scores[pair]
        if weighted_score > MIN_GAIN * ERROR_FRACTION * added_error:
            chosen.append(pair)
            total_cost = new_cost
    return chosen


def table_fractions(chosen, sizes, targets, exponent):
    """Return each chosen table's fraction of the tables' budget; the fractions sum to at most 1."""
    costs = [table_cost(subset, sizes, targets, exponent) for subset in chosen]
    total = math.fsum(costs)
    fractions = [max(cost / total, MIN_TABLE_FRACTION) for cost in costs]
    excess = max(math.fsum(fractions), 1.0)
    # The factor is a margin for rounding.
    return [fraction / excess * (1.0 - 2.0**-44) for fraction in fractions]
