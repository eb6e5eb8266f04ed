"""Checks of an estimator's claims: that they are true, and that the noise is not excessive."""

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
from skdp.testing._case import (
    N_FEATURES,
    N_ROWS,
    Case,
    ignore_seed_warnings,
    must_raise,
    needs_categories,
)

# False-alarm rate of the statistical checks.
FALSE_ALARM = 1e-6
# Smallest number of fits: with fewer fits, almost nothing can be proved at this false-alarm rate.
MIN_FITS = 60
# A small and a large epsilon, and one at which the noise is negligible.
EPSILONS = (0.01, 1e5)
NO_NOISE = 1e10
# An epsilon at which the noise is small relative to the effect of sixty rows.
LOW_NOISE_EPSILON = 100.0
SEEDS = range(3)
N_PAIRS = 10
# Norm of the short rows, relative to the norm bound.
SHORT_NORM = 1e-3
# Distance between the declared bounds and a row that must be clipped, relative to their width.
OVERSHOOT = 1e3
# Number of rows of the person that changes.
N_PERSON_ROWS = 1000


def check_statement(case):
    """The statement is complete and agrees with the parameters and the accountant."""
    accountant = PrivacyAccountant(1e3, 0.5, relation="replace_one")
    shown = case.statement_of(case.fit(accountant=accountant))
    statement = shown.to_dict()
    cost = case.privacy_cost
    # If the release is `transform`, a fit charges nothing.
    if accountant.charges:
        cost = case.check_charges(accountant.charges, 1)
    expected = dict(zip(("epsilon", "delta"), cost, strict=True))
    for field, value in (expected | {"relation": "replace_one"}).items():
        stated = statement[field]
        assert stated == value, f"{field} is {stated!r} in the statement, expected {value!r}"
    for field in ("noise_scale", "sensitivity"):
        assert statement[field] > 0, f"{field} is {statement[field]!r} in the statement"
    for field in ("mechanism", "composition", "sampler", "version", "unit", "trust_model"):
        assert isinstance(statement[field], str) and statement[field], (
            f"{field} is empty in the statement"
        )
    assert statement["public"], "the statement does not list what was assumed to be public"
    is_printable = str(shown) and "<table" in shown._repr_html_()
    assert is_printable, "the statement has no representation as text and as a table"


def check_group_statement(case):
    """If groups of rows are protected, the statement and the ledger state the cost of a group."""
    accountant = PrivacyAccountant(1e3, 0.5, unit="group", max_rows=3)
    fitted = case.fit(accountant=accountant)
    case.published(fitted)
    assert accountant.charges, "a release was made, but nothing was charged"
    charge = accountant.charges[0]
    row_epsilon = get_epsilon(charge.event, charge.delta)
    assert charge.epsilon > row_epsilon, "three rows cost no more than one"
    statement = case.statement_of(fitted)
    stated = (statement.epsilon, statement.delta)
    charged = (charge.epsilon, charge.delta)
    assert stated == charged, f"the statement has (epsilon, delta) = {stated}, charged: {charged}"
    assert "3" in statement.unit, f"the statement has the unit {statement.unit!r} for three rows"


