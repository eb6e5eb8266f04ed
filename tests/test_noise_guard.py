"""The one door: what is drawn, charged and published, by every estimator and statistic."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

import skdp
from skdp import BudgetExceededError, DPLogisticRegression, DPStandardScaler, PrivacyAccountant
from skdp.base import PrivateFit, PrivateRelease, TableShape, fitted_names
from skdp.ledger import open_ledger, register_ledger
from skdp.mechanisms import LaplaceMechanism, NoRelease
from skdp.noise import NoiseGuard, RandomSource
from tests._estimators import ESTIMATORS
from tests._public import public_names
from tests._tables import make_table

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

RNG = np.random.default_rng(0)
COLUMN, LABELS = RNG.uniform(-1, 1, size=60), np.tile([0, 1], 30)
# What functions that release something ask for, by the names of their parameters.
ARGUMENTS = {
    "a": COLUMN,
    "x": COLUMN,
    "y": COLUMN,
    "q": 0.5,
    "X": COLUMN[:, None],
    "estimator": DPLogisticRegression(),
    "param_name": "C",
    "param_range": [0.1, 1.0],
    "name": "accuracy",
    "index": LABELS,
    "columns": LABELS,
    "model": DPLogisticRegression().fit(COLUMN[:, None], LABELS),
    "y_true": LABELS,
    "y_pred": LABELS[::-1],
    "y_score": (COLUMN + 1.0) / 2.0,
    "y_prob": (COLUMN + 1.0) / 2.0,
    "target_bounds": (0.0, 1.0),
}


def offered():
    """Yield what the public packages offer, each once."""
    found = {}
    packages = [m.name for m in pkgutil.iter_modules(skdp.__path__) if m.ispkg]
    for name in ["skdp", *(f"skdp.{name}" for name in packages if not name.startswith("_"))]:
        module = importlib.import_module(name)
        found |= {id(getattr(module, n)): getattr(module, n) for n in public_names(module)}
    return list(found.values())


def releases():
    """Yield an action that releases something: a function of an accountant."""
    instances = {}
    for estimator in ESTIMATORS:
        instances.setdefault(type(estimator), []).append(estimator)
    for thing in offered():
        if inspect.isclass(thing) and hasattr(thing, "fit"):
            # What has no instance in test_contract is named by a test there.
            for number, estimator in enumerate(instances.get(thing, [])):
                marks = [pytest.mark.slow] if number else []
                yield pytest.param(fit_of(estimator, "fit"), id=f"{estimator}", marks=marks)
            if hasattr(thing, "partial_fit"):
                first = instances[thing][0]
                yield pytest.param(fit_of(first, "partial_fit"), id=f"{thing} part")
        elif inspect.isfunction(thing):
            names = inspect.signature(thing).parameters
            # A pipeline is made, and nothing is released. An evaluation of synthetic rows draws
            # them first, and its scores are those of `skdp.metrics`.
            is_other = thing in (skdp.tabular_pipeline, skdp.synthesis.evaluate_synthetic)
            if {"accountant", "random_state"} <= names.keys() and not is_other:
                yield pytest.param(call_of(thing, names), id=thing.__name__)


def first_of_each_class():
    return list({type(estimator): estimator for estimator in reversed(ESTIMATORS)}.values())


def fit_of(estimator, method):
    def release(accountant):
        X, y = make_table(estimator)
        fitted = clone(estimator).set_params(accountant=accountant)
        if method == "partial_fit" and "classes" in fitted.get_params():
            fitted.set_params(classes=[0, 1])
        release.made = fitted
        target = (y,) if get_tags(estimator).target_tags.required else ()
        getattr(fitted, method)(X, *target)
        if get_tags(estimator).non_deterministic:
            release.made = None
            fitted.transform(X)

    release.made = None
    return release


def call_of(function, names):
    given = {n: ARGUMENTS[n] for n, p in names.items() if p.default is p.empty and n in ARGUMENTS}
    if "X" in given:
        given["y"] = LABELS
    if "table" in names:
        given = {"table": ARGUMENTS["X"], "bounds": (-1.0, 1.0)}
    elif "categories" in names:
        given |= {"a": LABELS, "categories": [0, 1]}
    if "index" in names:
        given = {n: given[n] for n in ("index", "columns")} | {"categories": ([0, 1], [0, 1])}

    def release(accountant):
        made = function(**given, accountant=accountant)
        if callable(made):
            model = DPLogisticRegression().fit(ARGUMENTS["X"], LABELS)
            # The model's own noise is not the scorer's.
            release.drawn.clear()
            made(model, ARGUMENTS["X"], LABELS)

    release.made = None
    return release


def affordable():
    return PrivacyAccountant(1e6, 0.5, ledger="memory://")


@pytest.fixture
def drawn(monkeypatch):
    """The sizes of all draws."""
    stream = type(RandomSource().stream())
    sizes, words = [], stream.words

    def counted(self, n):
        values = words(self, n)
        sizes.append(n)
        return values

    monkeypatch.setattr(stream, "words", counted)
    return sizes


class Watched:
    """A ledger in memory that notes what is asked of it."""

    asked: list = []

    def __init__(self, address):
        self.kept = open_ledger(address.replace("watched", "memory"))

    def __getattr__(self, name):
        self.asked.append(name)
        return getattr(self.kept, name)


def test_a_fit_asks_its_ledger_once():
    register_ledger("watched", Watched)
    accountant = PrivacyAccountant(9.0, 0.0, ledger="watched://door")
    Watched.asked.clear()
    DPStandardScaler(bounds=(0, 1), accountant=accountant).fit(COLUMN[:, None])
    assert Watched.asked == ["append"]


def test_there_is_more_than_one_of_each():
    ids = [param.id for param in releases()]
    assert {"dp_mean", "dp_cross_val_score", "make_dp_scorer", "estimate_bounds"} <= set(ids)
    assert len(ids) > len(ESTIMATORS) + 12


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("release", list(releases()))
def test_nothing_is_drawn_before_the_charge_or_past_it(release, drawn, monkeypatch):
    release.drawn = drawn
    # Refused: nothing was drawn.
    with pytest.raises(BudgetExceededError):
        release(PrivacyAccountant(1e-9, 1e-12))
    assert not drawn
    assert release.made is None or not fitted_names(release.made)
    charge = PrivateRelease.charge
    with monkeypatch.context() as patch:
        # A source that no charge returned.
        patch.setattr(PrivateRelease, "charge", lambda self, plan, size=None: RandomSource())
        with pytest.raises(RuntimeError, match="before the release was charged|call charge first"):
            release(affordable())
    assert not drawn
    with monkeypatch.context() as patch:
        # Another source than the one of the charge.
        def forgotten(self, plan, size=None):
            charge(self, plan, size)
            return RandomSource()

        patch.setattr(PrivateRelease, "charge", forgotten)
        with pytest.raises(
            RuntimeError, match="from another source|before the release was charged"
        ):
            release(affordable())
    assert not drawn
    accountant = affordable()
    with monkeypatch.context() as patch:

        def twice(self, plan, size=None):
            charge(self, plan, size)
            return charge(self, plan, size)

        patch.setattr(PrivateRelease, "charge", twice)
        with pytest.raises(RuntimeError, match="charges once"):
            release(accountant)
    assert not drawn and len(accountant.charges) <= 1
    assert release.made is None or not fitted_names(release.made)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("estimator", first_of_each_class(), ids=str)
def test_nothing_is_published_without_a_charge(estimator, monkeypatch):
    def uncharged(self, plan, size=None):
        self._noise_guard.source = RandomSource()
        return self._noise_guard.source

    monkeypatch.setattr(PrivateRelease, "charge", uncharged)
    release = fit_of(estimator, "fit")
    with pytest.raises(RuntimeError, match="call charge first"):
        release(affordable())
    assert not fitted_names(release.made)


MECHANISM = LaplaceMechanism(epsilon=1.0, sensitivity=1.0)


def test_a_refused_charge_pays_for_nothing():
    scaler = DPStandardScaler(bounds=(0, 1), accountant=PrivacyAccountant(0.5, 0.0))
    with pytest.raises(RuntimeError, match="call charge first"), PrivateFit(scaler) as fit:
        with pytest.raises(BudgetExceededError):
            fit.charge(MECHANISM)
        with pytest.raises(RuntimeError, match="charges once"):
            fit.charge(MECHANISM)
        fit.publish(MECHANISM, public=(), mean_=0.0)
    assert not fitted_names(scaler)


def test_a_ledger_that_is_lost_after_the_charge_loses_no_fit(monkeypatch):
    accountant = PrivacyAccountant(1.0, 0.0)
    scaler = DPStandardScaler(epsilon=1.0, bounds=(0, 1), accountant=accountant)
    with PrivateFit(scaler) as fit:
        shape = TableShape(n_rows=len(COLUMN), n_columns=1)
        plan = scaler.plan_fit(shape, fit.guarantee)
        source = fit.charge(plan)
        monkeypatch.setattr(type(accountant), "config", property(None))
        within = plan.run(COLUMN[:, None], source)
        fit.publish(plan, public=(), mean_=within.released[0])
    assert scaler.privacy_.epsilon == 1.0


def test_a_forgotten_source_raises_and_the_door_opens_again():
    scaler = DPStandardScaler(bounds=(0, 1))
    with pytest.raises(RuntimeError, match="from another source"), PrivateFit(scaler) as fit:
        fit.charge(MECHANISM)
        MECHANISM.release(0.0)
    with pytest.raises(RuntimeError, match="before the release"), PrivateFit(scaler):
        MECHANISM.release(0.0, random_state=7)
    with pytest.raises(RuntimeError, match="before the release"), PrivateFit(scaler) as fit:
        # What releases nothing has no source.
        assert fit.charge(NoRelease()) is None
        MECHANISM.release(0.0)
    MECHANISM.release(0.0)


def test_a_stream_that_was_made_outside_is_shut_out_inside():
    stream = RandomSource().stream()
    with NoiseGuard() as door:
        with pytest.raises(RuntimeError):
            stream.words(1)
        door.source = RandomSource()
        with pytest.raises(RuntimeError):
            stream.words(1)
        own = door.source.stream()
        assert own.words(1).size == 1
        with NoiseGuard():
            # An inner release is paid by its own charge.
            with pytest.raises(RuntimeError):
                own.words(1)
        assert own.words(1).size == 1
    assert stream.words(1).size == 1


def test_a_release_within_a_fit_has_its_own_charge():
    X, y = np.linspace(0, 1, 60)[:, None], LABELS
    accountant = PrivacyAccountant(3.0, 1e-5)
    model = DPLogisticRegression(accountant=accountant)
    with PrivateFit(model) as fit:
        source = fit.charge(MECHANISM)
        skdp.stats.dp_mean(X[:, 0], bounds=(0, 1), accountant=accountant)
        DPLogisticRegression(accountant=accountant).fit(X, y)
        MECHANISM.release(0.0, random_state=source)
    assert [spend.epsilon for spend in accountant.charges] == [1.0, 1.0, 1.0]


def test_a_seeded_release_repeats_inside_the_door():
    sums = [skdp.stats.dp_sum(COLUMN, bounds=(-1, 1), random_state=3) for _ in range(2)]
    assert sums[0] == sums[1]


def test_one_module_makes_sources_and_charges():
    """Everything that releases goes through `skdp.base`: no other module makes a source."""
    root = Path(skdp.__file__).parent
    allowed = {"noise", "mechanisms", "base.py", "accounting", "pipeline"}
    for path in root.rglob("*.py"):
        if path.relative_to(root).parts[0] in allowed or path.name.startswith("_check"):
            continue
        code = re.sub(r'""".*?"""|#.*', "", path.read_text(), flags=re.S)
        assert not re.search(r"RandomSource\(|as_source\(|accountant\.charge\(", code), path
