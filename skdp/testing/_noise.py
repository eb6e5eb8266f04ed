"""Checks that what is kept is released, and that every release has noise of its own."""

import pickle
import warnings

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state, get_tags

from skdp.audit._published import walk
from skdp.exceptions import SeededNoiseWarning
from skdp.testing._tables import (
    N_FEATURES,
    UNTELLING_EPSILON,
    SkipTest,
    budget,
    fit,
    fresh_noise,
    make_table,
    need_accountant,
    need_parameters,
    need_statement,
    published,
    quiet_seeds,
    release,
    repeats_noise,
)

UNTELLING_FITS = 16
N_CLASSES = 5


def check_no_training_row(estimator):
    """No pickle of a fitted estimator holds a value of the table.

    The table is made of values whose eight bytes are all but impossible to meet by chance.
    """
    X, y = make_table(estimator)
    X = X + check_random_state(2).uniform(1e-10, 1e-9, size=X.shape)
    pickled = pickle.dumps(fit(estimator, X, y))
    found = sum(value.tobytes() in pickled for value in X.ravel())
    assert not found, f"a pickle holds {found} values of the table"


def check_no_raw_statistic(estimator):
    r"""No number that is kept, in any attribute, tells two tables apart without noise.

    With epsilon = 0.001 a release from a table of 60 other rows is nearly the same by group
    privacy. A number that is the same in sixteen fits to one table, and another in sixteen fits to
    the other, is then no release: for a private one, whose chances of the two values are p and at
    most :math:`e^{0.12} (1 - p)`, this happens with probability below 2e-9.
    """
    need_parameters(estimator, "epsilon")
    X, y = make_table(estimator, seed=0)
    other, _ = make_table(estimator, seed=1)
    # Another number of rows of each class; the labels are the same two.
    labels = np.where(np.arange(len(y)) < 50, 1, 0)
    options = {"epsilon": UNTELLING_EPSILON} | fresh_noise(estimator)
    one, two = (_kept_numbers(fit(estimator, *t, **options)) for t in ((X, y), (other, labels)))
    suspects = {key for key in one.keys() | two.keys() if one.get(key) != two.get(key)}
    for _ in range(UNTELLING_FITS - 1):
        if not suspects:
            return
        for table, first in (((X, y), one), ((other, labels), two)):
            again = _kept_numbers(fit(estimator, *table, **options))
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

    def releases(estimator):
        X, y = make_table(estimator)
        first = fit(estimator, X, y)
        return [published(first, X), published(first.fit(X, y), X), release(estimator, X, y)]

    assert not repeats_noise(estimator, releases), "two releases published the same numbers"


def check_noise_of_classes(estimator):
    """Each class has noise of its own, in one process and in several, with a seed and without.

    Every class has the same rows, so that its part of a model differs from another's by noise
    alone. Parts that are nearer to each other than a thousandth of what noise moves them from
    fit to fit, in every fit, share it.
    """
    tags = get_tags(estimator)
    if not (is_classifier(estimator) and tags.classifier_tags.multi_class):
        raise SkipTest("not for several classes")
    parameters = estimator.get_params()
    if parameters.get("classes") is not None:
        raise SkipTest("the classes are declared")
    rows, _ = make_table(estimator)
    X, y = np.tile(rows[:12], (N_CLASSES, 1)), np.repeat(np.arange(N_CLASSES), 12)
    workers = [{"n_jobs": n} for n in (None, 2)] if "n_jobs" in parameters else [{}]
    for options in workers:
        for seeds in ((None,) * 3, range(3)) if "random_state" in parameters else ((),):
            seeded = [{"random_state": s} for s in seeds] or [{}] * 3
            with quiet_seeds():
                fits = [fit(estimator, X, y, **options, **one) for one in seeded]
            alike = _sharing(fits)
            assert not alike, f"classes share their noise in {alike}, with {options | seeded[0]}"


def _sharing(fits):
    """Return (attribute, row, row) where rows of a matrix with a row a class go together."""
    found = []
    for name, value in vars(fits[0]).items():
        if not (isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 2):
            continue
        if value.shape[0] != N_CLASSES or value.shape[1] < N_FEATURES:
            continue
        values = np.stack([getattr(one, name) for one in fits])
        moved = np.linalg.norm(values - np.roll(values, 1, axis=0), axis=2).min(axis=0)
        for i in range(N_CLASSES):
            for j in range(i):
                gap = np.linalg.norm(values[:, i] - values[:, j], axis=1).max()
                if gap < 1e-3 * min(moved[i], moved[j]):
                    found.append((name, j, i))
    return found


def check_seeded_flag(estimator):
    """A seed repeats the noise, and the statement, the ledger and a warning say so."""
    need_parameters(estimator, "random_state")
    need_accountant(estimator)
    X, y = make_table(estimator)
    accountant = budget(estimator, 3)
    fits = [
        clone(estimator).set_params(random_state=seed, accountant=accountant)
        for seed in (7, 7, None)
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [published(one.fit(X, y), X) for one in fits]
    assert np.array_equal(results[0], results[1]), "a seed did not repeat"
    flags = [spend.seeded for spend in accountant.spends]
    assert flags == [True, True, False], f"the ledger says seeded: {flags}"
    warned = sum(issubclass(w.category, SeededNoiseWarning) for w in caught)
    assert warned == 2, f"two seeded releases warned {warned} times"
    need_statement(fits[0])
    flags = [one.privacy_.seeded for one in fits]
    assert flags == [True, True, False], f"statements say seeded: {flags}"
