import itertools
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import ClusterMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from skdp import ChunkedArray, DPKMeans, PrivacyAccountant
from skdp.accounting import Guarantee, Neighbors, get_epsilon
from skdp.cluster import _kmeans
from skdp.cluster._kmeans import Cells, NoisyLloyd
from skdp.mechanisms import (
    GammaNormMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
)
from tests._private import read_persons

RELATIONS = ["add_remove", "replace_one"]
DELTAS = [0.0, 1e-6]
CENTERS = np.array([[-0.5, 0.0], [0.5, 0.1], [0.0, 0.8]])


def plan(*, relation="add_remove", delta=0.0, n_rows=1, n_columns=2, epsilon=1.0, k=3):
    guarantee = Guarantee(epsilon=epsilon, delta=delta, neighbors=Neighbors(relation=relation))
    ones = np.ones(n_columns)
    return NoisyLloyd(low=-ones, high=ones, guarantee=guarantee, n_rows=n_rows, n_clusters=k)


def moved(difference, delta):
    """By how much blocks moved, as the mechanism of a step counts it."""
    norms = np.linalg.norm(difference, axis=1)
    return norms.sum() if delta == 0.0 else np.linalg.norm(norms)


def largest_move(relation, delta, radius=0.3):
    """The largest distance of the blocks of tables of one row, over rows of the plane."""
    directions = np.radians(np.arange(0, 360, 30))
    offsets = [r * np.array([np.cos(a), np.sin(a)]) for a in directions for r in (0.1, 0.3, 2.0)]
    rows = [center + offset for center in CENTERS for offset in offsets]
    planned = plan(relation=relation, delta=delta)
    blocks = [planned.blocks(row[None], CENTERS, radius) for row in rows]
    if relation == "add_remove":
        return max(moved(each, delta) for each in blocks)
    return max(moved(a - b, delta) for a, b in itertools.combinations(blocks, 2))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_a_step(relation, delta, monkeypatch):
    claimed = plan(relation=relation, delta=delta).step_sensitivity
    assert 0.999 * claimed < largest_move(relation, delta) <= claimed
    monkeypatch.setattr(_kmeans, "clip_rows", lambda X, norm: X)
    assert largest_move(relation, delta) > 1.5 * claimed


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_each_step_is_calibrated_to_that_sensitivity(relation, delta):
    planned = plan(relation=relation, delta=delta, n_rows=10_000)
    moments, counting, *steps = planned.mechanism.parts
    assert len(steps) == 4 and len({id(step) for step in steps}) == 4
    assert {step.sensitivity for step in steps} == {planned.step_sensitivity}
    assert counting.sensitivity >= (2.0 if relation == "replace_one" else 1.0) ** (
        0.5 if "Gaussian" in counting.name else 1.0
    )
    assert get_epsilon(planned.mechanism.event, delta) <= 1.0


def test_gaussian_steps_compose_without_loss():
    one, four = (plan(delta=1e-6, n_rows=n).mechanism.parts[2:] for n in (1, 10_000))
    assert (len(one), len(four)) == (1, 4)
    assert four[0].scale == pytest.approx(2.0 * one[0].scale, rel=1e-6)


@pytest.mark.parametrize("delta", DELTAS)
def test_a_norm_noised_block_is_released_alone(delta):
    """Noise of a norm is of one block each: only so do replaced rows move by a sum of norms."""
    planned = plan(delta=delta)
    assert planned.size == (3 if delta == 0.0 else 9)


def test_the_sensitivity_pays_for_the_rounding_of_sums():
    n, row = 200_000, np.array([[-0.47, 0.013]])
    planned = plan(n_rows=n)
    one, all_rows = (planned.blocks(np.repeat(row, m, axis=0), CENTERS, 0.3) for m in (1, n))
    off = [
        float(Fraction(whole) - n * Fraction(each))
        for whole, each in zip(all_rows[0], one[0], strict=True)
    ]
    exact = plan(n_rows=0).step_sensitivity
    assert np.linalg.norm(off) <= (planned.step_sensitivity - exact) / 2
    # A sum goes through so many additions, for each of two neighbors.
    assert plan(n_rows=2**30).step_sensitivity - exact > 2.0**30 * 4096 * 2.0**-52


