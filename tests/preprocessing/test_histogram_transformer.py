import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from scipy.sparse import issparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from skdp import DPHistogramTransformer, DPLogisticRegression, PrivacyAccountant
from skdp.base import TableShape, guarantee_of
from skdp.mechanisms import GaussianMechanism, GeometricMechanism
from skdp.noise import RandomSource
from skdp.pipeline import planned_charge
from skdp.preprocessing import _histogram_transformer as module
from skdp.preprocessing._binning import bin_codes, column_bins, count_columns, quantile_edges
from tests._attacks import attack_choices
from tests._guarantees import meet
from tests._private import CELLS, QuantileTree, read_columns, read_numeric_columns

COLORS = ["red", "green", "blue"]
EDGES = np.array([0.0, 1.0, 2.5, 4.0])


def make_mixed(n=3000):
    rng = np.random.default_rng(0)
    X = np.empty((n, 3), dtype=object)
    X[:, 0] = rng.uniform(-1, 1, n)
    X[:, 1] = rng.normal(0, 2, n)
    X[:, 2] = rng.choice(COLORS, n)
    return X


def mixed(**params):
    return DPHistogramTransformer(
        **({"bounds": {0: (-1, 1), 1: (-10, 10)}, "categories": {2: COLORS}} | params)
    )


def exact(**params):
    return mixed(epsilon=1e10, **params).fit(make_mixed())


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_little_noise_gives_the_counts_of_numpy(delta):
    X = make_mixed()
    fitted = exact(edges="uniform", n_bins=7, delta=delta)
    for j, span in ((0, (-1, 1)), (1, (-10, 10))):
        counts, edges = np.histogram(X[:, j].astype(float), bins=7, range=span)
        np.testing.assert_array_equal(fitted.bin_edges_[j], edges)
        np.testing.assert_allclose(fitted.counts_[j], counts, atol=1e-3)
    colors = [np.sum(X[:, 2] == color) for color in COLORS]
    np.testing.assert_allclose(fitted.counts_[2], colors, atol=1e-3)
    assert fitted.n_bins_.tolist() == [7, 7, 3]


def test_little_noise_gives_the_quantiles_and_the_encoding_of_sklearn():
    X = make_mixed()[:, :2].astype(float)
    ours = DPHistogramTransformer(1e10, bounds=([-1, -10], [1, 10]), n_bins=8, encode="ordinal")
    theirs = KBinsDiscretizer(8, encode="ordinal", quantile_method="averaged_inverted_cdf").fit(X)
    ours.fit(X)
    for one, other, span in zip(ours.bin_edges_, theirs.bin_edges_, (2.0, 20.0), strict=True):
        # The outermost edges are the declared bounds.
        assert np.abs(one[1:-1] - other[1:-1]).max() < 1e-3 * span
    assert np.mean(ours.transform(X) != theirs.transform(X)) < 0.002


def neighbors(relation):
    """Pairs of small tables of two numeric columns and a categorical one."""
    rows = [[a, b, c] for a in (-9.0, 0.5, 2.0, 9.0) for b in (0.0, 3.0) for c in ("red", "blue")]
    null = [[None, None, "undeclared"]]
    base = [[0.5, 0.5, "red"], [3.0, 1.0, "green"]]
    others = rows if relation == "replace_one" else null
    return [(base + [one], base + [other]) for one in rows for other in others]


