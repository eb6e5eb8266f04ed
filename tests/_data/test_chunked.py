import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from skdp import ChunkedArray, DPMeanTransformer, DPStandardScaler


@pytest.fixture
def parts(tmp_path):
    """Return an array and chunks of it: in memory, an empty one, and two files."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    paths = [tmp_path / "one.npy", str(tmp_path / "two.npy")]
    np.save(paths[0], X[20:21])
    np.save(paths[1], np.asfortranarray(X[21:]))
    return X, [X[:20], X[20:20], *paths]


def test_rows_are_those_of_the_parts(parts):
    X, chunks = parts
    chunked = ChunkedArray(chunks)
    assert chunked.shape == (50, 3) and len(chunked) == 50
    assert chunked.ndim == 2 and chunked.dtype == np.float64
    for start in range(-3, 55, 4):
        for stop in (None, *range(-3, 55, 7)):
            np.testing.assert_array_equal(chunked[start:stop], X[start:stop])
    np.testing.assert_array_equal(np.concatenate(list(chunked)), X)
    np.testing.assert_array_equal(np.asarray(chunked), X)
    assert np.asarray(chunked, dtype=np.float32).dtype == np.float32


def test_files_are_mapped_and_arrays_are_not_copied(parts):
    X, chunks = parts
    chunked = ChunkedArray(chunks)
    assert isinstance(chunked[25:30], np.memmap)
    assert np.shares_memory(chunked[3:9], X)
    with pytest.raises(ValueError, match="read-only"):
        chunked[25:30][:] = 0.0


def test_pickles_hold_paths_and_no_rows_of_files(parts):
    X, chunks = parts
    chunked = ChunkedArray(chunks[2:])
    assert len(chunked[:]) == 30
    pickled = pickle.dumps(chunked)
    assert X[25].tobytes() not in pickled and b"two.npy" in pickled
    np.testing.assert_array_equal(pickle.loads(pickled)[:], X[20:])


def test_relative_paths_survive_a_change_of_folder(parts, monkeypatch, tmp_path):
    X, _ = parts
    monkeypatch.chdir(tmp_path)
    chunked = ChunkedArray(["one.npy"])
    monkeypatch.chdir(tmp_path.parent)
    np.testing.assert_array_equal(chunked[:], X[20:21])


def test_a_file_that_changed_is_refused(parts):
    X, chunks = parts
    chunked = ChunkedArray(chunks)
    np.save(chunks[3], X[:2])
    with pytest.raises(ValueError, match="changed"):
        chunked[30:40]


ODD_ROWS = {
    "numbers": [1, 0],
    "fractions": [0.5, 0],
    "nothing": [None, 1],
    "digits": ["7", 1],
    "a long double": np.ones(2, np.longdouble),
    "singles": np.ones(2, np.float32),
    "a long whole number": [2**70, -(2**63)],
}


@pytest.mark.parametrize("kind", ODD_ROWS)
def test_a_list_is_read_cell_by_cell_as_doubles(kind):
    """One row says nothing of the type of others, of a list and of the whole table."""
    others = (np.random.default_rng(0).random((50, 2)) < 0.5).tolist()
    others[1:3] = [np.float32(0.1), 2**53 + 1], np.arange(2, dtype=np.int8)
    plain, odd = (
        ChunkedArray([[first, *others], np.ones((2, 2), np.float32)])
        for first in ([True, False], ODD_ROWS[kind])
    )
    assert plain.dtype == odd.dtype == np.float64
    assert plain[1:].tobytes() == odd[1:].tobytes()
    np.testing.assert_array_equal(odd[0:1], np.array([ODD_ROWS[kind]], dtype=np.float64))


def test_types_are_promoted():
    chunked = ChunkedArray([np.ones((2, 1), np.float32), np.ones((2, 1), np.int64)])
    assert chunked.dtype == np.float64 and chunked[1:3].dtype == np.float64


@pytest.mark.parametrize("rows", [3, [0.5], slice(0, 9, 2), slice(9, 0, -1)])
def test_only_slices_with_step_one_are_read(parts, rows):
    with pytest.raises(TypeError, match="step 1"):
        ChunkedArray(parts[1])[rows]


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        ([], "at least one"),
        ("one.npy", "got one"),
        (pd.DataFrame({"a.parquet": [0.5]}), "got one"),
        ([[["a"]]], "could not convert"),
        ([np.ones(3)], "2-D"),
        ([np.ones((2, 2)), np.ones((2, 3))], "same number of columns"),
        ([np.array([["a"]])], "real numbers"),
        ([np.ones((2, 2), complex)], "real numbers"),
        ([csr_array((2, 2))], "dense"),
        ([pd.DataFrame({"a": pd.to_datetime(["2020-01-01"]), "b": [0.5]})], "real numbers"),
        ([pd.DataFrame({"a": pd.array([1], "Int64")})], "real numbers"),
    ],
)
def test_other_parts_are_refused(chunks, words):
    with pytest.raises(ValueError, match=words):
        ChunkedArray(chunks)


FRAME = pd.DataFrame({"a": [1, 2], "b": np.array([0.5, 1.5], np.float32), "c": [True, False]})
HELD = [pd.DataFrame, pl.from_pandas, partial(pa.Table.from_pandas, preserve_index=False)]


@pytest.mark.parametrize("made", [*HELD, lambda X: pl.from_pandas(X).lazy()])
@pytest.mark.parametrize(
    "other", [FRAME[["b", "a", "c"]], FRAME.rename(columns={"a": "d"}), FRAME[["a", "b"]]]
)
def test_tables_of_other_columns_are_not_put_into_one(made, other):
    """By their places alone, one column's values would be those of another."""
    array = np.ones((1, 3))
    for chunks in ([FRAME, made(other)], [array, made(FRAME), array, made(other)]):
        with pytest.raises(ValueError, match="the same columns in the same order"):
            ChunkedArray(chunks)
    X = ChunkedArray(each for each in (FRAME, made(FRAME), array))
    assert X[1:5].tolist() == [[2.0, 1.5, 0.0], [1.0, 0.5, 1.0], [2.0, 1.5, 0.0], [1.0] * 3]
    # Numbers are no names.
    assert ChunkedArray([FRAME, made(FRAME), FRAME.set_axis([0, 1, 2], axis=1)]).shape == (6, 3)


