"""Mechanisms that choose one of several candidates by their scores, sampled exactly."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

import skdp.noise as samplers
from skdp.accounting import ExponentialMechanism as ExponentialMechanismEvent
from skdp.mechanisms import _grid
from skdp.noise import SourceLike
from skdp.utils import _validation as checks
from skdp.utils._rounding import float_up
from skdp.utils._values import checked

# Maximum number of candidates that are proposed at once, to limit memory.
_BLOCK = 1 << 14
# Every float64 is an integer multiple of 2**-1074.
_MIN_EXPONENT = 1074


def acceptance(scores, scale, stream):
    """Return a function that accepts or rejects candidates independently at random.

    Candidate i is accepted with probability exp(-(max(scores) - scores[i]) / scale). This is
    decided exactly: in floats, or in rational numbers if floats are too close to decide.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,), float64
    scale : Fraction
    stream : Stream

    Returns
    -------
    callable
        Function of an array of indices, which may repeat, that returns a boolean for each of them.
    """
    best = scores.max()
    with np.errstate(over="ignore", under="ignore"):
        exponents = (best - scores) / float(scale)

    def accepted(index):
        """Return a boolean for each of some indices, which may repeat."""

        def exact(close):
            """Return the exponents of undecided candidates, as integers and their denominator."""
            differences = [_as_integer(best) - _as_integer(x) for x in scores[index[close]]]
            denominator = scale.numerator << _MIN_EXPONENT
            return np.array(differences, dtype=object) * scale.denominator, denominator

        return samplers.bernoulli_exp(exponents[index], exact, stream)

    return accepted


def choose_exponentially(n, accepted, stream):
    """Return an index with probability proportional to its acceptance (rejection sampling).

    `accepted` is a function that `acceptance` returns. Candidates are proposed uniformly, in
    blocks, until one is accepted.
    """
    block = min(_BLOCK, 4 * n)
    while True:
        proposals = samplers.uniform_integers(n, block, stream)
        accepted_indices = np.flatnonzero(accepted(proposals))
        if accepted_indices.size:
            return proposals[accepted_indices[0]]
        block = min(2 * block, _BLOCK)


def permute_and_flip(n, accepted, stream):
    """Return the index of the first accepted candidate in a random order.

    `accepted` is a function that `acceptance` returns: it accepts the best candidate always, and
    others at random, so at least one of the n candidates is accepted. As all candidates are decided
    at once, those after the first accepted one do not matter.
    """
    order = samplers.random_order(n, stream)
    return order[np.argmax(accepted(order))]


def _as_integer(score):
    """Return a float in units of 2**-1074, of which every float is a multiple."""
    numerator, denominator = float(score).as_integer_ratio()
    return (numerator << _MIN_EXPONENT) // denominator


@dataclass(frozen=True)
class _Selection(_grid.PureMechanism):
    """Base class of mechanisms that choose a candidate.

    A subclass defines ``_choose(n, accepted, stream)``, which returns the index of one of n
    candidates. `accepted` is a function that `acceptance` returns.
    """

    monotonic: bool = checked(checks.check_boolean, default=False)

    @classmethod
    def from_scale(
        cls, scale: float, sensitivity: float, monotonic: bool = False, **options: object
    ) -> Self:
        """Return the mechanism with the given scale; its epsilon is rounded up.

        Parameters
        ----------
        scale : float > 0
            Scale of the Gumbel, exponential or Laplace noise in report noisy max.
        sensitivity : float > 0
            Sensitivity as in the constructor.
        monotonic : bool, default=False
            Flag as in the constructor.
        **options : dict
            Further parameters of the mechanism.

        Returns
        -------
        mechanism
        """
        scale = checks.check_positive(scale, "scale")
        sensitivity = checks.check_positive(sensitivity, "sensitivity")
        factor = 2
        if monotonic:
            factor = 1
        return cls(_grid.round_up(factor * sensitivity / scale), sensitivity, monotonic, **options)

    @property
    def _factor(self):
        """Scale of the noise, relative to sensitivity / epsilon."""
        if self.monotonic:
            return 1
        return 2

    def expected_error(self, confidence: float = 0.95, size: int = 2) -> float:
        """Return a bound, not a mean, on the difference between the best and the chosen score.

        Parameters
        ----------
        confidence : float in (0, 1), default=0.95
            Probability that the difference is at most the returned bound.
        size : int, default=2
            Number of candidates.

        Returns
        -------
        float
            ``scale * ln(size / (1 - confidence))``, and twice that for Laplace noise. With
            probability at least `confidence` the difference is at most this.
        """
        confidence = checks.check_within(confidence, "confidence", 0.0, 1.0, "()")
        size = checks.check_integer(size, "size", 1, math.inf)
        return self.scale * math.log(size / (1.0 - confidence))

    def release(self, scores: ArrayLike, *, random_state: SourceLike = None) -> int:
        """Return the index of the chosen candidate.

        Parameters
        ----------
        scores : array-like of shape (n_candidates,)
            Scores. A candidate with -inf is never chosen; the set of these candidates must not
            depend on the data.
        random_state : None, int or RandomSource, default=None
            None draws from the operating system's generator. An integer makes the noise
            reproducible, so there is no protection.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If the scores are not a vector of numbers, contain NaN or +inf, or are all -inf.
        """
        array = _grid.as_floats(scores, "scores")
        if array.ndim != 1:
            raise ValueError(f"scores must be a vector, got an array of shape {array.shape}")
        if not np.all(array < np.inf):
            raise ValueError("scores must not be NaN or +inf")
        candidates = np.flatnonzero(array > -np.inf)
        if not candidates.size:
            raise ValueError("scores must contain a finite number, got only -inf")
        stream = samplers.as_source(random_state).stream()
        return int(candidates[self._chosen(array[candidates], stream)])

    def _chosen(self, scores, stream):
        """Return the index of the chosen candidate among finite scores."""
        scale = Fraction(self.sensitivity) * self._factor / Fraction(self.epsilon)
        return self._choose(len(scores), acceptance(scores, scale, stream), stream)


@dataclass(frozen=True)
class ExponentialMechanism(_Selection):
    """Choose candidate i with probability proportional to exp(epsilon u_i / (2 sensitivity)).

    The choice is epsilon-DP. A candidate is proposed uniformly and accepted with probability
    ``exp(-epsilon (max(u) - u_i) / (2 sensitivity))``. This is decided exactly, with the scores as
    rational numbers.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one choice.
    sensitivity : float > 0
        Maximum change of a single score between neighboring datasets, under the accountant's
        neighboring relation.
    monotonic : bool, default=False
        True if all scores change in the same direction between neighbors, as counts do under
        add/remove but not under replace-one. The exponent is then epsilon u_i / sensitivity.

    Attributes
    ----------
    scale : float
        2 sensitivity / epsilon, or sensitivity / epsilon if monotonic.
    event : skdp.accounting.ExponentialMechanism
        Privacy event of one choice: the privacy loss has a bounded range.
    delta : float
        It is 0.

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
    """Choose a candidate by permute-and-flip, which is never worse than the exponential mechanism.

    Candidates are visited in random order and each is accepted with probability
    ``exp(-epsilon (max(u) - u_i) / (2 sensitivity))``, decided exactly. The choice is epsilon-DP
    and its expected score is at least that of the exponential mechanism. Its privacy loss has no
    bounded range, so it can cost more under composition.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one choice.
    sensitivity : float > 0
        Maximum change of a single score between neighboring datasets, under the accountant's
        neighboring relation.
    monotonic : bool, default=False
        True if all scores change in the same direction between neighbors, as counts do under
        add/remove but not under replace-one. The exponent is then twice as large.

    Attributes
    ----------
    scale : float
        2 sensitivity / epsilon, or sensitivity / epsilon if monotonic.
    event : skdp.accounting.PureDP
        Privacy event of one choice.
    delta : float
        It is 0.

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


# For each noise distribution, the mechanism with the same event as the index of the largest noisy
# score. With Gumbel and exponential noise, the index also has the distribution of that mechanism's
# choice, so it is drawn by that mechanism. With Laplace noise, only the event is used.
_EQUIVALENT: dict = {
    "gumbel": ExponentialMechanism,
    "laplace": PermuteAndFlip,
    "exponential": PermuteAndFlip,
}


@dataclass(frozen=True)
class ReportNoisyMax(_Selection):
    """Add noise to each score and return the index of the largest; nothing else is released.

    The choice is epsilon-DP. With Gumbel noise of scale 2 sensitivity / epsilon, the index has
    exactly the distribution of the exponential mechanism; with exponential noise, that of
    permute-and-flip. It is therefore drawn from these distributions. Laplace noise is added on a
    grid: the sensitivity is raised for the rounding of the scores, and the first of equal scores is
    chosen.

    Parameters
    ----------
    epsilon : float > 0
        The privacy loss of one choice.
    sensitivity : float > 0
        Maximum change of a single score between neighboring datasets, under the accountant's
        neighboring relation.
    monotonic : bool, default=False
        True if all scores change in the same direction between neighbors, as counts do under
        add/remove but not under replace-one. Half the noise is then sufficient.
    noise : {"gumbel", "laplace", "exponential"}, default="gumbel"
        The distribution of the noise.

    Attributes
    ----------
    scale : float
        The scale of the noise, 2 sensitivity / epsilon, or sensitivity / epsilon if monotonic.
    event : skdp.accounting.ExponentialMechanism or skdp.accounting.PureDP
        Privacy event of one choice. With Gumbel noise, the privacy loss has a bounded range.
    delta : float
        It is 0.

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

    noise: str = checked(checks.check_choice, default="gumbel", choices=_EQUIVALENT)

    name: ClassVar[str] = "Report noisy max"

    @property
    def _event(self):
        return _EQUIVALENT[self.noise]._event

    @property
    def _choose(self):
        """The choice of the equivalent mechanism; `_chosen` does not use it for Laplace noise."""
        return _EQUIVALENT[self.noise]._choose

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
        """Return the index of the choice; with Laplace noise, that of the largest noisy score."""
        if self.noise != "laplace":
            return super()._chosen(scores, stream)
        step, scale = self._laplace_grid()
        noise = samplers.discrete_laplace(scale, scores.size, stream)
        return np.argmax(_grid.to_steps(scores, step) + noise)

    def _laplace_grid(self):
        """Return the grid step, and the noise scale in steps.

        Rounding changes the difference between two scores by at most one step.
        """
        step = _grid.grid_step(self.scale, self.sensitivity)
        distance = Fraction(self.sensitivity) / Fraction(step) + 1
        scale = float_up(self._factor * distance / Fraction(self.epsilon))
        return step, _grid.check_steps(self, scale)
