"""Checks of what an estimator claims, and that the claim is neither false nor idle."""

import inspect

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from skdp.accounting import PrivacyAccountant, convert_relation
from skdp.audit._bounds import epsilon_from_rates
from skdp.audit._canaries import worst_case_worlds
from skdp.audit._distinguish import distinguish, published_floats
from skdp.utils._check_helpers import (
    N_FEATURES,
    N_ROWS,
    SkipTest,
    fit,
    make_table,
    need_accountant,
    need_parameters,
    need_statement,
    price,
    published,
    quiet_seeds,
    release,
    releases_in_transform,
)

FALSE_ALARM = 1e-6
EPSILONS = (0.01, 100.0)
LARGE_EPSILONS = (1e10, 1e12)
SEEDS = range(3)


def check_statement(estimator):
    """The statement is complete and repeats what was asked and charged."""
    need_accountant(estimator)
    X, y = make_table(estimator)
    accountant = PrivacyAccountant(1e3, 0.5, relation="replace_one")
    fitted = fit(estimator, X, y, accountant=accountant)
    need_statement(fitted)
    statement = fitted.privacy_.to_dict()
    assert (statement["epsilon"], statement["delta"]) == price(estimator)
    assert statement["relation"] == "replace_one"
    assert statement["noise_scale"] > 0 and statement["sensitivity"] > 0
    for field in ("mechanism", "composition", "sampler", "version", "unit", "trust_model"):
        assert isinstance(statement[field], str) and statement[field], f"{field} is empty"
    assert statement["public"], "nothing is said about what was taken to be public"
    assert str(fitted.privacy_) and "<table" in fitted.privacy_._repr_html_()


def check_group_statement(estimator):
    """Where groups of rows are protected the statement speaks of groups, as the ledger does."""
    need_accountant(estimator)
    X, y = make_table(estimator)
    accountant = PrivacyAccountant(1e3, 0.5, unit="group", max_rows=3)
    fitted = fit(estimator, X, y, accountant=accountant)
    published(fitted, X)
    spend = accountant.spends[0]
    assert spend.epsilon > price(estimator)[0], "three rows cost no more than one"
    need_statement(fitted)
    statement = fitted.privacy_
    assert (statement.epsilon, statement.delta) == (spend.epsilon, spend.delta)
    assert "3" in statement.unit


def check_relation(estimator):
    """The relation comes from the accountant: under replace-one the sensitivity is larger.

    Reports of single rows are protected the same under both.
    """
    need_accountant(estimator)
    X, y = make_table(estimator)
    scales = {}
    for relation in ("add_remove", "replace_one"):
        accountant = PrivacyAccountant(1e3, 0.5, relation=relation)
        fitted = fit(estimator, X, y, accountant=accountant)
        need_statement(fitted)
        scales[relation] = fitted.privacy_.sensitivity
    least = 1.0 if releases_in_transform(estimator) else 1.1
    assert scales["replace_one"] >= least * scales["add_remove"], f"sensitivities: {scales}"


def check_accuracy_rises(estimator):
    """Releases at a large epsilon are nearer the answer without noise than at a small one."""
    need_parameters(estimator, "epsilon", "random_state")
    X, y = make_table(estimator)
    errors = []
    with quiet_seeds():
        answers = [_answer(estimator, X, y, seed) for seed in SEEDS]
        for epsilon in EPSILONS:
            released = [
                release(estimator, X, y, epsilon=epsilon, random_state=seed) for seed in SEEDS
            ]
            errors.append(np.median([_gap(*pair) for pair in zip(released, answers, strict=True)]))
    low, high = errors
    assert high < low, f"errors are {low:g} at epsilon = {EPSILONS[0]}, {high:g} at {EPSILONS[1]}"


def check_limit(estimator):
    """Without bound on epsilon the release tends to an answer, which depends on the data.

    That the answer is the one of an estimator without privacy is for a test that knows which;
    with one seed random structure that is no noise is the same.
    """
    need_parameters(estimator, "epsilon", "random_state")
    X, y = make_table(estimator)
    other, other_y = make_table(estimator, seed=1)
    with quiet_seeds():
        one, two = (_answer(estimator, X, y, 0, epsilon) for epsilon in LARGE_EPSILONS)
        elsewhere = _answer(estimator, other, other_y, 0)
    assert _gap(one, two) < 1e-3, "releases at epsilon = 1e10 and 1e12 are not the same"
    assert _gap(one, elsewhere) > 0.0, "the release at epsilon = 1e10 is the same for other data"


