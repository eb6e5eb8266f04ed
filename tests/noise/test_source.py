import copy
import multiprocessing
import pickle
import threading
import warnings

import numpy as np
import pytest

from skdp.exceptions import SeededNoiseWarning
from skdp.noise import RandomSource, as_source

N = 64


def seeded(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed)


def test_default_is_not_seeded_and_warns_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source = RandomSource()
    assert source.seeded is False
    assert not np.array_equal(source.stream().words(N), source.stream().words(N))


@pytest.mark.parametrize("seed", [0, 7, np.int64(7), np.uint8(3), 2**200])
def test_seeded_source_warns_once_and_is_reproducible(seed):
    with pytest.warns(SeededNoiseWarning) as record:
        source = RandomSource(seed)
    assert len(record) == 1
    assert source.seeded is True
    first = [source.stream().words(N) for _ in range(3)]
    other = seeded(int(seed))
    again = [other.stream().words(N) for _ in range(3)]
    assert np.array_equal(first, again)
    assert len({words.tobytes() for words in first}) == 3


def test_seeded_streams_are_the_spawned_ones():
    source = seeded(5)
    streams = [source.stream() for _ in range(4)]
    expected = [np.random.PCG64(s).random_raw(N) for s in np.random.SeedSequence(5).spawn(4)]
    assert np.array_equal([s.words(N) for s in reversed(streams)], expected[::-1])


@pytest.mark.parametrize(
    "bad",
    [-1, 1.0, "1", True, np.bool_(True), np.random.default_rng(0), np.random.RandomState(0), [1]],
)
def test_other_random_states_are_refused(bad):
    with pytest.raises(ValueError, match="random_state"):
        RandomSource(bad)


def test_as_source_passes_a_source_through():
    source = RandomSource()
    assert as_source(source) is source
    assert as_source(None).seeded is False


@pytest.mark.parametrize("make", [RandomSource, lambda: seeded(1)])
def test_neither_sources_nor_streams_are_pickled_or_copied(make):
    for thing in (make(), make().stream()):
        for road in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be copied"):
                road(thing)
        with pytest.raises(TypeError, match="cannot be copied"):
            copy.deepcopy({"inside": [thing]})


def _child_words(queue, source, stream):
    results = []
    for draw in (lambda: source.stream().words(N), lambda: stream.words(N)):
        try:
            results.append(draw().tobytes())
        except RuntimeError as error:
            results.append(str(error))
    queue.put(results)


def _in_forked_children(source, stream):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [
        context.Process(target=_child_words, args=(queue, source, stream)) for _ in range(2)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for child in children:
            child.start()
    results = [queue.get(timeout=30) for _ in children]
    for child in children:
        child.join()
    return results


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_fork_never_repeats_words():
    source = RandomSource()
    stream = source.stream()
    results = _in_forked_children(source, stream)
    words = [w for child in results for w in child]
    words += [source.stream().words(N).tobytes(), stream.words(N).tobytes()]
    assert all(isinstance(w, bytes) for w in words)
    assert len(set(words)) == len(words)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_seeded_source_refuses_to_work_after_a_fork():
    source = seeded(3)
    for child in _in_forked_children(source, source.stream()):
        assert all(isinstance(w, str) and "fork" in w for w in child)


@pytest.mark.parametrize("make", [RandomSource, lambda: seeded(1)])
def test_threads_never_share_a_stream(make):
    source, found, barrier = make(), [], threading.Barrier(8)

    def work():
        barrier.wait()
        for _ in range(200):
            found.append(source.stream().words(2).tobytes())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(found) == 1600


def test_words_are_uniform_in_every_bit():
    words = seeded(11).stream().words(20_000)
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).sum(axis=0, dtype=np.int64)
    # 64 two-sided tests at 6 standard errors: 1.3e-7 by chance, and the seed is fixed.
    assert np.all(np.abs(ones - 10_000) < 6 * np.sqrt(20_000) / 2)
