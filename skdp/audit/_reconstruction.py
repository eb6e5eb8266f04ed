"""Reconstruction of individual secrets from aggregates: linear programming and differencing."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_array, eye_array
from sklearn.utils.validation import check_array, column_or_1d

from skdp._data._frames import take_rows
from skdp.audit._tables import as_table
from skdp.utils._documents import PrintedDocument, Section, count_of
from skdp.utils._types import TableLike
from skdp.utils._values import FrozenValue


@dataclass(frozen=True, eq=False)
class Reconstruction(PrintedDocument, FrozenValue):
    """Estimates of individual secrets, computed from answers about many persons.

    The result is printed as text and shown as HTML in a notebook; `to_dict` returns JSON values.

    Parameters
    ----------
    attack : str
        Name of the attack.
    n_answers : int
        Number of answers that the attack used.
    estimates : ndarray of shape (n_persons,)
        Estimated secrets.

    Examples
    --------
    >>> from skdp.audit import differencing
    >>> found = differencing(sum, [1, 0, 1])
    >>> found.n_answers, found.success([1, 0, 1])
    (6, 1.0)
    """

    attack: str
    n_answers: int
    estimates: np.ndarray

    def success(self, truth, tolerance=0.5):
        """Return the fraction of persons whose estimate is within a tolerance of the secret.

        Parameters
        ----------
        truth : array-like of shape (n_persons,)
            The true secrets.
        tolerance : float, default=0.5
            Largest accepted absolute error; the default is suitable for bits.

        Returns
        -------
        float
        """
        return float(np.mean(np.abs(self.estimates - column_or_1d(truth)) < tolerance))

    def to_dict(self):
        """Return a summary without individual estimates, as JSON values.

        Returns
        -------
        dict
        """
        return {
            "attack": self.attack,
            "n_answers": self.n_answers,
            "n_persons": len(self.estimates),
        }

    def section(self):
        """Return a summary without individual estimates as a section of a printed document.

        Returns
        -------
        Section
        """
        quartiles = np.quantile(self.estimates, (0.25, 0.5, 0.75))
        rows = (
            ("persons", f"{len(self.estimates)}, from {count_of(self.n_answers, 'answer')}"),
            ("estimates", "quartiles " + ", ".join(f"{value:.4g}" for value in quartiles)),
        )
        notes = ("success(truth) returns the fraction of correct estimates.",)
        return Section(f"Reconstruction by {self.attack}", rows, notes=notes)


def linear_reconstruction(
    queries: TableLike, answers: ArrayLike, *, bounds: tuple[float, float] = (0, 1)
) -> Reconstruction:
    """Return the secrets that best fit sums over groups of persons.

    The estimates minimize the sum of the absolute errors of the answers, by linear programming.
    Nearly correct answers to enough random groups determine nearly all bits.

    Parameters
    ----------
    queries : array-like or sparse array of shape (n_answers, n_persons)
        Weight of each person in each sum: 0 or 1 for groups.
    answers : array-like of shape (n_answers,)
        The sums, exact or noisy.
    bounds : tuple of float, default=(0, 1)
        Smallest and largest possible secret; (0, 1) for bits.

    Returns
    -------
    Reconstruction

    Raises
    ------
    ValueError
        If shapes do not match, if a number is not finite, or if no optimum is found.

    Notes
    -----
    If all answers together are (epsilon, delta)-differentially private for a changed bit, and bits
    are independent fair coins, the expected fraction of bits that any attack estimates correctly is
    at most (e^epsilon + delta) / (1 + e^epsilon) (``docs/theory/auditing.md``).

    References
    ----------
    I. Dinur, K. Nissim, "Revealing Information while Preserving Privacy", 2003.
    C. Dwork, F. McSherry, K. Talwar, "The Price of Privacy and the Limits of LP Decoding", 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import linear_reconstruction
    >>> rng = np.random.default_rng(0)
    >>> secrets, groups = rng.integers(0, 2, 50), rng.integers(0, 2, size=(200, 50))
    >>> noisy = groups @ secrets + rng.normal(size=200)
    >>> linear_reconstruction(groups, noisy).success(secrets) > 0.9
    True
    """
    weights = csr_array(check_array(queries, accept_sparse=True, dtype=float))
    sums = column_or_1d(check_array(answers, ensure_2d=False, dtype=float))
    n_answers, n_persons = weights.shape
    if len(sums) != n_answers:
        raise ValueError(
            f"answers must have {count_of(n_answers, 'entry', 'entries')}, one per query, got "
            f"{len(sums)}"
        )
    # The variables are the secrets and, for each answer, a bound on its absolute error.
    error = eye_array(n_answers)
    optimum = linprog(
        np.repeat([0.0, 1.0], [n_persons, n_answers]),
        block_array([[weights, -error], [-weights, -error]], format="csr"),
        np.append(sums, -sums),
        bounds=[tuple(bounds)] * n_persons + [(0.0, None)] * n_answers,
    )
    if not optimum.success:
        raise ValueError(f"linear programming found no optimum: {optimum.message}")
    return Reconstruction("linear programming", n_answers, optimum.x[:n_persons])


def differencing(
    answer: Callable[..., float], table: TableLike, persons: ArrayLike | None = None
) -> Reconstruction:
    """Return the differences between an answer about all rows and answers about all rows but one.

    Parameters
    ----------
    answer : callable
        Function that maps rows of the table to a number. It is called twice per person.
    table : array-like or frame of shape (n_samples, ...)
        The table, with one row per person.
    persons : array-like of int, default=None
        Positions of the attacked rows; None attacks all rows.

    Returns
    -------
    Reconstruction
        The estimates are differences between two answers; for sums, these are the rows'
        contributions.

    Notes
    -----
    A difference costs as much as its two answers together. If that cost is (epsilon, delta) for a
    replaced row, an attacker who decides by the difference which of two rows is in the table
    succeeds for one of them with probability p at most ``success_bound(q, epsilon, delta)``, where
    q is the probability of the same decision if the table contains the other row.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import differencing
    >>> incomes = np.array([2100.0, 3900.0, 52000.0])
    >>> differencing(np.sum, incomes).estimates
    array([ 2100.,  3900., 52000.])
    """
    rows = as_table(table)
    n_rows = rows.shape[0]
    if persons is None:
        persons = range(n_rows)
    attacked = column_or_1d(persons)
    differences = []
    for person in attacked:
        others = take_rows(rows, np.delete(np.arange(n_rows), person))
        differences.append(float(answer(rows)) - float(answer(others)))
    return Reconstruction("differencing", 2 * len(attacked), np.array(differences))
