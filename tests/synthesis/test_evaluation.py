"""Evaluation of synthetic rows, and documents of a synthesizer."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from skdp import PrivacyAccountant
from skdp.synthesis import DPTableSynthesizer, evaluate_synthetic

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")


def make_frame(n_rows, seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n_rows)
    return pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], n_rows),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(age, unit="D"),
            "cost": age * 2.0 + rng.normal(0, 5, n_rows),
            "grade": np.digitize(age, [40, 60]).astype(str),
            "is_ill": rng.random(n_rows) < 1 / (1 + np.exp(-(age - 55) / 8)),
        }
    )


TRAIN, TEST = make_frame(4000, 0), make_frame(2000, 1)
BOUNDS = {"age": (18, 90), "since": ("2020-01-01", "2020-12-31"), "cost": (0, 250)}


@pytest.fixture(scope="module")
def fitted():
    categories = {"sex": ["f", "m"], "grade": ["0", "1", "2"]}
    synth = DPTableSynthesizer(
        5.0, target="is_ill", bounds=BOUNDS, categories=categories, random_state=0
    )
    return synth.fit(TRAIN)


def test_without_test_rows_only_released_values_are_compared(fitted):
    result = evaluate_synthetic(fitted)
    assert result.distances == {} and result.score is None
    assert 0.0 < result.released_distance < 3 * result.noise_distance
    assert "released tables" in str(result)


def test_public_test_rows(fitted):
    result = evaluate_synthetic(fitted, TEST, random_state=0)
    assert result.metric == "roc_auc" and 0.85 < result.score < 0.98
    assert 0.0 < result.distances[1] < result.distances[2] < 0.3
    other = evaluate_synthetic(fitted, make_frame(2000, 2).assign(age=30), random_state=0)
    assert other.distances[1] > 2 * result.distances[1]


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize(("target", "metric"), [("cost", "r2"), ("grade", "accuracy")])
def test_other_targets(fitted, target, metric):
    result = evaluate_synthetic(fitted, TEST, target=target, random_state=0)
    assert result.metric == metric and result.score > 0.7


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("target", ["is_ill", "cost", "grade"])
def test_private_test_rows_are_charged(fitted, target):
    accountant = PrivacyAccountant(2.0, 0.0)
    options = {"target": target, "random_state": 0}
    public = evaluate_synthetic(fitted, TEST, **options)
    private = evaluate_synthetic(fitted, TEST, epsilon=2.0, accountant=accountant, **options)
    assert accountant.epsilon_spent == 2.0 and private.distances == {} and private.is_private
    assert abs(private.score - public.score) < 0.05


def test_what_cannot_be_evaluated(fitted):
    with pytest.raises(ValueError, match="X_test"):
        evaluate_synthetic(fitted, epsilon=1.0)
    with pytest.raises(ValueError, match="columns of the fit"):
        evaluate_synthetic(fitted, TEST.drop(columns="sex"))


def test_the_report_names_the_measured_tables(fitted):
    report = fitted.report()
    assert len(report.rows) == len(fitted.tables_) == len(report.to_pandas())
    assert "age × is_ill" in str(report) and "<table>" in report._repr_html_()
    assert "standard error" in fitted.marginal("age")._repr_html_()


def test_the_report_has_a_picture_of_each_column_and_of_the_pairs(fitted):
    report = fitted.report()
    html = report._repr_html_()
    assert html.count("<svg") == len(report.columns) + 1 == TRAIN.shape[1] + 1
    assert html.count("<circle") == len(fitted.tables_)
    for column in report.columns:
        assert abs(column["simulated"].sum() - 1.0) < 1e-9
        errors = np.abs(column["simulated"] - column["released"])
        assert (errors < 5.0 * column["standard_error"] + 0.02).all()
    # A name cannot add elements to the page.
    frame = TRAIN[["sex", "is_ill"]].rename(columns={"sex": "<script>"})
    synth = DPTableSynthesizer(1.0, categories={"<script>": ["f", "<b>"]}).fit(frame)
    html = synth.report()._repr_html_()
    assert "<script>" not in html and "<b>&lt;script&gt;</b>" in html and html.count("<b>") == 2


def test_the_report_of_one_column_has_no_map(fitted):
    report = DPTableSynthesizer(1.0, bounds=(18, 90)).fit(TRAIN[["age"]]).report()
    assert report._repr_html_().count("<svg") == 1 and report.pairs == []


def test_standard_errors_are_those_of_the_noise(fitted):
    """Of groups that do not follow from the noise: those of categories and of pairs of them."""
    errors = []
    for seed in range(40):
        synth = DPTableSynthesizer(1.0, bounds=BOUNDS, workload=[(0, 1)], random_state=seed)
        frame = TRAIN[["sex", "is_ill"]]
        synth.set_params(bounds="auto", categories={"sex": ["f", "m"]}).fit(frame)
        for columns in [("sex",), ("sex", "is_ill")]:
            table = synth.marginal(*columns)
            series = frame.value_counts([*columns])
            for cell in np.ndindex(table.counts.shape):
                names = [groups[i] for groups, i in zip(table.groups, cell, strict=True)]
                exact = {tuple(map(str, key)): n for key, n in series.items()}.get(tuple(names))
                if exact is not None:
                    error = np.broadcast_to(table.standard_error, table.counts.shape)[cell]
                    errors.append((table.counts[cell] - exact) / error)
    assert 0.9 < np.std(errors) < 1.1 and abs(np.mean(errors)) < 0.2


def test_cells_that_a_type_excludes_add_no_noise(fitted):
    """A Boolean column has two cells, though counts of other and missing values are released."""
    errors = fitted.marginal("is_ill").standard_error
    assert errors[0] == errors[1]


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("value", [None, 1.0, "x"])
def test_a_private_test_row_does_not_change_how_others_are_read(value):
    """Rows in a list have no types: those of a frame would follow from all of its values."""
    rng = np.random.default_rng(0)

    def rows(n_rows):
        a = rng.integers(1, 4, n_rows)
        return [[int(i), float(i), "u" if i < 3 else "v"] for i in a]

    synth = DPTableSynthesizer(
        20.0, categories={0: [1, 2, 3], 2: ["u", "v"]}, bounds={1: (0, 4)}, target=0, random_state=0
    ).fit(rows(2000))
    test = rows(400)
    options = {"epsilon": 5.0, "random_state": 0}
    before = evaluate_synthetic(synth, test, **options).score
    test[0][0] = value
    assert before > 0.9 and abs(evaluate_synthetic(synth, test, **options).score - before) < 0.01


def test_labels_are_compared_as_values(fitted):
    """The type of test rows with a gap is another one than that of the synthetic rows."""
    frame = pd.DataFrame({"a": [0, 1] * 500, "b": [0.0, 1.0] * 500})
    synth = DPTableSynthesizer(20.0, bounds=(0, 1), target="a", random_state=0).fit(frame)
    test = frame.iloc[:100].astype(float)
    assert evaluate_synthetic(synth, test, random_state=0).score > 0.99
    with pytest.raises(ValueError, match="classifier"):
        evaluate_synthetic(fitted, TEST, estimator=LinearRegression())


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("values", [(10.0, 20.0), (10.0, 10.0)])
def test_a_regressor_of_a_target_of_two_values_is_scored_within_their_range(values):
    rng = np.random.default_rng(0)
    is_high = rng.random(3000) < 0.5
    frame = pd.DataFrame({"x": is_high + rng.normal(0, 0.2, 3000)})
    frame["y"] = np.where(is_high, *values)
    bounds = {"x": (-1, 2), "y": (10, 20)}
    synth = DPTableSynthesizer(100.0, bounds=bounds, target="y", random_state=0).fit(frame)
    options = {"target": "y", "estimator": LinearRegression(), "random_state": 0}
    public = evaluate_synthetic(synth, frame, **options).score
    private = evaluate_synthetic(synth, frame, epsilon=1000.0, **options).score
    if values[0] != values[1]:
        # Private scores clip predictions to the range, which brings them closer to such targets.
        assert 0.5 < public - 0.02 < private < 1.0


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("target", ["is_ill", "grade", "cost"])
def test_private_test_rows_are_scored_for_each_unit(fitted, target, unit):
    accountant = PrivacyAccountant(9.0, 0.0, unit=unit)
    groups = np.arange(len(TEST)) // 2 if unit == "person" else None
    result = evaluate_synthetic(
        fitted,
        TEST,
        target=target,
        groups=groups,
        epsilon=2.0,
        accountant=accountant,
        random_state=0,
    )
    assert result.is_private
    assert result.score > 0.4
    assert accountant.epsilon_spent == 2.0
    with pytest.raises(ValueError, match="groups is for private test rows: pass epsilon"):
        evaluate_synthetic(fitted, TEST, target=target, groups=np.arange(len(TEST)))


@pytest.mark.parametrize("n_columns", [1, 2])
def test_no_distance_is_stated_if_no_table_was_released(n_columns):
    frame = TRAIN[["sex", "grade"][:n_columns]]
    categories = {"sex": ["f", "m"], "grade": ["0", "1", "2"]}
    declared = {name: categories[name] for name in frame.columns}
    synthesizer = DPTableSynthesizer(50.0, categories=declared, random_state=0)
    synthesizer.fit(frame)
    has_tables = bool(synthesizer.report().rows)
    result = evaluate_synthetic(synthesizer)
    text = str(result)
    assert has_tables is (n_columns == 2)
    assert bool(np.isnan(result.released_distance)) is not has_tables
    assert ("distance to released tables" in text) is has_tables
    assert ("none: no table of several columns was released" in text) is not has_tables
    assert bool(np.isnan(result.noise_distance)) is not has_tables


def test_an_accountant_without_epsilon_does_not_make_test_rows_public():
    accountant = PrivacyAccountant(2.0, 0.0)
    fitted = DPTableSynthesizer(9.0, bounds=BOUNDS, random_state=0).fit(TRAIN)
    with pytest.raises(ValueError, match="accountant is for private test rows: pass epsilon"):
        evaluate_synthetic(fitted, TEST, target="is_ill", accountant=accountant)
    assert not accountant.charges
