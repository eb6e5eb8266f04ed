"""Checks that what is kept is released, and that every release has noise of its own."""

import pickle
import warnings
from itertools import combinations
from unittest import SkipTest

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state, get_tags

from skdp.audit._published import walk
from skdp.exceptions import SeededNoiseWarning
from skdp.testing._case import CHARGED, N_FEATURES, UNTELLING, Case, quiet_seeds

UNTELLING_FITS = 16
N_CLASSES = 5


def check_no_training_row(estimator):
    """No pickle of a fitted estimator holds a value of the table.

    The table is made of values whose eight bytes are all but impossible to meet by chance.
    """
    case = Case(estimator, needs=())
    X = case.X + check_random_state(2).uniform(1e-10, 1e-9, size=case.X.shape)
    pickled = pickle.dumps(case.fit(X))
    found = sum(value.tobytes() in pickled for value in X.ravel())
    assert not found, f"a pickle holds {found} values of the table"


def check_no_raw_statistic(estimator):
    r"""No number that is kept, in any attribute, tells two tables apart without noise.

    With epsilon = 0.001 a release from a table of 60 other rows is nearly the same by group
    privacy. A number that is the same in sixteen fits to one table, and another in sixteen fits to
    the other, is then no release: for a private one, whose chances of the two values are p and at
    most :math:`e^{0.12} (1 - p)`, this happens with probability below 2e-9.
    """
    case = Case(estimator, ("epsilon",))
    # Another number of rows of each class; the labels are the same two.
    labels = np.where(np.arange(len(case.y)) < 50, 1, 0)
    tables = (case.X, case.y), (case.other_X, labels)
    options = UNTELLING | case.seeded(None)
    one, two = (_kept_numbers(case.fit(*table, **options)) for table in tables)
    suspects = {key for key in one.keys() | two.keys() if one.get(key) != two.get(key)}
    for _ in range(UNTELLING_FITS - 1):
        if not suspects:
            return
        for table, first in zip(tables, (one, two), strict=True):
            again = _kept_numbers(case.fit(*table, **options))
            suspects = {key for key in suspects if again.get(key) == first.get(key)}
    names = sorted({key[0] for key in suspects})
    raise AssertionError(f"kept without noise, and not the same for other data: {names}")


def _kept_numbers(estimator):
    """Return every number and text within an estimator that is no parameter, by where it is."""
    numbers = {}
    for name in set(vars(estimator)) - set(estimator.get_params(deep=False)):
        for place, values in walk(vars(estimator)[name]):
            numbers |= {(name, place, i): repr(value) for i, value in enumerate(values)}
    return numbers


def check_fresh_noise(estimator):
    """Two releases of one estimator differ, and so do releases of two clones."""

    def releases(case):
        first = case.fit()
        return [case.published(first), case.refit(first), case.release()]

    same = Case(estimator, needs=()).repeats_noise(releases)
    assert not same, "two releases published the same numbers"


def check_noise_of_classes(estimator):
    """Each class has noise of its own, in one process and in several, with a seed and without.

    Every class has the same rows, so that its part of a model differs from another's by noise
    alone. Parts that are nearer to each other than a thousandth of what noise moves them from
    fit to fit, in every fit, share it.
    """
    tags = get_tags(estimator)
    if not (is_classifier(estimator) and tags.classifier_tags.multi_class):
        raise SkipTest("not for several classes")
    case = Case(estimator, needs=())
    if case.params.get("classes") is not None:
        raise SkipTest("the classes are declared")
    X, y = np.tile(case.X[:12], (N_CLASSES, 1)), np.repeat(np.arange(N_CLASSES), 12)
    workers = [{"n_jobs": n} for n in (None, 2)] if "n_jobs" in case.params else [{}]
    for options in workers:
        for seeds in ((None,) * 3, range(3)):
            seeded = [options | case.seeded(seed) for seed in seeds]
            with quiet_seeds():
                alike = _sharing([case.fit(X, y, **params) for params in seeded])
            assert not alike, f"classes share their noise in {alike}, with {seeded[0]}"


def _sharing(fits):
    """Return (attribute, row, row) where rows of a matrix with a row a class go together."""
    found = []
    for name, value in vars(fits[0]).items():
        is_matrix = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 2
        if not is_matrix or len(value) != N_CLASSES or value.shape[1] < N_FEATURES:
            continue
        values = np.stack([getattr(one, name) for one in fits])
        moved = np.linalg.norm(values - np.roll(values, 1, axis=0), axis=2).min(axis=0)
        for i, j in combinations(range(N_CLASSES), 2):
            gap = np.linalg.norm(values[:, i] - values[:, j], axis=1).max()
            if gap < 1e-3 * min(moved[i], moved[j]):
                found.append((name, i, j))
    return found


def check_seeded_flag(estimator):
    """A seed repeats the noise, and the statement, the ledger and a warning say so."""
    case = Case(estimator, ("random_state", *CHARGED))
    accountant = case.budget(3)
    fits = [
        clone(estimator).set_params(random_state=seed, accountant=accountant)
        for seed in (7, 7, None)
    ]
    with warnings.catch_warnings(record=True, action="always") as caught:
        results = [case.refit(one) for one in fits]
    assert np.array_equal(results[0], results[1]), "a seed did not repeat"
    flags = [spend.seeded for spend in accountant.spends]
    assert flags == [True, True, False], f"the ledger says seeded: {flags}"
    warned = sum(issubclass(w.category, SeededNoiseWarning) for w in caught)
    assert warned == 2, f"two seeded releases warned {warned} times"
    flags = [case.stated(one).seeded for one in fits]
    assert flags == [True, True, False], f"statements say seeded: {flags}"
