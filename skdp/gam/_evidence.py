r"""How strongly weights are to be penalized, and how much they explain by chance.

Both follow from released numbers alone: noisy counts, noisy weights, a noisy variance of the
targets, and the public scale of the noise. So they are post-processing and cost nothing.

In the basis in which a column's features are uncorrelated, weights :math:`w_j` of mean 0 and
variance :math:`\tau^2` are seen through steps that answer a constant gradient of 1 by
:math:`g_j` (`averaged_response`). With the curvature :math:`h_j`, the variance :math:`\sigma^2`
of residuals and the noise variance :math:`s_j^2` of the mean of iterates, what is seen has

.. math:: E z_j^2 = (g_j h_j)^2 \tau^2 + g_j^2 h_j \sigma^2 + s_j^2 .

The first term is solved for: the method of moments for a variance component. The penalty is then
the one whose weights have the least expected squared error of scores. Columns are taken to be
uncorrelated with each other; `docs/additive_models.md`, section 8a, has the derivation.
"""

import math

import numpy as np

# The responses of steps are computed for so many curvatures, and interpolated between them.
N_CURVATURES = 60
# The least curvature that is told from 0, over the largest.
LEAST_CURVATURE = 1e-6
# Penalties that are compared, and the largest of them over the number of rows: there weights are
# next to nothing.
N_PENALTIES = 80
# How many of its standard deviations the variance of the weights is taken to be larger: what is
# not told from 0 is not held to be 0.
DEVIATIONS = 1.0
BISECTIONS = 40
# From so many cells on, a term's features are taken to be uncorrelated.
MOST_CELLS = 400


def spectrum(layout, weights=None):
    """Return the eigenvalues of the second moment of features, centered, and weights by them.

    Features of different terms are taken to be uncorrelated. Within a term they are known: each
    of its blocks groups the same cells, whose noisy counts were released.

    Parameters
    ----------
    layout : Layout
    weights : ndarray of shape (layout.size, n_outputs), default=None

    Returns
    -------
    curvatures : ndarray of shape (n,)
        Of the features of all terms but the constant: sums over rows.
    rotated : ndarray of shape (n, n_outputs) or None
        The weights in the basis of eigenvectors.
    """
    known = {}
    curvatures = [np.zeros(0)]
    rotated = []
    for blocks, places in _blocks_of_terms(layout):
        # Columns with equal counts are frequent before any are released.
        key = tuple((block.weight, block.counts.tobytes()) for block in blocks)
        if key not in known:
            known[key] = _eigenvectors(blocks)
        values, vectors = known[key]
        curvatures.append(values)
        if weights is not None:
            own = np.concatenate([weights[each] for each in places])
            rotated.append(own if vectors is None else vectors.T @ own)
    if weights is None:
        return np.concatenate(curvatures), None
    return np.concatenate(curvatures), np.concatenate([np.zeros((0, weights.shape[1])), *rotated])


def _blocks_of_terms(layout):
    """Return, for each term but the constant, its blocks and where their weights are."""
    found = {}
    for block, start in zip(layout.blocks, layout.starts, strict=False):
        if block.term >= 0:
            blocks, places = found.setdefault(block.term, ([], []))
            blocks.append(block)
            places.append(slice(start, start + block.size))
    return found.values()


def _eigenvectors(blocks):
    """Return eigenvalues of a term's second moment, and eigenvectors unless it is diagonal."""
    # The first block has the finest cells.
    counts = np.maximum(blocks[0].counts, 0.0)
    if len(blocks) == 1 or len(counts) > MOST_CELLS:
        moments = [np.maximum(block.moments, 0.0) for block in blocks]
        return np.concatenate(moments), None
    features = np.concatenate(
        [
            block.features[:, np.newaxis] * np.equal.outer(block.groups, np.arange(block.size))
            for block in blocks
        ],
        axis=1,
    )
    sums = counts @ features
    moment = features.T @ (counts[:, np.newaxis] * features)
    values, vectors = np.linalg.eigh(moment - np.outer(sums, sums) / max(counts.sum(), 1.0))
    return np.maximum(values, 0.0), vectors


