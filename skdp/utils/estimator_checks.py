"""Checks of the contract that every private estimator keeps, beside scikit-learn's own.

Each check takes an unfitted estimator with parameters `epsilon`, `accountant` and
`random_state`, makes releases with clones of it on small tables, and raises `AssertionError`
where the contract is broken. The release is `fit`, or `transform` where an estimator's tag says
that its output is not deterministic (local differential privacy). Features are drawn from
[-1, 1] and rows have norm at most 1, so that declared bounds of at least that range clip
nothing; where categories are declared, features are drawn from 0, 1 and 2.
"""

import inspect
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from skdp.accounting import PrivacyAccountant
from skdp.base import fitted_names
from skdp.exceptions import BudgetExceededError, SeededNoiseWarning

__all__ = ["dp_checks"]

N_ROWS, N_FEATURES = 60, 4


def make_table(estimator, seed=0):
    """Return X and a label that depends on X."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(N_ROWS, N_FEATURES))
    y = (X[:, 0] + 0.1 * rng.normal(size=N_ROWS) > 0).astype(int)
    y[:2] = 0, 1
    if "categories" in estimator.get_params():
        X = np.floor(3.0 * (X + 0.5))
    return X, y


def _releases_in_transform(estimator):
    return get_tags(estimator).non_deterministic


def _fit(estimator, X, y, **params):
    estimator = clone(estimator).set_params(**params)
    return estimator.fit(X, y) if get_tags(estimator).target_tags.required else estimator.fit(X)


def _published(estimator, X):
    """Return every number that an estimator released, as one vector."""
    if _releases_in_transform(estimator):
        return estimator.transform(X).ravel()
    values = [_numbers(getattr(estimator, name)) for name in sorted(fitted_names(estimator))]
    return np.concatenate(values)


def _numbers(value):
    """Return the floating-point numbers of an attribute, those of its arrays' arrays included."""
    is_ragged = isinstance(value, list) or getattr(value, "dtype", None) == np.dtype(object)
    if is_ragged and len(value):
        return np.concatenate([_numbers(item) for item in value])
    value = np.asarray(value)
    return value.ravel() if value.dtype.kind == "f" else np.empty(0)


def _release(estimator, X, y, **params):
    return _published(_fit(estimator, X, y, **params), X)


def _price(estimator):
    params = estimator.get_params()
    return params["epsilon"], params.get("delta", 0.0)


def _budget(estimator, releases):
    epsilon, delta = _price(estimator)
    return PrivacyAccountant(releases * epsilon, min(releases * delta, 0.5))


def check_refused_charge(estimator):
    """A refused charge releases nothing and leaves the ledger as it was.

    An estimator whose `fit` was refused is unfitted, whatever it was before.
    """
    X, y = make_table(estimator)
    accountant = PrivacyAccountant(1e-6, 0.0)
    before = accountant.verify()
    fitted = _fit(estimator, X, y, accountant=None).set_params(accountant=accountant)
    try:
        _published(fitted.fit(X, y), X)
    except BudgetExceededError:
        pass
    else:
        raise AssertionError("a release that the budget cannot pay for was made")
    if not _releases_in_transform(estimator):
        assert not fitted_names(fitted), f"a refused fit left {fitted_names(fitted)}"
    assert accountant.verify() == before, "a refused charge changed the ledger"


class _TableChanger:
    """An accountant that overwrites the table at the moment of the charge."""

    terms = SimpleNamespace(relation="add_remove", unit="row", max_rows=1, composition="basic")
    hash, time, part, sequence = "0", "", None, 0

    def __init__(self, X, replacement):
        self.X, self.replacement, self.charges = X, replacement, 0

    def charge(self, event, **terms):
        self.charges += 1
        self.X[:] = self.replacement
        self.epsilon, self.delta = terms["epsilon"], terms.get("delta", 0.0)
        return self

    def __sklearn_clone__(self):
        return self


