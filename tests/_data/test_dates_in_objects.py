"""Python's dates in columns of objects: an error names the conversion, and the conversion works."""

import datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skdp
from skdp.pipeline import split_budget

N = 60
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=i) for i in range(N)]
MOMENTS = [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=i) for i in range(N)]
VALUES = {
    "date": (DAYS, "pd.to_datetime"),
    "datetime": (MOMENTS, "pd.to_datetime"),
    "with a zone": ([d.replace(tzinfo=datetime.UTC) for d in MOMENTS], "pd.to_datetime"),
    "Timestamp": ([pd.Timestamp(d) for d in MOMENTS], "pd.to_datetime"),
    "timedelta": ([datetime.timedelta(days=i) for i in range(N)], "pd.to_timedelta"),
}
Y = np.arange(N) % 2
ESTIMATORS = {
    "scaler": skdp.DPStandardScaler(bounds=(0, 1)),
    "logistic": skdp.DPLogisticRegression(),
    "vectorizer": skdp.DPTableVectorizer(),
    "finding": skdp.DPTableVectorizer(categories={0: "auto"}),
    "additive": skdp.DPAdditiveClassifier(),
    "encoder": skdp.DPOneHotEncoder(delta=1e-6),
    "target encoder": skdp.DPTargetEncoder(delta=1e-6),
    "naive Bayes": skdp.DPHistogramNB(delta=1e-6),
    "tree": skdp.DPDecisionTreeClassifier(delta=1e-6),
    "imputer": skdp.DPSimpleImputer(strategy="most_frequent", delta=1e-6),
}


def column_of(values):
    column = np.empty((N, 1), dtype=object)
    column[:, 0] = values
    return column


def polars_objects(column):
    pl = pytest.importorskip("polars")
    return pl.DataFrame({"day": pl.Series(column[:, 0].tolist(), dtype=pl.Object)})


CONTAINERS = {
    "array": lambda column: column,
    "list": lambda column: column.tolist(),
    "pandas": lambda column: pd.DataFrame(column, columns=["day"], dtype=object),
    "polars": polars_objects,
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_error_names_the_conversion(name, kind, container):
    values, remedy = VALUES[kind]
    accountant = skdp.PrivacyAccountant(10.0, 0.1)
    model = clone(ESTIMATORS[name]).set_params(accountant=accountant)
    with pytest.raises((TypeError, ValueError)) as error:
        model.fit(CONTAINERS[container](column_of(values)), Y)
    assert accountant.epsilon_spent == 0.0 and remedy in str(error.value)
    assert "polars" in str(error.value)


@pytest.mark.parametrize("name", ["vectorizer", "additive", "naive Bayes", "tree"])
def test_bounds_that_are_dates_say_that_the_column_is_none(name):
    accountant = skdp.PrivacyAccountant(10.0, 0.1)
    model = clone(ESTIMATORS[name]).set_params(accountant=accountant)
    frame = pd.DataFrame({"day": pd.Series(DAYS, dtype=object)})
    with pytest.raises(ValueError, match=r"pd\.to_datetime"):
        model.set_params(bounds={"day": (DAYS[0], DAYS[-1])}).fit(frame, Y)
    assert accountant.epsilon_spent == 0.0
    frame["day"] = pd.to_datetime(frame["day"])
    model.fit(frame, Y)
    assert accountant.epsilon_spent == 1.0


def test_a_split_budget_is_not_charged():
    accountant = skdp.PrivacyAccountant(10.0, 0.1)
    pipe = make_pipeline(skdp.DPTableVectorizer(), skdp.DPLogisticRegression())
    with pytest.raises(ValueError, match=r"pd\.to_datetime"):
        split_budget(pipe, 1.0, 1e-6, accountant).fit(pd.DataFrame({"day": DAYS}, dtype=object), Y)
    assert accountant.epsilon_spent == 0.0
