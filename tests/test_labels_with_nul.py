"""Labels that differ by NUL characters at their ends, which arrays of fixed-width strings drop."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import skdp
from skdp.model_selection import PersonKFold, bounded_score
from skdp.stats import dp_crosstab, dp_mode

N = 600
LABELS = ["a", "a\0", "b"]
CELLS = np.array(LABELS, dtype=object)[np.arange(N) % 3]
Y = np.arange(N) % 2
COLUMN = CELLS[:, np.newaxis]
CATEGORIES = pd.Categorical.from_codes(np.arange(N) % 3, LABELS)


def polars_frame():
    return pytest.importorskip("polars").DataFrame({"c": CELLS.tolist()})


def arrow_table():
    return pytest.importorskip("pyarrow").table({"c": CELLS.tolist()})


def dask_frame():
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(pd.DataFrame({"c": CELLS}), npartitions=3)


TABLES = {
    "objects": lambda: COLUMN,
    "list": COLUMN.tolist,
    "pandas": lambda: pd.DataFrame({"c": CELLS}),
    "pandas strings": lambda: pd.DataFrame({"c": CELLS}).astype("string"),
    "pandas categories": lambda: pd.DataFrame({"c": CATEGORIES}),
    "polars": polars_frame,
    "arrow": arrow_table,
    "dask": dask_frame,
}
FINDERS = {
    "one-hot": skdp.DPOneHotEncoder(categories="auto"),
    "target": skdp.DPTargetEncoder(categories="auto"),
    "vectorizer": skdp.DPTableVectorizer(categories={0: "auto"}),
    "imputer": skdp.DPSimpleImputer(strategy="most_frequent"),
    "naive Bayes": skdp.DPHistogramNB(categories={0: "auto"}),
    "additive": skdp.DPAdditiveClassifier(categories={0: "auto"}),
    "additive regressor": skdp.DPAdditiveRegressor(categories={0: "auto"}, target_bounds=(0, 1)),
}


def answers(model, table):
    """Return what a fitted model makes of each row, as tuples."""
    name = "transform" if hasattr(model, "transform") else "predict"
    if hasattr(model, "predict_proba"):
        name = "predict_proba"
    made = getattr(model, name)(table)
    made = made.toarray() if hasattr(made, "toarray") else np.asarray(made)
    return [tuple(row) for row in made.reshape(len(made), -1).tolist()]


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("container", TABLES)
@pytest.mark.parametrize("name", FINDERS)
def test_found_categories_stay_distinct(name, container):
    model = clone(FINDERS[name]).set_params(epsilon=100.0, delta=1e-3)
    table = TABLES[container]()
    model.fit(table, np.arange(N) % 3 / 2.0 if name == "additive regressor" else Y)
    rows = COLUMN[:3]
    if container not in ("objects", "list"):
        rows = pd.DataFrame(rows, columns=["c"])
    # No label is taken for another one.
    assert len(set(answers(model, rows))) == 3


@pytest.mark.parametrize("bad", [["a", "a\0"], ["a\0", "b"], ["b", "a\0\0"], [b"a\0", b"b"]])
@pytest.mark.parametrize("name", FINDERS)
def test_declared_categories_are_refused_before_the_charge(name, bad):
    if "categories" not in FINDERS[name].get_params():
        pytest.skip("it declares none")
    accountant = skdp.PrivacyAccountant(10.0, 0.1)
    model = clone(FINDERS[name]).set_params(categories=[bad], accountant=accountant)
    with pytest.raises(ValueError, match="must not end in a NUL"):
        model.fit(COLUMN, Y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("container", TABLES)
@pytest.mark.parametrize("name", ["one-hot", "target", "naive Bayes", "additive"])
def test_a_cell_is_not_a_declared_label_but_for_its_end(name, container):
    """Its row is one of no declared label."""
    model = clone(FINDERS[name]).set_params(epsilon=100.0, delta=1e-3, categories=[["a", "b"]])
    model.fit(TABLES[container](), Y)
    frame = pd.DataFrame({"c": ["a", "a\0", "another"]}, dtype=object)
    rows = frame if container not in ("objects", "list") else frame.to_numpy()
    declared, longer, other = answers(model, rows)
    assert longer == other != declared


TARGETS = {
    "objects": lambda: CELLS,
    "list": CELLS.tolist,
    "pandas": lambda: pd.Series(CELLS),
    "pandas strings": lambda: pd.Series(CELLS, dtype="string"),
    "pandas categories": lambda: pd.Series(CATEGORIES),
    "polars": lambda: polars_frame()["c"],
    "arrow": lambda: arrow_table()["c"].combine_chunks(),
}
CLASSIFIERS = {
    "logistic": skdp.DPLogisticRegression(),
    "sgd": skdp.DPSGDClassifier(max_iter=50),
    "gaussian": skdp.DPGaussianNB(bounds=(0, 1)),
    "histogram": skdp.DPHistogramNB(bounds=(0, 1)),
    "tree": skdp.DPDecisionTreeClassifier(bounds=(0, 1)),
    "additive": skdp.DPAdditiveClassifier(bounds=(0, 1)),
}


@pytest.mark.quick_cases(every=65)
@pytest.mark.parametrize("declared", [None, list, lambda own: np.array(own, dtype=object)])
@pytest.mark.parametrize("container", TARGETS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_stay_distinct(name, container, declared):
    X = np.column_stack([np.arange(N) % 3 == 0, np.arange(N) % 3 == 1]).astype(float)
    classes = None if declared is None else declared(LABELS)
    model = clone(CLASSIFIERS[name]).set_params(epsilon=1e4, classes=classes)
    target = TARGETS[container]()
    model.fit(X, target)
    assert model.classes_.tolist() == LABELS
    assert (model.predict(X) == CELLS).mean() > 0.9
    assert bounded_score("accuracy").value(model, X, target) > 0.9
    accountant = skdp.PrivacyAccountant(10.0, 0.1)
    with pytest.raises(ValueError, match="not among the declared classes"):
        model.set_params(classes=["a", "b"], accountant=accountant).fit(X, target)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("container", TARGETS)
def test_statistics_count_what_is_declared(container):
    cells = TARGETS[container]()
    # Of three labels one is declared: two thirds of the rows are of none.
    counts = dp_crosstab(cells, cells, 1e3, categories=(["a", "b"], ["a", "b"]))
    np.testing.assert_allclose(np.asarray(counts), [[N / 3, 0], [0, N / 3]], atol=1.0)
    with pytest.raises(ValueError, match="must not end in a NUL"):
        dp_mode(cells, 1.0, categories=["a", "a\0"])


def test_a_person_has_one_id_in_every_container():
    """An array of strings has dropped what an array of objects holds."""
    objects = np.array([*map(str, range(10)), "0\0"], dtype=object)
    splits = [
        list(PersonKFold(2, random_state=0).split(np.zeros((11, 1)), groups=groups))
        for groups in (objects.astype(str), objects, objects.tolist())
    ]
    for split in splits:
        for (_, test), (_, other) in zip(splits[0], split, strict=True):
            np.testing.assert_array_equal(test, other)
            assert (0 in test) == (10 in test)
    # Persons 0 to 9, of whom the first has ones alone.
    X = np.isin(np.arange(11), [0, 10]).astype(float)[:, np.newaxis]
    for groups in (objects.astype(str), objects, objects.tolist()):
        mean = skdp.DPMeanTransformer(1e6, bounds=(0, 1)).fit(X, groups=groups)
        np.testing.assert_allclose(mean.mean_, 0.1, atol=1e-4)
