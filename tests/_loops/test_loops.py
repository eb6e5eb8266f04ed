"""Both versions of the loops return the same bits, and one fit uses one of them."""

import ctypes
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

import skdp
from skdp import (
    ChunkedArray,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPRandomForestClassifier,
    DPSGDClassifier,
    DPSGDRegressor,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp._loops import choice, choose_loops, get_loops, numpy_loops
from skdp.accounting import Guarantee
from skdp.base import TableShape

needs_numba = pytest.mark.skipif(not choice.has_numba(), reason="numba is not installed")


@pytest.fixture
def compiled():
    pytest.importorskip("numba", reason="numba is not installed")
    return get_loops("numba")


def codes_of(rng, n_rows, n_groups, dtype):
    """Return codes, the ends of their groups, and the number of all codes."""
    sizes = rng.integers(1, 200, n_groups)
    codes = np.stack([rng.integers(0, size, n_rows) for size in sizes], axis=1)
    return codes.astype(dtype), np.cumsum(sizes), int(sizes.sum())


SHAPES = [(1, 1, 1), (7, 3, 1), (300, 4, 1), (257, 5, 2), (1000, 9, 1), (64, 8, 3), (40_000, 6, 1)]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int64])
@pytest.mark.parametrize(("n_rows", "n_groups", "n_outputs"), SHAPES)
def test_both_versions_return_the_same_bits(n_rows, n_groups, n_outputs, dtype, compiled):
    rng = np.random.default_rng(n_rows)
    codes, ends, n_codes = codes_of(rng, n_rows, n_groups, dtype)
    code_values = rng.normal(size=(n_codes, n_outputs)) * 10.0 ** rng.integers(-9, 9, (n_codes, 1))
    constants = rng.normal(size=(2, n_outputs))
    scores = [f.code_scores(codes, ends, code_values, constants) for f in (numpy_loops, compiled)]
    np.testing.assert_array_equal(*scores)
    # Sums that are not exact have the same bits, too: rows are added in the same order.
    row_args = np.arange(n_rows), None
    sums = []
    for loops in (numpy_loops, compiled):
        total = np.full((n_codes, n_outputs), 0.1)
        args = codes, ends, code_values, constants, shifted_residuals, row_args
        loops.add_residual_sums(total, *args)
        exact = np.zeros((n_codes, n_outputs))
        loops.add_code_sums(exact, codes, ends, np.rint(scores[0] % 1000.0))
        sums.append((total, exact))
    np.testing.assert_array_equal(sums[0][0], sums[1][0])
    np.testing.assert_array_equal(sums[0][1], sums[1][1])


@pytest.mark.parametrize(("n_rows", "n_groups"), [(1, 1), (7, 3), (300, 4), (1000, 9), (4096, 8)])
def test_few_codes_are_counted_with_the_bits_of_a_sparse_matrix(n_rows, n_groups, monkeypatch):
    rng = np.random.default_rng(n_rows)
    codes, ends, n_codes = codes_of(rng, n_rows, n_groups, np.uint16)
    # Negative zeros and values of very different magnitudes, whose sums depend on the order.
    code_values = rng.normal(size=(n_codes, 1)) * 10.0 ** rng.integers(-9, 9, (n_codes, 1))
    code_values[::3] = -0.0
    args = code_values, rng.normal(size=(2, 1)), shifted_residuals, (np.arange(n_rows), None)
    sums = []
    for limit in (1 << 20, 0):
        monkeypatch.setattr(numpy_loops, "MAX_COUNTED_CODES", limit)
        total = np.full((n_codes, 1), -0.0)
        numpy_loops.add_residual_sums(total, codes, ends, *args)
        sums.append(total.view(np.int64))
    np.testing.assert_array_equal(*sums)


def shifted_residuals(scores, rows, nothing):
    assert nothing is None and len(rows) == len(scores)
    return np.sin(scores) + 1e-3 * rows[:, np.newaxis]


