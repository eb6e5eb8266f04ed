"""Searches: one charge for all fits, their allowances and noise, and the runs that are made."""

import pickle
import warnings
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

from skdp import (
    BudgetExceededError,
    DPGridSearchCV,
    DPLogisticRegression,
    DPRandomizedSearchCV,
    DPRidge,
    DPSGDClassifier,
    DPStandardScaler,
    DPTableVectorizer,
    PrivacyAccountant,
)
from skdp.accounting import PureDP
from skdp.model_selection import _runs as runs
from skdp.model_selection import (
    bounded_score,
    dp_cross_val_score,
    dp_learning_curve,
    dp_validation_curve,
)
from skdp.model_selection._candidates import CandidateFit, Rows
from tests.model_selection.toys import NoisyVote

GRID = {"shift": [-5.0, 0.0, 5.0]}
STRATEGIES = ["disjoint", "holdout", "cv", "random_stopping"]


@pytest.fixture
def table():
    y = np.arange(120) % 3 > 0
    return np.zeros((120, 1)), y.astype(int)


@pytest.fixture
def accountant():
    return PrivacyAccountant(1.0, 1e-5)


def make_search(accountant=None, strategy="holdout", **params):
    given = {"epsilon": 1.0, "delta": 1e-5, "accountant": accountant, "strategy": strategy}
    return DPGridSearchCV(NoisyVote(), GRID, **(given | params))


@pytest.mark.quick_cases(every=11)
@pytest.mark.parametrize("selection", ["exponential", "permute_and_flip", "noisy_max"])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("strategy", ["auto", *STRATEGIES])
def test_one_charge_pays_for_everything(table, accountant, strategy, delta, selection):
    search = make_search(accountant, strategy, delta=delta, selection=selection)
    assert search.cost() == (1.0, delta)
    search.fit(*table)
    (spend,) = accountant.charges
    assert (spend.epsilon, spend.delta) == search.cost() == (1.0, delta)
    assert search.privacy_.record == spend.hash
    assert search.best_params_ == {"shift": GRID["shift"][search.best_index_]}
    assert len(search.cv_results_["mean_test_score"]) == 3
    assert search.best_score_ == search.cv_results_["mean_test_score"][search.best_index_]
    assert search.predict(table[0]).shape == (120,)
    assert not accountant.can_afford(spend.event)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_search_that_cannot_be_paid_makes_no_fit(table, strategy, monkeypatch):
    accountant = PrivacyAccountant(0.99, 1e-5)
    monkeypatch.setattr(
        CandidateFit, "fitted", lambda *args, **kwargs: pytest.fail("a fit was made")
    )
    search = make_search(accountant, strategy)
    with pytest.raises(BudgetExceededError):
        search.fit(*table)
    assert not accountant.charges and not hasattr(search, "privacy_")


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("refit", [True, False])
def test_every_inner_fit_draws_on_its_own_allowance_once(table, strategy, refit, monkeypatch):
    allowances, dry_runs = [], []

    def recorded(*args, plan_charge, **terms):
        kept = dry_runs if plan_charge is None else allowances
        kept.append(Recorded(*args, plan_charge=plan_charge, **terms))
        return kept[-1]

    monkeypatch.setattr("skdp.model_selection._runs.Allowance", recorded)
    accountant = PrivacyAccountant(1.0, 1e-5)
    make_search(accountant, strategy, refit=refit).fit(*table)
    assert allowances and all(a.drawn == 1 for a in allowances)
    assert dry_runs and not any(a.drawn for a in dry_runs)
    assert len(accountant.charges) == 1


class Recorded:
    """An allowance that counts what is drawn on it."""

    def __init__(self, *args, **terms):
        from skdp.ledger import Allowance

        self.inner, self.drawn = Allowance(*args, **terms), 0
        self.config = self.inner.config

    def charge(self, *args, **kwargs):
        self.drawn += 1
        return self.inner.charge(*args, **kwargs)

    def __sklearn_clone__(self):
        return self


