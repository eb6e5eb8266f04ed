"""Checks of what an estimator claims, and that the claim is neither false nor idle."""

import inspect
from unittest import SkipTest

import numpy as np
from scipy.stats import wasserstein_distance
from sklearn.utils.estimator_checks import check_estimator

from skdp.accounting import convert_relation, get_epsilon
from skdp.audit._bounds import epsilon_from_rates
from skdp.audit._distinguish import distinguish
from skdp.audit._published import as_matrix, observe
from skdp.ledger import PrivacyAccountant
from skdp.testing._case import N_FEATURES, N_ROWS, Case, must_raise, quiet_seeds, takes_categories

FALSE_ALARM = 1e-6
# Fewer prove next to nothing at this false-alarm rate.
LEAST_FITS = 60
EPSILONS = (0.01, 1e5)
NO_NOISE = 1e10
# Noise is small beside what sixty rows make of a release.
TELLING = 100.0
SEEDS = range(3)
PAIRS = 10
# The length of short rows, as a part of the longest row's.
SHORT = 1e-3
# How far beyond what is declared a row is that must be clipped.
BEYOND = 1e3
# Of a person.
MANY_ROWS = 1000


def check_statement(case):
    """The statement is complete and repeats what was asked and charged."""
    shown = case.stated(case.fit(accountant=PrivacyAccountant(1e3, 0.5, relation="replace_one")))
    statement = shown.to_dict()
    expected = dict(zip(("epsilon", "delta"), case.price, strict=True))
    for field, value in (expected | {"relation": "replace_one"}).items():
        stated = statement[field]
        assert stated == value, f"{field} is stated to be {stated!r}, and {value!r} was asked"
    for field in ("noise_scale", "sensitivity"):
        assert statement[field] > 0, f"{field} is stated to be {statement[field]!r}"
    for field in ("mechanism", "composition", "sampler", "version", "unit", "trust_model"):
        assert isinstance(statement[field], str) and statement[field], f"{field} is empty"
    assert statement["public"], "nothing is said about what was taken to be public"
    shows_itself = str(shown) and "<table" in shown._repr_html_()
    assert shows_itself, "it does not show itself as text and as a table"


def check_group_statement(case):
    """Where groups of rows are protected the statement speaks of groups, as the ledger does."""
    accountant = PrivacyAccountant(1e3, 0.5, unit="group", max_rows=3)
    fitted = case.fit(accountant=accountant)
    case.published(fitted)
    assert accountant.charges, "a release was made and nothing was charged"
    charge = accountant.charges[0]
    of_a_row = get_epsilon(charge.event, charge.delta)
    assert charge.epsilon > of_a_row, "three rows cost no more than one"
    statement = case.stated(fitted)
    stated = (statement.epsilon, statement.delta)
    charged = (charge.epsilon, charge.delta)
    assert stated == charged, f"(epsilon, delta) is stated to be {stated}; {charged} was charged"
    assert "3" in statement.unit, f"the unit of three rows is stated to be {statement.unit!r}"


def check_relation(case):
    """The relation comes from the accountant: under replace-one the sensitivity is larger.

    By how much depends on what is released: a replaced row moves a sum by twice as much as a
    removed one, and the rank of the quantile q by 1 instead of max(q, 1 - q), which may be nearly
    the same. Reports of single rows are protected the same under both. Fits are at a large epsilon:
    what an estimator regularizes more, where noise rules, moves less.
    """
    scales = {}
    for relation in ("add_remove", "replace_one"):
        accountant = PrivacyAccountant(2.0 * EPSILONS[1], 0.5, relation=relation)
        fitted = case.fit(accountant=accountant, epsilon=EPSILONS[1])
        scales[relation] = case.stated(fitted).sensitivity
    replaced = scales["replace_one"]
    removed = scales["add_remove"]
    enough = replaced >= removed if case.releases_in_transform else replaced > removed
    assert enough, f"it is {removed:g} under add/remove and {replaced:g} under replace-one"


def check_accuracy_rises(case):
    """Releases at a large epsilon are nearer the answer without noise than at a small one."""
    errors = []
    with quiet_seeds():
        answers = [_parts(case, NO_NOISE, seed) for seed in SEEDS]
        for epsilon in EPSILONS:
            released = [_parts(case, epsilon, seed) for seed in SEEDS]
            errors.append(np.median([_gap(*pair) for pair in zip(released, answers, strict=True)]))
    low, high = errors
    assert high < low, f"errors are {low:g} at epsilon = {EPSILONS[0]}, {high:g} at {EPSILONS[1]}"


