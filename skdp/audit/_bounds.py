r"""Lower bounds on epsilon from what an attacker got right, each with its confidence.

Two worlds: a test of "was the record in the table?" has a false-positive rate :math:`\alpha` and a
false-negative rate :math:`\beta`, and (epsilon, delta)-DP demands
:math:`1 - \beta \le e^\varepsilon \alpha + \delta` and the same with the worlds exchanged (Kairouz,
Oh and Viswanath 2015). Exact binomial limits make the rates certain up to the confidence
(Clopper and Pearson 1934; Jagielski, Ullman and Oprea 2020).

One run: m canaries are each put in by a fair coin of its own, and an attacker guesses some of the
coins from the one fitted model. Steinke, Nasr and Jagielski 2023 (theorem 5.2) bound how many
guesses can be right under (epsilon, delta)-DP; Mahloujifar, Melis and Chaudhuri 2024 do so for any
trade-off function, which is tighter where the function is known to be a Gaussian's.
"""

import math

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom

from skdp.accounting import gdp_to_epsilon
from skdp.utils._validation import check_delta, check_integer, check_real

__all__ = [
    "epsilon_from_rates",
    "gaussian_epsilon_from_rates",
    "one_run_epsilon",
    "one_run_gaussian_epsilon",
]

LARGEST_EPSILON = 100.0
LARGEST_MU = 30.0


def epsilon_from_rates(true_positives, n_in, false_positives, n_out, *, delta=0.0, confidence=0.95):
    """Return the epsilon that one test's two frequencies certify.

    The test and its threshold must have been chosen without these counts, on other runs.

    Parameters
    ----------
    true_positives, n_in : int
        How often the test said "in" in so many runs with the record.
    false_positives, n_out : int
        How often it said "in" in so many runs without.
    delta : float, default=0.0
        The delta of the claim.
    confidence : float, default=0.95
        With this probability at least, the true epsilon at `delta` is no less than what is
        returned.

    Returns
    -------
    float
        At least 0. It is a lower bound: it never says how private a mechanism is, only how
        private it is not.

    References
    ----------
    M. Jagielski, J. Ullman, A. Oprea, "Auditing Differentially Private Machine Learning: How
    Private is Private SGD?", 2020.

    Examples
    --------
    >>> from skdp.audit import epsilon_from_rates
    >>> round(epsilon_from_rates(900, 1000, 100, 1000), 3)
    1.962
    """
    delta = check_delta(delta)
    low_in, high_out, low_out, high_in = _rates(
        true_positives, n_in, false_positives, n_out, confidence
    )
    # "in" is the event, or "out" is; the worlds exchange their parts.
    return max(0.0, _log_ratio(low_in - delta, high_out), _log_ratio(low_out - delta, high_in))


def gaussian_epsilon_from_rates(
    true_positives, n_in, false_positives, n_out, *, delta, confidence=0.95
):
    """Return the epsilon that one test certifies if the trade-off curve is a Gaussian's.

    The frequencies bound the mu of Gaussian differential privacy from below, and mu gives
    epsilon at delta. That uses the whole curve where `epsilon_from_rates` uses a point of it,
    and holds only where the mechanism's trade-off curve is known to be that of a Gaussian
    mechanism: full-batch steps with Gaussian noise, say.

    Parameters
    ----------
    true_positives, n_in, false_positives, n_out : int
        As in `epsilon_from_rates`.
    delta : float
        At which epsilon is stated, above 0.
    confidence : float, default=0.95

    Returns
    -------
    float

    References
    ----------
    M. Nasr et al., "Tight Auditing of Differentially Private Machine Learning", 2023.

    Examples
    --------
    >>> from skdp.audit import gaussian_epsilon_from_rates
    >>> round(gaussian_epsilon_from_rates(900, 1000, 100, 1000, delta=1e-5), 2)
    12.01
    """
    delta = check_delta(delta)
    if delta == 0.0:
        raise ValueError("delta must be above 0: a Gaussian mechanism has no epsilon at 0")
    low_in, high_out, _, _ = _rates(true_positives, n_in, false_positives, n_out, confidence)
    mu = float(ndtri(low_in) - ndtri(high_out)) if low_in > 0.0 and high_out < 1.0 else 0.0
    return gdp_to_epsilon(mu, delta) if mu > 0.0 else 0.0


def one_run_epsilon(correct, guesses, canaries, *, delta=0.0, confidence=0.95, method="f-dp"):
    """Return the epsilon that guesses about canaries in one run certify.

    Each canary was put in by a fair coin of its own; which canaries are guessed may depend on
    the model, how many must not.

    Parameters
    ----------
    correct, guesses, canaries : int
        How many guesses were right, of how many, about how many canaries.
    delta : float, default=0.0
        The delta of the claim.
    confidence : float, default=0.95
    method : {"f-dp", "binomial"}, default="f-dp"
        The recursion of Mahloujifar, Melis and Chaudhuri 2024 for the trade-off function of
        (epsilon, delta)-DP, or theorem 5.2 of Steinke, Nasr and Jagielski 2023.

    Returns
    -------
    float

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy Auditing with One (1) Training Run", 2023.
    S. Mahloujifar, L. Melis, K. Chaudhuri, "Auditing f-Differential Privacy in One Run", 2024.

    Examples
    --------
    >>> from skdp.audit import one_run_epsilon
    >>> round(one_run_epsilon(90, 100, 1000, method="binomial"), 2)
    1.63
    """
    counts = _counts(correct, guesses, canaries)
    delta, p = check_delta(delta), _error(confidence)
    if method == "binomial":
        return _largest(
            lambda epsilon: _binomial_tail(*counts, epsilon, delta) < p, LARGEST_EPSILON
        )
    if method != "f-dp":
        raise ValueError(f"method must be 'f-dp' or 'binomial', got {method!r}")

    def rejected(epsilon):
        def least(r):
            return max(
                0.0,
                (r - delta) * math.exp(-epsilon),
                1.0 - delta - math.exp(epsilon) * (1.0 - r),
            )

        return _recursion_rejects(*counts, least, p)

    return _largest(rejected, LARGEST_EPSILON)


