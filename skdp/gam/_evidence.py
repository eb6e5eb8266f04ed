r"""The L2 penalty chosen by evidence, and the decrease in loss that weights achieve by chance.

Both are computed from released and public values (noisy counts, noisy weights, a noisy variance of
the targets, the scale of the noise), so they are post-processing.

In the basis in which a column's features are uncorrelated, let the weights have mean 0 and variance
:math:`\tau^2`, and let :math:`g_j` be the response of the steps to a constant gradient of 1
(`averaged_response`). With the curvature :math:`h_j`, the variance :math:`\sigma^2` of residuals
and the noise variance :math:`s_j^2` of the mean of iterates, the observed mean :math:`z_j` has

.. math:: E z_j^2 = (g_j h_j)^2 \tau^2 + g_j^2 h_j \sigma^2 + s_j^2 .

The equation is solved for :math:`\tau^2`, which is the method of moments for a variance component.
The penalty is the one that minimizes the expected squared error of scores. Columns are assumed to
be uncorrelated with each other. The derivation is in `docs/theory/additive_models.md`, section 8a.
"""

import math

import numpy as np

from skdp.gam._descent import descend

# Number of curvatures for which the response of the steps is computed; it is interpolated for
# others.
N_CURVATURES = 60
# Smallest positive curvature of that grid, relative to the largest.
MIN_CURVATURE = 1e-6
# Number of penalties that are compared.
N_PENALTIES = 80
# Number of standard deviations added to the estimated variance of the weights, so that a variance
# that cannot be distinguished from 0 is not assumed to be 0.
VARIANCE_MARGIN_STDS = 1.0
N_BISECTIONS = 40
# Features of a term with more cells are assumed to be uncorrelated, because the eigenvalue problem
# would be too large.
MAX_CELLS = 400
# Smallest and largest clip of residuals, in their standard deviations, that a released mean square
# may imply. At the smallest, two residuals of five are within the clip.
CLIPS_IN_STDS = (0.524, 30.0)


def spectrum(design, weights=None):
    """Return the eigenvalues of the features' covariance, and weights in its eigenbasis.

    Features of different terms are assumed to be uncorrelated. Within a term, the covariance is
    computed from noisy counts, because all blocks of a term group the same cells.

    Parameters
    ----------
    design : BlockDesign
    weights : ndarray of shape (design.size, n_outputs), default=None

    Returns
    -------
    curvatures : ndarray of shape (n,)
        Eigenvalues for the features of all terms except the constant, as sums over rows.
    rotated : ndarray of shape (n, n_outputs) or None
        Weights in the basis of eigenvectors.
    """
    curvatures = [np.zeros(0)]
    rotated = []
    for slices, values, vectors in _decompositions(design):
        curvatures.append(values)
        if weights is not None:
            term_weights = np.concatenate([weights[block_slice] for block_slice in slices])
            if vectors is not None:
                term_weights = vectors.T @ term_weights
            rotated.append(term_weights)
    if weights is None:
        return np.concatenate(curvatures), None
    return np.concatenate(curvatures), np.concatenate([np.zeros((0, weights.shape[1])), *rotated])


def _decompositions(design):
    """Return, for each term except the constant, the slices of its weights and its eigenvectors.

    They are computed once for each design.
    """
    if design.decompositions is None:
        decompositions = {}
        design.decompositions = []
        for blocks, slices in _term_blocks(design):
            # While a plan is made, before counts are released, columns often have equal counts.
            key = tuple(block.key for block in blocks)
            if key not in decompositions:
                decompositions[key] = _eigenvectors(blocks)
            design.decompositions.append((slices, *decompositions[key]))
    return design.decompositions


def term_decomposition(design, term):
    """Return the eigenvalues of one term's covariance, and its eigenvectors (None if diagonal)."""
    terms = [block.term for block in design.blocks if block.term >= 0]
    position = list(dict.fromkeys(terms)).index(term)
    return _decompositions(design)[position][1:]


def _term_blocks(design):
    """Return, for each term except the constant, its blocks and the slices of their weights.

    A term is a column or a combination of columns; a block is one group of its features, such as
    its trend or the cells of one resolution. The constant has a negative term.
    """
    terms = {}
    # The last of the offsets is the end of the last block.
    for block, start in zip(design.blocks, design.offsets[:-1], strict=True):
        if block.term >= 0:
            blocks, slices = terms.setdefault(block.term, ([], []))
            blocks.append(block)
            slices.append(slice(start, start + block.size))
    return terms.values()