def check_limit(case, reference=None):
    """Without bound on epsilon noise vanishes, and what is left is the answer for the data.

    At epsilon = 1e10 two fits agree to 1e-3. If they do not, because batches or quantiles between
    two rows are drawn at random, ten pairs of fits to one table must all agree better than ten
    pairs to two tables; where noise drowns the data this has a chance of 5e-6. A meta-estimator,
    which may choose at random among models, is excused from that.

    Parameters
    ----------
    case : Case
    reference : estimator, default=None
        The one without privacy. Fitted attributes of the same name and shape then agree with its
        to 1e-3.
    """
    # Another table of the same range and labels, with the relation turned round.
    other = -0.5 * case.X, case.y
    if takes_categories(case.estimator):
        other = np.where(case.X == 2.0, 0.0, case.X), case.y[::-1]
    one = _parts(case, NO_NOISE)

    def gaps(released, table=()):
        return [_gap(parts, _parts(case, NO_NOISE, table=table)) for parts in released]

    noise = gaps([one])
    signal = gaps([one], other)
    assert signal[0] > 0.0, "the release at epsilon = 1e10 is the same for other data"
    if noise[0] >= 1e-3:
        again = [_parts(case, NO_NOISE) for _ in range(2 * PAIRS)]
        noise = gaps(again[:PAIRS])
        signal = gaps(again[PAIRS:], other)
        if max(noise) >= min(signal) and "estimator" in case.params:
            raise SkipTest("a meta-estimator may choose at random among the models it fits")
        assert max(noise) < min(signal), (
            f"at epsilon = 1e10 fits to one table differ by up to {max(noise):.2g}, fits to two "
            f"tables by {min(signal):.2g}"
        )
    if reference is not None:
        answer = Case(reference)
        _check_agreement(one, answer.published_parts(answer.fit(case.X, case.y), case.X))


def _check_agreement(released, answer):
    both = answer.keys() & released.keys()
    shared = sorted(name for name in both if 0 < len(answer[name]) == len(released[name]))
    assert shared, f"no attribute in common: {sorted(released)}, {sorted(answer)}"
    for name in shared:
        gap = _distance(released[name], answer[name])
        assert gap < 1e-3, f"{name} at epsilon = 1e10 differs by {gap:.2g} from the answer"


def _parts(case, epsilon, seed=None, table=()):
    return case.published_parts(case.fit(*table, epsilon=epsilon, **case.seeded(seed)), *table[:1])


def _gap(one, other):
    """Return the relative distance of two releases, the mean over their attributes."""
    names = sorted(one.keys() | other.keys())
    empty = np.empty(0)
    return float(np.mean([_distance(one.get(n, empty), other.get(n, empty)) for n in names]))


def _distance(one, other):
    """Return the relative distance of two vectors, between their distributions if sizes differ."""
    if not (len(one) and len(other)):
        return float(len(one) != len(other))
    size = max(np.sqrt(np.mean(one**2)), np.sqrt(np.mean(other**2)), 1e-12)
    if len(one) != len(other):
        return float(wasserstein_distance(one, other) / size)
    return float(np.sqrt(np.mean((one - other) ** 2)) / size)


def check_neighbors(case, n_fits=100):
    """No simple test tells two extreme neighbors apart better than the claim allows.

    The claim is the estimator's own, or half of what so many fits could prove if that is less.
    The false-alarm rate is 1e-6.

    Parameters
    ----------
    case : Case
    n_fits : int, default=100
        In each of two worlds. A hundred fits find noise that is missing, and thousands noise
        that is twice too small.
    """
    _check_untold(case, extreme_tables(case), n_fits)


def check_persons(case, n_fits=100):
    """Where persons are protected a fit needs their ids, and tells of no one, of many rows or few.

    No simple test tells extreme neighbors apart in which a person of a thousand rows changes. It
    is skipped where the estimator refuses persons, which must cost nothing.

    Parameters
    ----------
    case : Case
    n_fits : int, default=100
        As in `check_neighbors`.
    """
    if "groups" not in inspect.signature(case.estimator.fit).parameters:
        raise SkipTest(f"{type(case.estimator).__name__} takes no groups")
    accountant = PrivacyAccountant(1e3, 0.5, unit="person")
    ids = np.arange(N_ROWS)
    with must_raise(ValueError, "rows of persons who are not named were fitted"):
        case.release(accountant=accountant)
    try:
        fitted = case.fit(groups=ids, accountant=accountant)
    except ValueError as error:
        assert not accountant.charges, "a refused fit was charged"
        raise SkipTest(str(error)) from error
    case.check_booked(accountant.charges, 1)
    stated = case.stated(fitted).unit
    assert "person" in stated, f"the unit is stated to be {stated!r}"
    places = np.append(ids, np.full(MANY_ROWS - 1, ids[-1]))
    tables = tuple((X[places], y[places], places) for X, y in extreme_tables(case))
    _check_untold(case, tables, n_fits, unit="person")