def test_inner_fits_charged_twice_or_not_at_all_are_found(table, monkeypatch):
    unpaid, fitted = [], CandidateFit.fitted

    def on_the_accountant(self, rows, allow, seeds=None):
        handles = [accountant] * len(self.charges)
        budget = self.guarantee.epsilon, self.guarantee.delta
        return rows.fit(self.pipeline.with_budget(*budget, handles))

    def without_any(self, rows, allow, seeds=None):
        unpaid.append(self)
        return rows.fit(self.pipeline.with_budget(self.guarantee.epsilon, self.guarantee.delta))

    accountant = PrivacyAccountant(10.0, 1e-3)
    monkeypatch.setattr(CandidateFit, "fitted", on_the_accountant)
    make_search(accountant).fit(*table)
    assert len(accountant.charges) > 1
    monkeypatch.setattr(CandidateFit, "fitted", without_any)
    with pytest.raises(AssertionError):
        test_every_inner_fit_draws_on_its_own_allowance_once(table, "holdout", True, monkeypatch)
    assert unpaid and fitted is not CandidateFit.fitted


@pytest.mark.parametrize("key", ["epsilon", "delta", "accountant", "random_state", "clf__epsilon"])
def test_the_search_sets_budgets_itself(table, accountant, key):
    with pytest.raises(ValueError, match="cannot be searched over"):
        make_search(accountant).set_params(param_grid={key: [1.0]}).fit(*table)
    assert not accountant.charges


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("step", [StandardScaler(), OneHotEncoder()])
def test_steps_that_learn_for_free_are_refused(accountant, step):
    X, y = np.arange(60.0).reshape(-1, 1) % 7, np.arange(60) % 2
    name = type(step).__name__.lower()
    pipe = make_pipeline(step, NoisyVote())
    search = DPGridSearchCV(pipe, {}, delta=1e-6, accountant=accountant, strategy="holdout")
    with pytest.raises(ValueError, match=name):
        search.fit(X, y)
    assert not accountant.charges
    with pytest.raises(ValueError, match="public_steps must be a tuple of names"):
        search.set_params(public_steps=iter([name])).fit(X, y)
    assert not accountant.charges
    for names in ((name,), [name]):
        search.set_params(public_steps=names, accountant=None).fit(X, y)
        assert f"step {name!r}" in search.privacy_.public
    scores = dp_cross_val_score(pipe, X, y, public_steps=(name,), cv=2)
    assert f"step {name!r}" in scores.privacy_.public


def test_declared_stateless_and_private_steps_are_taken(accountant):
    X, y = make_classification(200, 4, random_state=0)
    pipe = make_pipeline(DPStandardScaler(bounds=(-3, 3)), Normalizer(), DPLogisticRegression())
    search = DPGridSearchCV(
        pipe, {"dplogisticregression__C": [0.01, 0.1]}, accountant=accountant, strategy="holdout"
    ).fit(X, y)
    assert accountant.epsilon_spent == 1.0
    scaler, _, classifier = search.best_estimator_
    assert 0 < scaler.epsilon + classifier.epsilon < 1.0
    assert scaler.accountant is classifier.accountant is accountant
    np.testing.assert_array_equal(search.classes_, [0, 1])
    assert search.n_features_in_ == 4


@pytest.mark.parametrize(
    "params",
    [
        {"param_grid": []},
        {"param_grid": {"shift": []}},
        {"estimator": DPLogisticRegression(data_norm=1.0), "param_grid": {"C": [1.0, -1.0]}},
        {"param_grid": {"no_such": [1]}},
        {"scoring": "average_precision"},
        {"scoring": "roc_auc"},
        {"cv": StratifiedKFold(3)},
        {"cv": 5},
        {"cv": GroupKFold(3), "strategy": "cv"},
        {"selection": "best"},
        {"strategy": "halving"},
        {"refit": "accuracy"},
        {"mean_runs": 0},
        {"param_grid": {"shift": list(range(200))}, "strategy": "disjoint"},
        {"epsilon": 0.0},
        {"epsilon": 1e-300},
        {"delta": 1.0},
        {"verbose": -1},
        {"public_steps": ("nothing",)},
        {"scoring": "neg_log_loss"},
        {"scoring": bounded_score("roc_auc", class_counts={0: 1, 1: 2})},
        {"scoring": bounded_score("balanced_accuracy", class_counts={0: 1, 2: 2})},
        {"scoring": bounded_score("r2", target_bounds=(0, 1))},
    ],
)
def test_what_cannot_be_done_is_refused_before_the_charge(table, accountant, params):
    search = make_search(accountant).set_params(**params)
    with pytest.raises(ValueError):
        search.fit(*table)
    assert not accountant.charges and not [n for n in vars(search) if n.endswith("_")]