@pytest.mark.parametrize("layout", ["C", "F", "strided", "read-only"])
def test_every_layout_is_read(layout, compiled):
    rng = np.random.default_rng(0)
    codes, ends, n_codes = codes_of(rng, 500, 3, np.uint16)
    if layout == "F":
        codes = np.asfortranarray(codes)
    elif layout == "strided":
        codes = np.repeat(codes, 2, axis=0)[::2]
    elif layout == "read-only":
        codes.setflags(write=False)
    values = rng.normal(size=(n_codes, 1))
    args = codes, ends, values, np.zeros((1, 1))
    np.testing.assert_array_equal(compiled.code_scores(*args), numpy_loops.code_scores(*args))


@pytest.mark.parametrize("step", [2.0**-10, 2.0**-22, 2.0**-30, 2.0**-40, 2.0**-50])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.25, 1.0), (0.5678, 40.3)])
def test_residuals_of_classes_have_the_bits_of_scipy(step, weights, compiled):
    """Also beside multiples of the grid, at the clip, and where exponentials overflow."""
    rng = np.random.default_rng(0)
    # Scores at which the residual is a multiple of the grid, and their neighbors.
    p = np.clip(rng.integers(1, 1000, 5000) * max(step, 2.0**-20), 1e-9, 1.0 - 1e-9)
    edges = np.log(p) - np.log1p(-p)
    extremes = [0.0, -0.0, 1e-300, 709.0, -709.0, 745.2, -745.2, 1e5, -1e5, np.inf, -np.inf, np.nan]
    scores = np.concatenate([rng.normal(size=20_000) * 3.0, edges, -edges, extremes])
    scores = np.concatenate([scores, np.nextafter(scores, 1.0), np.nextafter(scores, -1.0)])
    for targets in (np.zeros(len(scores), int), np.ones(len(scores), int)):
        args = scores[:, np.newaxis], targets, weights, 0.5, step
        exact = numpy_loops.class_residual_steps(*args)
        np.testing.assert_array_equal(compiled.class_residual_steps(*args), exact)


def test_the_exponentials_differ_by_less_than_the_bound(compiled):
    """The bound on which the compiled rounding relies, with what is left of it."""
    from scipy.special import expit

    scores = np.concatenate([np.linspace(-40.0, 40.0, 400_001), np.linspace(-1.0, 1.0, 100_001)])
    difference = np.abs(expit(scores) - 1.0 / (1.0 + np.exp(-scores)))
    assert difference.max() <= compiled.EXPIT_ERROR / 4.0


def test_machine_code_fuses_no_product_with_a_sum(compiled):
    import numba

    from skdp._loops.compiling import OPTIONS

    rng = np.random.default_rng(0)
    codes, ends, n_codes = codes_of(rng, 50, 5, np.uint16)
    for n_outputs in (1, 2):
        values = np.ones((n_codes, n_outputs))
        compiled.code_scores(codes, ends, values, values[:1])
        compiled.add_code_sums(values, codes, ends, np.ones((50, n_outputs)))
    compiled.class_residual_steps(np.zeros((50, 1)), np.zeros(50, int), (1.0, 1.0), 0.5, 2.0**-20)
    rows, ones = np.arange(50), np.ones(50)
    for dtype in (np.float32, np.float64):
        X = rng.normal(size=(50, 37)).astype(dtype)
        compiled.clipped_gradient(X, rows, np.ones(37), (0.0, 0.0), ones, ones, np.subtract)
    compiled.add_on_grid(ones, rows, 1.0, 2.0**61)
    functions = [f for _, f in inspect.getmembers(compiled) if hasattr(f, "inspect_asm")]
    assert len(functions) >= 8
    for function in functions:
        # Code that was read from the cache cannot be inspected.
        again = numba.njit(**OPTIONS)(function.py_func)
        assert function.signatures
        for signature in function.signatures:
            again.compile(signature)
        for text in again.inspect_asm().values():
            assert "vfmadd" not in text and "fmla" not in text and "fmadd" not in text, function
        assert not function.targetoptions.get("fastmath"), function
        assert not function.targetoptions.get("parallel"), function


N = 2500


def table_of(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=N) > 0).astype(int)
    if kind == "frame":
        X = pd.DataFrame(X, columns=list("abcd")).assign(
            e=np.where(y + rng.normal(size=N) > 0.5, "u", "v")
        )
    if kind == "chunks":
        X = ChunkedArray(np.split(X, [700, 701, 1900]))
    return X, y