def counts_of(rows, bins):
    """The exact counts of a table, in which a null row has no place."""
    rows = [row for row in rows if row[0] is not None]
    table = read_columns(DPHistogramTransformer(), np.array(rows, object))
    return np.concatenate(count_columns(table, bins)).astype(float)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_brute_force_sensitivity(relation):
    bins = column_bins({2: COLORS}, None, EDGES, None, 3)
    pairs = neighbors(relation)
    moves = [counts_of(a, bins) - counts_of(b, bins) for a, b in pairs]
    laplace = module.counts_mechanism(3, 9, meet(1.0, 0.0, relation))
    gaussian = module.counts_mechanism(300, 900, meet(1.0, 1e-6, relation))
    assert isinstance(laplace, GeometricMechanism) and isinstance(gaussian, GaussianMechanism)
    assert max(np.abs(move).sum() for move in moves) == laplace.sensitivity
    # The root of a hundred times as many columns.
    largest = 10.0 * max(np.linalg.norm(move) for move in moves)
    assert (1 - 1e-12) * gaussian.sensitivity < largest <= gaussian.sensitivity
    if relation == "replace_one":
        forgotten = module.counts_mechanism(3, 9, meet(1.0))
        assert max(np.abs(move).sum() for move in moves) == 2 * forgotten.sensitivity


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_errors_have_the_expected_size(delta):
    # 300 releases of seeds that were not chosen; 5 standard errors: false alarms of 6e-7.
    table = read_numeric_columns(DPHistogramTransformer(), np.tile([0.5, 3.0], (100, 20)))
    truth = np.tile([100, 0, 0, 0, 0, 100], (20, 1)).ravel()
    transformer = DPHistogramTransformer(2.0, delta=delta, edges=EDGES)
    plan = transformer.plan_fit(TableShape(n_rows=100, n_columns=40), guarantee_of(transformer))
    release = plan.mechanism
    sources = map(RandomSource, range(300))
    runs = [release.noisy_counts(table, release.edges.bins, source) for source in sources]
    squares = np.mean(np.square([np.concatenate(run) - truth for run in runs]), axis=1)
    expected = transformer.expected_error(40) ** 2
    assert abs(squares.mean() - expected) < 5 * squares.std(ddof=1) / math.sqrt(300)


@pytest.mark.parametrize("encode", ["onehot", "density"])
def test_what_is_published_is_a_function_of_the_release(encode, monkeypatch):
    def constant(self, values, **_):
        return np.arange(float(np.size(values))) - 2.0

    monkeypatch.setattr(GeometricMechanism, "release", constant)
    monkeypatch.setattr(
        QuantileTree,
        "run",
        lambda self, table, source, **_: np.tile(np.linspace(0, 1, 5)[1:-1, None], (1, 2)),
    )
    one, other = make_mixed(), make_mixed()
    other[:, :2] = -1.0
    other[:, 2] = "undeclared"
    fits = [mixed(n_bins=4, encode=encode).fit(X) for X in (one, other)]
    for name in ("bin_edges_", "counts_"):
        for a, b in zip(*(getattr(fit, name) for fit in fits), strict=True):
            np.testing.assert_array_equal(a, b)
    assert fits[0].output_norm_ == fits[1].output_norm_
    assert fits[0].privacy_.to_dict() == fits[1].privacy_.to_dict()


def test_empty_bins_without_noise_are_caught(monkeypatch):
    release = module.BinsAndCounts.noisy_counts

    def careless(self, table, bins, source, row_weights):
        noisy = release(self, table, bins, source)
        counts = count_columns(table, bins)
        return [np.where(c == 0, 0.0, n) for c, n in zip(counts, noisy, strict=True)]

    monkeypatch.setattr(module.BinsAndCounts, "noisy_counts", careless)
    with pytest.raises(AssertionError):
        test_what_is_published_is_a_function_of_the_release("density", monkeypatch)


def certified(runs=400):
    """The epsilon by which the counts of one bin tell one row from none."""
    outputs = []
    for value in (["red"], ["undeclared"]):
        transformer = DPHistogramTransformer(1.0, categories=COLORS)
        X = np.array([value, ["blue"]], dtype=object)
        fits = (transformer.fit(X).counts_[0][0] for _ in range(runs))
        outputs.append(np.array([int(count > 0.5) for count in fits]))
    return attack_choices(*outputs, confidence=0.999999)


@pytest.mark.thorough
def test_a_distinguisher_finds_no_more_than_epsilon(monkeypatch):
    monkeypatch.setattr(module, "consistent_counts", lambda noisy, *_: noisy)
    assert certified() <= 1.0


