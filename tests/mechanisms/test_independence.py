"""No road leads to the same noise twice."""

import multiprocessing
import pickle
import threading
import warnings

import joblib
import numpy as np
import pytest

from skdp.exceptions import SeededNoiseWarning
from skdp.mechanisms import (
    ExponentialMechanism,
    GammaNormMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    RandomizedResponse,
)
from skdp.noise import RandomSource

MECHANISMS = [
    LaplaceMechanism(1.0, 1.0),
    GaussianMechanism(1.0, 1e-5, 1.0),
    GammaNormMechanism(1.0, 1.0),
    GeometricMechanism(1e-9),
]


def work(mechanism, n=3):
    return [tuple(mechanism.release(np.zeros(4, dtype=int))) for _ in range(n)]


def assert_all_differ(vectors):
    flat = [v for vectors in vectors for v in vectors]
    assert len(set(flat)) == len(flat)
    values = np.array(flat).ravel()
    assert np.unique(values).size > 0.99 * values.size


def test_worker_processes_and_pickles_never_repeat_noise():
    """joblib's loky workers are spawned and get each mechanism by pickle."""
    jobs = joblib.Parallel(n_jobs=2)(
        joblib.delayed(work)(mechanism) for mechanism in MECHANISMS * 4
    )
    for i in range(len(MECHANISMS)):
        assert_all_differ(jobs[i :: len(MECHANISMS)])


def _send(queue, mechanism):
    queue.put(work(mechanism))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_forked_processes_never_repeat_noise():
    context = multiprocessing.get_context("fork")
    for mechanism in MECHANISMS:
        before, queue = work(mechanism), context.Queue()
        children = [context.Process(target=_send, args=(queue, mechanism)) for _ in range(3)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for child in children:
                child.start()
        found = [queue.get(timeout=30) for _ in children]
        for child in children:
            child.join()
        assert_all_differ([before, *found, work(mechanism)])


@pytest.mark.parametrize("seed", [None, 7])
def test_threads_never_repeat_noise(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        source = RandomSource(seed)
    for mechanism in MECHANISMS:
        found, barrier = [], threading.Barrier(6)

        def run(mechanism=mechanism, found=found, barrier=barrier):
            barrier.wait()
            for _ in range(30):
                released = mechanism.release(np.zeros(4, dtype=int), random_state=source)
                found.append([tuple(released)])

        threads = [threading.Thread(target=run) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 180
        assert_all_differ(found)


def test_pickled_mechanisms_are_equal_and_carry_no_randomness():
    others = [ExponentialMechanism(1.0, 1.0), RandomizedResponse(1.0, ("a", "b"))]
    for mechanism in MECHANISMS + others:
        stored = pickle.dumps(mechanism)
        assert pickle.loads(stored) == mechanism
        assert b"RandomSource" not in stored and b"PCG" not in stored
    copies = [pickle.loads(pickle.dumps(MECHANISMS[0])) for _ in range(3)]
    assert_all_differ([work(copy) for copy in copies])


def test_a_shared_seed_is_what_repeats_noise():
    """The test of difference can fail: with an integer for each release the noise is the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        same = [[tuple(MECHANISMS[0].release(np.zeros(4), random_state=3))] for _ in range(2)]
    with pytest.raises(AssertionError):
        assert_all_differ(same)


def test_classes_of_one_fit_share_a_source_and_never_noise():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        source = RandomSource(0)
    d = 2000
    noise = [MECHANISMS[2].release(np.zeros(d), random_state=source) for _ in range(10)]
    # The directions are uniform: a correlation is nearly normal, of variance 1 / d; six deviations.
    correlation = np.corrcoef(noise)
    assert np.abs(correlation - np.eye(10)).max() < 6 / np.sqrt(d)