MODELS = {
    "two classes": DPAdditiveClassifier(5.0, delta=1e-6, classes=[0, 1], random_state=0),
    "balanced": DPAdditiveClassifier(
        5.0, delta=1e-6, classes=[0, 1], class_weight="balanced", random_state=0
    ),
    "three classes": DPAdditiveClassifier(5.0, delta=1e-6, classes=[0, 1, 2], random_state=0),
    "pure": DPAdditiveClassifier(5.0, classes=[0, 1], random_state=0),
    "numbers": DPAdditiveRegressor(5.0, delta=1e-6, target_bounds=(-1, 2), random_state=0),
    "pairs": DPAdditiveRegressor(
        50.0, delta=1e-6, target_bounds=(-1, 2), interactions=2, random_state=0
    ),
    "trees": DPRandomForestClassifier(5.0, delta=1e-6, classes=[0, 1], random_state=0),
}


def released(model):
    """Return the bits of what a fit published, but for the ledger's record of it."""
    shapes = getattr(model, "shape_functions_", ())
    arrays = [shape.values for shape in shapes]
    if hasattr(model, "intercept_"):
        arrays.append(np.asarray(model.intercept_))
    if not shapes:
        arrays.append(model.predict_proba(table_of("array")[0]))
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


@needs_numba
@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("kind", ["array", "frame", "chunks"])
@pytest.mark.parametrize("name", MODELS)
def test_fits_release_the_same_bits(name, kind, unit, monkeypatch):
    if name == "trees" and kind == "frame":
        pytest.skip("the frame has categories that this forest does not declare")
    X, y = table_of(kind)
    model = MODELS[name]
    if kind == "frame":
        model = type(model)(**model.get_params() | {"categories": {"e": ["u", "v"]}})
    groups = None
    if unit == "person":
        groups = np.arange(N) // 3
        model = type(model)(
            **model.get_params() | {"accountant": PrivacyAccountant(200.0, 1e-3, unit="person")}
        )
    bits = []
    for version in ("numpy", "numba"):
        monkeypatch.setenv(choice.VARIABLE, version)
        bits.append(released(model.fit(X, y, groups=groups)))
    assert bits[0] == bits[1]


@needs_numba
def test_threads_release_the_same_bits(monkeypatch):
    monkeypatch.setenv(choice.VARIABLE, "numba")
    monkeypatch.setattr("skdp._data._parts.MIN_VALUES_FOR_THREADS", 1)
    monkeypatch.setattr("skdp._data._parts.RUN_BLOCKS", 2)
    monkeypatch.setattr("skdp.gam._joint_codes.STEP_ROWS", 64)
    X, y = table_of("array")
    bits = set()
    for n_jobs in (1, 2, 3):
        with parallel_config(n_jobs=n_jobs):
            bits.add(released(MODELS["two classes"].fit(X, y)))
    assert len(bits) == 1


