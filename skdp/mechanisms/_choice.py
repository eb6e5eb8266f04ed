"""What the mechanisms that choose a candidate have in common."""

from fractions import Fraction

import numpy as np

from skdp.mechanisms._grid import as_floats
from skdp.noise import bernoulli_exp, random_order, uniform_integers

_BLOCK = 1 << 14
_MIN_EXPONENT = 1074


def check_scores(scores):
    """Return scores as a float64 vector; -inf marks a candidate that is never chosen."""
    array = as_floats(scores, "scores")
    if array.ndim != 1:
        raise ValueError(f"scores must be a vector, got an array of shape {array.shape}")
    if not np.all(array < np.inf):
        raise ValueError("scores must not be NaN or +inf")
    if np.all(array == -np.inf):
        raise ValueError("at least one score must be finite")
    return array


class Acceptance:
    """Accept a candidate with probability exp(-(best score - its score) / scale), exactly.

    The scale is the rational number sensitivity * factor / epsilon.
    """

    def __init__(self, scores, epsilon, sensitivity, factor):
        self._scores = scores
        self._best = scores.max()
        scale = Fraction(sensitivity) * factor / Fraction(epsilon)
        self._up, self._down = scale.denominator, scale.numerator << _MIN_EXPONENT
        with np.errstate(over="ignore", under="ignore"):
            self._exponents = (self._best - scores) / float(scale)

    def draw(self, index, stream):
        """Whether each candidate at `index` (repeats allowed) is accepted this time."""

        def exact(close):
            best = _as_integer(self._best)
            gaps = [best - _as_integer(score) for score in self._scores[index[close]]]
            return np.array(gaps, dtype=object) * self._up, self._down

        return bernoulli_exp(self._exponents[index], exact, stream)


def choose_exponentially(scores, acceptance, stream):
    """Choose i with probability proportional to its acceptance: propose uniformly, accept."""
    candidates = np.flatnonzero(scores > -np.inf)
    block = min(_BLOCK, 4 * candidates.size)
    while True:
        proposals = candidates[uniform_integers(candidates.size, block, stream)]
        accepted = np.flatnonzero(acceptance.draw(proposals, stream))
        if accepted.size:
            return int(proposals[accepted[0]])
        block = min(2 * block, _BLOCK)


def permute_and_flip(scores, acceptance, stream):
    """Flip a coin for each candidate in random order; the first head is chosen."""
    candidates = np.flatnonzero(scores > -np.inf)
    order = candidates[random_order(candidates.size, stream)]
    heads = np.flatnonzero(acceptance.draw(order, stream))
    return int(order[heads[0]])


def _as_integer(score):
    """A float in units of 2**-1074, of which every float is a multiple."""
    numerator, denominator = float(score).as_integer_ratio()
    return (numerator << _MIN_EXPONENT) // denominator