def test_y_is_checked_before_the_charge(table, accountant):
    X, y = table
    for bad in (None, np.zeros(120), y[:5], np.r_[np.nan, y[1:]]):
        with pytest.raises(ValueError):
            make_search(accountant).fit(X, bad)
    assert not accountant.charges


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_folds_and_parts_with_one_class_are_fitted_like_any_other(accountant, strategy):
    y = np.zeros(40, dtype=int)
    y[7] = 1
    search = make_search(accountant, strategy).fit(np.zeros((40, 1)), y)
    np.testing.assert_array_equal(search.best_estimator_.classes, [0, 1])


def test_many_more_candidates_than_rows(accountant):
    y = np.arange(6) % 2
    search = make_search(accountant, "auto")
    search.set_params(param_grid={"shift": list(np.linspace(-1, 1, 12))}).fit(np.zeros((6, 1)), y)
    assert accountant.epsilon_spent == 1.0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_interrupt_midway_leaves_the_charge_and_nothing_else(
    table, accountant, strategy, monkeypatch
):
    calls = []
    fitted = CandidateFit.fitted

    def interrupted(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fitted(self, *args, **kwargs)

    monkeypatch.setattr(CandidateFit, "fitted", interrupted)
    search = make_search(accountant, strategy)
    with pytest.raises(KeyboardInterrupt):
        search.fit(*table)
    assert len(accountant.charges) == 1 and accountant.epsilon_spent == 1.0
    accountant.verify()
    assert not [name for name in vars(search) if name.endswith("_")]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_accountant_that_is_emptied_midway_stops_no_search(table, strategy, monkeypatch):
    accountant, calls, fitted = PrivacyAccountant(1.5, 1e-4), [], CandidateFit.fitted

    def emptied(self, *args, **kwargs):
        if not calls:
            accountant.charge(PureDP(0.5), label="another")
        calls.append(self)
        return fitted(self, *args, **kwargs)

    monkeypatch.setattr(CandidateFit, "fitted", emptied)
    search = make_search(accountant, strategy).fit(*table)
    assert len(calls) > 1 and accountant.epsilon_remaining == 0.0
    assert search.cost() == (1.0, 1e-5) and len(accountant.charges) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("front", [[], [DPTableVectorizer(bounds=(-1, 1), categories={})]])
def test_training_sets_that_are_too_small_are_refused_before_the_charge(table, accountant, front):
    """Also behind a table of unknown width."""
    model = DPSGDClassifier(batch_size=60, data_norm=1.0, sampling="poisson")
    options = {"epsilon": 1.0, "delta": 1e-5, "strategy": "disjoint", "accountant": accountant}
    grid = {"dpsgdclassifier__fit_intercept": [True, False]}
    search = DPGridSearchCV(make_pipeline(*front, model), grid, **options)
    with pytest.raises(ValueError, match="batch_size"):
        search.fit(*table)
    assert not accountant.charges
    search.set_params(strategy="holdout").fit(*table)


def test_what_ones_own_estimator_refuses_it_refuses_after_the_charge(table, accountant):
    search = make_search(accountant).set_params(param_grid={"shift": [0.0, 1e7]})
    with pytest.raises(ValueError, match="shift is too large"):
        search.fit(*table)
    assert accountant.epsilon_spent == 1.0


def test_a_fit_that_fails_after_the_charge_ends_the_search(table, accountant, monkeypatch):
    def failing(*args):
        raise ValueError("not this row")

    monkeypatch.setattr(NoisyVote, "predict", failing)
    search = make_search(accountant)
    with pytest.raises(ValueError, match="not this row"):
        search.fit(*table)
    assert accountant.epsilon_spent == 1.0 and not hasattr(search, "best_index_")


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("strategy", ["cv", "random_stopping"])
def test_workers_change_neither_the_cost_nor_the_independence_of_noise(table, backend, strategy):
    accountant = PrivacyAccountant(2.0, 1e-4)
    search = make_search(accountant, strategy, n_jobs=2)
    with joblib.parallel_config(backend=backend):
        scores = [search.fit(*table).best_score_ for _ in range(2)]
    assert len(accountant.charges) == 2 and accountant.epsilon_spent == 2.0
    assert scores[0] != scores[1]


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_inner_fits_in_workers_have_noise_of_their_own(table, backend):
    run = make_run(table, "holdout", refit=False, n_jobs=2)
    with joblib.parallel_config(backend=backend):
        models = [model for _, model in run.fit(list(run.search.runs), return_models=True)]
    assert len({model.coef_[0] for model in models}) == len(models)


@pytest.mark.parametrize(
    "processes",
    [pytest.param(False, marks=pytest.mark.thorough), pytest.param(True, marks=pytest.mark.slow)],
)
def test_dask_workers(table, processes):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    accountant = PrivacyAccountant(1.0, 1e-5)
    cluster = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    cluster["processes"] = processes
    with distributed.LocalCluster(**cluster) as local, distributed.Client(local):
        run = make_run(table, "holdout", refit=False, n_jobs=2)
        with joblib.parallel_config(backend="dask"):
            search = make_search(accountant, "cv", n_jobs=2).fit(*table)
            models = [model for _, model in run.fit(list(run.search.runs), return_models=True)]
    assert search.privacy_.epsilon == accountant.epsilon_spent == 1.0
    assert len(accountant.charges) == 1
    assert len({model.coef_[0] for model in models}) == len(models)


def make_run(table, strategy, *, n_jobs=None, source=None, **params):
    """Return the planned runs of a search."""
    from tests.model_selection.test_plans import make_task, plan

    task = make_task(table, **params)
    made = plan(task, strategy)
    source = runs_source() if source is None else source
    return runs.SearchRun(made, Rows(*table), n_jobs, source)


def runs_source():
    from skdp.noise import RandomSource

    return RandomSource()


def test_a_seed_repeats_a_search_and_gives_every_fit_its_own_noise(table):
    results = []
    for _ in range(2):
        with pytest.warns(UserWarning) as caught:
            search = make_search(random_state=3, strategy="cv").fit(*table)
        assert len(caught) == 1
        results.append((search.best_score_, search.best_estimator_.coef_[0]))
    assert results[0] == results[1] and search.privacy_.seeded
    with pytest.warns(UserWarning):
        run = make_run(table, "holdout", source=seeded_source())
    seeds = [seed for fit in run.search.runs.values() for seed in run.seeds(fit).values()]
    assert len(set(seeds)) == len(seeds)


def seeded_source():
    from skdp.noise import RandomSource

    return RandomSource(0)


def public(search):
    """Everything that a fitted search shows, without its numbers."""
    names = sorted(name for name in vars(search) if name.endswith("_"))
    lengths = {name: np.size(value) for name, value in search.cv_results_.items()}
    return names, lengths, str(search.privacy_).splitlines()[:-1][:8]


@pytest.mark.parametrize("leak", [False, True])
def test_the_number_of_runs_shows_nowhere(table, monkeypatch, capsys, leak):
    seen = set()
    if leak:
        run_search = runs.run_search

        def told(run, stages):
            print("runs:", runs._number_of_runs(1, None))
            return run_search(run, stages)

        monkeypatch.setattr("skdp.model_selection._base_search.run_search", told)
    for count in (1, 9):
        monkeypatch.setattr(runs, "_number_of_runs", lambda mean, stream, count=count: count)
        search = make_search(strategy="random_stopping", verbose=10).fit(*table)
        scores = search.cv_results_["mean_test_score"]
        assert np.isfinite(scores).sum() == 1
        seen.add(f"{public(search)} {capsys.readouterr()}")
    assert len(seen) == (2 if leak else 1)


@pytest.mark.thorough
def test_the_number_of_runs_is_geometric():
    stream = runs_source().stream()
    counts = np.array([runs._number_of_runs(4, stream) for _ in range(20_000)])
    for k in (1, 2, 5):
        p = 0.25 * 0.75 ** (k - 1)
        # Five standard deviations: false alarms in 6e-7 of runs.
        assert abs(np.mean(counts == k) - p) < 5 * np.sqrt(p * (1 - p) / counts.size)


def test_clone_pickle_and_parameters(table, accountant):
    search = make_search(accountant)
    assert clone(search).accountant is accountant
    search.set_params(estimator__shift=3.0, strategy="cv")
    assert search.estimator.shift == 3.0
    search.fit(*table)
    copy = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(copy.predict(table[0]), search.predict(table[0]))
    assert copy.best_params_ == search.best_params_


def test_inside_cross_validation_and_pipelines(table):
    accountant = PrivacyAccountant(10.0, 1e-4)
    pipe = make_pipeline(Normalizer(), make_search(accountant))
    cross_val_score(pipe, *table, cv=KFold(2, shuffle=True, random_state=0), error_score="raise")
    assert accountant.epsilon_spent == 2.0 and len(accountant.charges) == 2


def test_without_a_refit_cross_validation_publishes_no_model(table):
    search = make_search(strategy="cv", refit=False).fit(*table)
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError):
        search.predict(table[0])


