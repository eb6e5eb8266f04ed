import itertools
import tracemalloc

import numpy as np
import pytest
from sklearn import config_context
from sklearn.preprocessing import TargetEncoder

from skdp import DPTargetEncoder, PrivacyAccountant
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from tests._attacks import attack_choices

LABELS = [["a", "b", "c"], [1, 2, 3]]
RELATIONS = ["add_remove", "replace_one"]


def make_table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n, 2), dtype=object)
    X[:, 0], X[:, 1] = rng.choice(["a", "b", "c"], n), rng.integers(1, 4, n)
    score = (X[:, 0] == "a") + 0.5 * X[:, 1].astype(float) + rng.uniform(-1, 1, n)
    return X, score


def accountant(relation="add_remove"):
    return PrivacyAccountant(1e12, 0.5, relation=relation)


TARGETS = {
    "continuous": (lambda score: score, {"target_bounds": (-1, 4)}),
    "binary": (lambda score: np.where(score > 1.5, "yes", "no"), {}),
    "multiclass": (lambda score: np.digitize(score, [1.0, 2.0]), {"classes": [0, 1, 2]}),
}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("smooth", [0.0, 25.0])
def test_huge_epsilon_equals_sklearn(kind, delta, smooth):
    X, score = make_table()
    of_score, params = TARGETS[kind]
    y = of_score(score)
    ours = DPTargetEncoder(1e10, delta=delta, categories=LABELS, smooth=smooth, **params).fit(X, y)
    categories = [np.array(c, dtype=object) for c in LABELS]
    theirs = TargetEncoder(categories=categories, smooth=smooth, target_type=kind).fit(X, y)
    assert ours.target_type_ == kind
    np.testing.assert_allclose(ours.target_mean_, theirs.target_mean_, atol=1e-3)
    for one, other in zip(ours.encodings_, theirs.encodings_, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)
    unknown = np.array([["z", 2], ["a", None]], dtype=object)
    for Z in (X, unknown):
        np.testing.assert_allclose(ours.transform(Z), theirs.transform(Z), atol=1e-3)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


def test_many_classes_are_not_taken_for_numbers():
    """Of a list of labels scikit-learn would warn that each is there once."""
    X, y = np.zeros((90, 1)), np.arange(90) % 30
    encoder = DPTargetEncoder(categories=[0]).fit(X, y)
    assert encoder.target_type_ == "multiclass" and len(encoder.encodings_) == 30


def test_discovered_categories_equal_declared_ones_at_huge_epsilon():
    X, score = make_table()
    params = {"target_bounds": (-1, 4)}
    found = DPTargetEncoder(1e10, delta=1e-6, **params).fit(X, score)
    declared = DPTargetEncoder(1e10, categories=LABELS, **params).fit(X, score)
    np.testing.assert_allclose(found.transform(X), declared.transform(X), atol=1e-3)


def test_nothing_discovered_encodes_by_the_middle():
    X = np.random.default_rng(0).normal(size=(50, 2))
    encoder = DPTargetEncoder(delta=1e-6, target_bounds=(0, 10)).fit(X, np.full(50, 9.0))
    np.testing.assert_array_equal(encoder.transform(X), 5.0)


def exact_sums(rows, targets, encoder, monkeypatch):
    """Return the sums to which a fit adds noise."""
    sums = []

    def kept(self, values, **source):
        sums.append(np.array(values))
        return np.array(values)

    with monkeypatch.context() as patch:
        for mechanism in (LaplaceMechanism, GaussianMechanism):
            patch.setattr(mechanism, "release", kept)
        encoder.set_params(delta=0.0, accountant=accountant())
        encoder.fit(np.array(rows, dtype=object), np.array(targets))
    (values,) = sums
    return values.ravel()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("params", [{"target_bounds": (0, 1)}, {"classes": [0, 1]}], ids=str)
def test_brute_force_sensitivity(relation, params, monkeypatch):
    encoder = DPTargetEncoder(categories=[["a", "b"], ["c", "d"]], **params)
    cells = list(itertools.product(["a", "b", "?"], ["c", "d", "?"]))
    values = [0, 1] if "classes" in params else [-3.0, 0.0, 0.4, 1.0, 9.0]
    null = (("?", "?"), 0)
    rows = list(itertools.product(cells, values))
    vectors = {
        row: exact_sums([row[0], ("a", "c")], [row[1], 1], encoder, monkeypatch)
        for row in [*rows, null]
    }
    others = rows if relation == "replace_one" else [null]
    X, y = np.array([["a", "c"], ["b", "d"]], dtype=object), np.array([0, 1])
    for delta, norm in ((0.0, 1), (1e-6, 2)):
        largest = max(
            np.linalg.norm(vectors[a] - vectors[b], norm)
            for a, b in itertools.product(rows, others)
        )
        encoder.set_params(delta=delta, accountant=accountant(relation))
        claimed = encoder.fit(X, y).privacy_.sensitivity
        assert claimed * (1 - 1e-9) < largest <= claimed


