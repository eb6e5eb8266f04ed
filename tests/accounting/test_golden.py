import pytest

from skdp.accounting import gaussian_noise_multiplier, get_epsilon

NO_CURVE = ("g071", "g072")  # the reference is a zCDP bound, not a loss distribution


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("method", ["auto", "basic", "advanced", "zcdp", "rdp"])
def test_never_below_the_truth(golden_row, method):
    _, event, relation, delta, reference, lower = golden_row
    found = get_epsilon(event, delta, relation=relation, method=method)
    assert found >= lower - 1e-6
    if method == "auto":
        assert found <= reference * (1 + 1e-3)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("tolerance, slack", [(1e-4, 1e-3), (1e-6, 1e-5)])
def test_loss_distributions_are_tight(golden_row, tolerance, slack):
    name, event, relation, delta, reference, lower = golden_row
    if name in NO_CURVE:
        pytest.skip("no privacy loss distribution")
    try:
        found = get_epsilon(event, delta, relation=relation, method="pld", tolerance=tolerance)
    except ValueError as error:
        assert "no privacy loss distribution" in str(error)
        pytest.skip(str(error))
    assert lower - 1e-6 <= found <= reference * (1 + slack)


def test_the_file_is_read_whole(golden):
    # 54 rows, four of them calibrations.
    assert len(golden) == 50


@pytest.mark.parametrize(
    "eps, delta, sigma", [(1, 1e-5, 3.730631635), (0.1, 1e-6, 36.304690426), (4, 1e-5, 1.08116185)]
)
def test_gaussian_calibration(eps, delta, sigma):
    assert gaussian_noise_multiplier(eps, delta) == pytest.approx(sigma, rel=1e-8)