def check_relation(case):
    """The accountant's relation is used: under replace-one, the sensitivity is not too small.

    The factor depends on the release. A replaced row changes a sum of signed values by twice as
    much as a removed one, and two counts of a histogram instead of one, but a sum of values in
    [0, 1] by 1 in both cases, and the rank of the quantile q by 1 instead of max(q, 1 - q), which
    may be nearly the same. Equal sensitivities pass if, without noise, a replaced row changes the
    release in only one direction, and no more than a row that becomes all zeros. Randomized reports
    of single rows have the same sensitivity under both relations. Fits are run at a large epsilon,
    since estimators that regularize more at high noise have a smaller sensitivity there. For
    sampled batches, the sensitivity remains that of adding or removing one record, and the noise is
    larger.
    """
    scales = {}
    for relation in ("add_remove", "replace_one"):
        accountant = PrivacyAccountant(2.0 * EPSILONS[1], 0.5, relation=relation)
        fitted = case.fit(accountant=accountant, epsilon=EPSILONS[1])
        statement = case.statement_of(fitted)
        is_sampled = any(stage.is_sampled for stage in statement.stages)
        scales[relation] = statement.noise_scale if is_sampled else statement.sensitivity
    replaced = scales["replace_one"]
    removed = scales["add_remove"]
    name = "sensitivity"
    if is_sampled:
        name = "noise scale of sampled batches"
    sensitivities = f"the {name} is {removed:g} under add/remove and {replaced:g} under replace-one"
    assert replaced >= removed, sensitivities
    if replaced > removed or is_sampled or case.releases_in_transform:
        return
    assert _changes_like_removed(case), (
        f"{sensitivities}, although a replaced row changes the noiseless release more than a "
        "row that becomes zeros: multiply the sensitivity by "
        "guarantee.neighbors.sensitivity_factor. If it is the same under both relations, pass "
        'expected_failed_checks={"check_relation": reason}'
    )


def _changes_like_removed(case):
    """Return True if replacing a row changes a release no more than setting it to zeros."""
    (X, y), *_ = extreme_tables(case)
    row = X[-1]
    # The opposite row: at the other end of the bounds, or in the opposite direction.
    if case.params.get("data_norm") is None:
        opposite = X[0]
    else:
        opposite = -row
    with ignore_seed_warnings():
        one, other, zero = (
            case.published(
                case.fit(_with_last_row(X, last), y, epsilon=NO_NOISE, **case.seed_params(0))
            )
            for last in (row, opposite, 0.0)
        )
    if not len(one) == len(other) == len(zero):
        return False
    change = one - other
    removed = max(np.abs(one - zero).sum(), np.abs(other - zero).sum())
    # At this epsilon, the noise is below this fraction, as in `check_limit`.
    tolerance = 1e-3 * max(removed, np.abs(change).sum())
    is_one_sided = not ((change > tolerance).any() and (change < -tolerance).any())
    return is_one_sided and np.abs(change).sum() <= removed + tolerance


def check_accuracy_rises(case):
    """Releases at a large epsilon are closer to noiseless ones than those at a small epsilon."""
    errors = []
    with ignore_seed_warnings():
        answers = [_released_by_attribute(case, NO_NOISE, seed) for seed in SEEDS]
        for epsilon in EPSILONS:
            released = [_released_by_attribute(case, epsilon, seed) for seed in SEEDS]
            errors.append(
                np.median(
                    [_relative_distance(*pair) for pair in zip(released, answers, strict=True)]
                )
            )
    low, high = errors
    assert high < low, f"errors are {low:g} at epsilon = {EPSILONS[0]}, {high:g} at {EPSILONS[1]}"


def check_limit(case, reference=None):
    """As epsilon grows, the noise vanishes, and the release depends only on the data.

    At epsilon = 1e10, two fits agree to 1e-3. If they do not, because batches or quantiles between
    two rows are drawn at random, ten pairs of fits to one table must all agree better than ten
    pairs of fits to two tables. If the noise dominates, the probability of this is 5e-6. A
    meta-estimator is exempt, since it may choose at random among models.

    Parameters
    ----------
    case : Case
    reference : estimator, default=None
        Estimator without privacy. Fitted attributes with the same name and shape then agree with
        those of the reference to 1e-3.
    """
    # Another table with the same range and labels, but the opposite relation between X and y.
    other = -0.5 * case.X, case.y
    if needs_categories(case.estimator):
        other = np.where(case.X == 2.0, 0.0, case.X), case.y[::-1]
    one = _released_by_attribute(case, NO_NOISE)

    def gaps(released, table=()):
        """Return the distance of each release from a new one with almost no noise."""
        return [
            _relative_distance(parts, _released_by_attribute(case, NO_NOISE, table=table))
            for parts in released
        ]

    noise = gaps([one])
    signal = gaps([one], other)
    assert signal[0] > 0.0, "the release at epsilon = 1e10 is the same for other data"
    if noise[0] >= 1e-3:
        again = [_released_by_attribute(case, NO_NOISE) for _ in range(2 * N_PAIRS)]
        noise = gaps(again[:N_PAIRS])
        signal = gaps(again[N_PAIRS:], other)
        if max(noise) >= min(signal) and "estimator" in case.params:
            raise SkipTest("a meta-estimator may choose at random among the models it fits")
        assert max(noise) < min(signal), (
            f"at epsilon = 1e10 fits to one table differ by up to {max(noise):.2g}, fits to two "
            f"tables by {min(signal):.2g}"
        )
    if reference is not None:
        answer = Case(reference)
        _check_agreement(one, answer.published_by_attribute(answer.fit(case.X, case.y), case.X))