def averaged_response(curvatures, schedule):
    """Return how the mean of the second quarter of steps answers a gradient, and its noise.

    On a quadratic loss Nesterov's steps are a linear filter of the gradients that are added to
    its own: the answer to a single one at the first step says everything.

    Parameters
    ----------
    curvatures : ndarray of shape (n,)
    schedule : Schedule

    Returns
    -------
    gain : ndarray of shape (n,)
        By how much the mean moves for a gradient of -1 in each step.
    noise : ndarray of shape (n,)
        The variance of the mean for gradients of independent values of variance 1.
    """
    largest = max(float(curvatures.max(initial=0.0)), 1e-300)
    grid = np.append(0.0, np.geomspace(LEAST_CURVATURE * largest, largest, N_CURVATURES))
    half = schedule.n_steps // 2
    averaged_from = half // 2 + 1
    # weights[t] is after t steps, for a gradient of -1 at the first step only.
    weights = np.zeros((half + 1, len(grid)))
    ahead = np.zeros(len(grid))
    for t in range(half):
        slope = (grid + schedule.strength) * ahead - (1.0 if t == 0 else 0.0)
        weights[t + 1] = ahead - slope / schedule.smoothness
        ahead = weights[t + 1] + schedule.momentum * (weights[t + 1] - weights[t])
    sums = np.cumsum(weights, axis=0)
    # A gradient at step s reaches the iterates from `averaged_from` to `half` that come after it.
    reached = sums[half - np.arange(half)]
    before = np.maximum(averaged_from - 1 - np.arange(half), 0)
    answers = (reached - sums[before]) / (half - averaged_from + 1)
    at = np.log(curvatures + grid[1])
    known = np.log(grid + grid[1])
    gain = np.interp(at, known, answers.sum(axis=0))
    noise = np.exp(np.interp(at, known, np.log((answers**2).sum(axis=0) + 1e-300)))
    return gain, noise


def penalty_by_evidence(layout, weights, schedule, *, variance, step_noise, noise, curvature=1.0):
    """Return the L2 penalty that weights ask for, from the mean of their early iterates.

    Parameters
    ----------
    layout : Layout
    weights : ndarray of shape (layout.size, n_outputs)
        The mean of the iterates of the second quarter of the steps.
    schedule : Schedule
    variance : float
        Of residuals, in units of the loss's curvature: what sampling adds to a gradient is this
        times the feature's second moment.
    step_noise : float
        The standard deviation of the noise of a gradient in each step.
    noise : float
        What it would be, were all steps one.
    curvature : float, default=1.0
        A usual one of the loss.

    Returns
    -------
    float
        At least that of the schedule.
    """
    moments, seen = spectrum(layout, weights)
    curvatures = curvature * moments
    gain, noise_gain = averaged_response(curvatures, schedule)
    signal = (gain * curvatures) ** 2
    expected = gain**2 * curvatures * variance + noise_gain * step_noise**2
    # The weighted mean of least variance, were there no signal.
    weighing = signal / np.maximum(expected, 1e-300) ** 2
    total = weights.shape[1] * float(weighing @ signal)
    if total <= 0.0:
        return schedule.strength
    excess = (seen**2).sum(axis=1) - weights.shape[1] * expected
    deviation = math.sqrt(2.0 * weights.shape[1] * float(np.sum((weighing * expected) ** 2)))
    spread = (float(weighing @ excess) + DEVIATIONS * deviation) / total
    return _best_penalty(curvatures, max(spread, 0.0), variance, noise, schedule.strength)


def _best_penalty(curvatures, spread, variance, noise, least):
    """Return the penalty of the least expected squared error of scores, at least a given one."""
    largest = 10.0 * (least + float(curvatures.max()))
    penalties = np.geomspace(least, largest, N_PENALTIES)[:, np.newaxis]
    unlearned = penalties**2 * spread
    erring = curvatures * variance + noise**2
    errors = np.sum(curvatures * (unlearned + erring) / (curvatures + penalties) ** 2, axis=1)
    return float(penalties[np.argmin(errors), 0])


def least_strength(layout, degrees):
    """Return the least L2 penalty under which weights explain no more than so much by chance.

    Where there are about as many features as rows, columns explain the same residuals of the same
    rows, and are not even about uncorrelated with each other: then no formula of this module holds.

    Parameters
    ----------
    layout : Layout
    degrees : float
        As `explained_by_chance` counts.
    """
    moments, _ = spectrum(layout)
    least = 0.0
    largest = max(float(moments.sum()) / degrees, 0.0)
    for _ in range(BISECTIONS):
        middle = 0.5 * (least + largest)
        if np.sum(moments / (moments + max(middle, 1e-300))) > degrees:
            least = middle
        else:
            largest = middle
    return largest


def explained_by_chance(layout, strength, curvature=1.0):
    """Return how many independent features the weights of a penalty amount to.

    This is the trace of the matrix that maps targets to fitted values, the "effective degrees of
    freedom" (Efron 2004): times the variance of residuals it is the decrease of twice the squared
    error that weights have where columns say nothing.

    Parameters
    ----------
    layout : Layout
    strength : float
        The L2 penalty.
    curvature : float, default=1.0
        A usual one of the loss.
    """
    moments, _ = spectrum(layout)
    return float(np.sum(moments / (curvature * moments + strength)))
