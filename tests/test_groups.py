"""Groups of rows as the unit: epsilon is theirs, and the noise is what k rows that change need."""

import math
import pickle
import re
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.pipeline import make_pipeline

import skdp.base
from skdp import (
    DPPCA,
    BudgetExceededError,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPGridSearchCV,
    DPKBinsDiscretizer,
    DPLinearSVC,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyAccountant,
    RandomizedResponseTransformer,
    stats,
)
from skdp.accounting import (
    ApproximateDP,
    Composed,
    Gaussian,
    Guarantee,
    Neighbors,
    PureDP,
    Repeated,
    gaussian_noise_multiplier,
    get_epsilon,
    zcdp,
)
from skdp.base import TableShape
from skdp.ledger import open_ledger
from skdp.mechanisms import (
    GammaNormMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
)
from skdp.model_selection import dp_cross_val_score, make_dp_scorer
from skdp.pipeline import split_budget

K, DELTA = 8, 1e-6
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(600, 2))
Y = (X[:, 0] > 0).astype(int)
BOUNDS = {"bounds": (-1.0, 1.0)}
GAUSSIAN = {"delta": DELTA}
FITS = {
    "logistic": DPLogisticRegression(),
    "logistic, gradient": DPLogisticRegression(mechanism="gradient"),
    "logistic, objective": DPLogisticRegression(mechanism="objective"),
    "logistic, pure": DPLogisticRegression(delta=0.0),
    "ridge": DPRidge(target_bounds=(0.0, 1.0)),
    "svc": DPLinearSVC(),
    "poisson": DPPoissonRegressor(target_bounds=(0.0, 1.0)),
    "sgd": DPSGDClassifier(),
    "sgd, Poisson": DPSGDClassifier(batch_size=60),
    "sgd, sampled": DPSGDClassifier(delta=0.0, sampling="without_replacement", batch_size=60),
    "additive": DPAdditiveClassifier(),
    "additive, pure": DPAdditiveClassifier(delta=0.0),
    "additive, pairs": DPAdditiveRegressor(target_bounds=(0.0, 1.0), interactions=1),
    "additive, counts": DPAdditiveRegressor(target_bounds=(0.0, 1.0), loss="poisson"),
    "scaler": DPStandardScaler(),
    "scaler, Gaussian": DPStandardScaler(**BOUNDS, **GAUSSIAN),
    "one-hot": DPOneHotEncoder(delta=DELTA),
    "bins": DPKBinsDiscretizer(),
    "pca": DPPCA(data_norm=2.0),
    "search": DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}),
    "search, runs": DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}, mean_runs=2),
}
FAST = {"logistic", "logistic, objective", "sgd, Poisson", "sgd, sampled", "scaler", "pca"}


def group(epsilon, delta=DELTA, k=K, **terms):
    return PrivacyAccountant(epsilon, delta, unit="group", max_rows=k, **terms)


def each(names):
    return [pytest.param(n, marks=[] if n in FAST else [pytest.mark.slow], id=n) for n in names]