def test_a_chosen_model_states_the_price_of_the_choice(table):
    for strategy in ("holdout", "random_stopping", "disjoint"):
        model = make_search(strategy=strategy, refit=False).fit(*table).best_estimator_
        assert (model.privacy_.epsilon, model.privacy_.delta) == (1.0, 1e-5)


def test_regressors_are_searched_by_their_bounds():
    X, y = np.random.default_rng(0).uniform(-0.5, 0.5, (300, 3)), np.zeros(300)
    ridge = DPRidge(target_bounds=(-1, 1))
    search = DPRandomizedSearchCV(ridge, {"alpha": [0.1, 1.0]}, n_iter=2, strategy="holdout")
    assert search.fit(X, y).predict(X).shape == (300,)
    with pytest.raises(ValueError, match="scoring"):
        DPGridSearchCV(NoisyRegressor(), {}, strategy="holdout").fit(X, np.arange(300) % 2)


class NoisyRegressor(NoisyVote):
    """No classifier, and without bounds."""

    __skdp_kind__ = "private"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        return tags


@pytest.mark.parametrize("strategy", ["auto", "holdout"])
def test_splits_from_an_iterator_are_read_once(table, strategy):
    splits = iter([(np.arange(80), np.arange(80, 120))])
    search = make_search(strategy=strategy, cv=splits).fit(*table)
    assert search.best_params_["shift"] in GRID["shift"]