def _check_agreement(released, answer):
    """Check that attributes with the same name and size agree."""
    both = answer.keys() & released.keys()
    shared = sorted(name for name in both if 0 < len(answer[name]) == len(released[name]))
    assert shared, f"no attribute is in both {sorted(released)} and {sorted(answer)}"
    for name in shared:
        gap = _vector_distance(released[name], answer[name])
        assert gap < 1e-3, f"{name} at epsilon = 1e10 differs by {gap:.2g} from the reference"


def _released_by_attribute(case, epsilon, seed=None, table=()):
    """Return the released numbers of each attribute after a fit to the case's or another table."""
    fitted = case.fit(*table, epsilon=epsilon, **case.seed_params(seed))
    return case.published_by_attribute(fitted, *table[:1])


def _relative_distance(one, other):
    """Return the mean over attributes of the relative distance between two releases."""
    names = sorted(one.keys() | other.keys())
    empty = np.empty(0)
    return float(np.mean([_vector_distance(one.get(n, empty), other.get(n, empty)) for n in names]))


def _vector_distance(one, other):
    """Return the relative distance between two vectors, or their distributions if sizes differ."""
    if not (len(one) and len(other)):
        return float(len(one) != len(other))
    size = max(np.sqrt(np.mean(one**2)), np.sqrt(np.mean(other**2)), 1e-12)
    if len(one) != len(other):
        return float(wasserstein_distance(one, other) / size)
    return float(np.sqrt(np.mean((one - other) ** 2)) / size)


def check_neighbors(case, n_fits=100):
    """No simple test distinguishes two extreme neighbors better than the claim allows.

    The tested epsilon is the estimator's claim, or half of the epsilon that this number of fits can
    prove, if that is smaller. The false-alarm rate is 1e-6.

    Parameters
    ----------
    case : Case
    n_fits : int, default=100
        Number of fits to each of two neighboring tables. A hundred fits detect missing noise;
        thousands detect noise with half the correct scale.
    """
    comparisons = [extreme_tables(case), *spread_tables(case)]
    for tables in comparisons:
        _check_indistinguishable(case, tables, n_fits, n_comparisons=len(comparisons))


def check_persons(case, n_fits=100):
    """If persons are protected, a fit needs their ids and protects persons with many rows.

    No simple test distinguishes extreme neighbors in which a person with a thousand rows changes.
    The check is skipped if the estimator refuses persons; a refused fit must not be charged.

    Parameters
    ----------
    case : Case
    n_fits : int, default=100
        As in `check_neighbors`.
    """
    if "groups" not in inspect.signature(case.estimator.fit).parameters:
        raise SkipTest(f"{type(case.estimator).__name__}.fit has no parameter groups")
    accountant = PrivacyAccountant(1e3, 0.5, unit="person")
    ids = np.arange(N_ROWS)
    with must_raise(ValueError, "rows were fitted without the ids of their persons"):
        case.release(accountant=accountant)
    try:
        fitted = case.fit(groups=ids, accountant=accountant)
    except ValueError as error:
        assert not accountant.charges, "a refused fit was charged"
        raise SkipTest(str(error)) from error
    case.check_charges(accountant.charges, 1)
    unit = case.statement_of(fitted).unit
    assert "person" in unit, f"the statement has the unit {unit!r}"
    # The last row, which differs between neighbors, belongs to a person of many rows.
    indices = np.append(ids, np.full(N_PERSON_ROWS - 1, ids[-1]))
    tables = tuple((X[indices], y[indices], indices) for X, y in extreme_tables(case))
    _check_indistinguishable(case, tables, n_fits, unit="person")