def test_a_row_lies_in_one_cell_wherever_it_is():
    cells = Cells(np.array([0.1, 0.0, -0.2]), np.array([0.5, 1e-9, 0.2]), np.array([4, 1, 2]))
    corners = np.array(list(itertools.product([-1.0, 0.1, 1.0], repeat=3)))
    places = cells.cell_indices(corners)
    assert places.min() == 0 and places.max() == 7
    points, drawn = cells.sample(4000)
    np.testing.assert_array_equal(cells.cell_indices(points), drawn)
    np.testing.assert_array_equal(np.bincount(drawn), np.full(8, 500))
    # Means and deviations of 4000 stratified points: six standard errors.
    np.testing.assert_allclose(points.mean(axis=0), cells.mean, atol=0.05)
    np.testing.assert_allclose(points.std(axis=0), cells.deviation, rtol=0.07)


def test_what_varies_most_is_cut_most():
    assert _kmeans._intervals(np.array([4.0, 1.0, 0.01]), 4).tolist() == [8, 2, 1]


@pytest.mark.parametrize("n_columns", [2, 5])
@pytest.mark.parametrize("delta", DELTAS)
def test_huge_epsilon_equals_sklearn(n_columns, delta):
    X, _ = make_blobs(3000, n_columns, centers=4, cluster_std=0.3, random_state=1)
    ours = DPKMeans(1e10, delta=delta, n_clusters=4, bounds=(-15, 15)).fit(X)
    theirs = KMeans(4, n_init=10, random_state=0).fit(X)
    order = theirs.predict(ours.cluster_centers_)
    assert sorted(order) == [0, 1, 2, 3]
    np.testing.assert_allclose(
        ours.cluster_centers_, theirs.cluster_centers_[order], atol=0.02 * n_columns
    )
    assert -ours.score(X) == pytest.approx(theirs.inertia_, rel=0.01)


@pytest.mark.parametrize("delta", DELTAS)
def test_clusters_are_found_at_a_moderate_epsilon(delta):
    """The noise of a center is a hundredth of what would confuse two; no alarm in 1e6 runs."""
    X, y = make_blobs(20_000, 2, centers=[[-4, -4], [4, 4], [4, -4]], random_state=0)
    model = DPKMeans(1.0, delta=delta, n_clusters=3, bounds=(-8, 8)).fit(X)
    assert adjusted_rand_score(y, model.predict(X)) > 0.95


def test_it_answers_as_scikit_learns():
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = DPKMeans(bounds=(-3, 3), n_clusters=4).fit(X)
    peer = KMeans(4, n_init=1, init=model.cluster_centers_, max_iter=1).fit(X)
    peer.cluster_centers_ = model.cluster_centers_
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    np.testing.assert_allclose(model.transform(X), peer.transform(X))
    assert model.score(X) == pytest.approx(peer.score(X))
    assert list(model.get_feature_names_out()) == [f"dpkmeans{i}" for i in range(4)]
    wild = model.transform([[1e200, 0.0, 0.0]])
    assert np.isfinite(wild).all()


def test_no_label_and_no_inertia_of_raw_rows_is_kept():
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = DPKMeans(n_clusters=2, bounds=(-3, 3))
    labels = model.fit_predict(X)
    np.testing.assert_array_equal(labels, model.predict(X))
    assert not hasattr(model, "labels_") and not hasattr(model, "inertia_")
    assert not isinstance(model, ClusterMixin)


def test_steps_are_planned_from_public_quantities():
    X = np.random.default_rng(0).normal(size=(60, 2))
    few, many = DPKMeans().fit(X), DPKMeans(epsilon=1e6)
    assert few.n_iter_ == 1
    assert many.fit(X).n_iter_ == many.fit(np.zeros((60, 2))).n_iter_ == 4
    steps = [len(plan(n_rows=n, k=8).mechanism.parts) - 2 for n in (10, 1000, 3000, 10**6)]
    assert steps == sorted(steps) and steps[0] == 1 and steps[-1] == 4


def test_columns_keep_their_proportions_and_units_do_not_matter():
    X = np.random.default_rng(0).normal(size=(500, 2)) * [1.0, 0.01]
    wide = DPKMeans(bounds=([-4, -0.04], [4, 0.04]), n_clusters=4, random_state=0)
    narrow = clone(wide).set_params(bounds=([-4e9, -4e7], [4e9, 4e7]))
    scaled = narrow.fit(X * 1e9).cluster_centers_ / 1e9
    np.testing.assert_allclose(wide.fit(X).cluster_centers_, scaled, atol=1e-3)


