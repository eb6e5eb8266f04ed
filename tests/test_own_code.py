"""Classes and functions of the user around private estimators, however they store what they use."""

import collections
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skdp import DPLogisticRegression, DPStandardScaler, PrivacyAccountant, RawDataWarning
from skdp.model_selection import make_dp_scorer
from skdp.pipeline import check_pipeline
from skdp.stats import dp_mean

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (60, 3))
y = (X[:, 0] > 0).astype(int)
FOLDS = KFold(2, shuffle=True, random_state=0)


def classifier(accountant):
    return DPLogisticRegression(0.1, data_norm=2.0, classes=[0, 1], accountant=accountant)


def scaler(accountant):
    return DPStandardScaler(0.1, bounds=(-1, 1), accountant=accountant)


def run(call, **options):
    """Return the texts of the warnings, the error and what a call of an accountant charged."""
    accountant = PrivacyAccountant(1000.0, 0.1, ledger="memory://", **options)
    error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(accountant)
        except ValueError as raised:
            error = raised
    texts = [str(w.message) for w in caught if issubclass(w.category, RawDataWarning)]
    return texts, error, accountant.epsilon_spent


def check_warns(call):
    """Check that a call warns once, and that its ledger can refuse it before the first charge."""
    texts, error, spent = run(call)
    assert (len(texts), error) == (1, None)
    assert spent > 0.0
    _, error, spent = run(call, on_raw_data="raise")
    assert "on_raw_data='raise'" in str(error)
    assert spent == 0.0
    return texts[0]


def check_silent(call):
    texts, error, spent = run(call, on_raw_data="raise")
    assert (texts, error) == ([], None)
    assert spent > 0.0


class Methods:
    """Methods that fit a step, and then a model to the rows that it transforms."""

    def fit(self, X, y):
        self.model.fit(self.step.fit_transform(X), y)
        return self

    def train(self, X, y):
        rows = self.step.fit(X, y).transform(X)
        self.fit_model(rows, y)

    def fit_model(self, rows, y):
        self.model.fit(rows, y)

    def __call__(self, X, y):
        self.model.fit(self.step.fit_transform(X), y)

    def compare(self, X, y):
        return [part.fit(X, y) for part in (self.model, self.step)]

    def send(self, X, y):
        rows = self.step.fit_transform(X)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.model.fit, rows, y).result()

    def update(self, X, y):
        self.step.partial_fit(X)
        self.report(self.step.transform(X))

    def report(self, rows):
        release = partial(dp_mean, epsilon=0.1, bounds=(-1, 1))
        self.mean_ = release(rows[:, 0], accountant=self.model.accountant)
        self.step.fit(rows)


METHODS = ("fit", "train", "__call__", "compare", "send")


class InParameters(Methods, BaseEstimator):
    def __init__(self, step, model):
        self.step = step
        self.model = model


class InOtherAttributes(Methods):
    def __init__(self, first, second):
        self._parts = (first, second)
        self.step = first
        self.model = second


class BesideParameters(Methods, BaseEstimator):
    """A class that creates its step in the constructor."""

    def __init__(self, model, step):
        self.model = model
        self._step = step

    @property
    def step(self):
        return self._step


class InSlots:
    __slots__ = ("mean_", "model", "step")

    def __init__(self, step, model):
        self.step = step
        self.model = model


for name, item in vars(Methods).items():
    if isinstance(item, types.FunctionType):
        setattr(InSlots, name, item)


@dataclass
class InFields(Methods):
    step: object
    model: object


class Parts(NamedTuple):
    step: object
    model: object


class InRecord(Methods):
    def __init__(self, parts):
        self.parts = parts

    def part(self, name):
        return self.parts[name] if isinstance(self.parts, dict) else getattr(self.parts, name)

    @property
    def step(self):
        return self.part("step")

    @property
    def model(self):
        return self.part("model")


def without_arguments(step, model):
    class Created(Methods):
        def __init__(self):
            self.step = step
            self.model = model

    return Created()


def in_class(step, model):
    return type("InClass", (Methods,), {"step": step, "model": model})()