def one_run_gaussian_epsilon(correct, guesses, canaries, *, delta, confidence=0.95):
    """Return the epsilon that guesses in one run certify if the trade-off curve is a Gaussian's.

    Parameters
    ----------
    correct, guesses, canaries : int
        As in `one_run_epsilon`.
    delta : float
        At which epsilon is stated, above 0.
    confidence : float, default=0.95

    Returns
    -------
    float
        Holds only where the mechanism's trade-off curve is known to be a Gaussian's.

    References
    ----------
    S. Mahloujifar, L. Melis, K. Chaudhuri, "Auditing f-Differential Privacy in One Run", 2024.

    Examples
    --------
    >>> from skdp.audit import one_run_gaussian_epsilon
    >>> one_run_gaussian_epsilon(50, 100, 1000, delta=1e-5)
    0.0
    """
    counts = _counts(correct, guesses, canaries)
    delta, p = check_delta(delta), _error(confidence)
    if delta == 0.0:
        raise ValueError("delta must be above 0: a Gaussian mechanism has no epsilon at 0")

    def rejected(mu):
        return _recursion_rejects(*counts, lambda r: float(ndtr(ndtri(r) - mu)), p)

    mu = _largest(rejected, LARGEST_MU)
    return gdp_to_epsilon(mu, delta) if mu > 0.0 else 0.0


def clopper_pearson(hits, n, confidence):
    """Return the exact two-sided limits of a binomial rate.

    Parameters
    ----------
    hits, n : int
    confidence : float

    Returns
    -------
    low, high : float
    """
    alpha = (1.0 - confidence) / 2.0
    low = float(beta.ppf(alpha, hits, n - hits + 1)) if hits > 0 else 0.0
    high = float(beta.ppf(1.0 - alpha, hits + 1, n - hits)) if hits < n else 1.0
    return low, high


def _rates(true_positives, n_in, false_positives, n_out, confidence):
    """Return the worst rates of "in" and of "out" that are within the confidence.

    Four one-sided limits, two of which a bound uses: each has half of the error.
    """
    for hits, n, name in (
        (true_positives, n_in, "true_positives"),
        (false_positives, n_out, "false_positives"),
    ):
        if not 0 <= check_integer(hits, name, 0) <= check_integer(n, "the number of runs", 1):
            raise ValueError(f"{name} must not exceed its number of runs, got {hits} of {n}")
    # Both limits of both rates hold together with the confidence, so that the better of the two
    # events may be taken.
    each = 1.0 - _error(confidence) / 2.0
    low_in, high_in = clopper_pearson(true_positives, n_in, each)
    low_out, high_out = clopper_pearson(false_positives, n_out, each)
    return low_in, high_out, 1.0 - high_out, 1.0 - low_in


def _log_ratio(low, high):
    return math.log(low / high) if low > 0.0 else -math.inf


def _binomial_tail(correct, guesses, canaries, epsilon, delta):
    """Return theorem 5.2's bound on the chance of so many right guesses (Steinke et al. 2023)."""
    p = 1.0 / (1.0 + math.exp(-epsilon))
    tail = binom.sf(correct - 1, guesses, p)
    if delta == 0.0:
        return float(tail)
    i = np.arange(1, correct + 1)
    excess = (binom.sf(correct - 1 - i, guesses, p) - tail) / i
    return float(tail + 2.0 * canaries * delta * excess.max(initial=0.0))


def _recursion_rejects(correct, guesses, canaries, least, p):
    r"""Say whether so many right guesses have a chance below p under a trade-off function.

    Let W be the number of right guesses and :math:`r_i`, :math:`h_i` be 1/m times the expected
    numbers of right and of wrong guesses on the event :math:`W \ge i`. For one canary and
    :math:`i` right guesses among the others, f-DP bounds right by wrong, so that
    :math:`h_i \ge g(r_{i+1})` with g the inverse of :math:`1 - f`; and
    :math:`r_i = r_{i+1} + \frac{i}{c' - i}(h_i - h_{i+1})` with c' guesses. If
    :math:`P(W \ge c) = p`, the least that the recursion reaches must not exceed the total
    :math:`r_0 + h_0 = c'/m`.

    Parameters
    ----------
    correct, guesses, canaries : int
        c, c' and m.
    least : callable
        g, the least probability of a wrong guess beside one of a right guess.
    p : float
    """
    right, wrong = p * correct / canaries, p * (guesses - correct) / canaries
    for i in range(correct - 1, -1, -1):
        more = max(wrong, least(right))
        right += i / (guesses - i) * (more - wrong)
        wrong = more
        if right + wrong > guesses / canaries:
            return True
    return False


def _largest(rejected, limit):
    """Return the largest parameter that is rejected, rounded down; 0 if none is."""
    if not rejected(0.0):
        return 0.0
    if rejected(limit):
        return limit
    low, high = 0.0, limit
    while high - low > 1e-6:
        middle = (low + high) / 2.0
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def _counts(correct, guesses, canaries):
    correct = check_integer(correct, "correct", 0)
    guesses = check_integer(guesses, "guesses", correct)
    return correct, guesses, check_integer(canaries, "canaries", max(guesses, 1))


def _error(confidence):
    confidence = check_real(confidence, "confidence")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    return 1.0 - confidence
