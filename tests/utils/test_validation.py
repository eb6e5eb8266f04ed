import pytest

from skdp import DPPCA, DPMinMaxScaler

SIZES = ("the numbers of rows and columns",)


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
