"""Sentences of statements, reports and errors against the objects that they are about."""

import itertools
import re

import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skdp
from skdp import PrivacyAccountant, privacy_report
from skdp.model_selection import dp_evaluate
from tests._estimators import LISTED

N = 120
RNG = np.random.default_rng(0)
X = RNG.integers(0, 3, size=(N, 3)).astype(float)
Y = np.arange(N) % 2
IDS = np.arange(N) // 2
UNITS = {"row": {}, "person": {"unit": "person"}, "group": {"unit": "group", "max_rows": 3}}
RELATIONS = "add_remove", "replace_one"


def ledger(unit="row", relation="add_remove", **options):
    return PrivacyAccountant(1e4, 0.5, relation=relation, **UNITS[unit], **options)


def rows_of(statement):
    return dict(statement.rows())


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("index", range(len(LISTED)))
def test_outputs_are_those_of_the_estimator(index):
    fitted = clone(LISTED[index]).fit(X, Y)
    statement = fitted.privacy_
    rows = rows_of(statement)
    later = isinstance(fitted, skdp.RandomizedResponseTransformer)
    assert rows["covered"].endswith(": predictions") is hasattr(fitted, "predict")
    transforms = hasattr(fitted, "transform") and not later
    assert ("private rows that are transformed" in rows["not covered"]) is transforms
    assert statement.to_dict()["covered"] == rows["covered"]
    assert "outputs" not in statement.to_dict()


@pytest.mark.quick_cases(every=25)
@pytest.mark.parametrize(
    ("index", "unit", "relation"), [*itertools.product(range(len(LISTED)), UNITS, RELATIONS)]
)
def test_numbers_are_followed_by_their_subject_and_their_stage(index, unit, relation):
    model = clone(LISTED[index]).set_params(accountant=ledger(unit, relation))
    try:
        statement = model.fit(X, Y, **({"groups": IDS} if unit == "person" else {})).privacy_
    except ValueError as error:
        assert "no release whose unit is a person" in str(error) or "count='noisy'" in str(error)
        pytest.skip(str(error))
    rows = rows_of(statement)
    for name in ("noise scale", "sensitivity", "noise multiplier"):
        number, *remarks = rows.get(name, "0").split("; ")
        parts = re.fullmatch(
            r"\S+( of one row| to one record that is added to a batch or removed from it)?"
            r"(?:,? in stage (\d+))?",
            number,
        )
        assert parts, number
        if name in rows and parts[2]:
            stage = statement.stages[int(parts[2]) - 1]
            assert stage.scale == statement.noise_scale
        of_group = "epsilon and delta are those of a group" in remarks
        assert of_group is (
            unit == "group" and bool(statement.stages) and name in rows and name != "noise scale"
        )
    # Gradients are stochastic if their batches are drawn.
    for stage in statement.stages:
        if "gradients" in stage.law:
            assert ("stochastic" in stage.law) is stage.is_sampled


BASE = skdp.DPLogisticRegression(data_norm=3.0)
WRAPPERS = {
    "search": lambda o: skdp.DPGridSearchCV(BASE, {"C": [0.1, 1.0]}, strategy="holdout", **o),
    "runs": lambda o: skdp.DPGridSearchCV(
        BASE, {"C": [0.1, 1.0]}, strategy="random_stopping", mean_runs=2, **o
    ),
    "calibration": lambda o: skdp.DPCalibratedClassifierCV(BASE, **o),
    "threshold": lambda o: skdp.DPTunedThresholdClassifierCV(BASE, **o),
}


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("name", WRAPPERS)
def test_the_charge_of_a_fitted_step_is_described_by_the_stages_of_the_whole(name, refit):
    whole = WRAPPERS[name]({"refit": refit, "epsilon": 2.0, "delta": 1e-5}).fit(X, Y)
    step = getattr(whole, "best_estimator_", None) or whole.estimator_
    text = step.privacy_.part_of
    stages = [stage.name for stage in whole.privacy_.stages]
    assert ("the choice" in text) is ("the choice of a candidate" in stages)
    assert ("those of the search" in text) is name.startswith(("search", "runs"))
    assert ("the scores" in text) is ("noisy scores" in stages)
    assert ("the counts of scores" in text) is any("counts of cells" in n for n in stages)
    for stage in step.privacy_.stages:
        assert ("training part" in stage.reads) is not refit
        assert stage.reads.count("training part") <= 1 and "its training" not in stage.reads


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("prefit", [False, True])
def test_a_sampler_and_the_only_stage_read_the_same_rows(prefit, unit):
    groups = {"groups": IDS} if unit == "person" else {}
    model = clone(BASE).fit(X, Y)
    if prefit:
        fitted = skdp.DPCalibratedClassifierCV(model, cv="prefit", accountant=ledger(unit))
        statement = fitted.fit(X, Y, **groups).privacy_
    else:
        statement = dp_evaluate(model, X, Y, accountant=ledger(unit), **groups).privacy_
    (stage,) = statement.stages
    assert stage.reads == statement.sampler and f"{unit}s, once" in stage.reads


SEED_TEXT = "No one who sees a release knows a seed of its noise."
SOURCE_TEXT = "No one can predict the operating system's random generator."