def test_rare_categories_are_shrunk_to_the_overall_mean():
    X = np.array([["common"]] * 5000 + [["rare"]] * 2, dtype=object)
    y = np.array([0.0, 1.0] * 2500 + [1.0, 1.0])
    gaps = []
    for _ in range(50):
        encoder = DPTargetEncoder(categories=["common", "rare"], target_bounds=(0, 1)).fit(X, y)
        gaps.append(abs(encoder.encodings_[0] - 0.5))
    assert np.max(gaps, axis=0)[0] < 0.05 and np.mean(gaps, axis=0)[1] < 0.15


@pytest.mark.parametrize("epsilon", [1e-4, 1.0])
def test_encodings_are_within_the_range(epsilon):
    X, score = make_table(n=50)
    for smooth in (0.0, 10.0):
        encoder = DPTargetEncoder(
            epsilon, categories=LABELS, target_bounds=(2, 3), smooth=smooth
        ).fit(X, score)
        values = np.concatenate([*encoder.encodings_, [encoder.target_mean_]])
        assert ((values >= 2) & (values <= 3)).all()


def certified(epsilon, n_fits=1000):
    """The epsilon that an encoding certifies for one row's target."""
    X = np.array([["a"]] * 4 + [["?"]], dtype=object)
    tables = [X, np.array([["a"]] * 5, dtype=object)]
    params = {"categories": ["a"], "target_bounds": (0, 1), "smooth": 0.0}
    y = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    encoder = DPTargetEncoder(epsilon, **params)
    outputs = [[encoder.fit(X, y).target_mean_ for _ in range(n_fits)] for X in tables]
    bins = [np.digitize(o, [1e-6, 0.1, 0.2, 0.5]) for o in outputs]
    return attack_choices(*bins, confidence=1 - 1e-6)


@pytest.mark.thorough
def test_a_distinguisher_finds_noise_that_is_too_small():
    assert certified(1.0) <= 1.0
    # A copy that claims 1 and draws its noise for 8 is found.
    assert certified(8.0) > 1.0


def test_frames_and_metadata_routing():
    pandas = pytest.importorskip("pandas")
    X, score = make_table(n=100)
    frame = pandas.DataFrame(X, columns=["letter", "number"])
    with config_context(enable_metadata_routing=True):
        encoder = DPTargetEncoder(categories=LABELS).set_output(transform="pandas")
        encoded = encoder.fit_transform(frame, np.digitize(score, [1.0, 2.0]))
    assert list(encoded.columns) == [f"{n}_{c}" for n in ("letter", "number") for c in range(3)]


def test_many_columns():
    X = np.zeros((5, 10_000))
    encoder = DPTargetEncoder(categories=[0, 1], target_bounds=(0, 1)).fit(X, np.zeros(5))
    assert len(encoder.encodings_) == 10_000


@pytest.mark.parametrize(
    ("params", "y"),
    [
        ({"categories": None}, None),
        ({"categories": [["a"]]}, None),
        ({"smooth": -1.0}, None),
        ({"smooth": "auto"}, None),
        ({"target_bounds": (1, 0)}, None),
        ({"target_bounds": (0, 1), "classes": [0, 1]}, None),
        ({"classes": [0]}, None),
        ({}, np.arange(20) / 7),
        ({"target_bounds": (0, 1)}, np.array(["word"] * 20)),
        ({"target_bounds": (0, 1)}, np.full(20, np.nan)),
        ({"target_bounds": (0, 1)}, np.full(20, np.inf)),
        ({"target_bounds": (0, 1)}, np.zeros(19)),
        ({"epsilon": 0.0}, None),
    ],
)
def test_bad_input_is_refused_and_not_charged(params, y):
    account = accountant()
    X, score = make_table(n=20)
    y = (score > 1.5).astype(int) if y is None else y
    with pytest.raises(ValueError):
        DPTargetEncoder(**({"categories": LABELS, "accountant": account} | params)).fit(X, y)
    assert account.charges == []


def test_the_weights_of_one_class_are_held_at_a_time():
    n, n_classes = 30_000, 60
    X, y = np.arange(n)[:, np.newaxis] % 3, np.arange(n) % n_classes
    encoder = DPTargetEncoder(categories=[0, 1, 2], classes=range(n_classes))
    tracemalloc.start()
    try:
        encoder.fit(X, y)
        assert tracemalloc.get_traced_memory()[1] < 8 * n * n_classes / 3
    finally:
        tracemalloc.stop()