def test_a_splitter_with_one_split_holds_out(table):
    split = ShuffleSplit(1, random_state=0)
    make_search(strategy="holdout", cv=split).fit(*table)


class Weighing(NoisyVote):
    """Notes the argument that its fit is given."""

    __skdp_kind__ = "private"

    seen = ()

    def fit(self, X, y, weight=None):
        type(self).seen += ((len(y), tuple(weight)),)
        return super().fit(X, y)


@pytest.mark.parametrize("routing", [False, True])
def test_arguments_of_fit_are_routed_with_their_rows(table, routing):
    Weighing.seen = ()
    X, y = table
    with config_context(enable_metadata_routing=routing):
        estimator = Weighing()
        if routing:
            estimator.set_fit_request(weight=True)
        search = DPGridSearchCV(estimator, GRID, delta=1e-5, strategy="cv", cv=KFold(3))
        search.fit(X, y, weight=np.arange(120))
        refused = (UnsetMetadataPassedError, TypeError) if routing else TypeError
        with pytest.raises(refused):
            search.fit(X, y, volume=np.arange(120))
    sizes = {n for n, _ in Weighing.seen}
    assert sizes == {80, 120} and all(len(set(w)) == n for n, w in Weighing.seen)
    for train, _ in KFold(3).split(X):
        assert (80, tuple(train)) in Weighing.seen