def _eigenvectors(blocks):
    """Return the eigenvalues of a term's covariance, and its eigenvectors (None if diagonal)."""
    counts = blocks[0].cell_counts
    if counts is None:
        counts = blocks[0].counts
    counts = np.maximum(counts, 0.0)
    is_diagonal = len(blocks) == 1 and blocks[0].is_indicator
    if is_diagonal or len(counts) > MAX_CELLS:
        moments = [np.maximum(block.moments, 0.0) for block in blocks]
        return np.concatenate(moments), None
    if blocks[0].table is not None:
        values, vectors = blocks[0].table.decomposition
        return blocks[0].weight ** 2 * values, vectors
    features = np.concatenate([block.matrix for block in blocks], axis=1)
    sums = counts @ features
    moment = features.T @ (counts[:, np.newaxis] * features)
    values, vectors = np.linalg.eigh(moment - np.outer(sums, sums) / max(counts.sum(), 1.0))
    return np.maximum(values, 0.0), vectors


def averaged_response(curvatures, schedule):
    """Return the response to gradients and to noise of the mean of the second quarter of steps.

    On a quadratic loss, Nesterov's steps are a linear filter of the gradients added to the gradient
    of the loss. So the impulse response, to a gradient in the first step only, determines the
    response to all gradients.

    Parameters
    ----------
    curvatures : ndarray of shape (n,)
    schedule : Schedule

    Returns
    -------
    gain : ndarray of shape (n,)
        Change in the mean if the gradient in each step is -1.
    noise : ndarray of shape (n,)
        Variance of the mean if the gradients are independent with variance 1.
    """
    max_curvature = max(float(curvatures.max(initial=0.0)), 1e-300)
    grid = np.append(0.0, np.geomspace(MIN_CURVATURE * max_curvature, max_curvature, N_CURVATURES))
    half = schedule.n_steps // 2
    averaged_from = half // 2 + 1
    # Impulse response: weights[t] is the iterate after t steps.
    weights = np.zeros((half + 1, len(grid)))
    lookahead = np.zeros(len(grid))
    for t in range(half):
        impulse = float(t == 0)
        gradient = (grid + schedule.l2_reg_strength) * lookahead - impulse
        weights[t + 1] = lookahead - gradient / schedule.smoothness
        lookahead = weights[t + 1] + schedule.momentum * (weights[t + 1] - weights[t])
    sums = np.cumsum(weights, axis=0)
    # A gradient in step s affects those averaged iterates, `averaged_from` to `half`, that follow
    # it.
    upper = sums[half - np.arange(half)]
    lower = sums[np.maximum(averaged_from - 1 - np.arange(half), 0)]
    responses = (upper - lower) / (half - averaged_from + 1)
    log_curvatures = np.log(curvatures + grid[1])
    log_grid = np.log(grid + grid[1])
    gain = np.interp(log_curvatures, log_grid, responses.sum(axis=0))
    log_noise = np.log((responses**2).sum(axis=0) + 1e-300)
    noise = np.exp(np.interp(log_curvatures, log_grid, log_noise))
    return gain, noise


def penalty_by_evidence(design, weights, schedule, *, variance, step_noise, noise, curvature=1.0):
    """Return the regularization strength that the mean of early iterates implies.

    Parameters
    ----------
    design : BlockDesign
    weights : ndarray of shape (design.size, n_outputs)
        Mean of the iterates of the second quarter of the steps.
    schedule : Schedule
    variance : float
        Variance of residuals, in units of the loss's curvature. Multiplied by the second moment of
        a feature, it is the sampling variance of the gradient.
    step_noise : float
        Standard deviation of the noise in the gradient of each step.
    noise : float
        Standard deviation of the noise in a single step that would cost as much as all steps.
    curvature : float, default=1.0
        Typical curvature of the loss.

    Returns
    -------
    float
        At least the strength of the schedule.
    """
    moments, observed = spectrum(design, weights)
    curvatures = curvature * moments
    gain, noise_gain = averaged_response(curvatures, schedule)
    signal = (gain * curvatures) ** 2
    expected = gain**2 * curvatures * variance + noise_gain * step_noise**2
    # If there is no signal, these weights minimize the variance of the weighted mean.
    moment_weights = signal / np.maximum(expected, 1e-300) ** 2
    total = weights.shape[1] * float(moment_weights @ signal)
    if total <= 0.0:
        return schedule.l2_reg_strength
    excess = (observed**2).sum(axis=1) - weights.shape[1] * expected
    std = math.sqrt(2.0 * weights.shape[1] * float(np.sum((moment_weights * expected) ** 2)))
    weight_variance = (float(moment_weights @ excess) + VARIANCE_MARGIN_STDS * std) / total
    return _best_penalty(
        curvatures, max(weight_variance, 0.0), variance, noise, schedule.l2_reg_strength
    )


