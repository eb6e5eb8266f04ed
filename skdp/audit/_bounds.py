r"""Lower bounds on epsilon from the success of an attacker, with a stated confidence.

Two tables: a test of whether the record was in the table has a false-positive rate :math:`\alpha`
and a false-negative rate :math:`\beta`, and (epsilon, delta)-DP implies :math:`1 - \beta \le
e^\varepsilon \alpha + \delta` and the same with the tables exchanged (Kairouz, Oh and Viswanath
2015). Exact binomial limits bound the rates with the given confidence (Clopper and Pearson 1934;
Jagielski, Ullman and Oprea 2020).

One run: each of m canaries is in the table by an independent fair coin, and an attacker guesses
some of the coins from one fitted model. Steinke, Nasr and Jagielski 2023 (theorem 5.2) bound how
many guesses can be right under (epsilon, delta)-DP; Mahloujifar, Melis and Chaudhuri 2024 do so for
any trade-off function, which gives a tighter bound if the function is known to be that of a
Gaussian mechanism.
"""

import math
from typing import Literal

import numpy as np
from scipy.optimize import bisect
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

from skdp.accounting import convert_relation, gdp_to_epsilon
from skdp.utils._validation import check_choice, check_delta, check_integer, check_within

# Largest values that can be certified, and the absolute tolerance of the bisection.
MAX_EPSILON = 100.0
MAX_MU = 30.0
TOLERANCE = 1e-6