STORED = {
    "parameters": InParameters,
    "other attributes": InOtherAttributes,
    "beside parameters": lambda step, model: BesideParameters(model, step),
    "slots": InSlots,
    "a data class": InFields,
    "a constructor without arguments": without_arguments,
    "the class": in_class,
    "a named tuple": lambda step, model: InRecord(Parts(step, model)),
    "a dictionary": lambda step, model: InRecord({"step": step, "model": model}),
    "an ordered dictionary": lambda step, model: InRecord(
        collections.OrderedDict(step=step, model=model)
    ),
    "a namespace": lambda step, model: InRecord(types.SimpleNamespace(step=step, model=model)),
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("stored", STORED)
def test_raw_steps_are_seen_wherever_a_class_stores_them(stored, method):
    build = STORED[stored]
    text = check_warns(lambda a: getattr(build(StandardScaler(), classifier(a)), method)(X, y))
    assert "StandardScaler" in text
    assert "passes them no rows, ignore this warning" in text
    check_silent(lambda a: getattr(build(scaler(a), classifier(a)), method)(X, y))


@pytest.mark.parametrize("stored", STORED)
def test_steps_that_learn_nothing_are_silent_wherever_a_class_stores_them(stored):
    build = STORED[stored]
    public = FrozenEstimator(StandardScaler().fit(X))
    for step in (Normalizer(), public):
        check_silent(lambda a, s=step: build(s, classifier(a)).train(X, y))


def test_a_release_of_a_function_after_a_raw_step_is_seen():
    check_warns(lambda a: InFields(StandardScaler(), classifier(a)).update(X, y))


def test_rows_in_an_attribute_are_not_searched_for_steps():
    searched = []

    class Cell(float):
        def __getattr__(self, name):
            # Python calls it for each method that a cell does not have.
            searched.append(name)
            raise AttributeError(name)

    class Training:
        def __init__(self, model, pairs):
            self.model = model
            self.rows = [[Cell(j) for j in range(300)] for _ in range(1000)]
            self.index = {i: Cell(i) for i in range(10**5)}
            self.pairs = pairs

        def train(self):
            self.model.fit(X, y)

    accountant = PrivacyAccountant(1000.0, 0.1, ledger="memory://", on_raw_data="raise")
    Training(classifier(accountant), []).train()
    assert len(searched) < 20_000
    with pytest.raises(ValueError, match="StandardScaler"):
        Training(classifier(accountant), [(0.5, StandardScaler())]).train()


def test_a_method_that_fits_nothing_itself_is_not_looked_at():
    class App:
        def __init__(self):
            self.table_ = X
            self.rows = X.tolist()
            self.display = StandardScaler().fit(X)

        def main(self, accountant):
            fit_classifier(accountant)

    def fit_classifier(accountant):
        classifier(accountant).fit(X, y)

    check_silent(lambda a: App().main(a))


def test_what_a_class_creates_in_a_pipeline_is_seen_before_other_charges():
    def call(accountant):
        own = BesideParameters(classifier(accountant), StandardScaler())
        make_pipeline(scaler(accountant), own).fit(X, y)

    check_warns(call)


# Functions of a model that read the table X in addition.
def by_global(model):
    return np.abs(model.coef_[0]) + X.std(axis=0)[: model.coef_.shape[1]]


def by_helper(model):
    return by_global(model)


def by_default(model, table=X):
    return by_argument(model, table)


def by_argument(model, table):
    return np.abs(model.coef_[0]) + table[0, 0]


class Importance:
    def __init__(self, table):
        self.table = table

    def __call__(self, model):
        return by_argument(model, self.table)

    def of(self, model):
        return by_argument(model, self.table)


def closure(table):
    return lambda model: by_argument(model, table)


FRAME = pd.DataFrame(X)
READ_ROWS = {
    "a global variable": by_global,
    "another function": by_helper,
    "a default": by_default,
    "a closure": closure(X),
    "a dictionary": lambda model, tables={"X": X}: by_argument(model, tables["X"]),
    "a bound argument": partial(by_argument, table=X),
    "an object": Importance(X),
    "a method": Importance(X).of,
    "a frame": lambda model: np.abs(model.coef_[0]) + FRAME.iloc[0, 0],
    "an inner function": lambda model: [by_argument(model, table) for table in (X,)][0],
    "permutations": lambda model: (
        permutation_importance(model, X[:, : model.n_features_in_], y, n_repeats=1).importances_mean
    ),
}
SCALES = np.array([1.0, 2.0, 3.0])
OF_THE_MODEL = {
    "a name": "coef_",
    "a function": lambda model: np.abs(model.coef_),
    "constants": lambda model: np.abs(model.coef_[0]) * SCALES[: model.coef_.shape[1]],
    "a bound argument": partial(by_argument, table=np.ones((1, 1))),
    "automatic": "auto",
}


@dataclass
class Holder:
    rows: object

    def all_rows(self):
        return self.rows

    def read(self, model):
        return reading(model, self.all_rows())


class Slotted:
    __slots__ = ("rows",)

    def __init__(self, rows):
        self.rows = rows


def reading(model, rows):
    """Return importances of a model; what the rows are does not matter."""
    return np.abs(model.coef_[0])


def reading_attribute(model, held):
    return reading(model, held.rows)


def module_of_user(rows):
    module = types.ModuleType("tables_of_user")
    module.__file__ = "tables_of_user.py"
    module.rows = rows
    return module


def reading_module(module):
    return lambda model: reading(model, module.rows)


def class_of_user(rows):
    return type("Tables", (), {"rows": rows})


def derived_from_user(rows):
    def importances(self, model):
        return reading(model, self.rows)

    return type("Derived", (class_of_user(rows),), {"importances": importances})().importances


# Forms in which a function can hold rows: tables, columns and models that learned from them.
FORMS_OF_ROWS = {
    "table": X,
    "labels": y,
    "series": pd.Series(y),
    "list of labels": y.tolist(),
    "list of rows": X.tolist(),
    "three dimensions": X[None],
    "single row of all cells": X.reshape(1, -1),
    "lists in a dictionary": {"train": {"x": X[:, 0].tolist()}},
    "deque": collections.deque([X]),
    "fitted model": StandardScaler().fit(X),
    "fitted step": make_pipeline(StandardScaler().fit(X)),
    "stored rows": KNeighborsClassifier().fit(X, y),
}
PLACES_OF_ROWS = {
    "closure": lambda rows: lambda model: reading(model, rows),
    "default": lambda rows: lambda model, held=rows: reading(model, held),
    "bound argument": lambda rows: partial(reading, rows=rows),
    "data class": lambda rows: partial(reading_attribute, held=Holder(rows)),
    "method": lambda rows: Holder(rows).read,
    "object in an object": lambda rows: Holder(Holder(rows)).read,
    "slot": lambda rows: partial(reading_attribute, held=Slotted(rows)),
    "namespace": lambda rows: partial(reading, rows=types.SimpleNamespace(rows=rows)),
    "inner function": lambda rows: lambda model, read=lambda: rows: reading(model, read()),
    "class": lambda rows: partial(reading_attribute, held=class_of_user(rows)),
    "base class": derived_from_user,
    "module": lambda rows: reading_module(module_of_user(rows)),
}
# What a function can hold without reading rows.
FORMS_WITHOUT_ROWS = {
    "number": 3.0,
    "constants": np.array([1.0, 2.0, 3.0]),
    "names": ["age", "height", "weight"],
    "unfitted model": StandardScaler(),
    "frozen model": FrozenEstimator(StandardScaler().fit(X)),
    "private model": DPLogisticRegression(data_norm=2.0).fit(X, y),
    "generator": rng,
}


def warns_of_rows(getter):
    """Return True if a selection by a function of its model warns that it may read rows."""
    selection = SelectFromModel(classifier(None), importance_getter=getter)
    texts, error, _ = run(lambda a: selection.set_params(estimator=classifier(a)).fit(X, y))
    assert error is None
    return any("importance_getter that may read rows" in text for text in texts)


@pytest.mark.parametrize("place", PLACES_OF_ROWS)
def test_rows_are_seen_wherever_a_function_holds_them(place):
    build = PLACES_OF_ROWS[place]
    silent = [name for name, rows in FORMS_OF_ROWS.items() if not warns_of_rows(build(rows))]
    assert silent == []
    warned = [name for name, value in FORMS_WITHOUT_ROWS.items() if warns_of_rows(build(value))]
    assert warned == []


def scores(accountant):
    return {"scoring": make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant), "cv": FOLDS}


