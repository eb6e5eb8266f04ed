r"""Standard errors of an additive model's values: the effect of the noise in the steps.

All of it is post-processing: it uses noisy counts, released iterates, and public constants.

Near the optimum, the steps are a linear filter of the noise that is added to gradients
(`noise_gain`). The response in a direction depends on the curvature of the loss in this direction.
Within a term, the curvature is computed from the noisy counts, because all blocks of the term group
the same cells. The joint counts of two columns were not released, so columns are first assumed to
be unrelated. Related columns explain the same variation, and the noise shifts their weights in
opposite directions. The iterates reveal this: `IterateDrift` compares two means of iterates that
would be equal without noise. If the values of a term differ more than they would for unrelated
columns, its standard errors are increased. See ``docs/theory/additive_models.md``, section 10, and
``docs/benchmarks/bands.py`` for the coverage.
"""

import numpy as np
from scipy.special import expit

from skdp.gam._evidence import term_decomposition
from skdp.gam._poisson_task import PoissonTask

# If a term has more cells, there are no standard errors, because the eigenvalue problem would be
# too large.
MAX_CELLS = 400
# Quadrature nodes for the average over the scores that other terms add in a cell.
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(21)


class IterateDrift:
    """Difference between the mean of the last iterates and that of as many iterates before.

    Parameters
    ----------
    schedule : Schedule
    """

    def __init__(self, schedule):
        self.n_steps = schedule.n_steps
        self.n_compared = max(min(2 * schedule.n_averaged, schedule.n_steps - 2) // 2, 1)
        self.value = 0.0
        self._n_seen = 0

    def coefficients(self):
        """Return the coefficient of each point at which a gradient was computed."""
        coefficients = np.zeros(self.n_steps)
        coefficients[-self.n_compared :] = 1.0 / self.n_compared
        coefficients[-2 * self.n_compared : -self.n_compared] = -1.0 / self.n_compared
        return coefficients

    def add(self, weights):
        """Add the point at which the next gradient is computed."""
        coefficient = self.coefficients()[self._n_seen]
        self._n_seen += 1
        if coefficient:
            self.value = self.value + coefficient * weights


def noise_gain(curvatures, schedules, *, of_iterates=None, of_lookaheads=None):
    """Return the standard deviation of a linear function of the iterates for noise with variance 1.

    Parameters
    ----------
    curvatures : ndarray of shape (n,)
        Curvatures of the loss without the penalty.
    schedules : list of Schedule
        Schedule of each step.
    of_iterates : ndarray of shape (n_steps,), default=None
        Coefficient of the iterate after each step.
    of_lookaheads : ndarray of shape (n_steps,), default=None
        Coefficient of the point at which the gradient of each step is computed.

    Returns
    -------
    ndarray of shape (n,)
    """
    n_steps = len(schedules)
    iterate_coefficients = of_iterates
    if of_iterates is None:
        iterate_coefficients = np.zeros(n_steps)
    lookahead_coefficients = of_lookaheads
    if of_lookaheads is None:
        lookahead_coefficients = np.zeros(n_steps)
    variance = np.zeros_like(curvatures)
    # Going backwards through the steps: derivatives of the function with respect to the point after
    # a step (`lookahead`), the point after the next step, and the iterate after a step (`iterate`).
    lookahead = np.zeros_like(curvatures)
    next_lookahead = np.zeros_like(curvatures)
    next_momentum = 0.0
    for step in range(n_steps - 1, -1, -1):
        schedule = schedules[step]
        iterate = iterate_coefficients[step] + (1.0 + schedule.momentum) * lookahead
        iterate = iterate - next_momentum * next_lookahead
        variance += (iterate / schedule.smoothness) ** 2
        next_lookahead = lookahead
        next_momentum = schedule.momentum
        contraction = 1.0 - (curvatures + schedule.l2_reg_strength) / schedule.smoothness
        lookahead = contraction * iterate + lookahead_coefficients[step]
    return np.sqrt(variance)


def standard_errors(design, terms, values, constant, task, schedules, noise_std, drift):
    """Return the standard error of each value of each term, relative to the term's mean.

    Parameters
    ----------
    design : BlockDesign
    terms : list of Term
        Terms with noisy counts.
    values : list of ndarray of shape (n_cells, n_outputs)
        Released values of the terms at their finest cells, flattened.
    constant : ndarray of shape (n_outputs,)
        Released score of a row without the values of its cells.
    task : task
        See `skdp.gam._tasks`.
    schedules : list of Schedule
        Schedule of each step.
    noise_std : float
        Standard deviation of the noise in the gradient of each step.
    drift : IterateDrift
        Of the same steps.

    Returns
    -------
    list of ndarray of shape (n_cells, n_outputs)
        NaN for terms with too many cells.
    """
    n_steps = len(schedules)
    n_averaged = schedules[0].n_averaged
    averaged = np.where(np.arange(n_steps) < n_steps - n_averaged, 0.0, 1.0 / n_averaged)
    drift_values = design.bin_values(drift.value)
    term_counts = [np.maximum(np.ravel(term.counts), 0.0) for term in terms]
    means, variances = _score_moments(term_counts, values)
    mean_score = constant + sum(means)
    bases = {}
    for term, (counts, term_values) in enumerate(zip(term_counts, values, strict=True)):
        if len(counts) > MAX_CELLS:
            continue
        spread = np.sqrt(np.maximum(sum(variances) - variances[term], 0.0))
        scores = mean_score - means[term] + term_values
        row_curvatures = _curvatures(task, scores[:, 0], spread[0])
        bases[term] = _eigenbasis(design, term, counts, row_curvatures)
    # The recursion through the steps is run once, with the directions of all terms.
    all_curvatures = np.concatenate([np.zeros(0), *(basis[0] for basis in bases.values())])
    gains = noise_std * noise_gain(all_curvatures, schedules, of_iterates=averaged)
    drift_gains = noise_std * noise_gain(
        all_curvatures, schedules, of_lookaheads=drift.coefficients()
    )
    results = []
    start = 0
    for term, (counts, term_values) in enumerate(zip(term_counts, values, strict=True)):
        if term not in bases:
            results.append(np.full_like(term_values, np.nan))
            continue
        curvatures, squared_directions = bases[term]
        directions_slice = slice(start, start + len(curvatures))
        start += len(curvatures)
        stds = np.sqrt(squared_directions @ gains[directions_slice] ** 2)
        drift_stds = np.sqrt(squared_directions @ drift_gains[directions_slice] ** 2)
        total = max(counts.sum(), 1.0)
        term_drift = drift_values[term] - counts @ drift_values[term] / total
        ratios = term_drift / np.maximum(drift_stds, 1e-300)[:, np.newaxis]
        inflation = max(1.0, float(np.sqrt(np.mean(ratios**2))))
        results.append(np.repeat(inflation * stds[:, np.newaxis], term_values.shape[1], axis=1))
    return results


def _eigenbasis(design, term, counts, row_curvatures):
    """Return the curvatures of a term's eigendirections, and its squared centered features in them.

    Parameters
    ----------
    design : BlockDesign
    term : int
    counts : ndarray of shape (n_cells,)
        Noisy counts of the term's cells, at least 0.
    row_curvatures : ndarray of shape (n_cells,)
        Curvature of a row's loss in each cell.

    Returns
    -------
    curvatures : ndarray of shape (n_features,)
    squared_directions : ndarray of shape (n_cells, n_features)
    """
    blocks = [block for block in design.blocks if block.term == term]
    features = np.concatenate([block.matrix for block in blocks], axis=1)
    centered = features - counts @ features / max(counts.sum(), 1.0)
    curvatures, vectors = None, None
    if (row_curvatures == 1.0).all():
        # The Hessian is the features' covariance.
        curvatures, vectors = term_decomposition(design, term)
    if vectors is None:
        weights = counts * row_curvatures
        sums = weights @ features
        hessian = features.T @ (weights[:, np.newaxis] * features)
        hessian -= np.outer(sums, sums) / max(weights.sum(), 1.0)
        curvatures, vectors = np.linalg.eigh(hessian)
        curvatures = np.maximum(curvatures, 0.0)
    return curvatures, (centered @ vectors) ** 2


def _score_moments(term_counts, values):
    """Return each term's mean and variance, weighted by noisy counts, for each output."""
    means = []
    variances = []
    for counts, term_values in zip(term_counts, values, strict=True):
        frequencies = counts / max(counts.sum(), 1.0)
        mean = frequencies @ term_values
        means.append(mean)
        variances.append(frequencies @ (term_values - mean) ** 2)
    return means, variances


def _curvatures(task, scores, spread):
    """Return the mean curvature of a row's loss in each cell of a term.

    For two classes, it is that of the clipped logistic loss, averaged over the labels that the
    model predicts and over a normal distribution for the contribution of the other terms.

    Parameters
    ----------
    task : task
    scores : ndarray of shape (n_cells,)
        Mean score of the rows in each cell.
    spread : float
        Standard deviation of the other terms' contribution.
    """
    if isinstance(task, PoissonTask):
        return task.curvatures(scores, spread)
    if task.n_outputs > 1 or task.typical_curvature is None:
        return np.full(len(scores), task.typical_curvature or 1.0)
    all_scores = scores[:, np.newaxis] + spread * NODES
    q = expit(all_scores)
    p = task.probabilities(all_scores.reshape(-1, 1))[:, 1].reshape(q.shape)
    # The loss of a misclassified row is linear, because its residual is clipped.
    low, high = task.weights
    if task.is_balanced:
        # Scores are those of weighted rows, and the frequency of the label among unweighted rows is
        # smaller.
        p = low * p / (low * p + high * (1.0 - p))
    unclipped = np.where(all_scores < 0.0, low * (1.0 - p), high * p)
    return (q * (1.0 - q) * unclipped) @ NODE_WEIGHTS / NODE_WEIGHTS.sum()