def epsilon_from_rates(
    true_positives: int,
    n_in: int,
    false_positives: int,
    n_out: int,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> float:
    """Return the lower bound on epsilon that the two frequencies of one test certify.

    The test and its threshold must have been chosen on other runs, without these counts.

    Parameters
    ----------
    true_positives, n_in : int
        Number of runs with the record in which the test result was "in", and the total number of
        runs with the record.
    false_positives, n_out : int
        The same two numbers for the runs without the record.
    delta : float, default=0.0
        The delta of the claim.
    confidence : float, default=0.95
        Probability that the true epsilon at `delta` is at least the returned value.

    Returns
    -------
    float
        Non-negative. A lower bound can disprove a claim, but never prove one.

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
    counts = _check_runs(true_positives, n_in, false_positives, n_out)
    error = _error_probability(confidence)
    return max(0.0, float(epsilons_of_tests(*counts, delta=check_delta(delta), error=error)))


def gaussian_epsilon_from_rates(
    true_positives: int,
    n_in: int,
    false_positives: int,
    n_out: int,
    *,
    delta: float,
    confidence: float = 0.95,
) -> float:
    """Return the epsilon that one test certifies for a Gaussian trade-off curve.

    The frequencies bound the mu of Gaussian differential privacy from below, and mu determines
    epsilon at delta. This uses the whole curve, whereas `epsilon_from_rates` uses one point of it.
    It is valid only if the trade-off curve of the mechanism is known to be that of a Gaussian
    mechanism, for example of full-batch steps with Gaussian noise.

    Parameters
    ----------
    true_positives, n_in, false_positives, n_out : int
        As in `epsilon_from_rates`.
    delta : float
        Delta at which epsilon is stated, above 0.
    confidence : float, default=0.95
        Confidence of the bound.

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
    delta = check_within(delta, "delta", 0.0, 1.0, "()")
    counts = _check_runs(true_positives, n_in, false_positives, n_out)
    return gdp_to_epsilon(float(mus_of_tests(*counts, error=_error_probability(confidence))), delta)


def one_run_epsilon(
    correct: int,
    guesses: int,
    canaries: int,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    method: Literal["f-dp", "binomial"] = "f-dp",
) -> float:
    """Return the lower bound on epsilon that guesses about the canaries in one run certify.

    Each canary must be in the table by an independent fair coin. The choice of the guessed
    canaries may depend on the model, but their number must not.

    Parameters
    ----------
    correct, guesses, canaries : int
        Number of correct guesses, of guesses and of canaries.
    delta : float, default=0.0
        The delta of the claim.
    confidence : float, default=0.95
        Confidence of the bound.
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
    check_choice(method, "method", ("f-dp", "binomial"))
    counts = _check_guesses(correct, guesses, canaries)
    delta = check_delta(delta)
    p = _error_probability(confidence)

    def rejected(epsilon):
        """Return True if the guesses contradict (epsilon, delta)-DP at the confidence level."""
        if method == "binomial":
            return _binomial_tail(*counts, epsilon, delta) < p

        def min_wrong(r):
            """Return the minimum probability of a wrong guess, for r of a correct one."""
            unlikely = 1.0 - delta - math.exp(epsilon) * (1.0 - r)
            return max(0.0, (r - delta) * math.exp(-epsilon), unlikely)

        return _recursion_rejects(*counts, min_wrong, p)

    return _largest_rejected(rejected, MAX_EPSILON)


def one_run_gaussian_epsilon(
    correct: int, guesses: int, canaries: int, *, delta: float, confidence: float = 0.95
) -> float:
    """Return the epsilon that guesses in one run certify for a Gaussian trade-off curve.

    Parameters
    ----------
    correct, guesses, canaries : int
        As in `one_run_epsilon`.
    delta : float
        Delta at which epsilon is stated, above 0.
    confidence : float, default=0.95
        Confidence of the bound.

    Returns
    -------
    float
        Valid only if the trade-off curve of the mechanism is known to be Gaussian.

    References
    ----------
    S. Mahloujifar, L. Melis, K. Chaudhuri, "Auditing f-Differential Privacy in One Run", 2024.

    Examples
    --------
    >>> from skdp.audit import one_run_gaussian_epsilon
    >>> one_run_gaussian_epsilon(50, 100, 1000, delta=1e-5)
    0.0
    """
    counts = _check_guesses(correct, guesses, canaries)
    delta = check_within(delta, "delta", 0.0, 1.0, "()")
    p = _error_probability(confidence)

    def rejected(mu):
        """Return True if the guesses contradict mu-Gaussian DP at the confidence level."""

        def shifted(r):
            """Return the minimum probability of a wrong guess, for r of a correct one."""
            return float(ndtr(ndtri(r) - mu))

        return _recursion_rejects(*counts, shifted, p)

    return gdp_to_epsilon(_largest_rejected(rejected, MAX_MU), delta)


def success_bound(
    without: float | np.ndarray, epsilon: float, delta: float = 0.0
) -> float | np.ndarray:
    """Return the largest possible success rate of an attack, given its success without the row.

    Differential privacy bounds the advantage that the presence of a row gives to any attack. For
    membership inference, the bound relates the true-positive to the false-positive rate; for
    attribute inference, it relates the fraction of correct values with the row to that without it.

    Parameters
    ----------
    without : float or ndarray
        Probability of success, from 0 to 1, if the attacked row is not in the table: the
        false-positive rate of membership inference, or the fraction of values that attribute
        inference guesses correctly from a model of other rows.
    epsilon, delta : float
        The claim for the change between the two tables: a row is removed under "add_remove", or
        replaced under "replace_one". An epsilon above 100, including infinity, counts as no claim:
        the bound is 1.

    Returns
    -------
    float or ndarray
        Largest probability of success with the row. Because the bound is concave, it also holds for
        means over rows.

    References
    ----------
    P. Kairouz, S. Oh, P. Viswanath, "The Composition Theorem for Differential Privacy", 2015.
    T. Humphries et al., "Investigating Membership Inference Attacks under Data Dependencies",
    2023 (for the largest difference, (e^epsilon - 1 + 2 delta) / (e^epsilon + 1)).

    Examples
    --------
    >>> from skdp.audit import success_bound
    >>> round(float(success_bound(0.5, epsilon=0.1)), 3)
    0.548
    """
    epsilon = check_within(epsilon, "epsilon", 0.0)
    delta = check_within(delta, "delta", 0.0, 1.0)
    p = np.asarray(without)
    if not ((p >= 0.0) & (p <= 1.0)).all():
        raise ValueError(f"without must contain probabilities from 0 to 1, got {without!r}")
    if epsilon > MAX_EPSILON:
        return np.ones(p.shape)[()]
    below = np.minimum(np.exp(epsilon) * p + delta, 1.0)
    return np.minimum(below, 1.0 - np.exp(-epsilon) * (1.0 - delta - p))


def clopper_pearson(hits, n, confidence):
    """Return exact two-sided confidence limits of binomial rates.

    Parameters
    ----------
    hits : int or ndarray of int
    n : int
    confidence : float

    Returns
    -------
    low, high : float or ndarray of float
    """
    hits = np.asarray(hits)
    alpha = (1.0 - confidence) / 2.0
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), n - hits + 1, alpha), 0.0)
    high = np.where(hits < n, betaincinv(hits + 1, np.maximum(n - hits, 1), 1.0 - alpha), 1.0)
    if hits.ndim == 0:
        return float(low), float(high)
    return low, high


def epsilons_of_tests(true_positives, n_in, false_positives, n_out, *, delta, error):
    """Return the epsilon that the frequencies of each test certify; it may be negative.

    It is the larger of two bounds: one for the event "in", and one for "out" with the tables
    exchanged.

    Parameters
    ----------
    true_positives, false_positives : int or ndarray of int
    n_in, n_out : int
    delta, error : float
    """
    low_in, high_out = _limits(true_positives, n_in, false_positives, n_out, error)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = (low_in, high_out), (1.0 - high_out, 1.0 - low_in)
        events = [np.log(np.maximum(low - delta, 0.0) / high) for low, high in rates]
    return np.fmax(*events)


def halved_epsilon(counts, *, delta, confidence, gaussian=False):
    """Return the epsilon of one step that a test between tables two steps apart certifies.

    Each step is (epsilon, delta)-DP, so both are (2 epsilon, (1 + e^epsilon) delta)-DP; two
    steps of mu-Gaussian DP are 2 mu-Gaussian DP (Dong, Roth and Su 2022).

    Parameters
    ----------
    counts : tuple of int
        True positives and runs, false positives and runs.
    delta, confidence : float
    gaussian : bool, default=False
        Use the trade-off curve of a Gaussian mechanism for the bound.
    """
    error = _error_probability(confidence)
    if gaussian:
        return gdp_to_epsilon(float(mus_of_tests(*counts, error=error)) / 2.0, delta)

    def rejected(epsilon):
        """Return True if the test certifies more than two (epsilon, delta)-DP steps can have."""
        total_epsilon, total_delta = convert_relation(epsilon, delta, "add_remove", "replace_one")
        certified = float(epsilons_of_tests(*counts, delta=total_delta, error=error))
        return certified > total_epsilon

    return _largest_rejected(rejected, MAX_EPSILON)


def mus_of_tests(true_positives, n_in, false_positives, n_out, *, error):
    """Return the mu of Gaussian differential privacy that the frequencies of tests certify.

    Parameters
    ----------
    true_positives, false_positives : int or ndarray of int
    n_in, n_out : int
    error : float
    """
    low_in, high_out = _limits(true_positives, n_in, false_positives, n_out, error)
    return np.maximum(ndtri(low_in) - ndtri(high_out), 0.0)


def _limits(true_positives, n_in, false_positives, n_out, error):
    """Return a lower limit on the true-positive rate and an upper limit on the false-positive rate.

    Both hold together, except with probability `error`.
    """
    low, _ = clopper_pearson(true_positives, n_in, 1.0 - error / 2.0)
    return low, clopper_pearson(false_positives, n_out, 1.0 - error / 2.0)[1]


def _check_runs(true_positives, n_in, false_positives, n_out):
    """Return the counts; raise `ValueError` if one exceeds its number of runs."""
    counts = {"true_positives": (true_positives, n_in), "false_positives": (false_positives, n_out)}
    for name, (hits, n) in counts.items():
        if not 0 <= check_integer(hits, name, 0) <= check_integer(n, "the number of runs", 1):
            raise ValueError(f"{name} must not exceed its number of runs, got {hits} of {n} runs")
    return true_positives, n_in, false_positives, n_out


def _binomial_tail(correct, guesses, canaries, epsilon, delta):
    """Return the bound on the tail of the number of correct guesses (Steinke et al., th. 5.2)."""
    p = 1.0 / (1.0 + math.exp(-epsilon))
    tail = binom.sf(correct - 1, guesses, p)
    i = np.arange(1, correct + 1)
    excess = (binom.sf(correct - 1 - i, guesses, p) - tail) / i
    return float(tail + 2.0 * canaries * delta * excess.max(initial=0.0))


def _recursion_rejects(correct, guesses, canaries, min_wrong, p):
    r"""Return True if this number of correct guesses is too unlikely under a trade-off function.

    Too unlikely means a probability below p.

    Let W be the number of correct guesses and :math:`r_i`, :math:`h_i` be 1/m times the expected
    numbers of correct and of wrong guesses on the event :math:`W \ge i`. For one canary and
    :math:`i` correct guesses among the others, f-DP bounds correct by wrong guesses, so
    :math:`h_i \ge g(r_{i+1})` with g the inverse of :math:`1 - f`; and
    :math:`r_i = r_{i+1} + \frac{i}{c' - i}(h_i - h_{i+1})` with c' guesses. If
    :math:`P(W \ge c) \ge p`, the minimum that the recursion reaches must not exceed the total
    :math:`r_0 + h_0 = c'/m`: proposition 4 of ``docs/theory/auditing.md``.

    Parameters
    ----------
    correct, guesses, canaries : int
        c, c' and m.
    min_wrong : callable
        g, which maps the probability of a correct guess to the minimum probability of a wrong one.
    p : float
    """
    right = p * correct / canaries
    wrong = p * (guesses - correct) / canaries
    for i in range(correct - 1, -1, -1):
        more = max(wrong, min_wrong(right))
        right += i / (guesses - i) * (more - wrong)
        wrong = more
        if right + wrong > guesses / canaries:
            return True
    return False


def _largest_rejected(rejected, limit):
    """Return the largest parameter that the observed counts reject, a lower bound on the true one.

    Parameters
    ----------
    rejected : callable
        Maps a parameter, an epsilon or a mu, to True if the counts would be too unlikely with it.
        If it rejects a parameter, it rejects all smaller ones.
    limit : float
        Largest parameter that is tried.

    Returns
    -------
    float
        Rounded down by at most twice `TOLERANCE`; 0 if none is rejected.
    """
    if not rejected(0.0):
        return 0.0
    if rejected(limit):
        return limit

    def sign(value):
        return 0.5 - rejected(value)

    edge = bisect(sign, 0.0, limit, xtol=TOLERANCE)
    return max(0.0, edge - TOLERANCE)


def _check_guesses(correct, guesses, canaries):
    """Return the counts; raise `ValueError` unless correct <= guesses <= canaries."""
    correct = check_integer(correct, "correct", 0)
    guesses = check_integer(guesses, "guesses", correct)
    return correct, guesses, check_integer(canaries, "canaries", max(guesses, 1))


def _error_probability(confidence):
    return 1.0 - check_within(confidence, "confidence", 0.0, 1.0, "()")