SELECTIONS = {
    "selection": lambda a, getter: SelectFromModel(classifier(a), importance_getter=getter),
    "elimination": lambda a, getter: RFE(classifier(a), importance_getter=getter),
    "elimination by scores": lambda a, getter: RFECV(
        classifier(a), importance_getter=getter, **scores(a)
    ),
}


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("getter", READ_ROWS)
def test_importances_that_may_read_rows_are_seen(selection, getter):
    build = SELECTIONS[selection]
    text = check_warns(lambda a: build(a, READ_ROWS[getter]).fit(X, y))
    assert "importance_getter that may read rows" in text
    if selection != "elimination by scores":
        check_warns(
            lambda a: make_pipeline(scaler(a), build(a, READ_ROWS[getter]), classifier(a)).fit(X, y)
        )
    tool = build(PrivacyAccountant(1.0, 1e-6, ledger="memory://"), READ_ROWS[getter])
    check = check_pipeline(make_pipeline(Normalizer(), tool))
    assert not check.accepted
    if selection != "elimination by scores":
        assert "learns" in str(check)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("getter", OF_THE_MODEL)
def test_importances_of_the_model_alone_are_silent(selection, getter):
    build = SELECTIONS[selection]
    check_silent(lambda a: build(a, OF_THE_MODEL[getter]).fit(X, y))