def _best_penalty(curvatures, weight_variance, variance, noise, min_strength):
    """Return the penalty with the smallest expected squared error of scores."""
    max_strength = 10.0 * (min_strength + float(curvatures.max()))
    penalties = np.geomspace(min_strength, max_strength, N_PENALTIES)[:, np.newaxis]
    squared_bias = penalties**2 * weight_variance
    estimation_variance = curvatures * variance + noise**2
    weighted = curvatures * (squared_bias + estimation_variance)
    errors = np.sum(weighted / (curvatures + penalties) ** 2, axis=1)
    return float(penalties[np.argmin(errors), 0])


def min_l2_reg_strength(design, max_dof):
    """Return the smallest L2 penalty with at most `max_dof` effective degrees of freedom.

    If there are about as many features as rows, columns explain the same residuals of the same rows
    and are far from uncorrelated. The formulas in this module then do not hold.

    Parameters
    ----------
    design : BlockDesign
    max_dof : float
        Maximum of the trace of the matrix that maps targets to fitted values.
    """
    if max_dof in design.min_strengths:
        return design.min_strengths[max_dof]
    moments, _ = spectrum(design)
    low = 0.0
    high = max(float(moments.sum()) / max_dof, 0.0)
    for _ in range(N_BISECTIONS):
        middle = 0.5 * (low + high)
        if (moments / (moments + max(middle, 1e-300))).sum() > max_dof:
            low = middle
        else:
            high = middle
    design.min_strengths[max_dof] = high
    return high


def chance_dof(design, schedule, l2_reg_strength, slope=1.0):
    """Return the effective degrees of freedom of the weights after all steps (Efron 2004).

    On a quadratic loss, the weights are a linear function of the targets. This is the trace of the
    matrix that maps targets to fitted values. Multiplied by the variance of residuals, it is the
    sum over the rows of the covariance of fitted values and targets if columns are not related to
    the targets. The mean of the last iterates still contains iterates that the strength of the
    first steps determined, so the trace is computed by taking the steps in each eigendirection.

    Parameters
    ----------
    design : BlockDesign
    schedule : Schedule
        Schedule of the first half of the steps.
    l2_reg_strength : float
        Regularization strength of the second half.
    slope : float, default=1.0
        Curvature of a row's loss: the fraction of rows whose residual is not clipped.
    """
    moments, _ = spectrum(design)

    def gradient(weights):
        return slope * moments * weights - 1.0

    def penalty(_):
        return l2_reg_strength

    start = np.zeros(len(moments))
    responses, _ = descend(gradient, schedule, start, math.inf, penalty=penalty)
    return float(moments @ responses)


def unclipped_fraction(mean_square):
    """Return the fraction of normal residuals within their clip, from their mean clipped square.

    For a residual with standard deviation 1 and the clip z, the mean square in units of the squared
    clip is (P(|r| < z) - 2 z phi(z)) / z**2 + P(|r| > z), which decreases from 1 to 0.

    Parameters
    ----------
    mean_square : float
        Released mean of squared clipped residuals, in units of the squared clip.
    """
    low, high = CLIPS_IN_STDS
    for _ in range(N_BISECTIONS):
        middle = math.sqrt(low * high)
        inside = math.erf(middle / math.sqrt(2.0))
        density = math.exp(-(middle**2) / 2.0) / math.sqrt(2.0 * math.pi)
        if (inside - 2.0 * middle * density) / middle**2 + 1.0 - inside > mean_square:
            low = middle
        else:
            high = middle
    return math.erf(math.sqrt(low * high) / math.sqrt(2.0))