@pytest.mark.quick_cases(every=6)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("epsilon", [1.0, pytest.param(8.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", each(FITS))
def test_epsilon_is_that_of_the_group(name, epsilon):
    accountant = group(epsilon)
    model = FITS[name].set_params(epsilon=epsilon, accountant=accountant, random_state=0)
    rows = np.sign(X) if name == "one-hot" else X
    model.fit(rows, Y)
    delta = model.get_params()["delta"] if "delta" in model.get_params() else 0.0
    spend = accountant.charges[0]
    assert (accountant.epsilon_spent, accountant.delta_spent) == (epsilon, delta)
    assert (model.privacy_.epsilon, model.privacy_.delta) == (epsilon, delta)
    assert f"at most {K} of them" in model.privacy_.unit
    # Of one row the price is about an eighth, and no more noise was added than that.
    assert epsilon / K * 0.5 < get_epsilon(spend.event, delta) < epsilon / K * 1.6
    with pytest.raises(BudgetExceededError):
        model.fit(rows, Y)


def test_what_is_charged_elsewhere_is_the_groups_too():
    accountant = group(100.0, 0.1)
    options = {"epsilon": 0.5, "accountant": accountant, "random_state": 0}
    for name in ("mean", "var", "sum", "median"):
        getattr(stats, f"dp_{name}")(X, axis=0, **BOUNDS, **options)
    stats.dp_count(X, axis=0, **options)
    model = DPLogisticRegression(random_state=0).fit(X, Y)
    make_dp_scorer("accuracy", **options)(model, X, Y)
    make_dp_scorer("accuracy", delta=DELTA, **options)(model, X, Y)
    dp_cross_val_score(DPLogisticRegression(), X, Y, cv=3, **options)
    transformer = RandomizedResponseTransformer(categories=[-1.0, 1.0], **options)
    pickle.loads(pickle.dumps(transformer.fit(np.sign(X)))).transform(np.sign(X))
    assert [spend.epsilon for spend in accountant.charges] == [0.5] * 9
    # What its transforms will cost; and what releases nothing costs nothing.
    assert transformer.privacy_.epsilon == 0.5
    free = DPOneHotEncoder(categories=[-1.0, 1.0], **options).fit(np.sign(X))
    assert free.privacy_.epsilon == 0.0 and len(accountant.charges) == 9


@pytest.mark.parametrize(
    "epsilon, delta, k, multiplier",
    # Balle and Wang (2018) at (epsilon, delta), times k.
    [(1.0, 1e-5, 8, 8 * 3.730631635), (0.1, 1e-6, 3, 3 * 36.304690426), (4.0, 1e-5, 8, 8.64929488)],
)
def test_gaussian_noise_is_exactly_that_of_k_rows(epsilon, delta, k, multiplier):
    for model in (
        DPPCA(epsilon, delta=delta, data_norm=2.0),
        DPStandardScaler(epsilon, delta=delta, with_mean=False, **BOUNDS),
    ):
        model.set_params(accountant=group(epsilon, delta, k), random_state=0).fit(X)
        (spend,) = model.accountant.charges
        if isinstance(spend.event, Gaussian):
            assert spend.event.noise_multiplier == pytest.approx(multiplier, rel=1e-7)
        mu, a = k / multiplier, epsilon * multiplier / k
        exact = norm.cdf(0.5 * mu - a) - math.exp(epsilon) * norm.cdf(-0.5 * mu - a)
        assert exact == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 1.0, 20.0, 190.0, 1e4])
@pytest.mark.parametrize("k", [2, 3, 8, 1000])
def test_what_a_row_must_meet_implies_what_the_group_does(epsilon, k):
    neighbors = Neighbors(unit="group", max_rows=k, relation="replace_one")
    pure = Guarantee(epsilon=epsilon, neighbors=neighbors).per_row
    assert 1 - 1e-15 < Fraction(pure.epsilon) * k / Fraction(epsilon) <= 1 and pure.delta == 0.0
    row = Guarantee(epsilon=epsilon, delta=1e-5, neighbors=neighbors).per_row
    assert row.neighbors == Neighbors(relation="replace_one")
    assert Fraction(row.epsilon) * k <= Fraction(epsilon)
    growth = sum(math.exp(i * row.epsilon) for i in range(k))
    assert 0.999e-5 < growth * row.delta <= 1e-5


def test_a_claim_is_the_groups():
    accountant = group(10.0, 1e-3, k=3)
    assert accountant.charge(PureDP(0.25), epsilon=0.75).epsilon == 0.75
    row = Guarantee(epsilon=1.0, delta=1e-5, neighbors=accountant.config.neighbors).per_row
    event = ApproximateDP(row.epsilon, row.delta)
    assert accountant.charge(event, epsilon=1.0, delta=1e-5).epsilon == 1.0
    with pytest.raises(ValueError, match="not"):
        accountant.charge(PureDP(1.1), epsilon=1.0)
    assert len(accountant.charges) == 2
    # What holds for a row is priced for three.
    assert accountant.charge(PureDP(1.0), epsilon=1.0).epsilon == 3.0
    noise = Gaussian(gaussian_noise_multiplier(1.0, 1e-5))
    price = get_epsilon(noise, 1e-5, group_size=3)
    assert accountant.charge(noise, epsilon=1.0, delta=1e-5).epsilon == price > 3.0
    assert not accountant.can_afford(ApproximateDP(0.99, 1e-3), epsilon=1.0, delta=1e-3)


def test_a_ledger_of_groups_that_was_written_before_keeps_its_events_and_prices(tmp_path):
    """Then epsilon was a row's, and the price that of its event for the group."""
    terms = {"composition": "basic", "delta": 0.01, "epsilon": 30.0, "max_rows": 4}
    terms |= {"rdp_order": None, "relation": "add_remove", "unit": "group"}
    sampled = '{"event":{"noise_multiplier":11.6,"type":"Gaussian"},"sampling_rate":0.1,'
    sampled = '{"count":10,"event":' + sampled + '"type":"PoissonSampled"},"type":"Repeated"}'
    charges = [
        (2.0, 0.0, '{"epsilon":0.5,"type":"Laplace"}'),
        (0.8267080697141933, 1e-07, sampled),
        (0.32734007106575325, 0.0049999, '{"noise_multiplier":20.0,"type":"Gaussian"}'),
    ]
    ledger = open_ledger(str(tmp_path / "old.db"))
    ledger.create()
    bodies = [("open", terms)]
    for epsilon, delta, event in charges:
        body = {"epsilon": epsilon, "delta": delta, "event": event, "label": "", "part": None}
        bodies.append(("charge", body | {"seeded": False, "time": "", "version": "0.1.0"}))
    for body in bodies:
        records = ledger.records()
        after = (records[-1].sequence, records[-1].hash) if records else (0, ledger.verify())
        ledger.append("default", after, lambda _, body=body: body)
    accountant = group(30.0, 0.01, k=4, ledger=tmp_path / "old.db")
    assert accountant.epsilon_spent == pytest.approx(3.15404814078, rel=1e-10)
    assert accountant.delta_spent == 0.005
    assert accountant.charges[2].event == Gaussian(20.0)
    accountant.charge(PureDP(0.25), epsilon=1.0)
    assert accountant.epsilon_spent == pytest.approx(4.15404814078, rel=1e-10)


RELEASES = {
    "scaler": (DPStandardScaler(**BOUNDS, with_std=False), LaplaceMechanism),
    "dp_sum": (partial(stats.dp_sum, bounds=(-1.0, 0.5)), LaplaceMechanism),
    "dp_count": (stats.dp_count, GeometricMechanism),
    "dp_histogram": (partial(stats.dp_histogram, bins=3, range=(-1.0, 1.0)), GeometricMechanism),
    "pca": (DPPCA(data_norm=2.0**0.5, center=None), GaussianMechanism),
    "pca, pure": (DPPCA(data_norm=2.0**0.5, center=None, delta=0.0), GammaNormMechanism),
}


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", RELEASES)
def test_k_rows_move_a_release_by_what_the_noise_is_for(name, relation, monkeypatch):
    """The distance over the scale is k epsilon at most, or mu, and near it for some rows."""
    call, kind = RELEASES[name]
    found = {}

    def released(rows):
        accountant = group(1.0, DELTA, 3, relation=relation)
        if callable(call):
            call(rows, axis=0, accountant=accountant, random_state=0)
        else:
            call.set_params(accountant=accountant, random_state=0).fit(rows)
        return found["values"], found["scale"]

    def record(self, values, **more):
        found.update(values=np.array(values, dtype=float).ravel(), scale=self.scale)
        return original(self, values, **more)

    original = kind.release
    monkeypatch.setattr(kind, "release", record)
    # What is not there counts nowhere, and the number of rows stays public.
    monkeypatch.setattr(skdp.base.PrivateRelease, "read_groups", lambda self, groups, n_rows: 40)
    kinds = [np.resize(kind, (3, 2)) for kind in ([1.0, 1.0], [-1.0, -1.0], [1.0, -1.0])]
    tables = [X[:37]] + [np.vstack([X[:37], own]) for own in kinds]
    values, scales = zip(*map(released, tables), strict=True)
    assert len(set(scales)) == 1
    order = 2 if name.startswith("pca") else 1
    others = values[:1] if relation == "add_remove" else values
    moved = max(np.linalg.norm(a - b, order) for a in values for b in others) / scales[0]
    # mu of (1, 1e-6) by Balle and Wang (2018).
    most = 1.0 / 4.2246777 if kind is GaussianMechanism else 1.0
    assert 0.9 * most <= moved <= most * (1.0 + 1e-6)


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("k", [2, 10, 1000])
def test_a_threshold_hides_what_a_group_has_less_than_what_a_row_has(k, relation):
    """Values that k rows share reach it by the noise on their count, whatever epsilon is."""
    frame = pd.DataFrame({"word": ["a"] * 2000})
    for epsilon in (1.0, 20.0, 300.0):
        accountant = group(1e3, 1e-3, k, relation=relation)
        front = DPTableVectorizer(epsilon, delta=1e-6, numeric="scaled", accountant=accountant)
        front.fit(frame)
        shape = TableShape(n_rows=2000, n_columns=1, kinds=["label"], names=["word"])
        neighbors = Neighbors(relation=relation, unit="group", max_rows=k)
        guarantee = Guarantee(epsilon=epsilon, delta=1e-6, neighbors=neighbors)
        plan = front.plan_fit(shape, guarantee)
        key_selection = plan.mechanism.key_selection
        released = norm.sf((key_selection.threshold - k) / key_selection._noise.drawn_scale)
        assert released <= accountant.delta_spent == 1e-6
        event = accountant.charges[0].event
        for delta in (0.5 * released, 0.0):
            assert get_epsilon(event, delta, relation=relation, group_size=k) == math.inf
            assert zcdp(event, relation=relation, group_size=k) == (math.inf, 1.0)


def uncomposed(event):
    """The events of which an event is composed."""
    if isinstance(event, Repeated):
        return uncomposed(event.event)
    if isinstance(event, Composed):
        return [part for each in event.events for part in uncomposed(each)]
    return [event]


@pytest.mark.thorough
def test_one_budget_of_a_group_pays_for_a_threshold():
    frame = pd.DataFrame({"word": ["a"] * 2000})
    for epsilon in (1.0, 400.0):
        accountant = group(epsilon, 1e-6, 10)
        pipe = make_pipeline(DPTableVectorizer(numeric="scaled"), DPLogisticRegression())
        pipe = split_budget(pipe, epsilon, 1e-6, accountant, n_samples=2000, n_features=1)
        pipe.fit(frame, np.arange(2000) % 2)
        assert accountant.epsilon_spent == epsilon
        searched = uncomposed(accountant.charges[0].event)
        failure = sum(part.delta for part in searched if isinstance(part, ApproximateDP))
        noise = min(part.noise_multiplier for part in searched if isinstance(part, Gaussian))
        assert norm.sf(norm.isf(failure) - 10.0 / noise) < 1e-6


def test_progress_tells_the_groups_price(capsys):
    X, y = np.random.default_rng(0).uniform(size=(300, 2)), np.arange(300) % 2
    for model in (DPSGDClassifier(verbose=1), DPLogisticRegression(verbose=1)):
        model.set_params(accountant=group(1.0)).fit(X, y)
        words = capsys.readouterr().out
        assert words.count("epsilon 1") and not re.search(r"epsilon 0\.\d* of|epsilon 0", words)