@needs_numba
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("estimator", [DPSGDClassifier, DPSGDRegressor])
def test_noisy_gradients_release_the_same_values(estimator, centered, monkeypatch):
    """Scores differ in the last bits, which disappear when sums are rounded to the noise's grid.

    A sum of doubles is within 1e-12 of a boundary of the grid with a probability of about 1e-6.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 9)) + centered
    target = X @ np.linspace(-1.0, 1.0, 9)
    options = {"data_norm": 5.0, "batch_size": 300, "max_iter": 60, "sampling": "poisson"}
    if estimator is DPSGDClassifier:
        options["classes"] = [0, 1]
        target = (target > 0.0) * 1
    else:
        options["target_bounds"] = (-5.0, 5.0)
    for seed in range(5):
        models = []
        for version in ("numpy", "numba"):
            monkeypatch.setenv(choice.VARIABLE, version)
            model = estimator(1.0, delta=1e-6, random_state=seed, **options)
            models.append(model.fit(X, target))
        np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
        np.testing.assert_array_equal(models[0].intercept_, models[1].intercept_)


def test_long_runs_of_noisy_gradients_use_compiled_loops(monkeypatch):
    """By the cells of all batches, public numbers; not for several scores or full batches."""
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setattr(choice, "has_numba", lambda: True)
    options = {"data_norm": 1.0, "classes": [0, 1], "batch_size": 1000, "sampling": "poisson"}
    shape, guarantee = TableShape(n_rows=10**6, n_columns=100), Guarantee(epsilon=1.0, delta=1e-7)

    def loops(**changed):
        return DPSGDClassifier(**options | changed).plan_fit(shape, guarantee).loops

    assert loops(max_iter=1) == "numpy"
    assert loops(max_iter=30) == "numba"
    assert loops(max_iter=30, classes=[0, 1, 2]) == "numpy"
    assert loops(max_iter=20_000, sampling="full", batch_size="auto") == "numpy"


def test_public_sizes_choose(monkeypatch):
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setattr(choice, "has_numba", lambda: True)
    assert choose_loops(1000, 8) == "numpy"
    assert choose_loops(choice.MIN_CELLS, 1) == "numba"
    monkeypatch.setattr(choice, "has_numba", lambda: False)
    assert choose_loops(10**9, 100) == "numpy"
    monkeypatch.setenv(choice.VARIABLE, "numba")
    with pytest.raises(ImportError, match="fast"):
        choose_loops(1, 1)
    monkeypatch.setenv(choice.VARIABLE, "fortran")
    with pytest.raises(ValueError, match="'auto', 'numpy' or 'numba'"):
        choose_loops(1, 1)


@pytest.mark.parametrize("kind", ["array", "dask"])
def test_a_worker_without_the_loops_raises_before_the_charge(kind, monkeypatch):
    monkeypatch.setattr(choice, "has_numba", lambda: True)
    monkeypatch.setenv(choice.VARIABLE, "numba")
    monkeypatch.setitem(choice.MODULES, "numba", "skdp._loops.missing")
    get_loops.cache_clear()
    X, y = table_of("array")
    if kind == "dask":
        X = pytest.importorskip("dask.array").from_array(X, chunks=(1000, 4))
    accountant = PrivacyAccountant(10.0, 1e-3)
    model = DPAdditiveClassifier(1.0, delta=1e-6, classes=[0, 1], accountant=accountant)
    with pytest.raises(RuntimeError, match="worker has no numba"):
        model.fit(X, y)
    assert accountant.epsilon_spent == 0.0 and not hasattr(model, "intercept_")
    # A fit without such loops needs none.
    DPStandardScaler(1.0, bounds=(-5, 5), accountant=accountant).fit(X)
    get_loops.cache_clear()


SMALL_FIT = """
import sys
import numpy as np
import skdp
assert "numba" not in sys.modules
X = np.random.default_rng(0).normal(size=(500, 3))
skdp.DPAdditiveClassifier(1.0, classes=[0, 1], random_state=0).fit(X, (X[:, 0] > 0) * 1)
assert "numba" not in sys.modules
"""


def run_python(code, **options):
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


@pytest.mark.thorough
def test_small_fits_do_not_import_numba(monkeypatch):
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    result = run_python(SMALL_FIT)
    assert result.returncode == 0, result.stderr


# Compiled loops in processes without a cache, that compile at once, fork, or run threads.


# Names that NumPy's releases have for the features of newer processors.
NEWER_FEATURES = ["AVX2", "FMA3", "AVX512F", "AVX512CD", "AVX512_SKX", "AVX512_CLX", "AVX512_CNL"]


NEWER_FEATURES += ["AVX512_ICL", "AVX512_SPR", "X86_V3", "X86_V4"]


# Constants of prctl(2) and capabilities(7).
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


FIT = """
import hashlib, sys, threading
import numpy as np
import skdp

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 5))
y = (X[:, 0] * X[:, 1] + X[:, 2] > 0) * 1

def fit():
    model = skdp.DPAdditiveClassifier(5.0, delta=1e-6, classes=[0, 1], random_state=0).fit(X, y)
    values = b"".join(shape.values.tobytes() for shape in model.shape_functions_)
    return hashlib.sha256(values).hexdigest()
"""


PRINT = FIT + "print(fit())\n"


LOOPS = """
import hashlib
import numpy as np
from skdp._loops import get_loops