@pytest.mark.thorough
def test_a_distinguisher_finds_a_quarter_of_the_noise(monkeypatch):
    monkeypatch.setattr(module, "consistent_counts", lambda noisy, *_: noisy)
    plan = module.counts_mechanism
    monkeypatch.setattr(
        module, "counts_mechanism", lambda d, n, g: plan(d, n, replace(g, epsilon=4 * g.epsilon))
    )
    assert certified() > 1.0


@pytest.mark.thorough
def test_counts_are_consistent():
    for seed in range(50):
        fitted = mixed(epsilon=0.05, random_state=seed).fit(make_mixed(200))
        for counts in fitted.counts_[:2]:
            assert (counts >= 0).all() and abs(counts.sum() - 200) < 1e-9
        assert (fitted.counts_[2] >= 0).all() and fitted.counts_[2].sum() <= 200 * (1 + 1e-12)


def test_consistent_counts_are_the_nearest():
    rng = np.random.default_rng(0)
    for _ in range(20):
        noisy = rng.normal(5, 20, size=6)
        ours = module.consistent_counts(noisy, 30.0)
        assert abs(ours.sum() - 30) < 1e-9 and (ours >= 0).all()
        points = rng.dirichlet(np.ones(6), size=2000) * 30
        assert np.linalg.norm(ours - noisy) <= np.linalg.norm(points - noisy, axis=1).min()
    np.testing.assert_array_equal(module.consistent_counts(np.array([3.0, -1.0]), 9, False), [3, 0])


def test_encodings():
    X = make_mixed()
    ordinal = exact(encode="ordinal", edges={0: "quantile", 1: [-10, 0, 10]}, n_bins=4)
    codes = ordinal.transform(X)
    np.testing.assert_array_equal(codes[:, 1], X[:, 1].astype(float) >= 0)
    np.testing.assert_array_equal(np.array(COLORS)[codes[:, 2].astype(int)], X[:, 2])
    np.testing.assert_allclose(np.bincount(codes[:, 0].astype(int)) / len(X), 0.25, atol=0.01)

    params = {"edges": "uniform", "n_bins": 20}
    onehot = exact(unit_norm=False, **params)
    encoded = onehot.transform(X)
    assert encoded.shape == (3000, 43) and set(np.unique(encoded)) == {0.0, 1.0}
    assert (encoded.sum(axis=1) == 3).all()
    assert 3 <= Fraction(onehot.output_norm_) ** 2 <= 3 * (1 + Fraction(1, 2**50))
    sparse = exact(unit_norm=False, sparse_output=True, **params).transform(X)
    assert issparse(sparse)
    np.testing.assert_array_equal(sparse.toarray(), encoded)

    density = exact(encode="density", **params).transform(X)
    heights = np.histogram(X[:, 1].astype(float), 20, (-10, 10), density=True)[0]
    np.testing.assert_allclose(np.unique(density[:, 1]), np.unique(heights[heights > 0]))
    np.testing.assert_allclose(density[:, 2], [np.mean(X[:, 2] == color) for color in X[:, 2]])

    cumulative = exact(encode="cumulative", **params).transform(X)
    ranks = np.argsort(np.argsort(X[:, 1])) / len(X)
    assert np.abs(cumulative[:, 1] - ranks).max() < 0.05
    assert ((cumulative >= 0) & (cumulative <= 1)).all()


@pytest.mark.parametrize("encode", ["onehot", "ordinal", "density", "cumulative"])
@pytest.mark.parametrize("unit_norm", [True, False, "auto"])
def test_no_row_is_longer_than_the_published_norm(encode, unit_norm):
    X = np.vstack([make_mixed(300), np.array([[99.0, -99.0, "undeclared"]], dtype=object)])
    fitted = mixed(encode=encode, unit_norm=unit_norm).fit(X)
    norms = np.linalg.norm(fitted.transform(X), axis=1)
    assert norms.max() <= fitted.output_norm_ * (1 + 1e-14)
    if unit_norm is True or (unit_norm == "auto" and encode == "onehot"):
        assert fitted.output_norm_ == 1.0


def test_columns_without_a_positive_count_have_a_norm():
    X = np.full((10, 1), 9.0)
    for unit_norm in (True, False):
        fitted = DPHistogramTransformer(
            1e10, categories=[0, 1], encode="density", unit_norm=unit_norm
        ).fit(X)
        assert fitted.output_norm_ == 1.0 and (fitted.transform(X) == 0.0).all()


