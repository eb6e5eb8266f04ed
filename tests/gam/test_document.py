"""A fitted model as a notebook shows it: the picture's data in words, and nothing that runs."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import estimator_html_repr

from skdp import DPAdditiveClassifier, DPAdditiveRegressor

# How many terms a document shows, and how many values of each.
MAX_TERMS = 30
MAX_CELLS = 40

EVIL = "<script>alert('1')</script>\x00&amp;"


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {EVIL: rng.choice([EVIL, "b"], size=1000), "when": pd.Timestamp("2020-03-01")}
    )
    frame["when"] += pd.to_timedelta(rng.integers(0, 100, size=1000), "D")
    model = DPAdditiveClassifier(100.0, categories={EVIL: [EVIL, "b"]}, interactions=[(0, 1)])
    return model.fit(frame, frame[EVIL].to_numpy() == "b")


def rows_of(html, name):
    """The rows of a term's table, as text."""
    for details in ElementTree.fromstring(html).iter("details"):
        if "".join(details.find("summary").itertext()).split(" ", 1)[1] == name:
            return [["".join(cell.itertext()) for cell in row] for row in details.iter("tr")]


def test_it_holds_the_data_of_the_picture(model):
    html = model._repr_html_()
    assert html.startswith('<div class="skdp-document"><style>')
    assert html == model._repr_mimebundle_()["text/html"]
    assert (
        "(100, 1e-06)-differentially private" in html
        and "3 of 3 terms" in html
        and "1 of 1 scores" in html
    )
    shape = model.shape_functions_[0]
    head, *rows = rows_of(html, EVIL.replace("\0", "\N{REPLACEMENT CHARACTER}"))
    assert head == ["", "score of True", "rows (noisy)"]
    # Neither other labels nor missing ones occurred.
    for (_, value, count), own, counted in zip(rows, shape.values, shape.counts, strict=False):
        assert float(value) == pytest.approx(own, rel=1e-3) and int(count) == round(counted)
    assert len(rows) == 2 and rows[1][0] == "b"
    assert re.fullmatch(r"20\d\d-\d\d-\d\d to 20\d\d-\d\d-\d\d", rows_of(html, "when")[1][0])
    order = re.findall(r"</span></span>&#160;([-+.\de]+) [^<]*</summary>", html)
    assert sorted(map(float, order), reverse=True) == list(map(float, order))


def test_bars_point_to_both_sides(model):
    html = model._repr_html_()
    bars = re.findall(
        r"margin-left:([\d.]+)%;width:([\d.]+)%\"></span></span>&#160;([-+.\de]+)", html
    )
    assert len(bars) > 20
    for start, width, value in bars:
        end = float(start) + float(width)
        assert (end if float(value) < 0 else float(start)) == pytest.approx(50.0, abs=0.11)


def test_names_are_words_and_nothing_runs(model):
    html = model._repr_html_()
    assert "<script" not in html and "\x00" not in html and "&lt;script&gt;" in html
    assert not re.search(r"\son\w+=|javascript:|<(?:link|img|iframe)", html)


def test_its_length_is_capped_and_it_says_so():
    X = np.random.default_rng(0).uniform(size=(300, 32))
    model = DPAdditiveRegressor(1e4, bounds=(0, 1), n_bins=64, target_bounds=(0, 1))
    html = model.fit(X, X[:, 0])._repr_html_()
    assert html.count("<details>") == MAX_TERMS and f"{MAX_TERMS} of 32 terms" in html
    first = rows_of(html, "x0")
    assert len(first) == MAX_CELLS + 1 and f"the {MAX_CELLS} of " in first[0][-1]


def test_what_is_not_fitted_keeps_scikit_learns(model):
    plain = clone(model)
    strip = re.compile(r"sk-[\w-]+?-\d+")
    assert strip.sub("", plain._repr_html_()) == strip.sub("", estimator_html_repr(plain))
    assert "skdp-document" not in plain._repr_mimebundle_()["text/html"]
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_") and set(model._repr_mimebundle_()) == {
            "text/plain"
        }
