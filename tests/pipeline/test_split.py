import itertools
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler
from sklearn.utils.validation import validate_data

from skdp import (
    DPLinearSVC,
    DPLogisticRegression,
    DPStandardScaler,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from skdp.accounting import ApproximateDP, Gaussian, Laplace, PureDP, get_epsilon, to_dp_accounting
from skdp.base import PrivateFit, TableShape, plans_for_groups, terms_of
from skdp.exceptions import BudgetExceededError
from skdp.ledger import Allowance, plan_event
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.pipeline import check_pipeline, joint_scale, plan_pipeline, planned_charge, split_budget
from tests._estimators import ESTIMATORS

N, D = 400, 3
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(N, D))
Y = (X[:, 0] > 0.5).astype(int)
FOLDS = KFold(4, shuffle=True, random_state=0)


def two_steps(mechanism="output"):
    scaler = DPStandardScaler(bounds=(0, 1))
    model = DPLogisticRegression(data_norm=4.0, mechanism=mechanism, C=1e-3)
    return Pipeline([("scale", scaler), ("model", model)])


class ByShape(DPStandardScaler):
    """Adds Gaussian noise to few rows and Laplace noise to many."""

    __skdp_kind__ = "private"

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        if shape.n_rows <= N:
            return GaussianMechanism(guarantee.epsilon, guarantee.delta, sensitivity=1.0)
        return LaplaceMechanism(guarantee.epsilon, sensitivity=1.0)

    def fit(self, X, y=None):
        with PrivateFit(self) as fit:
            X = validate_data(self, X)
            shape = TableShape(n_rows=X.shape[0], n_columns=X.shape[1])
            mechanism = self.plan_fit(shape, fit.guarantee)
            source = fit.charge(mechanism)
            total = mechanism.release(np.clip(X[:, :1], 0, 1).sum(axis=0), random_state=source)
            released = {"mean_": total / len(X), "scale_": 1.0, "bounds_": (0.0, 1.0)}
            fit.publish(mechanism, public=("the shape",), **released)
        return self


def accountant_of(fits, epsilon=1.0, delta=1e-5, **terms):
    return PrivacyAccountant(fits * epsilon, fits * delta, **terms)


def unfitted(pipe):
    return not any(hasattr(step, "privacy_") for _, step in pipe.steps)


def test_a_fit_is_one_charge_of_the_total():
    accountant = accountant_of(2)
    pipe = split_budget(two_steps(), 1.0, 1e-5, accountant)
    assert not accountant.charges
    pipe.fit(X, Y)
    assert [(s.epsilon, s.delta) for s in accountant.charges] == [(1.0, 1e-5)]
    assert len(accountant.reuses) == 1
    statements = [step.privacy_ for _, step in pipe.steps]
    assert {s.record for s in statements} == {accountant.charges[0].hash}
    assert all("part of a plan of 2" in s.composition for s in statements)
    assert [(s.epsilon, s.delta) for s in statements] == [
        (step.epsilon, step.delta) for _, step in pipe.steps
    ]
    pipe.fit(X, Y)
    assert (accountant.epsilon_spent, accountant.delta_spent) == (2.0, 2e-5)
    with pytest.raises(BudgetExceededError):
        pipe.fit(X, Y)
    assert not hasattr(pipe["scale"], "privacy_")


def test_gaussian_steps_get_more_than_their_part_of_the_sum():
    pipe = split_budget(two_steps(), 1.0, 1e-5)
    epsilons = [step.epsilon for _, step in pipe.steps]
    assert sum(epsilons) > 1.15
    assert sum(step.delta for _, step in pipe.steps) <= 1e-5
    noise = planned_charge(pipe["model"]).event.noise_multiplier
    alone = planned_charge(DPLogisticRegression(0.85, delta=8.5e-6, mechanism="output", C=1.0))
    assert noise < 0.87 * alone.event.noise_multiplier


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("mechanism", ["output", "gradient"])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_the_joint_cost_is_that_of_an_independent_composition(mechanism, relation):
    dp_accounting = pytest.importorskip("dp_accounting")
    accountant = accountant_of(1, relation=relation)
    pipe = split_budget(
        two_steps(mechanism=mechanism), 1.0, 1e-5, accountant, n_samples=N, n_features=D
    )
    pipe.fit(X, Y)
    event = accountant.charges[0].event
    assert all(not isinstance(e, ApproximateDP | PureDP) for e in event.events)
    theirs = dp_accounting.pld.PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=1e-4
    )
    theirs.compose(to_dp_accounting(event))
    assert theirs.get_epsilon(1e-5) == pytest.approx(1.0, abs=2e-3)
    assert get_epsilon(event, 1e-5, relation=relation) <= 1.0