def best(results):
    return int(np.argmax(results["mean_test_score"]))


def best_of_rows(results):
    raw = LogisticRegression().fit(X, y).score(X, y)
    return int(raw > 0.5)


def test_a_choice_of_a_search_that_may_read_rows_is_seen():
    grid = {"C": [0.1, 1.0]}
    text = check_warns(
        lambda a: GridSearchCV(classifier(a), grid, refit=best_of_rows, **scores(a)).fit(X, y)
    )
    assert "function refit that may read rows" in text
    check_silent(lambda a: GridSearchCV(classifier(a), grid, refit=best, **scores(a)).fit(X, y))


class OwnStack(StackingClassifier):
    pass


class OwnVotes(VotingClassifier):
    pass


class OwnRest(OneVsRestClassifier):
    pass


class OwnSearch(GridSearchCV):
    pass


class OwnThreshold(FixedThresholdClassifier):
    pass


class OwnChain(ClassifierChain):
    pass


class OwnElimination(RFE):
    pass


def score(accountant):
    return make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)


# Objects of classes that are derived from tools, as functions of an accountant. Their fits store
# encoders of labels and other objects of scikit-learn.
DERIVED = {
    "stack": lambda a: OwnStack([("m", classifier(a))], classifier(a), cv=FOLDS),
    "votes": lambda a: OwnVotes(
        [("m", classifier(a)), ("p", make_pipeline(scaler(a), classifier(a)))]
    ),
    "rest": lambda a: OwnRest(classifier(a)),
    "search": lambda a: OwnSearch(classifier(a), {"C": [0.1, 1.0]}, scoring=score(a), cv=FOLDS),
    "threshold": lambda a: OwnThreshold(classifier(a)),
    "chain": lambda a: OwnChain(classifier(a)),
    "elimination": lambda a: OwnElimination(classifier(a)),
}


@pytest.mark.parametrize("place", ["alone", "again", "pipeline", "search"])
@pytest.mark.parametrize("name", DERIVED)
def test_what_a_derived_tool_stores_is_not_taken_for_a_step_of_its_own(name, place):
    target = np.c_[y, 1 - y] if name == "chain" else y

    def call(accountant):
        model = DERIVED[name](accountant)
        if place == "again":
            model.fit(X, target)
        elif place == "pipeline":
            model = make_pipeline(scaler(accountant), model)
        elif place == "search" and name not in ("chain", "elimination"):
            model = GridSearchCV(model, {}, scoring=score(accountant), cv=FOLDS)
        model.fit(X, target)

    check_silent(call)