@pytest.mark.thorough
def test_frames_and_sparse_matrices_are_searched():
    pd = pytest.importorskip("pandas")
    X, y = make_classification(300, 4, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for strategy in STRATEGIES:
        search = DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}, strategy=strategy)
        assert list(search.fit(frame, y).feature_names_in_) == list("abcd")
        assert search.fit(csr_array(X), y).predict(csr_array(X)).shape == (300,)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize(
    ("composition", "able"),
    [("zcdp", ("disjoint", "holdout", "cv")), ("rdp", ("cv", "random_stopping")), ("gdp", ("cv",))],
)
@pytest.mark.parametrize("strategy", ["auto", *STRATEGIES])
def test_an_accountant_that_cannot_price_a_strategy_refuses_it(table, composition, able, strategy):
    order = {"rdp_order": 8.0} if composition == "rdp" else {}
    accountant = PrivacyAccountant(8.0, 1e-4, composition=composition, **order)
    search = make_search(accountant, strategy)
    if strategy in ("auto", *able):
        assert search.fit(*table).strategy_ in able
        assert len(accountant.charges) == 1
        return
    with pytest.raises((ValueError, BudgetExceededError)):
        search.fit(*table)
    assert not accountant.charges


def test_nothing_but_parameters_and_releases_is_kept(table):
    search = make_search(strategy="holdout").fit(*table)
    names = set(vars(search)) - set(search.get_params(deep=False))
    assert all(name.endswith("_") for name in names)
    assert names == {
        "best_estimator_", "best_index_", "best_params_", "best_score_", "cv_results_",
        "strategy_", "privacy_",
    }  # fmt: skip


@pytest.mark.thorough
def test_a_large_epsilon_finds_what_plain_search_finds(table):
    search = make_search(strategy="holdout", epsilon=1e6).fit(*table)
    assert search.best_estimator_.coef_[0] == pytest.approx(40, abs=0.1)
    scores = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(scores, np.mean(table[1]), atol=0.1)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_scores_of_cross_validation_cost_one_charge(table, delta):
    accountant = PrivacyAccountant(3.0, 1e-4)
    given = {"delta": delta, "accountant": accountant, "cv": 3}
    assert dp_cross_val_score(NoisyVote(), *table, **given).scores_.shape == (3,)
    sizes = (0.2, 1.0)
    curve = dp_learning_curve(NoisyVote(), *table, train_sizes=sizes, **given)
    assert curve.scores_.shape == (2, 3) and curve.mean_.shape == (2,)
    values = {"param_name": "shift", "param_range": [0.0, 1.0]}
    assert dp_validation_curve(NoisyVote(), *table, **values, **given).scores_.shape == (2, 3)
    assert [(s.epsilon, s.delta) for s in accountant.charges] == [(1.0, delta)] * 3
    with pytest.raises(BudgetExceededError):
        dp_cross_val_score(NoisyVote(), *table, **given)


def test_noisy_scores_are_as_far_off_as_they_say(table):
    results = [dp_cross_val_score(NoisyVote(), *table, epsilon=50.0, cv=2) for _ in range(30)]
    exact = np.mean(table[1])
    off = np.array([r.mean_ - exact for r in results]) / results[0].mean_noise_
    assert np.abs(off).max() < 6


@pytest.mark.parametrize(
    "bad", [{"epsilon": 0}, {"cv": StratifiedKFold(2)}, {"scoring": "average_precision"}]
)
def test_cross_validation_refuses_before_the_charge(table, bad):
    accountant = PrivacyAccountant(1.0, 1e-5)
    with pytest.raises(ValueError):
        dp_cross_val_score(NoisyVote(), *table, accountant=accountant, **bad)
    assert not accountant.charges


# Fits that are heard by nobody, however loud the estimator is.