def test_pure_steps_add_up():
    pipe = split_budget(two_steps(), 1.0)
    assert [step.delta for _, step in pipe.steps] == [0.0, 0.0]
    assert sum(step.epsilon for _, step in pipe.steps) == pytest.approx(1.0, rel=1e-9)
    accountant = PrivacyAccountant(1.0, 0.0)
    split_budget(two_steps(), 1.0, 0.0, accountant).fit(X, Y)
    assert accountant.epsilon_spent == 1.0


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_pure_shares_never_exceed_the_total(steps):
    union = FeatureUnion([(f"s{i}", DPStandardScaler(bounds=(0, 1))) for i in range(steps)])
    for epsilon in (0.3, 1.7):
        accountant = PrivacyAccountant(epsilon, 0.0)
        split_budget(union, epsilon, 0.0, accountant).fit(X)
        assert accountant.epsilon_spent == epsilon


def test_cross_validation_charges_each_fold_once():
    accountant = accountant_of(4)
    pipe = split_budget(two_steps(), 1.0, 1e-5, accountant)
    cross_val_score(pipe, X, Y, cv=FOLDS, error_score="raise")
    assert (accountant.epsilon_spent, len(accountant.charges)) == (4.0, 4)
    assert len(accountant.reuses) == 4
    accountant.verify()


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("composition", ["basic", "pld"])
def test_a_search_in_worker_processes_charges_each_fit_once(composition):
    accountant = accountant_of(13, composition=composition)
    pipe = split_budget(two_steps(), 1.0, 1e-5, accountant)
    search = GridSearchCV(
        pipe, {"model__C": [0.1, 1.0, 10.0]}, cv=FOLDS, n_jobs=2, error_score="raise"
    )
    search.fit(X, Y)
    assert len(accountant.charges) == 13 == len(accountant.reuses)
    if composition == "basic":
        assert accountant.epsilon_spent == 13.0
    else:
        assert accountant.epsilon_spent < 6.0
    assert search.best_estimator_["model"].privacy_.record in {s.hash for s in accountant.charges}


def test_clones_copies_and_pickles_are_of_one_reservation():
    accountant = accountant_of(3)
    pipe = split_budget(two_steps(), 1.0, 1e-5, accountant)
    copies = [pipe, clone(pipe), pickle.loads(pickle.dumps(pipe))]
    for copy in copies:
        copy["scale"].fit(X)
    assert accountant.epsilon_spent == 3.0
    for copy in copies:
        copy["model"].fit(X, Y)
    assert accountant.epsilon_spent == 3.0
    with pytest.raises(BudgetExceededError):
        copies[1]["model"].fit(X, Y)


def test_a_refused_budget_leaves_all_unfitted():
    accountant = accountant_of(0.99)
    pipe = split_budget(two_steps(), 1.0, 1e-5, accountant)
    before = accountant.verify()
    with pytest.raises(BudgetExceededError):
        pipe.fit(X, Y)
    assert unfitted(pipe) and accountant.verify() == before


def test_bad_input_charges_nothing():
    accountant = accountant_of(1)
    pipe = split_budget(two_steps(), 1.0, 1e-5, accountant)
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        pipe.fit(bad, Y)
    assert unfitted(pipe) and not accountant.charges


@pytest.mark.parametrize("change", [{"model__epsilon": 1.5}, {"model__delta": 1e-3}])
def test_a_step_that_was_changed_is_refused(change):
    accountant = accountant_of(1)
    pipe = split_budget(two_steps(), 1.0, 1e-5, accountant).set_params(**change)
    with pytest.raises(ValueError, match="not planned"):
        pipe.fit(X, Y)
    assert not hasattr(pipe["model"], "privacy_")