def test_values_outside_the_declared():
    X = np.array([[99.0, -99.0, "mauve"]], dtype=object)
    for encode, null in (("onehot", 0.0), ("ordinal", -1.0), ("density", 0.0), ("cumulative", 0.5)):
        row = exact(encode=encode, edges="uniform", n_bins=5).transform(X)[0]
        assert (row[-3 if encode == "onehot" else -1 :] == null).all()
    np.testing.assert_array_equal(exact(encode="ordinal", n_bins=5).transform(X)[0, :2], [4, 0])
    other = exact(encode="ordinal", categories={2: ["red", "rest"]}, other="rest")
    assert other.transform(X)[0, 2] == 1 and other.counts_[2].sum() == pytest.approx(3000)


def test_unhashable_and_mixed_values_are_undeclared_after_the_charge():
    X = np.array([[0.0, 0.0, ["red"]], [1.0, 1.0, 1], [1.0, 1.0, "red"]], dtype=object)
    codes = bin_codes(
        read_columns(DPHistogramTransformer(), X),
        column_bins({2: ["red", 1]}, None, EDGES, None, 3),
    )
    assert codes[:, 2].tolist() == [-1, 1, 0]


def test_common_values_get_bins_of_their_own():
    step = 10.0 / CELLS
    edges = quantile_edges(np.array([0.0, 0.0, 0.0, 4.0, 7.0, 7.0]), 0.0, 10.0)
    expected = [0, step / 2, 4 + step / 2, 7 - step / 2, 7 + step / 2, 10]
    np.testing.assert_allclose(edges, expected, rtol=1e-12)
    assert len(quantile_edges(np.full(31, 3.0), 3.0, 4.0)) == 3


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_automatic_bounds_quantiles_and_counts_are_one_charge(delta):
    for share in ("auto", 0.3, 1.0):
        accountant = PrivacyAccountant(1.0, delta)
        transformer = mixed(bounds="auto", delta=delta, edges_fraction=share, accountant=accountant)
        fitted = transformer.fit(make_mixed())
        assert (fitted.counts_ is None) == (share == 1.0)
        (spend,) = accountant.charges
        assert (spend.epsilon, spend.delta) == (1.0, delta)
    assert accountant.epsilon_remaining == 0.0


def test_a_pipeline_with_a_private_model_needs_no_norm():
    X = make_mixed()
    y = X[:, 1].astype(float) > 0.5
    pipeline = make_pipeline(mixed(epsilon=5.0), DPLogisticRegression(epsilon=5.0)).fit(X, y)
    assert pipeline.score(X, y) > 0.9


def test_metadata_routing_breaks_nothing():
    with sklearn.config_context(enable_metadata_routing=True):
        X = make_mixed(300)
        pipeline = make_pipeline(mixed(), DPLogisticRegression()).fit(X, X[:, 2] == "red")
        assert pipeline.predict(X).shape == (300,)


def test_frames_in_and_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_mixed(), columns=["a", "b", "color"])
    frame = frame.astype({"a": float, "b": np.float32, "color": "category"})
    transformer = DPHistogramTransformer(
        1e10,
        bounds={"a": (-1, 1), "b": (-10, 10)},
        categories={"color": COLORS},
        edges="uniform",
        n_bins=2,
    ).set_output(transform="pandas")
    out = transformer.fit_transform(frame)
    names = ["a_0", "a_1", "b_0", "b_1", "color_red", "color_green", "color_blue"]
    assert list(out.columns) == names
    plain = exact(edges="uniform", n_bins=2).transform(make_mixed())
    np.testing.assert_array_equal(out.to_numpy(), plain)
    assert transformer.expected_error(n_features=3) < 1e-6
    with pytest.raises(ValueError, match="feature names"):
        transformer.transform(frame.rename(columns={"a": "z"}))


