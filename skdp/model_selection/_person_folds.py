"""Splits by person: a keyed hash of the id assigns all rows of a person to one side."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_consistent_length

from skdp._data._frames import take_rows
from skdp._data._labels import label_hashes
from skdp._data._limit_rows import id_column
from skdp._data._persons import read_persons
from skdp.utils._types import TableLike
from skdp.utils._validation import check_integer, check_within


class PersonKFold(BaseCrossValidator):
    """K-fold splitter by person: the id determines one fold for all rows of a person.

    The fold is a hash of the id under a public key. So the rows of one person, and their number,
    never change the fold of another person. ``GroupKFold`` does not guarantee this, because it
    balances the sizes of the folds. The folds here are only approximately equal in size.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    random_state : int, default=0
        Public key of the hash, not negative. Nested folds need a key that differs from that of the
        outer folds.

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

    # scikit-learn passes groups to `split` wherever it routes metadata.
    __metadata_request__split = {"groups": True}

    def __init__(self, n_splits: int = 5, *, random_state: int = 0):
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
            Only its length is read.
        y : object
            Not read.
        groups : array-like of shape (n_samples,)
            Person id of each row: numbers, strings, bytes or dates.

        Yields
        ------
        train, test : ndarray of int

        Raises
        ------
        ValueError
            If a parameter or `groups` are not as described, or a fold is empty.
        """
        n_splits = self.get_n_splits()
        folds = _hashes(X, groups, "fold", self.random_state) % np.uint64(n_splits)
        if len(np.unique(folds)) < n_splits:
            raise ValueError(
                f"n_splits={n_splits} leaves a fold without persons: use fewer folds, or another "
                "random_state"
            )
        for fold in range(n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


def person_train_test_split(
    *arrays: TableLike, groups: ArrayLike, test_size: float = 0.25, random_state: int = 0
) -> list:
    """Split arrays into training and test rows so that no person is on both sides.

    A hash of the id decides on which side a person is, independently of all others; see
    `PersonKFold`.

    Parameters
    ----------
    *arrays : array-like of shape (n_samples, ...)
        Tables and columns of equal length.
    groups : array-like of shape (n_samples,)
        Person id of each row: numbers, strings, bytes or dates.
    test_size : float, default=0.25
        Expected fraction of persons in the test set, in (0, 1).
    random_state : int, default=0
        Public key of the hash, not negative.

    Returns
    -------
    list of array-like
        Training and test rows of each array, and lastly of `groups`.

    Raises
    ------
    ValueError
        If a parameter is not as described, or one side is empty.

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
    is_test = hashes < test_size * 2.0**64
    if is_test.all() or not is_test.any():
        raise ValueError(
            f"test_size={test_size!r} leaves one side without persons: use another test_size or "
            "random_state"
        )
    train = np.flatnonzero(~is_test)
    test = np.flatnonzero(is_test)
    sides = []
    for array in (*arrays, id_column(groups)):
        sides += [take_rows(array, train), take_rows(array, test)]
    return sides


def _hashes(X, groups, purpose, random_state):
    """Return the hash of the person id of each row, under a key for one purpose."""
    ids = id_column(groups)
    seed = check_integer(random_state, "random_state", 0)
    check_consistent_length(X, ids)
    persons = read_persons(ids, len(ids), "distinct")
    # `label_hashes` raises an error for a missing id, which is a separate person up to here: a row
    # without an id has no fold.
    return label_hashes(persons.first_entries(ids), f"{purpose} {seed}")[persons.codes]
