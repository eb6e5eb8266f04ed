"""The picture of an additive model shows what the model holds, and says what it leaves out."""

import datetime
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skdp import DPAdditiveClassifier, DPAdditiveRegressor

pyplot = pytest.importorskip("matplotlib.pyplot")
from skdp.display import AdditiveDisplay  # noqa: E402

N, START = 2000, datetime.datetime(2020, 1, 1)
CITIES = [f"$city_{i}$ of a rather long name" for i in range(20)]


def make_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(N) < 0.2, np.nan, rng.uniform(0, 10, size=N)),
            "city_$": rng.choice(CITIES, size=N),
            "day": [START + datetime.timedelta(int(day)) for day in rng.integers(0, 900, size=N)],
            "of no use": rng.uniform(0, 1, size=N),
        }
    )
    score = frame["size"].fillna(20) + 2 * (frame["city_$"] == CITIES[3])
    return frame, score.to_numpy()


DECLARED = {
    "bounds": {"size": (0, 10), "of no use": (0, 1), "day": (START, START.replace(year=2023))},
    "categories": {"city_$": CITIES},
}


@pytest.fixture(scope="module", autouse=True)
def no_window():
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    frame, score = make_frame()
    pairs = [("size", "city_$"), ("size", "day")]
    model = DPAdditiveClassifier(100.0, interactions=pairs, **DECLARED, random_state=0)
    return model.fit(frame, np.where(score > 6, "many $", "few"))


@pytest.fixture(scope="module")
def three():
    frame, score = make_frame()
    y = np.digitize(score, [4, 8])
    return DPAdditiveClassifier(100.0, interactions=0, **DECLARED, random_state=0).fit(frame, y)


@pytest.fixture(scope="module")
def display(model):
    names = [shape.name for shape in model.shape_functions_]
    return AdditiveDisplay.from_estimator(model, terms=names)


def panel_of(display, name):
    place = [shape.name for shape in display.shapes].index(name)
    return display.axes_[place], display.shapes[place]


def steps_of(panel):
    """The curves of a panel, without the filled counts."""
    return [patch.get_data() for patch in panel.patches if not patch.get_fill()]


def bands_of(panel):
    """The lower and upper ends of the error bands of a panel."""
    bands = [patch.get_data() for patch in panel.patches if patch.get_fill()]
    return [(data.baseline, data.values) for data in bands if np.ndim(data.baseline)]


@pytest.mark.thorough
def test_terms_are_in_the_order_of_their_importance_on_one_scale(model, display):
    display.figure_.canvas.draw()
    sizes = [
        np.average(np.abs(shape.values), weights=shape.counts) for shape in model.shape_functions_
    ]
    names = np.array([shape.name for shape in model.shape_functions_])[np.argsort(sizes)[::-1]]
    assert [shape.name for shape in display.shapes] == list(names)
    curves = [a for a, s in zip(display.axes_, display.shapes, strict=True) if len(s.features) == 1]
    assert len({axes.get_ylim() for axes in curves}) == 1 and len(curves) == 4
    assert display.n_terms == 6 and "6 of 6 terms" in display.ax_.get_title()
    fewer = AdditiveDisplay.from_estimator(model, max_terms=2)
    assert [shape.name for shape in fewer.shapes] == list(names[:2])
    assert "2 of 6 terms" in fewer.ax_.get_title()
    assert set(fewer.rest) == set(names[2:]) and "4 further" in fewer.rest_ax_.get_title()


def test_a_number_is_a_curve_with_what_is_missing_beside_it(display):
    panel, shape = panel_of(display, "size")
    ((values, edges, _),) = steps_of(panel)
    np.testing.assert_array_equal(values, shape.values[:-1, 0])
    np.testing.assert_array_equal(edges, shape.edges[0])
    dots = next(line for line in panel.lines if line.get_marker() == "o")
    assert dots.get_xdata()[-1] > 10 and dots.get_ydata()[-1] == shape.values[-1, 0]
    assert "missing" in [text.get_text() for text in panel.texts]
    panel, _ = panel_of(display, "of no use")
    assert not panel.texts