def test_a_table_on_disk_is_read_in_blocks(tmp_path):
    X = make_mixed()[:, :2].astype(float)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    bounds = ([-1, -10], [1, 10])
    fits = [DPHistogramTransformer(bounds=bounds, random_state=0).fit(t) for t in (X, mapped)]
    for a, b in zip(*(fit.counts_ for fit in fits), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [1, 100])
def test_few_rows_and_constants_are_fitted(n):
    for bounds in ("auto", (0, 1)):
        for edges in ("uniform", "quantile"):
            fitted = DPHistogramTransformer(bounds=bounds, edges=edges).fit(np.full((n, 2), 0.25))
            assert np.isfinite(fitted.transform([[0.0, 1.0]])).all()


def test_many_columns_are_fitted():
    X = np.zeros((5, 10_000))
    fitted = DPHistogramTransformer(delta=1e-6, edges=[0, 1, 2], encode="ordinal").fit(X)
    assert fitted.transform(X).shape == X.shape


@pytest.mark.parametrize(
    "params",
    [
        {"bounds": None},
        {"bounds": (1, 0)},
        {"bounds": {0: (0, np.inf), 1: (0, 1)}},
        {"bounds": {0: (0, 1)}},
        {"bounds": {"a": (0, 1)}},
        {"edges": "auto"},
        {"edges": [1.0, 0.0]},
        {"edges": EDGES},
        {"edges": {0: EDGES}},
        {"edges": 7},
        {"n_bins": 1},
        {"n_bins": 2.5},
        {"categories": {2: []}},
        {"categories": {2: ["red", "red"]}},
        {"categories": {7: COLORS}},
        {"categories": "red"},
        {"categories": [COLORS]},
        {"categories": None},
        {"other": "mauve"},
        {"encode": "binary"},
        {"encode": "ordinal", "sparse_output": True},
        {"sparse_output": "no"},
        {"unit_norm": "no"},
        {"edges_fraction": 0.0},
        {"edges_fraction": 1.5},
        {"edges": "uniform", "edges_fraction": 0.5},
        {"encode": "density", "edges_fraction": 1.0},
        {"epsilon": -1.0},
        {"delta": 1.0},
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params):
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError):
        mixed(**({"accountant": accountant} | params)).fit(make_mixed(50))
    assert accountant.charges == []


@pytest.mark.parametrize(
    ("column", "value"),
    [(0, np.nan), (0, np.inf), (0, "seven"), (0, None), (2, np.nan), (2, None), (0, 10**400)],
)
def test_bad_values_are_refused_and_not_charged(column, value):
    accountant = PrivacyAccountant(10.0, 0.0)
    X = make_mixed(50)
    X[7, column] = value
    with pytest.raises(ValueError, match=f"column {column}"):
        mixed(accountant=accountant).fit(X)
    with pytest.raises(ValueError):
        mixed(accountant=accountant).fit(X[:0])
    assert accountant.charges == []
    with pytest.raises(ValueError, match=f"column {column}"):
        mixed().fit(make_mixed(50)).transform(X)


def test_bounds_without_room_for_the_bins_are_refused_before_the_charge():
    accountant = PrivacyAccountant(10.0, 0.0)
    bounds = (1.0, 1.0 + 2.0**-50)
    with pytest.raises(ValueError, match="at least 64 times"):
        DPHistogramTransformer(bounds=bounds, accountant=accountant).fit(np.ones((5, 2)))
    assert accountant.charges == []


def test_counts_beyond_the_last_digit_are_made_consistent():
    assert np.isfinite(module.consistent_counts(np.array([1e18, -1e18, 3.0]), 1.0)).all()


PAIRS = [(0, 2), (2, 1)]


