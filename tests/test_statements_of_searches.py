"""Statements of searches, cross-validations, wrappers, parts and sampled batches, from values."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, TimeSeriesSplit
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

import skdp
from skdp import PrivacyAccountant, privacy_report
from skdp.accounting import PureDP, get_epsilon
from skdp.exceptions import LedgerError
from skdp.model_selection import dp_cross_val_score, dp_learning_curve, dp_validation_curve

N = 60
X = np.random.default_rng(0).uniform(size=(N, 3))
Y = np.arange(N) % 2
IDS = np.arange(N) // 2
MODEL = skdp.DPLogisticRegression(data_norm=2.0, mechanism="output", C=1.0)


def test_a_search_states_the_bound_on_a_step_whose_width_is_found():
    frame = pd.DataFrame({"number": X[:, 0], "word": np.where(X[:, 1] > 0.5, "a", "b")})
    model = skdp.tabular_pipeline(skdp.DPLogisticRegression())
    grid = {"dplogisticregression__C": [0.1, 1.0]}
    search = skdp.DPGridSearchCV(model, grid, delta=1e-6, cv=2, random_state=0).fit(frame, Y)
    training = [s for s in search.privacy_.stages if s.name.startswith("fits that are scored")]
    assert any("any mechanism that costs at most" in stage.law for stage in training)
    total = sum(get_epsilon(stage.total_event, 1e-6) for stage in training)
    assert 0.0 < total
    assert search.privacy_.epsilon == 1.0


def logistic(accountant=None, epsilon=0.5):
    return skdp.DPLogisticRegression(
        epsilon, delta=0.0, data_norm=2.0, mechanism="output", C=1.0, accountant=accountant
    )


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("unit", ["row", "person", "group"])
@pytest.mark.parametrize("sampling", ["full", "poisson", "without_replacement"])
def test_the_multiplier_is_the_scale_over_the_sensitivity(sampling, unit, relation):
    config = {"max_rows": 2} if unit == "group" else {}
    accountant = PrivacyAccountant(1e3, 0.5, unit=unit, relation=relation, **config)
    model = skdp.DPSGDClassifier(
        1.0,
        delta=1e-6 if sampling == "poisson" else 0.0,
        classes=[0, 1],
        max_iter=2,
        max_grad_norm=1.5,
        sampling=sampling,
        batch_size="auto" if sampling == "full" else 10,
        accountant=accountant,
    )
    groups = {"groups": IDS} if unit == "person" else {}
    statement = model.fit(X, Y, **groups).privacy_
    weights = statement.stages[-1]
    is_sampled = sampling != "full"
    for noise in (statement, weights):
        scale, sensitivity = (
            (noise.noise_scale, noise.sensitivity)
            if noise is statement
            else (noise.scale, noise.sensitivity)
        )
        assert noise.noise_multiplier == pytest.approx(scale / sensitivity, rel=1e-9)
        # Of one record in a batch, and of the change between two tables otherwise.
        factor = 2.0 if relation == "replace_one" and not is_sampled else 1.0
        assert sensitivity == pytest.approx(1.5 * factor, rel=1e-6)
    assert model.noise_multiplier_ == statement.noise_multiplier
    words = dict(statement.rows())["sensitivity"]
    assert ("to one record that is added to a batch" in words) is is_sampled
    assert ("replaced changes a sum by at most twice" in words) is (
        is_sampled and relation == "replace_one"
    )
    assert ("those of a group" in words) is (unit == "group")
    notes = " ".join(statement.to_dict()["notes"])
    assert ("one record that is added to a batch" in notes) is is_sampled
    assert ("those of one row; epsilon and delta are those of a group" in notes) is (
        unit == "group"
    )


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("strategy", ["disjoint", "holdout", "cv", "random_stopping"])
@pytest.mark.parametrize("place", ["none", "clinic", "reserved"])
def test_the_statement_of_a_published_model(place, strategy, refit, unit):
    clinic = PrivacyAccountant(1e3, 0.5, dataset="clinic", unit=unit)
    accountant = {"none": None, "clinic": clinic, "reserved": clinic}[place]
    if place == "reserved":
        accountant = clinic.reserve(10.0, 0.1)
    search = skdp.DPGridSearchCV(MODEL, {"C": [0.1, 1.0]}, strategy=strategy, refit=refit)
    groups = {"groups": IDS} if unit == "person" else {}
    search.set_params(accountant=accountant, mean_runs=2, cv=2 if strategy == "cv" else None)
    search.fit(X, Y, **groups)
    dataset = "" if place == "none" else "clinic"
    assert search.privacy_.dataset == dataset
    assert f"all candidates on the training {unit}s" in search.privacy_.sampler or (
        strategy != "holdout"
    )
    assert (f"then the chosen candidate on all {unit}s" in search.privacy_.sampler) is refit
    main = search.privacy_.noise_scale, search.privacy_.sensitivity
    assert main in [(stage.scale, stage.sensitivity) for stage in search.privacy_.stages]
    if strategy == "cv":
        assert f"of the 2 fits, each {unit} is used for training in 1 and for scoring in 1" in (
            search.privacy_.sampler
        )
    if not hasattr(search, "best_estimator_"):
        assert strategy == "cv" and not refit
        return
    statement = search.best_estimator_.privacy_
    assert statement.dataset == dataset
    assert dict(statement.rows()).get("data set", "") == dataset
    assert set(search.privacy_.public) <= set(statement.public)
    assert {"the candidates", f"which {unit}s go where"} <= set(statement.public)
    is_part = not refit
    assert statement.stages
    for stage in statement.stages:
        assert ("within the training part" in stage.reads) is is_part
        assert any(stage.reads == other.reads for other in search.privacy_.stages)
    assert ("within the training part" in statement.sampler) is is_part
    table = privacy_report(search).to_text()
    assert table.count(f"'{dataset}'") >= 2 if dataset else "none" in table


def test_scores_and_curves_say_how_rows_were_split():
    given = {"epsilon": 1.0, "delta": 1e-5}
    scores = dp_cross_val_score(MODEL, X, Y, cv=TimeSeriesSplit(3), **given).privacy_
    assert scores.sampler == (
        "of the 3 fits, each row is used for training in 0 to 3 and for scoring in 0 to 1"
    )
    curve = dp_learning_curve(MODEL, X, Y, cv=3, train_sizes=[0.5, 1.0], **given).privacy_
    assert curve.sampler.startswith("of the 6 fits, each row is used for training in ")
    values = dp_validation_curve(
        MODEL, X, Y, param_name="C", param_range=[0.1, 1.0], cv=3, **given
    ).privacy_
    assert values.sampler.startswith(
        "of the 3 fits of each candidate, each row is used for training in 2"
    )
    persons = dp_cross_val_score(MODEL, X, Y, cv=3, groups=IDS, **given).privacy_
    assert (
        persons.sampler
        == "of the 3 fits, each person is used for training in 2 and for scoring in 1"
    )


class Holder:
    """Not an estimator, and it holds one."""

    def __init__(self, estimator):
        self.estimator = estimator


class Wrapper(BaseEstimator):
    """A wrapper that stores its models as it likes."""

    def __init__(self, kind="list", accountant=None):
        self.kind = kind
        self.accountant = accountant

    def fit(self, X, y):
        model = logistic(self.accountant).fit(X, y)
        stored = {
            "list": [model],
            "tuple": (0, model),
            "dict": {"a": model},
            "object": Holder(model),
            "nested": [{"a": (Holder([model]),)}],
            "array": np.array([None, model], dtype=object),
            "frozen": FrozenEstimator(model),
            "twice": [model, model],
            "itself": [self, model],
        }
        self.stored_ = stored[self.kind]
        return self


KINDS = ("list", "tuple", "dict", "object", "nested", "array", "frozen", "twice", "itself")


@pytest.mark.parametrize("kind", KINDS)
def test_models_are_found_wherever_a_wrapper_stores_them(kind):
    accountant = PrivacyAccountant(10.0, 0.1, dataset="clinic")
    report = privacy_report(Wrapper(kind, accountant).fit(X, Y))
    (statement,) = report.statements
    assert statement.estimator == "DPLogisticRegression"
    assert dict(report.summary.facts)["total of data set 'clinic'"].startswith("epsilon = 0.5,")
    assert "not about a model" not in " ".join(report.summary.conclusion)


WRAPPERS = {
    "vote": (lambda m: VotingClassifier([("a", m), ("b", m)]), 2),
    "calibrated": (lambda m: CalibratedClassifierCV(m, cv=KFold(3)), 3),
    "frozen": (lambda m: CalibratedClassifierCV(FrozenEstimator(m.fit(X, Y)), cv=KFold(3)), 1),
    "outputs": (MultiOutputClassifier, 2),
    "chain": (ClassifierChain, 2),
    "vote of a search": (
        lambda m: VotingClassifier([("a", GridSearchCV(m, {"C": [0.1, 1.0]}, cv=KFold(3)))]),
        7,
    ),
    "calibrated once": (lambda m: CalibratedClassifierCV(m, cv=KFold(3), ensemble=False), None),
    "stack": (lambda m: StackingClassifier([("a", m)], cv=KFold(3)), None),
    "search of votes": (
        lambda m: GridSearchCV(
            VotingClassifier([("a", m)]), {"voting": ["hard", "soft"]}, cv=KFold(2)
        ),
        5,
    ),
    "search of stacks": (
        lambda m: GridSearchCV(
            StackingClassifier([("a", m)], cv=KFold(2)), {"passthrough": [False]}, cv=KFold(2)
        ),
        None,
    ),
    "search of searches": (
        lambda m: GridSearchCV(
            GridSearchCV(m, {"C": [0.1, 1.0]}, cv=KFold(2)), {"refit": [True]}, cv=KFold(2)
        ),
        None,
    ),
}


@pytest.mark.quick_cases(every=22)
@pytest.mark.filterwarnings("ignore::skdp.exceptions.RawDataWarning")
@pytest.mark.parametrize("has_ledger", [False, True])
@pytest.mark.parametrize("name", WRAPPERS)
def test_the_fits_of_a_wrapper_are_counted(name, has_ledger):
    make, n_fits = WRAPPERS[name]
    accountant = PrivacyAccountant(50.0, 0.1)
    y = np.column_stack([Y, Y]) if name in ("outputs", "chain") else Y
    make(logistic(accountant)).fit(X, y)
    spent = accountant.epsilon_spent
    accountant = PrivacyAccountant(50.0, 0.1) if has_ledger else None
    (total,) = privacy_report(make(logistic(accountant)).fit(X, y)).totals
    if n_fits is not None or has_ledger:
        assert total.epsilon == pytest.approx(spent)
        assert "which are charged in addition" not in total.of
    else:
        assert total.epsilon < spent and "which are charged in addition" in total.of
    assert n_fits is None or spent == 0.5 * n_fits


def test_a_regression_has_no_label_set():
    words = np.array([["a"], ["b"]])[np.arange(N) % 2]
    encoder = skdp.DPTargetEncoder(categories=["a", "b"], target_bounds=(0, 1))
    assert "the label set" not in encoder.fit(words, X[:, 0]).privacy_.public
    encoder = skdp.DPTargetEncoder(categories=["a", "b"])
    assert "the label set" in encoder.fit(words, Y).privacy_.public


@pytest.mark.parametrize("removed", ["ledger", "ledger and lock"])
def test_a_missing_ledger_says_what_creates_another(tmp_path, removed):
    path = tmp_path / "budget.db"
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    accountant.charge(PureDP(0.5))
    path.unlink()
    lock = tmp_path / "budget.db.skdp-lock"
    assert lock.exists()
    if removed == "ledger and lock":
        lock.unlink()
    with pytest.raises(LedgerError, match="there is no ledger") as error:
        accountant.charge(PureDP(0.25))
    assert (f"remove {lock.name} too" in str(error.value)) is (removed == "ledger")


def outer_search(name, inner, accountant):
    if name == "search":
        return skdp.DPGridSearchCV(
            skdp.DPTunedThresholdClassifierCV(inner, delta=1e-6),
            {"scoring": ["accuracy", "f1"]},
            epsilon=4.0,
            delta=1e-5,
            refit=False,
            strategy="holdout",
            accountant=accountant,
            random_state=0,
        )
    classes = {
        "threshold": skdp.DPTunedThresholdClassifierCV,
        "calibration": skdp.DPCalibratedClassifierCV,
    }
    return classes[name](inner, epsilon=4.0, delta=1e-5, accountant=accountant, random_state=0)


@pytest.mark.parametrize("place", ["none", "ledger", "reserved"])
@pytest.mark.parametrize("name", ["threshold", "calibration", "search"])
def test_a_search_inside_another_is_charged_and_stated_once(name, place):
    accountant = None
    if place != "none":
        accountant = PrivacyAccountant(9.0, 1e-4, dataset="clinic")
    if place == "reserved":
        accountant = accountant.reserve(5.0, 5e-5)
    grid = {"C": [0.1, 1.0]}
    inner = skdp.DPGridSearchCV(logistic(), grid, delta=1e-6, cv=2)
    report = privacy_report(outer_search(name, inner, accountant).fit(X, Y))
    outer, *published = report.statements
    assert len(published) >= 2
    (total,) = report.totals
    assert (total.epsilon, total.delta, total.n_charges) == (outer.epsilon, outer.delta, 1)
    first = published[0]
    for statement in published:
        assert statement.charges == outer.charges
        assert (statement.epsilon, statement.delta) == (outer.epsilon, outer.delta)
        assert statement.dataset == outer.dataset
        assert (statement.composition, statement.part_of) == (first.composition, first.part_of)
        assert ("that was charged as one" in statement.composition) == (place != "none")
        assert statement.part_of.startswith(outer.estimator)
        # No outer fit in this test is a refit to all rows.
        assert all("within the training part" in stage.reads for stage in statement.stages)