def _check_indistinguishable(case, tables, n_fits, *, unit="row", n_comparisons=1):
    """Check that the first table cannot be distinguished from its neighbors, the other tables.

    Parameters
    ----------
    case : Case
    tables : tuple of tuple
        Arguments of `fit`: the first table and its neighbors.
    n_fits : int
        Number of fits to each table.
    unit : {"row", "person"}, default="row"
        Privacy unit by which the tables are neighbors.
    n_comparisons : int, default=1
        Number of calls of this function that share the false-alarm rate.
    """
    if n_fits < MIN_FITS:
        raise ValueError(f"n_fits must be at least {MIN_FITS}, got {n_fits!r}")
    # Half of the fits choose a test, the other half evaluate it.
    n_evaluated = n_fits // 2
    provable = epsilon_from_rates(
        n_evaluated, n_evaluated, 0, n_evaluated, confidence=1.0 - FALSE_ALARM
    )
    epsilon, delta = case.privacy_cost
    epsilon = min(epsilon, 0.5 * provable)
    options = {"epsilon": epsilon} | case.seed_params(None)
    if "accountant" in case.params:
        options["accountant"] = PrivacyAccountant(1e9, 0.5, relation="replace_one", unit=unit)
    else:
        # The tables differ by a replaced row. A claim without an accountant is about a removed row.
        epsilon, delta = convert_relation(epsilon, delta, "add_remove", "replace_one")
    runs = []
    for table in tables:
        probe = None
        if case.releases_in_transform:
            probe = table[0]
        for _ in range(n_fits):
            runs.append(observe(case.fit(*table, **options), probe))
    if "accountant" in options and options["accountant"].charges:
        # A fit whose noise needs no delta is charged without delta, and must not need it here.
        delta = options["accountant"].charges[-1].delta
    values, names = as_matrix(runs)
    base, *others = np.split(values, len(runs) // n_fits)
    for other in others:
        confidence = 1.0 - FALSE_ALARM / (n_comparisons * len(others))
        result = distinguish(base, other, names=names, delta=delta, confidence=confidence)
        assert result.epsilon <= epsilon, (
            f"{result.test} distinguishes neighbors: epsilon is at least {result.epsilon:.3g}, the "
            f"claim is {epsilon:.3g}"
        )


def extreme_tables(case):
    """Return a table (X, y) and neighboring tables, which differ in the last row.

    All rows but the last are at one end of the declared bounds. The last row is far beyond the
    other end, or like the others, or the point within the bounds that is closest to 0, because a
    statistic of magnitudes has the same value at both ends of bounds such as (-10, 10). If row
    norms are bounded, all rows but the last are short, so they hardly affect the curvature of a
    loss or its optimum, and the last row is longer than allowed. If there is a target, the last row
    may have the other label.
    """
    norm = case.params.get("data_norm")
    common = np.zeros((N_ROWS, N_FEATURES))
    if norm is None:
        low, high, is_declared = _limits(case)
        common[:] = low
        row = np.full(N_FEATURES, high + OVERSHOOT * (high - low) * is_declared)
    else:
        # Without a declared norm, 1 is a typical one.
        if isinstance(norm, float | int):
            norm = float(norm)
        else:
            norm = 1.0
        common = common[:, :2]
        common[:, 0] = SHORT_NORM * norm
        row = np.array([OVERSHOOT * norm, 0.0])
    X = common.copy()
    y = case.y.copy()
    X[-1] = row
    y[-1] = y.min()
    tables = [(X, y)]
    if not case.tags.target_tags.required:
        tables.append((common, y))
    else:
        other_y = np.append(y[:-1], y.max())
        tables.append((X, other_y))
        if norm is not None:
            tables.append((common, other_y))
    if norm is None:
        closest = _closest_to_zero(low, high)
        # Without a target, the table with this row is among the tables if the other rows are equal.
        if case.tags.target_tags.required or closest != low:
            tables.append((_with_last_row(common, closest), y))
    return tuple(tables)


def spread_tables(case):
    """Return lists of neighboring tables whose common rows are spread over the bounds.

    Between rows at one end of the bounds and a row at the other end, a quantile can be any number,
    so `extreme_tables` does not show noise in its rank. Here the last row is far beyond the upper
    end, or is at the lower end, or is the point within the bounds that is closest to 0. It
    therefore changes the rank of every quantile of values, or of magnitudes.

    Returns
    -------
    list of tuple of tables
        Tables are pairs (X, y). The list is empty if there is a target, or row norms are bounded,
        or the features are categories.
    """
    has_target = case.tags.target_tags.required
    if has_target or "data_norm" in case.params or needs_categories(case.estimator):
        return []
    low, high, is_declared = _limits(case)
    # The gaps shrink toward the ends, because two intervals around an extreme rank are equally
    # likely per length. Because of the 1/4, no two magnitudes are equal, so all ranks change.
    angles = np.pi * (np.arange(N_ROWS) + 0.25) / N_ROWS
    values = low + 0.5 * (high - low) * (1.0 - np.cos(angles))
    common = np.repeat(values[:, np.newaxis], N_FEATURES, axis=1)
    far = high + OVERSHOOT * (high - low) * is_declared
    last_rows = dict.fromkeys((far, low, _closest_to_zero(low, high)))
    return [tuple((_with_last_row(common, value), case.y) for value in last_rows)]


def _with_last_row(X, value):
    """Return a copy of a table whose last row has this value in each column."""
    X = X.copy()
    X[-1] = value
    return X


def _closest_to_zero(low, high):
    """Return the number between two bounds that is closest to 0."""
    return min(max(low, 0.0), high)


def _limits(case):
    """Return the ends of the features' range, and whether values beyond them are clipped."""
    if needs_categories(case.estimator):
        return 0.0, 2.0, False
    bounds = case.params.get("bounds")
    if not (isinstance(bounds, tuple | list) and np.ndim(bounds) == 1 and len(bounds) == 2):
        return -0.5, 0.5, False
    return float(bounds[0]), float(bounds[1]), True


def check_declared_bounds(case):
    """Values beyond the declared bounds are clipped to them, and no other values are clipped.

    With a seed, a fit does not change if such values are clipped beforehand, and changes if the
    bounds are wide enough for them. A fit whose bounds come from the data, or are fixed, fails one
    of these tests.
    """
    low, high, is_declared = _limits(case)
    if not is_declared:
        raise SkipTest("no bounds are declared as a pair of numbers")
    width = high - low
    # The numbers of values on the two sides differ, so a median also changes.
    outside = high + width * (0.5 + 5.0 * case.X)
    clipped = np.clip(outside, low, high)

    def are_equal(bounds):
        """Return True if rows outside the bounds give the same fit as rows clipped to them."""
        fits = []
        for X in (outside, clipped):
            fits.append(case.fit(X, bounds=bounds, epsilon=LOW_NOISE_EPSILON, random_state=0))
        values, _ = as_matrix([observe(fitted) for fitted in fits])
        return np.array_equal(*values)

    with ignore_seed_warnings():
        is_clipped = are_equal(case.params["bounds"])
        assert is_clipped, "clipping rows to the declared bounds beforehand changes the release"
        is_clipped = are_equal((low - 2.0 * width, high + 3.0 * width))
        assert not is_clipped, "rows are clipped although wider bounds are declared"


def check_no_sample_weight(case):
    """`fit` has no parameter sample_weight: a weight would change a row's sensitivity."""
    names = list(inspect.signature(case.estimator.fit).parameters)
    assert "sample_weight" not in names, f"the parameters of fit are {names}"


def check_sklearn_contract(case):
    """All of scikit-learn's checks pass with an accountant."""
    accountant = PrivacyAccountant(1e9, 0.5)
    check_estimator(case.clone_with(accountant=accountant))
    assert accountant.epsilon_spent > 0, "fits were made, but nothing was charged"
