from types import SimpleNamespace

import pandas as pd
import pytest

from skdp import DPPCA, DPMinMaxScaler
from skdp.utils._validation import check_choice, is_auto, public_inputs

SIZES = ("the numbers of rows and columns",)


def test_what_is_found_or_left_out_is_not_called_public():
    estimator = SimpleNamespace(bounds="auto", categories=None, data_norm=2.0, other=0)
    names = ("bounds", "categories", "data_norm", "other")
    assert public_inputs(estimator, *names) == (*SIZES, "data_norm", "other")
    assert is_auto("auto") and not is_auto(["auto"]) and not is_auto(None)


@pytest.mark.parametrize(
    ("estimator", "declared"),
    [
        (DPMinMaxScaler(), ()),
        (DPMinMaxScaler(bounds=(0, 1)), ("bounds",)),
        (DPPCA(), ("data_norm",)),
        (DPPCA(data_norm="auto", center=0.5), ("center",)),
    ],
)
def test_statements_of_fits(estimator, declared):
    fitted = estimator.fit([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    assert fitted.privacy_.public == SIZES + declared


@pytest.mark.parametrize(
    "value", [pd.array([0, None]), pd.Series(["one"]), ["one"], "three", 1, None]
)
def test_what_is_no_choice_is_refused(value):
    """An array of pandas that compares as one of missing values counts as true."""
    assert check_choice("one", "name", ("one", "two")) == "one"
    with pytest.raises(ValueError, match="name must be one of"):
        check_choice(value, "name", ("one", "two"))