def test_a_table_of_another_shape_is_refused_where_it_matters():
    pipe = make_pipeline(ByShape(), DPStandardScaler(bounds=(0, 1)))
    accountant = accountant_of(9)
    known = split_budget(pipe, 1.0, 1e-5, accountant, n_samples=N, n_features=D)
    known.fit(X)
    with pytest.raises(ValueError, match="not planned"):
        known.fit(np.repeat(X, 2, axis=0))
    assert not hasattr(known[0], "privacy_")
    unknown = split_budget(pipe, 1.0, 1e-5, accountant)
    unknown.fit(X)
    unknown.fit(np.repeat(X, 2, axis=0))
    assert sum(step.epsilon for step in known) > 1.3
    assert sum(step.epsilon for step in unknown) < 1.05
    assert accountant.epsilon_spent == 3.0


def test_steps_of_gaussian_noise_need_no_shape():
    model = two_steps("gradient")
    known = split_budget(model, 1.0, 1e-5, n_samples=N, n_features=D)
    accountant = accountant_of(4)
    unknown = split_budget(model, 1.0, 1e-5, accountant)
    assert unknown["model"].epsilon == pytest.approx(known["model"].epsilon, rel=1e-6)
    cross_val_score(unknown, X, Y, cv=FOLDS, error_score="raise")
    assert accountant.epsilon_spent == 4.0


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("composition", ["basic", "zcdp", "gdp", "pld", "auto"])
def test_a_budget_pays_for_one_plan_of_that_cost(composition):
    accountant = accountant_of(1, composition=composition)
    split_budget(two_steps(), 1.0, 1e-5, accountant).fit(X, Y)
    assert 0.99 < accountant.epsilon_spent <= 1.0
    with pytest.raises(BudgetExceededError):
        split_budget(two_steps(), 1.0, 1e-5, accountant).fit(X, Y)


def test_the_whole_costs_the_total_for_a_group():
    accountant = accountant_of(1, unit="group", max_rows=3)
    pipe = split_budget(two_steps(), 1.0, 1e-5, accountant).fit(X, Y)
    assert accountant.epsilon_spent == pytest.approx(1.0, abs=1e-3)
    assert accountant.epsilon_spent <= 1.0
    assert sum(step.epsilon for _, step in pipe.steps) < 0.6
    assert "3" in pipe["model"].privacy_.unit
    assert pipe["model"].privacy_.epsilon > pipe["model"].epsilon


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_group_gets_the_budget_where_only_epsilon_and_delta_are_known(relation):
    """Of three rows of (epsilon, delta) the delta is more than three times that of one."""
    accountant = accountant_of(1, unit="group", max_rows=3, relation=relation)
    model = DPLogisticRegression(mechanism="objective")
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1)), model)
    pipe = split_budget(pipe, 1.0, 1e-5, accountant).fit(X, Y)
    assert 0.99 < accountant.epsilon_spent <= 1.0
    assert 0.3 < sum(step.epsilon for _, step in pipe.steps) < 0.4


def nested():
    columns = ColumnTransformer(
        [
            ("a", DPStandardScaler(bounds=(0, 1)), [0]),
            ("b", Pipeline([("s", DPStandardScaler(bounds=(0, 1)))]), [1]),
        ],
        remainder=DPStandardScaler(bounds=(0, 1)),
    )
    union = FeatureUnion([("columns", columns), ("norm", Normalizer())])
    return Pipeline(
        [("all", union), ("model", DPLogisticRegression(data_norm=4.0, mechanism="output"))]
    )


def test_nested_steps_are_found_and_set():
    accountant = accountant_of(1)
    pipe = split_budget(nested(), 1.0, 1e-5, accountant, n_samples=N, n_features=D)
    params = pipe.get_params()
    names = ["all__columns__a", "all__columns__b__s", "all__columns__remainder", "model"]
    assert [params[f"{name}__accountant"].index for name in names] == [0, 1, 2, 3]
    epsilons = [params[f"{name}__epsilon"] for name in names]
    assert epsilons[0] == epsilons[1] == epsilons[2] < epsilons[3]
    pipe.fit(X, Y)
    assert (accountant.epsilon_spent, len(accountant.reuses)) == (1.0, 3)


@pytest.mark.parametrize("remainder", [DPStandardScaler(bounds=(0, 1)), StandardScaler()])
def test_nothing_is_left_out_of_a_plan_that_a_wider_table_would_fit(remainder):
    step = DPStandardScaler(bounds=(0, 1))
    columns = ColumnTransformer(
        [("a", step, [0]), ("b", step, [1])], remainder=remainder, sparse_threshold=0
    )
    with pytest.raises(ValueError, match="remainder"):
        split_budget(columns, 1.0, 1e-5, accountant_of(1), n_features=2)
    for kept in ("drop", "passthrough"):
        plain = clone(columns).set_params(remainder=kept)
        assert split_budget(plain, 1.0, 1e-5, n_features=2).remainder == kept


