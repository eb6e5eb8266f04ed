"""Mechanisms that choose one of several candidates by their scores."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skdp import noise as samplers
from skdp.accounting import ExponentialMechanism as ExponentialMechanismEvent
from skdp.mechanisms import _grid
from skdp.noise import SourceLike
from skdp.utils import _validation as checks
from skdp.utils._rounding import float_up
from skdp.utils._values import checked

_BLOCK = 1 << 14
_MIN_EXPONENT = 1074


def acceptance(scores, scale, stream):
    """Return a function that accepts candidates, each by a coin of its own, decided exactly.

    Candidate i is accepted with probability exp(-(max(scores) - scores[i]) / scale). The function
    takes positions, repeats allowed, and says whether each is accepted this time.
    """
    best = scores.max()
    with np.errstate(over="ignore", under="ignore"):
        exponents = (best - scores) / float(scale)

    def accepted(index):
        def exact(close):
            gaps = [_as_integer(best) - _as_integer(score) for score in scores[index[close]]]
            up = scale.denominator
            down = scale.numerator << _MIN_EXPONENT
            return np.array(gaps, dtype=object) * up, down

        return samplers.bernoulli_exp(exponents[index], exact, stream)

    return accepted


def choose_exponentially(n, accepted, stream):
    """Choose i with probability proportional to its acceptance: propose uniformly, accept."""
    block = min(_BLOCK, 4 * n)
    while True:
        proposals = samplers.uniform_integers(n, block, stream)
        heads = np.flatnonzero(accepted(proposals))
        if heads.size:
            return proposals[heads[0]]
        block = min(2 * block, _BLOCK)


def permute_and_flip(n, accepted, stream):
    """Flip a coin for each candidate in random order; the first head is chosen."""
    order = samplers.random_order(n, stream)
    return order[np.argmax(accepted(order))]


def _as_integer(score):
    """A float in units of 2**-1074, of which every float is a multiple."""
    numerator, denominator = float(score).as_integer_ratio()
    return (numerator << _MIN_EXPONENT) // denominator


@dataclass(frozen=True)
class _Selection(_grid.PureMechanism):
    """Parameters and utility of a choice, which `_choose` makes by chances of acceptance."""

    monotonic: bool = checked(checks.check_boolean, default=False)

    @classmethod
    def from_scale(
        cls, scale: float, sensitivity: float, monotonic: bool = False, **options: object
    ) -> Self:
        """Return the mechanism of a given scale: its epsilon is rounded up.

        Parameters
        ----------
        scale : float > 0
            The scale of the noise that Gumbel, exponential or Laplace noisy max would add.
        sensitivity : float > 0
            As in the constructor.
        monotonic : bool, default=False
            As in the constructor.
        **options : dict
            Further parameters of the mechanism.

        Returns
        -------
        mechanism
        """
        scale = checks.check_positive(scale, "scale")
        sensitivity = checks.check_positive(sensitivity, "sensitivity")
        factor = 1 if monotonic else 2
        return cls(_grid.round_up(factor * sensitivity / scale), sensitivity, monotonic, **options)

    @property
    def _factor(self):
        return 1 if self.monotonic else 2

    def expected_error(self, confidence: float = 0.95, size: int = 2) -> float:
        """Return by how much the chosen score falls short of the best at most.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            The probability with which the shortfall stays below.
        size : int, default=2
            The number of candidates.

        Returns
        -------
        float
            The shortfall is at most this, with probability `confidence` at least:
            ``scale * ln(size / (1 - confidence))``, and twice that for Laplace noise.
        """
        confidence = checks.check_within(confidence, "confidence", 0.0, 1.0, "()")
        size = checks.check_integer(size, "size", 1, math.inf)
        return self.scale * math.log(size / (1.0 - confidence))

    def release(self, scores: ArrayLike, *, random_state: SourceLike = None) -> int:
        """Return the index of the chosen candidate.

        Parameters
        ----------
        scores : array-like of shape (n_candidates,)
            -inf marks a candidate that is never chosen; which ones must not depend on the data.
        random_state : None, int or RandomSource, default=None
            None draws from the operating system's generator. An integer is reproducible and
            protects nothing.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If the scores are not a vector of numbers, one of them NaN or +inf, or all -inf.
        """
        array = _grid.as_floats(scores, "scores")
        if array.ndim != 1:
            raise ValueError(f"scores must be a vector, got an array of shape {array.shape}")
        if not np.all(array < np.inf):
            raise ValueError("scores must not be NaN or +inf")
        candidates = np.flatnonzero(array > -np.inf)
        if not candidates.size:
            raise ValueError("at least one score must be finite")
        stream = samplers.as_source(random_state).stream()
        return int(candidates[self._chosen(array[candidates], stream)])

    def _chosen(self, scores, stream):
        scale = Fraction(self.sensitivity) * self._factor / Fraction(self.epsilon)
        return self._choose(len(scores), acceptance(scores, scale, stream), stream)


@dataclass(frozen=True)
class ExponentialMechanism(_Selection):
    """Choose candidate i with probability proportional to exp(epsilon u_i / (2 sensitivity)).

    The choice is epsilon-DP. A candidate is proposed uniformly and accepted with probability
    ``exp(-epsilon (max(u) - u_i) / (2 sensitivity))``, decided exactly; scores are used as the
    rational numbers that the floats are.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one choice.
    sensitivity : float > 0
        By how much each single score can differ between neighboring data sets, under the relation
        that the accountant protects.
    monotonic : bool, default=False
        Whether all scores change in the same direction between neighbors, as counts do under
        add/remove but not under replace-one. The exponent is then epsilon u_i / sensitivity.

    Attributes
    ----------
    scale : float
        2 sensitivity / epsilon (monotonic: sensitivity / epsilon).
    event : skdp.accounting.ExponentialMechanism
        What one choice costs: the privacy loss has a bounded range.
    delta : float
        0.

    References
    ----------
    F. McSherry, K. Talwar, "Mechanism Design via Differential Privacy", 2007. D. Durfee, R.
    Rogers, "Practical Differentially Private Top-k Selection with Pay-what-you-get Composition",
    2019 (bounded range).

    Examples
    --------
    >>> from skdp.mechanisms import ExponentialMechanism
    >>> ExponentialMechanism(epsilon=100.0, sensitivity=1.0).release([1.0, 50.0, 3.0])
    1
    """

    name: ClassVar[str] = "Exponential mechanism"

    _event = ExponentialMechanismEvent
    _choose = staticmethod(choose_exponentially)


@dataclass(frozen=True)
class PermuteAndFlip(_Selection):
    """Choose a candidate by permute-and-flip: as private as the exponential mechanism, never worse.

    Candidates are visited in random order and each is accepted with probability
    ``exp(-epsilon (max(u) - u_i) / (2 sensitivity))``, decided exactly. The choice is epsilon-DP
    and its expected score is at least the exponential mechanism's. Its privacy loss has no bounded
    range, so that in compositions it can cost more.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one choice.
    sensitivity : float > 0
        By how much each single score can differ between neighboring data sets, under the relation
        that the accountant protects.
    monotonic : bool, default=False
        Whether all scores change in the same direction between neighbors, as counts do under
        add/remove but not under replace-one. The exponent is then twice as large.

    Attributes
    ----------
    scale : float
        2 sensitivity / epsilon (monotonic: sensitivity / epsilon).
    event : skdp.accounting.PureDP
        What one choice costs.
    delta : float
        0.

    References
    ----------
    R. McKenna, D. Sheldon, "Permute-and-Flip: A new mechanism for differentially private
    selection", 2020.

    Examples
    --------
    >>> from skdp.mechanisms import PermuteAndFlip
    >>> PermuteAndFlip(epsilon=100.0, sensitivity=1.0).release([1.0, 50.0, 3.0])
    1
    """

    name: ClassVar[str] = "Permute-and-flip"

    _choose = staticmethod(permute_and_flip)


# Whose price the index has that is largest with a noise; but for Laplace noise its law too.
_OF_NOISE: dict = {
    "gumbel": ExponentialMechanism,
    "laplace": PermuteAndFlip,
    "exponential": PermuteAndFlip,
}


@dataclass(frozen=True)
class ReportNoisyMax(_Selection):
    """Add noise to each score and return the index of the largest; nothing else is released.

    The choice is epsilon-DP. With Gumbel noise of scale 2 sensitivity / epsilon the index has
    exactly the law of the exponential mechanism, and with exponential noise that of
    permute-and-flip; the index is drawn from these laws. Laplace noise is added on a grid, where
    the rounding of the scores is charged to the sensitivity, and ties go to the first candidate.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one choice.
    sensitivity : float > 0
        By how much each single score can differ between neighboring data sets, under the relation
        that the accountant protects.
    monotonic : bool, default=False
        Whether all scores change in the same direction between neighbors, as counts do under
        add/remove but not under replace-one. Half the noise then suffices.
    noise : {"gumbel", "laplace", "exponential"}, default="gumbel"
        The distribution of the noise.

    Attributes
    ----------
    scale : float
        The scale of the noise, 2 sensitivity / epsilon (monotonic: sensitivity / epsilon).
    event : skdp.accounting.ExponentialMechanism or skdp.accounting.PureDP
        What one choice costs. Gumbel noise has a bounded range; the others are PureDP.
    delta : float
        0.

    References
    ----------
    Z. Ding, D. Kifer, et al., "The Permute-and-Flip Mechanism is Identical to
    Report-Noisy-Max with Exponential Noise", 2021. D. Durfee, R. Rogers, "Practical Differentially
    Private Top-k Selection with Pay-what-you-get Composition", 2019 (Gumbel noise). C. Dwork, A.
    Roth, "The Algorithmic Foundations of Differential Privacy", 2014, section 3.3 (Laplace noise).

    Examples
    --------
    >>> from skdp.mechanisms import ReportNoisyMax
    >>> mechanism = ReportNoisyMax(epsilon=100.0, sensitivity=1.0, noise="laplace")
    >>> mechanism.release([1.0, 50.0, 3.0])
    1
    """

    noise: str = checked(checks.check_choice, default="gumbel", choices=_OF_NOISE)

    name: ClassVar[str] = "Report noisy max"

    @property
    def _event(self):
        return _OF_NOISE[self.noise]._event

    @property
    def _choose(self):
        return _OF_NOISE[self.noise]._choose

    def __post_init__(self):
        super().__post_init__()
        if self.noise == "laplace":
            self._laplace_grid()

    def expected_error(self, confidence: float = 0.95, size: int = 2) -> float:
        bound = super().expected_error(confidence, size)
        if self.noise != "laplace":
            return bound
        step, scale = self._laplace_grid()
        return 2.0 * bound * (step * scale / self.scale)

    expected_error.__doc__ = _Selection.expected_error.__doc__

    def _chosen(self, scores, stream):
        if self.noise != "laplace":
            return super()._chosen(scores, stream)
        step, scale = self._laplace_grid()
        noise = samplers.discrete_laplace(scale, scores.size, stream)
        return np.argmax(_grid.to_steps(scores, step) + noise)

    def _laplace_grid(self):
        """Step and scale in steps: rounding moves the difference of two scores by one at most."""
        step = _grid.grid_step(self.scale, self.sensitivity)
        distance = Fraction(self.sensitivity) / Fraction(step) + 1
        scale = float_up(self._factor * distance / Fraction(self.epsilon))
        return step, _grid.check_steps(self, scale)