class LoudVote(NoisyVote):
    """Says what no one should hear, of its rows and of each fit."""

    __skdp_kind__ = "private"

    def fit(self, X, y):
        super().fit(X, y)
        warnings.warn(f"the sum is {np.sum(y)}", stacklevel=1)
        return self

    def predict(self, X):
        warnings.warn(f"{len(X)} rows are predicted", stacklevel=1)
        return super().predict(X)


def loud_pipeline(verbose=True):
    same = [("one", FunctionTransformer()), ("two", FunctionTransformer())]
    steps = [("same", FeatureUnion(same)), ("vote", LoudVote())]
    return Pipeline(steps, verbose=verbose)


def search(n_jobs=None, **params):
    given = {"strategy": "random_stopping", "delta": 1e-6, "n_jobs": n_jobs} | params
    return DPGridSearchCV(loud_pipeline(), {"vote__shift": [0.0, 1.0]}, **given)


@pytest.fixture
def rows_of_two():
    return np.zeros((60, 1)), np.arange(60) % 2


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_neither_prints_nor_warnings_tell_the_number_of_runs(
    rows_of_two, monkeypatch, capfd, n_jobs
):
    heard = set()
    for count in (1, 9):
        monkeypatch.setattr(runs, "_number_of_runs", lambda mean, stream, count=count: count)
        with warnings.catch_warnings(record=True) as told, joblib.parallel_config(verbose=50):
            warnings.simplefilter("always")
            found = search(n_jobs).fit(*rows_of_two)
        heard.add((str([str(w.message) for w in told]), *capfd.readouterr()))
        assert found.best_estimator_.verbose is True
    assert heard == {("[]", "", "")}


def test_the_loud_estimator_is_loud(rows_of_two, capsys):
    with pytest.warns(UserWarning, match="the sum is 30"):
        loud_pipeline().fit(*rows_of_two)
    assert capsys.readouterr().out


class Fixed:
    """A mechanism that releases the same, whatever it is given."""

    def __init__(self, released):
        self.released = released

    def release(self, values, *, random_state):
        return self.released


def test_a_search_takes_what_the_mechanisms_released():
    splits = SimpleNamespace(train=[0], test=[0])
    layout = SimpleNamespace(splits=splits, candidate_splits=((0,), (0,)))
    layout.score = lambda score, values, candidate: values[candidate, 0]
    made = SimpleNamespace(layout=layout, runs={(0, 0): None, (1, 0): None}, refits=(), releases=2)
    made.choice, made.noisy = Fixed(1), Fixed(np.array([0.7, 0.3]))
    made.task = SimpleNamespace(score=None)
    run = SimpleNamespace(
        search=made, source=None, fit=lambda *plans, **options: [(0.9, "a"), (0.1, "b")]
    )
    found = runs._choose(run)
    assert (found.best, found.scores.tolist(), found.model) == (1, [0.7, 0.3], "b")


def test_no_rows_are_kept_on_disk(tmp_path):
    X, y = np.random.default_rng(0).uniform(size=(60, 2)), np.arange(60) % 2
    steps = [("scale", DPStandardScaler(bounds=(0, 1))), ("model", DPLogisticRegression())]
    pipe = Pipeline([("unit", Normalizer()), *steps], memory=str(tmp_path))
    found = DPGridSearchCV(pipe, {"model__C": [0.1, 1.0]}, strategy="holdout").fit(X, y)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert found.best_estimator_.memory is None and pipe.memory == str(tmp_path)


def test_scores_that_cannot_be_released_are_not_charged(rows_of_two):
    accountant = PrivacyAccountant(1.0, 1e-5)
    tiny = {"epsilon": 1e-13, "delta": 0.0, "accountant": accountant}
    found = DPGridSearchCV(NoisyVote(), {"shift": [0.0, 1.0]}, strategy="cv", **tiny)
    with pytest.raises(ValueError, match="too small for 2"):
        found.fit(*rows_of_two)
    with pytest.raises(ValueError, match="too small for 5"):
        dp_cross_val_score(NoisyVote(), *rows_of_two, **(tiny | {"epsilon": 2.5e-14}))
    assert not accountant.charges