def check_charge_before_touch(estimator):
    """What is released depends on the data as they are after the charge, and on nothing else.

    The table is overwritten while the charge is made; the result must be that of a release
    from the new table with the same noise.
    """
    X, y = make_table(estimator, seed=0)
    other, _ = make_table(estimator, seed=1)
    expected = _release(estimator, other, y, random_state=0)
    accountant = _TableChanger(X, other)
    result = _release(estimator, X, y, random_state=0, accountant=accountant)
    assert accountant.charges == 1, f"one release made {accountant.charges} charges"
    np.testing.assert_array_equal(
        result, expected, "something was computed from the data before the charge"
    )


def check_exact_spend(estimator):
    """Releases of clones and of pickled copies are all booked, each at the stated price."""
    X, y = make_table(estimator)
    accountant = _budget(estimator, 4)
    original = clone(estimator).set_params(accountant=accountant)
    copies = [original, clone(original), pickle.loads(pickle.dumps(original))]
    for copy in [*copies, copies[0]]:
        assert copy.get_params()["accountant"] is accountant, "a copy has another accountant"
        _published(copy.fit(X, y), X)
    spends = accountant.spends
    prices = {(spend.epsilon, spend.delta) for spend in spends}
    assert len(spends) == 4, f"four releases made {len(spends)} records"
    assert prices == {_price(estimator)}, f"prices are {prices}"
    if not _releases_in_transform(estimator):
        assert copies[0].privacy_.record == spends[-1].hash, "the statement names another record"


def check_failed_fit(estimator):
    """Bad input is a ValueError, charges nothing and leaves nothing of an earlier fit."""
    X, y = make_table(estimator)
    accountant = _budget(estimator, 2)
    fitted = clone(estimator).set_params(accountant=accountant).fit(X, y)
    spends = len(accountant.spends)
    tables = [X[:0]]
    if not get_tags(estimator).input_tags.allow_nan:
        tables.append(X.copy())
        tables[-1][3, 1] = np.nan
    for table in tables:
        try:
            fitted.fit(table, y[: len(table)])
        except ValueError:
            pass
        else:
            raise AssertionError("bad input was fitted")
        assert not fitted_names(fitted), f"a failed fit left {fitted_names(fitted)}"
    assert len(accountant.spends) == spends, "bad input was charged"


def check_privacy_parameters(estimator):
    """Impossible values of epsilon, delta and random_state are ValueErrors, uncharged."""
    X, y = make_table(estimator)
    accountant = _budget(estimator, 1)
    bad = [("epsilon", v) for v in (0, -1.0, "1", None, float("nan"), float("inf"), True)]
    bad += [("random_state", v) for v in (-1, 0.5, np.random.RandomState(0), True)]
    bad += [("accountant", v) for v in ("budget.db", 1.0)]
    if "delta" in estimator.get_params():
        bad += [("delta", v) for v in (-1e-9, 1.0, "small", None, float("nan"))]
    for name, value in bad:
        try:
            _release(estimator, X, y, **({"accountant": accountant} | {name: value}))
        except ValueError:
            pass
        else:
            raise AssertionError(f"{name}={value!r} was accepted")
    assert not accountant.spends, "a release with impossible parameters was charged"


def check_tiny_epsilon(estimator):
    """An epsilon too small to be of use gives a release all the same, or an uncharged error."""
    X, y = make_table(estimator)
    for epsilon in (1e-6, 1e-14, 1e-100, 1e-300):
        accountant = PrivacyAccountant(1.0, 0.5)
        try:
            result = _release(estimator, X, y, epsilon=epsilon, accountant=accountant)
        except ValueError:
            assert not accountant.spends, f"a failure at epsilon={epsilon} was charged"
        else:
            assert np.isfinite(result.astype(float)).all(), f"not finite at epsilon={epsilon}"


def check_nothing_raw(estimator):
    """No pickle of a fitted estimator holds a value of the table.

    The table is made of values whose eight bytes are all but impossible to meet by chance.
    """
    X, y = make_table(estimator)
    X = X + np.random.default_rng(2).uniform(1e-10, 1e-9, size=X.shape)
    pickled = pickle.dumps(_fit(estimator, X, y))
    found = sum(value.tobytes() in pickled for value in X.ravel())
    assert not found, f"a pickle holds {found} values of the table"