def test_shares_are_as_asked():
    shares = {"scale": 3, "model": 1}
    pipe = split_budget(two_steps(), 1.0, 1e-5, fractions=shares)
    assert pipe["scale"].epsilon == pytest.approx(3 * pipe["model"].epsilon)
    assert pipe["scale"].delta == pytest.approx(3 * pipe["model"].delta)
    single = split_budget(DPLogisticRegression(mechanism="output"), 1.0, 1e-5)
    assert (single.epsilon, single.delta) == (1.0, 1e-5)


@pytest.mark.parametrize(
    "shares", [{"scale": 1}, {"scale": 1, "model": 0}, {"scale": 1, "model": 1, "other": 1}]
)
def test_impossible_shares(shares):
    with pytest.raises(ValueError, match="fractions"):
        split_budget(two_steps(), 1.0, 1e-5, fractions=shares)


def test_the_pipeline_itself_is_not_changed():
    pipe = two_steps()
    before = str(pipe.get_params())
    split_budget(pipe, 1.0, 1e-5, accountant_of(1))
    assert str(pipe.get_params()) == before


def test_without_an_accountant_nothing_is_charged():
    pipe = split_budget(two_steps(), 1.0, 1e-5).fit(X, Y)
    assert pipe["model"].accountant is None and pipe["model"].privacy_.record == ""


@pytest.mark.parametrize(
    ("pipe", "message"),
    [
        (make_pipeline(StandardScaler(), DPLogisticRegression()), "'standardscaler' learns"),
        (make_pipeline(OneHotEncoder(), DPLogisticRegression()), "'onehotencoder' learns"),
        (make_pipeline(RandomizedResponseTransformer(), DPLogisticRegression()), "each row's"),
        (OneVsRestClassifier(DPLinearSVC()), "a way that no plan covers"),
        (make_pipeline(Normalizer()), "no step is private"),
    ],
)
def test_pipelines_that_are_not_private_are_refused(pipe, message):
    with pytest.raises(ValueError, match=message):
        split_budget(pipe, 1.0, 1e-5)


def test_public_steps_are_declared_by_name():
    pipe = make_pipeline(StandardScaler(), DPLogisticRegression())
    split = split_budget(pipe, 1.0, 1e-5, public_steps=["standardscaler"])
    assert split[-1].epsilon == 1.0
    with pytest.raises(ValueError, match="not the name of a step"):
        split_budget(pipe, 1.0, 1e-5, public_steps=["scaler"])
    wrapped = Pipeline([("all", OneVsRestClassifier(DPLinearSVC()))])
    with pytest.raises(ValueError, match="a way that no plan covers"):
        split_budget(wrapped, 1.0, 1e-5, public_steps=["all"])


@pytest.mark.parametrize("arguments", [(0, 1e-5), (1.0, -1.0), (1.0, 1.0), (float("nan"), 0.0)])
def test_impossible_budgets(arguments):
    with pytest.raises(ValueError):
        split_budget(two_steps(), *arguments)


def test_other_accountants_are_refused():
    accountant = accountant_of(1)
    step = split_budget(two_steps(), 1.0, 1e-5, accountant)["model"].accountant
    for wrong in ("budget.db", step):
        with pytest.raises(ValueError, match="accountant"):
            split_budget(two_steps(), 1.0, 1e-5, wrong)
    again = split_budget(split_budget(two_steps(), 1.0, 1e-5, accountant), 0.5, 1e-6, accountant)
    again.fit(X, Y)
    assert accountant.epsilon_spent == 0.5


def test_disjoint_columns_do_not_compose_in_parallel():
    def halves(accountant):
        scaler = DPStandardScaler(0.5, bounds=(0, 1), accountant=accountant)
        return ColumnTransformer([("left", scaler, [0]), ("right", clone(scaler), [1])])

    accountant = PrivacyAccountant(1.0, 0.0)
    halves(accountant).fit(X)
    assert accountant.epsilon_spent == 1.0
    split = split_budget(halves(None), 1.0)
    assert [scaler.epsilon for _, scaler, _ in split.transformers] == [0.5, 0.5]