def test_a_single_value_with_many_rows_is_seen():
    X = np.concatenate([np.zeros(1500), np.random.default_rng(0).uniform(0, 100, size=500)])
    spiked = DPAdditiveClassifier(1000.0, bounds=(0, 100)).fit(X[:, None], X > 0)
    panel, shape = panel_of(AdditiveDisplay.from_estimator(spiked), "x0")
    dots = next(line for line in panel.lines if line.get_marker() == "o")
    assert dots.get_xdata()[0] < 0.1 and dots.get_ydata()[0] == shape.values[0, 0]
    counts = next(patch for patch in panel.patches if patch.get_fill()).get_data().values
    # Counts of other values keep some height.
    assert counts.max() == counts[0] and np.median(counts) > 0.2 * counts[0]


def test_a_date_has_an_axis_of_dates(display):
    panel, shape = panel_of(display, "day")
    formatter = panel.xaxis.get_major_formatter()
    assert type(formatter).__name__ == "ConciseDateFormatter"
    days = (START - datetime.datetime(1970, 1, 1)).days
    ((_, edges, _),) = steps_of(panel)
    from matplotlib.dates import num2date

    assert edges[0] == pytest.approx(days) and num2date(edges[0]).year == 2020
    # Dates that no calendar has are days.
    far = replace(shape, edges=(shape.edges[0] * 1e9,))
    AdditiveDisplay([far], outputs=["x"], names={}, n_terms=1).plot().figure_.canvas.draw()


def test_labels_are_bars_of_which_the_largest_are_drawn(display):
    panel, shape = panel_of(display, "city_$")
    counts, bars = panel.containers
    most = np.argsort(-shape.counts[:20], kind="stable")[:12]
    heights = [bar.get_height() for bar in bars]
    # Bars are in the declared order.
    np.testing.assert_allclose(heights, shape.values[np.sort(most), 0])
    assert len(counts) == 12 and panel.get_title().endswith(", 12 of 20")
    named = panel.get_xticklabels()[heights.index(max(heights))].get_text()
    assert "city_3" in named and r"\$" in named and len(named.replace("\\", "")) == 18


def test_a_pair_is_a_table_of_one_color_scale(display):
    panel, shape = panel_of(display, "size x city_$")
    (picture,) = panel.images
    # Cities that are not listed, or missing, have no rows: they are left out.
    kept = shape.values.shape[1] - 1
    np.testing.assert_array_equal(picture.get_array(), shape.values[:, :kept, 0].T)
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("size", r"city_\$")
    labels = [text.get_text() for text in panel.get_xticklabels()]
    assert labels[0] == "0" and labels[-1] == "missing"
    other, _ = panel_of(display, "size x day")
    assert other.images[0].get_clim() == picture.get_clim()
    assert picture.get_clim()[1] == -picture.get_clim()[0]


def test_a_triple_is_drawn_as_tables_of_one_color_scale():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(8000, 3))
    y = X[:, 0] * np.sign(X[:, 1]) * (X[:, 2] > 0)
    params = {"bounds": (-1, 1), "target_bounds": (-1, 1), "random_state": 0}
    model = DPAdditiveRegressor(20.0, **params).fit(X, y)
    shape = next(s for s in model.shape_functions_ if len(s.features) == 3)
    display = AdditiveDisplay.from_estimator(model, terms=[shape.name])
    pictures = [axes.images[0] for axes in display.figure_.axes if axes.images]
    assert 1 <= len(pictures) <= 3 and len({picture.get_clim() for picture in pictures}) == 1
    lengths = sorted(shape.counts.shape)
    # Cells of missing values have no rows and are left out.
    assert sorted(pictures[0].get_array().shape) == [n - 1 for n in lengths[1:]]