rng = np.random.default_rng(0)
codes = rng.integers(0, 90, (5000, 6)).astype(np.uint16)
ends = 90 * np.arange(1, 7)
values = rng.normal(size=(540, 1))
results = []
for version in ("numpy", "numba"):
    loops = get_loops(version)
    scores = loops.code_scores(codes, ends, values, values[:2])
    steps = loops.class_residual_steps(scores, codes[:, 0] % 2, (0.3, 1.0), 0.5, 2.0**-25)
    sums = np.zeros((540, 1))
    loops.add_code_sums(sums, codes, ends, steps)
    results.append(scores.tobytes() + steps.tobytes() + sums.tobytes())
assert results[0] == results[1]
print(hashlib.sha256(results[0]).hexdigest())
"""


def start(code, *, preexec_fn=None, cwd=None, **variables):
    environment = os.environ | {"SKDP_LOOPS": "numba"}
    for name, value in variables.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=preexec_fn,
        cwd=cwd,
    )


def output(process):
    out, error = process.communicate(timeout=500)
    assert process.returncode == 0, error
    return out.strip()


@pytest.fixture(scope="module")
def expected():
    return output(start(PRINT, SKDP_LOOPS="numpy"))


def without_override():
    """Let root obey the permissions of folders, which a process inherits (capabilities(7))."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


@pytest.mark.thorough
@needs_numba
def test_a_read_only_installation_without_a_home(expected, tmp_path):
    """Neither the package's folder nor a user's cache can be written: each process compiles."""
    package = tmp_path / "installed" / "skdp"
    shutil.copytree(Path(skdp.__file__).parent, package, ignore=lambda *_: ["__pycache__"])
    home = tmp_path / "home"
    home.mkdir()
    for folder in [home, package, *(path for path in package.rglob("*") if path.is_dir())]:
        folder.chmod(0o555)
    code = (
        "import os, skdp\n"
        f"assert skdp.__file__.startswith({str(package)!r}), skdp.__file__\n"
        "import skdp._loops.numba_loops as loops\n"
        "assert type(loops._gather_one._cache).__name__ == 'NullCache', loops._gather_one._cache\n"
    )
    process = start(
        code + PRINT,
        preexec_fn=without_override if os.getuid() == 0 else None,
        cwd=str(tmp_path),
        PYTHONPATH=str(package.parent),
        HOME=str(home),
        XDG_CACHE_HOME=None,
        NUMBA_CACHE_DIR=None,
    )
    assert output(process) == expected


@pytest.mark.thorough
@needs_numba
def test_two_processes_compile_at_once(expected, tmp_path):
    processes = [start(PRINT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert [output(process) for process in processes] == [expected] * 2
    assert any(tmp_path.rglob("*.nbi"))
    # A third one loads what they compiled.
    assert output(start(PRINT, NUMBA_CACHE_DIR=str(tmp_path))) == expected


@pytest.mark.thorough
@needs_numba
def test_after_a_fork_and_in_threads(expected, tmp_path):
    code = FIT + (
        "first = fit()\n"
        "import os\n"
        "read, write = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.write(write, fit().encode())\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "found = [first, os.read(read, 100).decode()]\n"
        "threads = [threading.Thread(target=lambda: found.append(fit())) for _ in range(2)]\n"
        "[thread.start() for thread in threads]\n"
        "[thread.join() for thread in threads]\n"
        "assert len(found) == 4 and len(set(found)) == 1, found\n"
        "print(first)\n"
    )
    assert output(start(code)) == expected


@pytest.mark.thorough
@needs_numba
def test_threads_compile_at_once(expected, tmp_path):
    code = FIT + (
        "found = []\n"
        "threads = [threading.Thread(target=lambda: found.append(fit())) for _ in range(3)]\n"
        "[thread.start() for thread in threads]\n"
        "[thread.join() for thread in threads]\n"
        "assert len(found) == 3 and len(set(found)) == 1, found\n"
        "print(found[0])\n"
    )
    assert output(start(code, NUMBA_CACHE_DIR=str(tmp_path))) == expected


@pytest.mark.thorough
@needs_numba
def test_versions_agree_on_processors_without_wide_registers():
    """NumPy then computes exponentials by another function; rounded residuals are the same."""
    features = " ".join(NEWER_FEATURES)
    outputs = {output(start(LOOPS)), output(start(LOOPS, NPY_DISABLE_CPU_FEATURES=features))}
    assert len(outputs) == 1