def test_a_row_shows_in_every_column():
    """Neighbors differ in all columns of a row: both halves together tell more than one."""
    budget = split_budget(
        ColumnTransformer(
            [(str(j), DPStandardScaler(bounds=(0, 1), with_std=False), [j]) for j in range(2)]
        ),
        1.0,
    )
    events = [planned_charge(scaler).event for _, scaler, _ in budget.transformers]
    assert events == [Laplace(0.5), Laplace(0.5)]


def test_planned_charges_are_what_fits_charge():
    estimators = [
        DPStandardScaler(0.3, bounds=(0, 1)),
        DPStandardScaler(0.3, delta=1e-6, bounds=([0] * D, [1] * D)),
        DPLogisticRegression(0.7, mechanism="gradient"),
        DPLogisticRegression(0.7, mechanism="output", delta=0.0),
        DPLogisticRegression(0.7, classes=["no", "yes"]),
        DPLinearSVC(0.7),
    ]
    for estimator, relation in itertools.product(estimators, ("add_remove", "replace_one")):
        accountant = PrivacyAccountant(10.0, 0.1, relation=relation)
        planned = planned_charge(estimator, N, D, terms=accountant.config)
        labels = np.array(["no", "yes"])[Y] if estimator.get_params().get("classes") else Y
        clone(estimator).set_params(accountant=accountant).fit(X, labels)
        assert planned.event == accountant.charges[0].event
        price = (accountant.charges[0].epsilon, accountant.charges[0].delta)
        assert (planned.epsilon, planned.delta) == price


def test_what_cannot_be_tried_is_planned_by_its_price():
    class Odd(DPStandardScaler):
        def fit(self, X, y=None):
            raise RuntimeError("only on my own table")

    assert planned_charge(Odd(0.5, delta=1e-6)).event == ApproximateDP(0.5, 1e-6)
    assert planned_charge(Odd(0.5)).event == PureDP(0.5)


def test_a_fit_of_its_own_is_not_planned_by_the_class_above():
    class Stubborn(DPStandardScaler):
        def fit(self, X, y=None):
            return super().fit(X)

    assert planned_charge(Stubborn(0.5, bounds=(0, 1)), N, D).event == PureDP(0.5)
    assert planned_charge(DPStandardScaler(0.5, bounds=(0, 1)), N, D).event == Laplace(0.5)


@pytest.mark.quick_cases(one_per=lambda estimator: type(estimator))
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_plan_fits_nothing(estimator, monkeypatch):
    def fit(*args, **kwargs):
        raise AssertionError("something was fitted")

    for kind in type(estimator).__mro__:
        if "fit" in vars(kind):
            monkeypatch.setattr(kind, "fit", fit)
    accountant = PrivacyAccountant(100.0, 0.1)
    planned_charge(clone(estimator).set_params(accountant=accountant), 10**6, 3)
    check_pipeline(clone(estimator).set_params(accountant=accountant), n_features=3)
    assert not accountant.charges and not hasattr(estimator, "privacy_")


def test_a_plan_can_be_run_on_allowances():
    accountant = accountant_of(1)
    terms = terms_of(accountant)
    plan = plan_pipeline(two_steps(), N, D, terms=terms)
    scale = joint_scale(lambda s: plan.event(s, 1e-5) * 3, 1.0, 1e-5, terms)
    charges = plan.charges(scale, 1e-5)
    spend = accountant.charge(plan_event(charges) * 3, epsilon=1.0, delta=1e-5)
    for _ in range(3):
        handles = [Allowance(planned, terms, spend, steps=6) for planned in charges]
        pipe = plan.with_budget(scale, 1e-5, handles).fit(X, Y)
        with pytest.raises(BudgetExceededError):
            clone(pipe).fit(X, Y)
    assert accountant.epsilon_spent == 1.0 and len(accountant.charges) == 1
    assert sum(charge.epsilon for charge in charges) > 1 / 3


def test_joint_scale_of_known_families():
    assert joint_scale(PureDP, 1.0, 0.0) == pytest.approx(1.0, rel=1e-9)
    found = joint_scale(lambda s: Gaussian(1 / s) * 4, 1.0, 1e-5)
    assert get_epsilon(Gaussian(1 / found) * 4, 1e-5) == pytest.approx(1.0, abs=1e-3)
