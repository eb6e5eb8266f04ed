"""Secrets of single persons from answers about many: linear programming, and differencing."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_array, eye_array
from sklearn.utils.validation import check_array, column_or_1d

from skdp.audit._tables import as_table
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._frames import take_rows
from skdp.utils._values import FrozenValue


@dataclass(frozen=True, eq=False)
class Reconstruction(PrintedDocument, FrozenValue):
    """What answers about many persons tell of each of them.

    Printing gives text, a notebook shows HTML, `to_dict` gives JSON values.

    Parameters
    ----------
    attack : str
        How it was found.
    n_answers : int
        From how many answers.
    estimates : ndarray of shape (n_persons,)
        What the attacker takes for the secrets.

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
        """Return the share of persons whose secret is nearer to its estimate than a tolerance.

        Parameters
        ----------
        truth : array-like of shape (n_persons,)
            The true secrets.
        tolerance : float, default=0.5
            The default is for bits.

        Returns
        -------
        float
        """
        return float(np.mean(np.abs(self.estimates - column_or_1d(truth)) < tolerance))

    def to_dict(self):
        """Return what is told without anybody's estimate, as JSON values.

        Returns
        -------
        dict
        """
        sizes = {"n_answers": self.n_answers, "n_persons": len(self.estimates)}
        return {"attack": self.attack} | sizes

    def section(self):
        """Return what is told without anybody's estimate as a part of a document.

        Returns
        -------
        Section
        """
        quartiles = np.quantile(self.estimates, (0.25, 0.5, 0.75))
        rows = (
            ("persons", f"{len(self.estimates)}, from {self.n_answers} answers"),
            ("estimates", "quartiles " + ", ".join(f"{each:.4g}" for each in quartiles)),
        )
        notes = ("How many of them are right: success(truth).",)
        return Section(f"Reconstruction by {self.attack}", rows, notes=notes)


def linear_reconstruction(queries, answers, *, bounds=(0, 1)):
    """Attack sums over groups of persons: find the secrets that fit the answers best.

    The estimates have the least sum of absolute errors of the answers, by linear programming.
    Nearly right answers to enough random groups give back nearly all bits.

    Parameters
    ----------
    queries : array-like or sparse array of shape (n_answers, n_persons)
        How much each person counts in each sum: 0 and 1 for groups.
    answers : array-like of shape (n_answers,)
        The sums, exact or noisy.
    bounds : tuple of float, default=(0, 1)
        The least and the largest secret that there can be; bits are between 0 and 1.

    Returns
    -------
    Reconstruction

    Raises
    ------
    ValueError
        If shapes do not match, a number is not finite, or no optimum is found.

    Notes
    -----
    If the answers are together (epsilon, delta)-differentially private for a bit that changes, no
    attack tells more than a share (e^epsilon + delta) / (1 + e^epsilon) of bits that were drawn by
    fair coins, in expectation (``docs/auditing.md``).

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
    queries = csr_array(check_array(queries, accept_sparse=True, dtype=float))
    answers = column_or_1d(check_array(answers, ensure_2d=False, dtype=float))
    n_answers, n_persons = queries.shape
    if len(answers) != n_answers:
        raise ValueError(f"{n_answers} queries need as many answers, got {len(answers)}")
    # Over secrets and the errors of answers, which are at least as large as either difference.
    error = eye_array(n_answers)
    found = linprog(
        np.repeat([0.0, 1.0], [n_persons, n_answers]),
        block_array([[queries, -error], [-queries, -error]], format="csr"),
        np.append(answers, -answers),
        bounds=[tuple(bounds)] * n_persons + [(0.0, None)] * n_answers,
    )
    if not found.success:
        raise ValueError(f"no values fit the answers best: {found.message}")
    return Reconstruction("linear programming", n_answers, found.x[:n_persons])


def differencing(answer, table, persons=None):
    """Attack sums about a table: ask about all rows, and about all but one.

    Parameters
    ----------
    answer : callable
        Takes rows of the table and returns a number. It is called twice for each person.
    table : array-like or frame of shape (n_samples, ...)
        The rows that are asked about, one of each person.
    persons : array-like of int, default=None
        The positions of the rows that are attacked, all by default.

    Returns
    -------
    Reconstruction
        Estimates are differences of two answers: for sums, the row's own share.

    Notes
    -----
    Two answers cost what both charge. Under (epsilon, delta)-differential privacy for a replaced
    row, two rows cannot be told apart by the difference any better than
    ``success_bound`` says for the cost of both.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import differencing
    >>> incomes = np.array([2100.0, 3900.0, 52000.0])
    >>> differencing(np.sum, incomes).estimates
    array([ 2100.,  3900., 52000.])
    """
    table = as_table(table)
    n_rows = table.shape[0]
    persons = np.arange(n_rows) if persons is None else column_or_1d(persons)
    found = [
        float(answer(table)) - float(answer(take_rows(table, np.delete(np.arange(n_rows), person))))
        for person in persons
    ]
    return Reconstruction("differencing", 2 * len(persons), np.array(found))