def test_several_classes_have_a_line_each(three):
    display = AdditiveDisplay.from_estimator(three, terms=["size", "city_$"])
    panel, shape = panel_of(display, "size")
    for k, (values, _, _) in enumerate(steps_of(panel)):
        np.testing.assert_array_equal(values, shape.values[:-1, k])
    assert len(steps_of(panel)) == 3
    legend = display.ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1", "2"]
    one = AdditiveDisplay.from_estimator(three, classes=[2], terms=["size", 0, "day"])
    assert [shape.values.shape[-1] for shape in one.shapes] == [1, 1, 1] and one.n_terms == 4
    np.testing.assert_array_equal(
        panel_of(one, "size")[1].values[:, 0], three.shape_functions_[0].values[:, 2]
    )


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"terms": ["nothing"]}, "nothing"),
        ({"terms": [9]}, "9"),
        ({"terms": []}, "must each name at least one"),
        ({"classes": ["no"]}, "the classes are"),
        ({"classes": []}, "must each name at least one"),
        ({"max_terms": 0}, "max_terms"),
        ({"max_terms": -1}, "max_terms"),
    ],
)
def test_what_is_not_there_is_refused(model, choice, words):
    with pytest.raises(ValueError, match=words):
        AdditiveDisplay.from_estimator(model, **choice)


def test_it_can_share_a_figure():
    frame, score = make_frame()
    model = DPAdditiveRegressor(10.0, target_bounds=(0, 22), **DECLARED).fit(frame, score)
    figure, (left, right) = pyplot.subplots(1, 2, layout="constrained")
    display = AdditiveDisplay.from_estimator(model, ax=right, max_terms=2)
    assert display.figure_ is figure and display.ax_ is right
    figure.canvas.draw()
    assert all(axes.get_position().x0 >= 0 for axes in display.axes_) and left.axison
    assert "add to the prediction" in display.ax_.get_title()
    assert display.axes_[0].get_ylabel() == "units of the target"
    assert display.plot().figure_ is not figure


def test_a_band_is_what_noise_may_have_changed(model, display):
    panel, shape = panel_of(display, "size")
    ((low, high),) = bands_of(panel)
    np.testing.assert_allclose(high - low, 2 * 2.25 * shape.standard_errors[:-1, 0])
    np.testing.assert_allclose(0.5 * (low + high), shape.values[:-1, 0])
    assert "bands" in display.ax_.get_title() and display.axes_[0].get_ylabel() == "log-odds"
    edited = AdditiveDisplay.from_estimator(model.edit("size", 0.0), terms=["size"])
    assert not bands_of(edited.axes_[0]) and "bands" not in edited.ax_.get_title()


def test_terms_of_little_importance_share_the_last_panel(model):
    display = AdditiveDisplay.from_estimator(model, max_terms=2)
    drawn = {shape.name for shape in display.shapes}
    assert drawn | set(display.rest) == {shape.name for shape in model.shape_functions_}
    assert len(drawn) == 2 and "of no use" in display.rest
    assert any("of no use" in text.get_text() for text in display.rest_ax_.texts)
    unimportant = model.edit("of no use", 0.0)
    assert "of no use" in AdditiveDisplay.from_estimator(unimportant).rest
    assert repr(display).startswith("AdditiveDisplay: ") and "0x" not in repr(display)


@pytest.mark.parametrize(
    ("largest", "value", "text"),
    [
        (99.0, 12.5, "12.5"),
        (2023.0, 1990.0, "1990"),
        (15_000.0, 5_000.0, "5,000"),
        (3e6, 1.5e6, "1.5 M"),
        (3e6, 0.0, "0"),
    ],
)
def test_ticks_are_written_as_a_person_would(largest, value, text):
    column = np.random.default_rng(0).uniform(0, largest, (300, 1))
    model = DPAdditiveRegressor(100.0, bounds=(0, largest), target_bounds=(0, 1), random_state=0)
    display = AdditiveDisplay.from_estimator(model.fit(column, column[:, 0] / largest))
    write = display.axes_[0].xaxis.get_major_formatter()
    assert write(value) == text
