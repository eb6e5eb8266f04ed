"""The kinds of labels: what can be equal to one another."""

import datetime

import numpy as np
import pandas as pd
import pytest

from skdp._data._labels import kind_of_others, label_kinds


@pytest.mark.parametrize(
    "cell, kind",
    [
        ("a", "text"),
        (np.str_("a"), "text"),
        (b"a", "bytes"),
        (1, "numbers"),
        (True, "numbers"),
        (np.float32(1), "numbers"),
        (datetime.date(2024, 1, 1), "dates"),
        (np.datetime64("2024-01-01"), "dates"),
        (pd.Timestamp("2024-01-01", tz="UTC"), "dates with a time zone"),
        (datetime.timedelta(1), "durations"),
        (np.timedelta64(1, "D"), "durations"),
        (None, None),
        (np.nan, None),
        (pd.NaT, None),
        (pd.NA, None),
        ([1], "values of type list"),
    ],
)
def test_each_cell_is_judged_by_itself(cell, kind):
    cells = np.empty(3, dtype=object)
    cells[0], cells[1], cells[2] = (1, 2), cell, None
    allowed = {"values of type tuple"}
    assert kind_of_others(cells, allowed) == kind
    assert kind_of_others(cells, allowed | {kind}) is None
    if kind not in (None, "values of type list"):
        assert label_kinds(cells[1:2]) == {kind}