def test_names_are_known_if_all_tables_declare_the_same_columns():
    lazy = pl.from_pandas(FRAME).lazy()
    for chunks, known in (
        ([lazy, lazy], True),
        ([lazy, lazy.with_columns(pl.col("a").cast(pl.Float64))], True),
        ([lazy.cast(pl.Float32), lazy], False),
        ([lazy, np.ones((1, 3))], False),
        ([FRAME, FRAME], False),
    ):
        model = DPMeanTransformer(bounds=(0, 3)).fit(ChunkedArray(chunks))
        assert hasattr(model, "feature_names_in_") == known


@pytest.mark.parametrize("made", HELD)
def test_of_a_frame_no_more_is_kept_than_its_rows(made):
    words = [f"word {i}" for i in range(1000)]
    frame = FRAME.loc[[0, 1] * 500].set_index(pd.Index(words))
    frame.attrs["words"] = words
    held = pickle.dumps(ChunkedArray([made(frame[:2]), made(frame)[:2]]))
    assert len(held) < 4000 and (b"word 7" not in held)


def test_paths_of_other_things_are_refused_in_words(tmp_path):
    np.savez(tmp_path / "x.npz", np.ones((2, 2)))
    with pytest.raises(ValueError, match="x.npz must be a 2-D array .*NpzFile"):
        ChunkedArray([tmp_path / "x.npz"])
    for path in (tmp_path / "nothing", tmp_path / "x.npz"):
        with pytest.raises(ValueError, match="neither a Parquet file nor a folder"):
            DPStandardScaler(bounds=(0, 1)).fit(path)


def test_names_of_parquet_files_may_stand_beside_arrays(tmp_path):
    pd.DataFrame({"a": [0.5]}).to_parquet(tmp_path / "x.parquet")
    chunked = ChunkedArray([str(tmp_path / "x.parquet"), np.ones((1, 1)), str(tmp_path)])
    assert chunked[:].tolist() == [[0.5], [1.0], [0.5]]


def test_objects_in_files_are_not_unpickled(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([[None]], dtype=object))
    with pytest.raises(ValueError):
        ChunkedArray([tmp_path / "objects.npy"])
