"""Folds and parts of persons: a keyed hash of the id says where all rows of a person go."""

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_consistent_length

from skdp._data._persons import read_persons
from skdp.utils._frames import take_rows
from skdp.utils._labels import label_hashes
from skdp.utils._limit_rows import id_column
from skdp.utils._validation import check_integer, check_within


class PersonKFold(BaseCrossValidator):
    """Folds of persons: those of a person's rows is fixed by the person's id alone.

    The fold is a hash of the id under a public key. So nobody's rows, nor how many there are, move
    another's fold, which ``GroupKFold`` does not promise: it balances the folds' sizes. Folds are
    therefore of about one size, not of exactly one.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds, 2 at least.
    random_state : int, default=0
        The public key, not negative. Where folds are divided into folds again, give these another.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.model_selection import PersonKFold
    >>> visits = np.zeros((6, 1))
    >>> persons = ["ann", "bob", "ann", "eve", "bob", "dan"]
    >>> for train, test in PersonKFold(2).split(visits, groups=persons):
    ...     print(train, test)
    [0 2 5] [1 3 4]
    [1 3 4] [0 2 5]
    """

    # Groups are asked for wherever scikit-learn routes metadata.
    __metadata_request__split = {"groups": True}

    def __init__(self, n_splits=5, *, random_state=0):
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X=None, y=None, groups=None):
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object, default=None
            Not read.

        Returns
        -------
        int
        """
        return check_integer(self.n_splits, "n_splits", 2)

    def split(self, X, y=None, groups=None):
        """Yield the rows to train and to test on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Its length alone is read.
        y : object
            Not read.
        groups : array-like of shape (n_samples,)
            An id of the person of each row: numbers, strings, bytes or dates.

        Yields
        ------
        train, test : ndarray of int

        Raises
        ------
        ValueError
            If a parameter or `groups` are not as described, or a fold has no person.
        """
        n_splits = self.get_n_splits()
        folds = _hashes(X, groups, "fold", self.random_state) % np.uint64(n_splits)
        if len(np.unique(folds)) < n_splits:
            raise ValueError("a fold has no person: use fewer folds, or another random_state")
        for fold in range(n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


def person_train_test_split(*arrays, groups, test_size=0.25, random_state=0):
    """Split tables into rows of some persons and rows of the others.

    A person is tested on by a hash of the id, whoever else is there; see `PersonKFold`.

    Parameters
    ----------
    *arrays : array-like of shape (n_samples, ...)
        Tables and columns of one length.
    groups : array-like of shape (n_samples,)
        An id of the person of each row: numbers, strings, bytes or dates.
    test_size : float, default=0.25
        The share of persons to test on, in expectation, in (0, 1).
    random_state : int, default=0
        The public key of the hash, not negative.

    Returns
    -------
    list of array-like
        Two of each array and last of `groups`: the rows to train on, and those to test on.

    Raises
    ------
    ValueError
        If a parameter is not as described, or nobody is on one of the sides.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.model_selection import person_train_test_split
    >>> persons = np.repeat(np.arange(100), 3)
    >>> X, y = np.zeros((300, 2)), persons % 2
    >>> split = person_train_test_split(X, y, groups=persons)
    >>> X_train, X_test, y_train, y_test, persons_train, persons_test = split
    >>> len(np.intersect1d(persons_train, persons_test))
    0
    """
    test_size = check_within(test_size, "test_size", 0.0, 1.0, ends="()")
    hashes = _hashes(groups, groups, "split", random_state)
    check_consistent_length(*arrays, hashes)
    tested = hashes < test_size * 2.0**64
    if tested.all() or not tested.any():
        raise ValueError("nobody is on one of the sides: use another test_size or random_state")
    sides = np.flatnonzero(~tested), np.flatnonzero(tested)
    return [take_rows(each, rows) for each in (*arrays, id_column(groups)) for rows in sides]


def _hashes(X, groups, purpose, random_state):
    """Return the hash of each row's person."""
    ids = id_column(groups)
    seed = check_integer(random_state, "random_state", 0)
    check_consistent_length(X, ids)
    # A missing id is refused where it is hashed: no declaration says in which fold its row is.
    persons = read_persons(ids, len(ids), "distinct")
    return label_hashes(persons.first_entries(ids), f"{purpose} {seed}")[persons.codes]