@pytest.mark.parametrize("bounds", [(-1e150, 1e150), (-1e-150, 1e-150), (0.0, 1e-150)])
def test_extreme_ranges_give_finite_centers(bounds):
    X = np.array([[1e300, -1e-300], [0.0, 5e-324], [-1e200, 1e150]] * 10)
    model = DPKMeans(bounds=bounds, n_clusters=3).fit(X)
    assert np.isfinite(model.cluster_centers_).all()
    assert (model.cluster_centers_ >= bounds[0]).all()
    assert (model.cluster_centers_ <= bounds[1]).all()


def test_chunks_are_read_as_one_table():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    whole = DPKMeans(bounds=(-3, 3), random_state=0).fit(X)
    chunked = clone(whole).fit(ChunkedArray([X[:1000], X[1000:1001], X[1001:]]))
    np.testing.assert_allclose(whole.cluster_centers_, chunked.cluster_centers_, atol=1e-6)


def test_bounds_are_found_within_the_budget():
    X, y = make_blobs(20_000, 2, centers=[[-4, -4], [4, 4]], random_state=0)
    account = PrivacyAccountant(1.0, 1e-6, relation="replace_one")
    model = DPKMeans(delta=1e-6, n_clusters=2, accountant=account).fit(X)
    assert [(spend.epsilon, spend.delta) for spend in account.charges] == [(1.0, 1e-6)]
    assert adjusted_rand_score(y, model.predict(X)) > 0.95
    assert (model.bounds_[1] < 20).all()


@pytest.mark.parametrize(
    "parameter", [{"n_clusters": 0}, {"n_clusters": 2**17}, {"bounds": (1, 0)}]
)
def test_bad_parameters_are_refused(parameter):
    with pytest.raises(ValueError):
        DPKMeans(**parameter).fit(np.zeros((20, 2)))


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_person_moves_cells_and_blocks_by_what_a_row_does(relation):
    """What is released of persons for the starts and the steps, of 1 and of 50 rows."""
    rng = np.random.default_rng(0)
    others = rng.uniform(-1, 1, size=(30, 2))
    planned = plan(relation=relation, n_rows=31, k=2)

    def run(n_own, corner):
        X = np.vstack([others, np.full((n_own, 2), corner)])
        persons = read_persons(np.append(np.arange(30), np.full(n_own, 30)), len(X))
        blocks = planned.blocks(X, CENTERS[:2], 0.3, persons)
        cells = Cells(np.zeros(2), np.ones(2), np.array([2, 2]))
        counts = planned._sum(X, _kmeans._add_cells, np.zeros(4), persons, cells)
        return blocks, counts

    exact = {key: run(*key) for key in itertools.product((1, 50), (-1.0, 1.0))}
    null = planned.blocks(others, CENTERS[:2], 0.3), run(0, 0.0)[1]
    against = [null] if relation == "add_remove" else exact.values()
    blocks = max(moved(a - b, 0.0) for a, _ in exact.values() for b, _ in against)
    counts = max(np.abs(a - b).sum() for _, a in exact.values() for _, b in against)
    assert 0.5 < blocks <= planned.step_sensitivity
    assert 0.9 < counts <= planned.mechanism.parts[1].sensitivity


@pytest.mark.parametrize("delta", DELTAS)
def test_nothing_of_the_rows_is_read_but_what_is_released(delta, monkeypatch):
    kinds = (GammaNormMechanism, GaussianMechanism, GeometricMechanism, LaplaceMechanism)
    for kind in kinds:
        told = np.random.default_rng(0).normal(size=4096) * 50.0
        monkeypatch.setattr(
            kind,
            "release",
            lambda self, x, random_state, told=told: told[: x.size].reshape(x.shape),
        )
    tables = [np.random.default_rng(i).uniform(-1, 1, size=(400, 2)) for i in range(3)]
    model = DPKMeans(delta=delta, n_clusters=3, bounds=(-1, 1))
    one, *others = [clone(model).fit(X).cluster_centers_ for X in tables]
    assert all((one == other).all() for other in others)
