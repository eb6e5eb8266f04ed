"""Compiled loops in processes without a cache, that compile at once, fork, or run threads."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import skdp
from skdp._loops import choice

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not choice.has_numba(), reason="numba is not installed"),
]

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


def test_two_processes_compile_at_once(expected, tmp_path):
    processes = [start(PRINT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert [output(process) for process in processes] == [expected] * 2
    assert any(tmp_path.rglob("*.nbi"))
    # A third one loads what they compiled.
    assert output(start(PRINT, NUMBA_CACHE_DIR=str(tmp_path))) == expected


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


def test_versions_agree_on_processors_without_wide_registers():
    """NumPy then computes exponentials by another function; rounded residuals are the same."""
    features = " ".join(NEWER_FEATURES)
    outputs = {output(start(LOOPS)), output(start(LOOPS, NPY_DISABLE_CPU_FEATURES=features))}
    assert len(outputs) == 1