def check_fresh_noise(estimator):
    """Two releases of one estimator differ, and so do releases of two clones."""
    X, y = make_table(estimator)
    first = clone(estimator).fit(X, y)
    one = _published(first, X)
    for other in (_published(first.fit(X, y), X), _release(estimator, X, y)):
        assert not np.array_equal(one, other), "two releases published the same numbers"


def check_seeded_flag(estimator):
    """A seed repeats the noise, and the statement, the ledger and a warning say so."""
    X, y = make_table(estimator)
    accountant = _budget(estimator, 3)
    fits = [
        clone(estimator).set_params(random_state=seed, accountant=accountant)
        for seed in (7, 7, None)
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [_published(fit.fit(X, y), X) for fit in fits]
    assert np.array_equal(results[0], results[1]), "a seed did not repeat"
    flags = [fit.privacy_.seeded for fit in fits]
    assert flags == [True, True, False], f"statements say seeded: {flags}"
    flags = [spend.seeded for spend in accountant.spends]
    assert flags == [True, True, False], f"the ledger says seeded: {flags}"
    warned = sum(issubclass(w.category, SeededNoiseWarning) for w in caught)
    assert warned == 2, f"two seeded releases warned {warned} times"


def check_statement(estimator):
    """The statement is complete and repeats what was asked and charged."""
    X, y = make_table(estimator)
    accountant = PrivacyAccountant(1e3, 0.5, relation="replace_one")
    fitted = _fit(estimator, X, y, accountant=accountant)
    statement = fitted.privacy_.to_dict()
    assert (statement["epsilon"], statement["delta"]) == _price(estimator)
    assert statement["relation"] == "replace_one"
    assert statement["noise_scale"] > 0 and statement["sensitivity"] > 0
    for field in ("mechanism", "composition", "sampler", "version", "unit", "trust_model"):
        assert isinstance(statement[field], str) and statement[field], f"{field} is empty"
    assert statement["public"], "nothing is said about what was taken to be public"
    assert str(fitted.privacy_) and "<table" in fitted.privacy_._repr_html_()


def check_group_statement(estimator):
    """Where groups of rows are protected the statement speaks of groups, as the ledger does."""
    X, y = make_table(estimator)
    accountant = PrivacyAccountant(1e3, 0.5, unit="group", max_rows=3)
    fitted = _fit(estimator, X, y, accountant=accountant)
    _published(fitted, X)
    spend = accountant.spends[0]
    assert spend.epsilon > _price(estimator)[0], "three rows cost no more than one"
    statement = fitted.privacy_
    assert (statement.epsilon, statement.delta) == (spend.epsilon, spend.delta)
    assert "3" in statement.unit


def check_relation(estimator):
    """The relation comes from the accountant: under replace-one the sensitivity is larger.

    Reports of single rows are protected the same under both.
    """
    X, y = make_table(estimator)
    scales = {}
    for relation in ("add_remove", "replace_one"):
        accountant = PrivacyAccountant(1e3, 0.5, relation=relation)
        scales[relation] = _fit(estimator, X, y, accountant=accountant).privacy_.sensitivity
    least = 1.0 if _releases_in_transform(estimator) else 1.1
    assert scales["replace_one"] >= least * scales["add_remove"], f"sensitivities: {scales}"


def check_no_sample_weight(estimator):
    """`fit` takes no sample weights: a weight would change a row's sensitivity."""
    assert "sample_weight" not in inspect.signature(estimator.fit).parameters


def check_sklearn_contract(estimator):
    """scikit-learn's own checks pass, none excepted, with an accountant."""
    accountant = PrivacyAccountant(1e9, 0.5)
    check_estimator(clone(estimator).set_params(accountant=accountant))
    assert accountant.epsilon_spent > 0


def dp_checks():
    """Return the checks, each a function of an unfitted estimator.

    Returns
    -------
    list of callable
    """
    return [
        check_refused_charge,
        check_charge_before_touch,
        check_exact_spend,
        check_failed_fit,
        check_privacy_parameters,
        check_tiny_epsilon,
        check_nothing_raw,
        check_fresh_noise,
        check_seeded_flag,
        check_statement,
        check_group_statement,
        check_relation,
        check_no_sample_weight,
        check_sklearn_contract,
    ]