def _check_untold(case, tables, n_fits, **unit):
    if n_fits < LEAST_FITS:
        raise ValueError(f"n_fits must be at least {LEAST_FITS}, got {n_fits!r}")
    judged = n_fits // 2
    provable = epsilon_from_rates(judged, judged, 0, judged, confidence=1.0 - FALSE_ALARM)
    epsilon, delta = case.price
    epsilon = min(epsilon, 0.5 * provable)
    options = {"epsilon": epsilon} | case.seeded(None)
    if "accountant" in case.params:
        options["accountant"] = PrivacyAccountant(1e9, 0.5, relation="replace_one", **unit)
    else:
        # The tables differ by a replaced row; whose claim is for a removed one owes twice that.
        epsilon, delta = convert_relation(epsilon, delta, "add_remove", "replace_one")
    runs = [
        observe(fitted, table[0] if case.releases_in_transform else None)
        for table in tables
        for fitted in (case.fit(*table, **options) for _ in range(n_fits))
    ]
    values, names = as_matrix(runs)
    base, *others = np.split(values, len(runs) // n_fits)
    for other in others:
        terms = {"delta": delta, "confidence": 1.0 - FALSE_ALARM / len(others)}
        verdict = distinguish(base, other, names=names, **terms)
        assert verdict.epsilon <= epsilon, (
            f"{verdict.test} tells neighbors apart: epsilon is at least {verdict.epsilon:.3g}, "
            f"the claim is {epsilon:.3g}"
        )


def extreme_tables(case):
    """Return a table (X, y) and neighbors of it, in which the last row is another.

    A crowd is at one end of the declared bounds and the last row far beyond the other, or back in
    the crowd. Where row norms are bounded, the crowd is of short rows, which hardly curve a loss
    or move its optimum, and the last row is longer than allowed. If there is a target the last row
    may have the other label.
    """
    norm = case.params.get("data_norm")
    crowd = np.zeros((N_ROWS, N_FEATURES))
    if norm is None:
        low, high, is_declared = _limits(case)
        crowd[:] = low
        row = np.full(N_FEATURES, high + BEYOND * (high - low) * is_declared)
    else:
        norm = float(norm) if isinstance(norm, float | int) else 1.0
        crowd = crowd[:, :2]
        crowd[:, 0] = SHORT * norm
        row = np.array([BEYOND * norm, 0.0])
    X, y = crowd.copy(), case.y.copy()
    X[-1], y[-1] = row, y.min()
    if not case.tags.target_tags.required:
        return (X, y), (crowd, y)
    other = np.append(y[:-1], y.max())
    return ((X, y), (X, other), (crowd, other))[: 2 if norm is None else 3]


def _limits(case):
    """Return the ends of the features' range, and whether values beyond them are clipped."""
    if takes_categories(case.estimator):
        return 0.0, 2.0, False
    bounds = case.params.get("bounds")
    if not (isinstance(bounds, tuple | list) and np.ndim(bounds) == 1 and len(bounds) == 2):
        return -0.5, 0.5, False
    return float(bounds[0]), float(bounds[1]), True


def check_declared_bounds(case):
    """Values beyond the bounds that are declared count as the bounds, and no others do.

    With a seed a fit is then the same where such values are clipped before, and another one where
    the bounds are wide enough for them. Where the bounds come from the data, or are fixed, it is
    not.
    """
    low, high, is_declared = _limits(case)
    if not is_declared:
        raise SkipTest("no bounds are declared as a pair of numbers")
    width = high - low
    # On either side, and not as many on each, so that a median moves too.
    beyond = high + width * (0.5 + 5.0 * case.X)
    clipped = np.clip(beyond, low, high)

    def are_alike(bounds):
        params = {"bounds": bounds, "epsilon": TELLING, "random_state": 0}
        values, _ = as_matrix([observe(case.fit(X, **params)) for X in (beyond, clipped)])
        return np.array_equal(*values)

    with quiet_seeds():
        alike = are_alike(case.params["bounds"])
        assert alike, "rows beyond the declared bounds give another release than clipped ones"
        alike = are_alike((low - 2.0 * width, high + 3.0 * width))
        assert not alike, "with wider bounds rows are clipped all the same"


def check_no_sample_weight(case):
    """`fit` takes no sample weights: a weight would change a row's sensitivity."""
    names = list(inspect.signature(case.estimator.fit).parameters)
    assert "sample_weight" not in names, f"its parameters are {names}"


def check_sklearn_contract(case):
    """scikit-learn's own checks pass, none excepted, with an accountant."""
    accountant = PrivacyAccountant(1e9, 0.5)
    check_estimator(case.made(accountant=accountant))
    assert accountant.epsilon_spent > 0, "they ran and nothing was charged"