@pytest.mark.filterwarnings("ignore::skdp.SeededNoiseWarning")
@pytest.mark.parametrize("seeds", [*itertools.product([None, 0], repeat=3)])
def test_seeded_noise_is_that_of_the_calls_that_were_seeded(seeds):
    accountant = ledger()
    model = skdp.DPSGDClassifier(0.5, delta=1e-6, max_iter=2, accountant=accountant)
    for seed in seeds:
        model.set_params(random_state=seed).partial_fit(X, Y, classes=[0, 1])
    report = privacy_report(model)
    assumptions = report.to_dict()["assumptions"]
    assert (SOURCE_TEXT in assumptions) is (None in seeds)
    assert (SEED_TEXT in assumptions) is (0 in seeds)
    statement = rows_of(model.privacy_)["seeded"]
    conclusion = " ".join(report.summary.conclusion)
    if 0 not in seeds:
        assert statement == "no" and "SEEDED" not in conclusion
        return
    named = set()
    for first, last in re.findall(r"call (\d+)(?: to call (\d+))?", statement):
        named |= set(range(int(first), int(last or first) + 1))
    seeded = {i for i, seed in enumerate(seeds, start=1) if seed is not None}
    assert named == (set() if None not in seeds else seeded)
    assert model.privacy_.seeded_calls in conclusion and model.privacy_.seeded_calls in repr(
        make_pipeline(model)
    ) + str(model.privacy_)
    charges = [charge.seeded for charge in accountant.charges]
    assert charges == [seed is not None for seed in seeds]


def test_ledgers_that_are_not_in_a_report_are_counted():
    model = skdp.DPSGDClassifier(0.5, delta=1e-6, max_iter=2)
    for name in ("A", "B", None):
        accountant = None if name is None else ledger(dataset=name)
        model.set_params(accountant=accountant).partial_fit(X, Y, classes=[0, 1])
        facts = dict(privacy_report(model).summary.facts)
        if name == "B":
            # The ledger of B is read.
            assert "in a ledger that is not in this report" in facts["total of the model"]
    text = " ".join([*facts, *facts.values()])
    assert "ledgers that are not in this report (data sets 'A', 'B')" in text
    assert "totals of data sets 'A', 'B'" in facts
    assert not re.search(r"\b(a|the) ledger (that )?is not in this report", text)


LABELS = np.array(["care", "office", "crafts"])[np.arange(N) % 3]
MIXED = pd.DataFrame({"z": X[:, 0], "job": LABELS, "age": X[:, 1], "town": LABELS})
CONTAINERS = {
    "strings": lambda: MIXED,
    "objects": lambda: MIXED.astype({"job": object, "town": object}),
    "categories": lambda: MIXED.astype({"job": "category", "town": "category"}),
    "polars": lambda: pl.from_pandas(MIXED),
    "polars lazy": lambda: pl.from_pandas(MIXED).lazy(),
    "arrow": lambda: pa.Table.from_pandas(MIXED),
    "dask": lambda: dask.dataframe.from_pandas(MIXED, npartitions=2, sort=False),
    "array": lambda: MIXED.to_numpy(object),
    "list": lambda: MIXED.to_numpy(object).tolist(),
}
NUMERIC = [
    skdp.DPLogisticRegression(data_norm=1.0),
    skdp.DPStandardScaler(bounds=(0, 1)),
    skdp.DPGaussianNB(bounds=(0, 1)),
    skdp.DPKMeans(bounds=(0, 1)),
]


@pytest.mark.parametrize("form", CONTAINERS)
@pytest.mark.parametrize("model", NUMERIC)
def test_an_error_about_columns_that_are_not_numbers_names_all(model, form):
    accountant = ledger()
    table = CONTAINERS[form]()
    names = ("1", "3") if form in ("array", "list") else ("'job'", "'town'")
    with pytest.raises(ValueError, match="not numbers") as refusal:
        clone(model).set_params(accountant=accountant).fit(table, Y)
    subject = f"column {names[0]} and column {names[1]} contain strings or dates, not numbers: "
    assert str(refusal.value).startswith(subject)
    assert accountant.epsilon_spent == 0.0


def test_an_error_about_names_that_a_table_lacks_names_all():
    accountant = ledger()
    model = skdp.DPAdditiveClassifier(
        bounds={"z": (0, 1), "zz": (0, 1), "yy": (0, 1)}, accountant=accountant
    )
    with pytest.raises(ValueError, match="X has no column 'zz' and no column 'yy'$"):
        model.fit(MIXED, Y)
    with pytest.raises(ValueError, match="bounds names column 'z' twice"):
        model.set_params(bounds={"z": (0, 1), 0: (0, 1)}).fit(MIXED, Y)
    assert accountant.epsilon_spent == 0.0


def test_labels_that_are_numbers_of_numpy_are_shown_as_numbers():
    table = MIXED.set_axis(pd.Index([np.int64(5), np.int64(6), np.int64(7), np.int64(8)]), axis=1)
    model = skdp.DPAdditiveClassifier(bounds={np.int64(9): (0, 1), np.int64(4): (0, 1)})
    with pytest.raises(ValueError, match="X has no column 9 and no column 4$"):
        model.fit(table, Y)
    table.columns = pd.Index([*map(np.int64, range(5, 9))], dtype=object)
    with pytest.raises(ValueError, match="column 6 and column 8 contain strings"):
        skdp.DPStandardScaler(bounds=(0, 1)).fit(table)


@pytest.mark.parametrize("kind", ["number", "date"])
def test_a_sample_of_another_kind_is_not_said_to_be_like_the_fit(kind):
    table = MIXED[["z", "age"]].assign(day=pd.date_range("2020", periods=N))
    model = skdp.DPAdditiveClassifier(delta=1e-6).fit(table, Y)
    samples = table.assign(**{"day" if kind == "date" else "age": LABELS})
    message = f"contains values that are not {kind}s, unlike in the fit: convert the samples to"
    with pytest.raises(ValueError, match=message):
        model.predict(samples)