def _answer(estimator, X, y, seed, epsilon=LARGE_EPSILONS[0]):
    return release(estimator, X, y, epsilon=epsilon, random_state=seed)


def _gap(one, other):
    """Return the relative distance of two releases, 1 if they are of different sizes."""
    if len(one) != len(other):
        return 1.0
    size = max(np.linalg.norm(one), np.linalg.norm(other), 1e-12)
    return float(np.linalg.norm(one - other) / size)


def check_neighbours(estimator, n_fits=100):
    """No simple test tells two extreme neighbours apart better than the claim allows.

    The claim is the estimator's own, or half of what so many fits could prove if that is less.
    The false-alarm rate is 1e-6.

    Parameters
    ----------
    estimator : estimator
    n_fits : int, default=100
        In each of two worlds. A hundred fits find noise that is missing, and thousands noise
        that is twice too small.
    """
    need_parameters(estimator, "epsilon")
    if releases_in_transform(estimator):
        raise SkipTest("what is released is the noisy rows, not a fitted attribute")
    judged = n_fits // 2
    provable = epsilon_from_rates(judged, judged, 0, judged, confidence=1.0 - FALSE_ALARM)
    epsilon, delta = price(estimator)
    epsilon = min(epsilon, 0.5 * provable)
    options = {"epsilon": epsilon}
    if "random_state" in estimator.get_params():
        options["random_state"] = None
    try:
        need_accountant(estimator)
        options["accountant"] = PrivacyAccountant(1e9, 0.5, relation="replace_one")
    except SkipTest:
        # The tables differ by a replaced row; whose claim is for a removed one owes twice that.
        epsilon, delta = convert_relation(epsilon, delta, "add_remove", "replace_one")
    inside, outside = (
        np.vstack([published_floats(fit(estimator, *table, **options)) for _ in range(n_fits)])
        for table in extreme_tables(estimator)
    )
    verdict = distinguish(inside, outside, delta=delta, confidence=1.0 - FALSE_ALARM)
    assert verdict.epsilon <= epsilon, (
        f"{verdict.test} tells neighbours apart: epsilon is at least {verdict.epsilon:.3g}, "
        f"the claim is {epsilon:.3g}"
    )


def extreme_tables(estimator):
    """Return two tables (X, y) of one size in which one row is another, as far as may be.

    Linear models get tables that move their optimum; others a crowd at one end of the declared
    bounds and a row at the other, with another label or back in the crowd.
    """
    parameters = estimator.get_params()
    if "data_norm" in parameters:
        worlds = worst_case_worlds(estimator, N_ROWS, "replace_one")
        return (worlds.X_in, worlds.y_in), (worlds.X_out, worlds.y_out)
    low, high = _limits(parameters)
    X = np.full((N_ROWS, N_FEATURES), low)
    y = np.arange(N_ROWS) % 2
    X[-1] = high
    if get_tags(estimator).target_tags.required:
        other = y.copy()
        other[-1] = 1 - y[-1]
        return (X, y), (X, other)
    crowd = X.copy()
    crowd[-1] = low
    return (X, y), (crowd, y)


def _limits(parameters):
    if "categories" in parameters:
        return 0.0, 2.0
    bounds = parameters.get("bounds")
    if not (isinstance(bounds, tuple | list) and np.ndim(bounds) == 1 and len(bounds) == 2):
        return -0.5, 0.5
    return float(bounds[0]), float(bounds[1])


def check_no_sample_weight(estimator):
    """`fit` takes no sample weights: a weight would change a row's sensitivity."""
    assert "sample_weight" not in inspect.signature(estimator.fit).parameters


def check_sklearn_contract(estimator):
    """scikit-learn's own checks pass, none excepted, with an accountant."""
    need_accountant(estimator)
    accountant = PrivacyAccountant(1e9, 0.5)
    check_estimator(clone(estimator).set_params(accountant=accountant))
    assert accountant.epsilon_spent > 0
