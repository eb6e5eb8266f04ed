"""Bounds of columns of dates and of durations: numbers are no dates."""

import datetime

import numpy as np
import pandas as pd
import pytest

from skdp import DPAdditiveClassifier, DPHistogramNB, DPTableVectorizer, PrivacyAccountant

DAYS = np.arange(400)
FRAMES = {
    "date": pd.DataFrame({"when": pd.to_datetime("2020-01-01") + pd.to_timedelta(DAYS, unit="D")}),
    "duration": pd.DataFrame({"when": pd.to_timedelta(DAYS, unit="D")}),
}
DATES = (pd.Timestamp("2020-01-01"), datetime.date(2021, 3, 1))
DURATIONS = (pd.Timedelta(0), datetime.timedelta(days=400))
MODELS = [DPAdditiveClassifier, DPHistogramNB, DPTableVectorizer]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        ("date", (0, 1)),
        ("date", (2020, 2023)),
        ("date", (np.float64(0), np.int64(5))),
        ("date", DURATIONS),
        ("duration", (0, 400)),
        ("duration", DATES),
    ],
)
def test_bounds_of_another_kind_are_refused_before_the_charge(model, kind, bounds):
    accountant = PrivacyAccountant(10.0, 1e-3)
    for each in ({"when": bounds}, bounds):
        with pytest.raises(ValueError, match=f"bounds of {kind}s must be {kind}s"):
            model(bounds=each, accountant=accountant).fit(FRAMES[kind], DAYS > 200)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize(("kind", "bounds"), [("date", DATES), ("duration", DURATIONS)])
def test_bounds_of_the_columns_kind_are_taken(kind, bounds):
    model = DPAdditiveClassifier(10.0, bounds={"when": bounds}, random_state=0)
    assert model.fit(FRAMES[kind], DAYS > 200).score(FRAMES[kind], DAYS > 200) > 0.9
