import numpy as np
import pytest

from skdp.accounting import ZCDP, ApproximateDP, Gaussian, PureDP, get_epsilon
from skdp.display import CompositionDisplay


def test_values_are_those_of_the_methods():
    display = CompositionDisplay.from_event(Gaussian(10.0), [1, 20], delta=1e-5)
    for method, values in display.epsilons.items():
        if method != "rdp_order":
            assert values[1] == get_epsilon(Gaussian(10.0) * 20, 1e-5, method=method)
    assert (display.epsilons["rdp_order"] >= display.epsilons["rdp"]).all()
    assert (display.epsilons["pld"] <= display.epsilons["zcdp"]).all()


def test_unknown_methods_are_refused():
    with pytest.raises(ValueError, match="methods"):
        CompositionDisplay.from_event(Gaussian(1.0), [1], delta=1e-5, methods=["clt"])


@pytest.mark.parametrize(
    "event", [ZCDP(0.1), ZCDP(0.1, 1e-6), PureDP(0.1), ApproximateDP(0.1, 1e-7)], ids=str
)
def test_by_default_all_methods_that_apply_to_an_event(event):
    display = CompositionDisplay.from_event(event, [1, 10], delta=1e-5)
    tightest = np.array([get_epsilon(event * n, 1e-5) for n in (1, 10)])
    assert np.min(list(display.epsilons.values()), axis=0) == pytest.approx(tightest, rel=1e-3)
    for method in {"basic", "advanced", "zcdp", "rdp", "pld"} - display.epsilons.keys():
        with pytest.raises(ValueError):
            CompositionDisplay.from_event(event, [1, 10], delta=1e-5, methods=[method])


def test_what_no_method_accepts_is_refused():
    with pytest.raises(ValueError, match="delta"):
        CompositionDisplay.from_event(Gaussian(1.0), [1], delta=2.0)


def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    display = CompositionDisplay.from_event(Gaussian(10.0), np.arange(1, 5), delta=1e-5)
    figure, ax = pyplot.subplots()
    assert display.plot(ax=ax) is display
    assert display.ax_ is ax and display.figure_ is figure
    assert len(display.lines_) == len(display.epsilons)
    assert "releases" in ax.get_xlabel() and "1e-05" in ax.get_ylabel()
    pyplot.close(figure)
    assert display.plot().figure_ is not figure
    pyplot.close("all")