def test_a_cross_is_the_product_of_the_cells():
    X = make_mixed(500)
    X[:3, 2] = "undeclared"
    fitted = mixed(n_bins=4, interactions=PAIRS, unit_norm=False, random_state=0).fit(X)
    plain = mixed(n_bins=4, unit_norm=False, random_state=0).fit(X)
    rows, names = fitted.transform(X), fitted.get_feature_names_out().tolist()
    cells = {name: rows[:, k] for k, name in enumerate(plain.get_feature_names_out())}
    assert len(names) == rows.shape[1] == sum(fitted.n_bins_) + 3 * sum(fitted.n_bins_[:2])
    for name, column in zip(names[len(cells) :], rows.T[len(cells) :], strict=True):
        # A pair is one of positions: the second one, (2, 1), is (1, 2).
        one, two = name.split(" ")
        np.testing.assert_array_equal(column, cells[one] * cells[two])
    # Nothing else is released, and nothing else charged.
    for name in ("bin_edges_", "counts_"):
        for a, b in zip(getattr(fitted, name), getattr(plain, name), strict=True):
            np.testing.assert_array_equal(a, b)
    assert fitted.privacy_.epsilon == plain.privacy_.epsilon
    sparse = fitted.set_params(sparse_output=True).transform(X)
    np.testing.assert_array_equal(sparse.toarray(), rows)


@pytest.mark.parametrize("unit_norm", [True, False])
def test_brute_force_norm_of_rows_with_crosses(unit_norm):
    X = make_mixed(500)
    fitted = mixed(n_bins=4, interactions=PAIRS, unit_norm=unit_norm).fit(X)
    extremes = [[a, b, c] for a in (-1e9, 0.0, 1e9) for b in (-1e9, 1e9) for c in COLORS]
    norms = np.linalg.norm(fitted.transform(np.array(extremes, dtype=object)), axis=1)
    assert norms.max() <= fitted.output_norm_ <= norms.min() * (1 + 1e-12)


@pytest.mark.parametrize("pairs", [[(0, 0)], [(0, 7)], [(0, 1), (1, 0)], ["ab"], 3])
def test_pairs_that_are_none_are_refused(pairs):
    accountant = PrivacyAccountant(9.0, 0.0)
    with pytest.raises(ValueError, match="interactions"):
        mixed(interactions=pairs, accountant=accountant).fit(make_mixed(20))
    with pytest.raises(ValueError, match="onehot"):
        mixed(interactions=PAIRS, encode="ordinal", accountant=accountant).fit(make_mixed(20))
    assert accountant.charges == []


def bins_of(n_rows, epsilon, n_columns=5, **params):
    transformer = DPHistogramTransformer(**{"bounds": (0, 1), "n_bins": "auto"} | params)
    shape = TableShape(n_rows=n_rows, n_columns=n_columns)
    return transformer.plan_fit(shape, meet(epsilon, 0.0)).mechanism.edges


def test_automatic_bins_hold_more_rows_than_the_noise_of_their_edges():
    sizes = [bins_of(n, 0.1).n_bins for n in (100, 15_000, 10**6)]
    assert sizes[0] == 8 < sizes[1] < sizes[2] == 32
    assert bins_of(15_000, 0.1, n_columns=20).n_bins < sizes[1] < bins_of(15_000, 0.2).n_bins
    scale = bins_of(15_000, 0.1, n_bins=32).quantiles.scale
    assert sizes[1] == int(15_000 / (2.5 * scale))
    edges = bins_of(15_000, 0.1)
    assert len(edges.quantiles.mechanism.quantiles) == edges.n_bins - 1
    assert bins_of(100, 0.1, edges="uniform").n_bins == 32


def test_crosses_are_named_where_no_table_is_seen():
    named = DPHistogramTransformer(
        bounds={"b": (0, 1), "a": (0, 2), "c": (0, 1)}, interactions=[("a", "c")]
    )
    placed = DPHistogramTransformer(bounds=(0, 1), interactions=[(0, 2)])
    assert named.expected_error(3) == placed.expected_error(3)
    assert planned_charge(named, 50, 3).event == planned_charge(placed, 50, 3).event
    mixed_up = DPHistogramTransformer(bounds=(0, 1), interactions=[("a", 0)])
    assert mixed_up.expected_error(2) > 0.0


def test_bounds_beside_declared_categories_are_refused_by_what_was_declared():
    encoder = DPHistogramTransformer(bounds=(0, 1), categories=[[0, 1]] * 2)
    with pytest.raises(ValueError, match="bounds are not read .* edges or categories"):
        encoder.fit(np.zeros((9, 2)))
