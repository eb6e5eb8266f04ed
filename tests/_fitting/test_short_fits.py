"""A simple fit does not enter the code of what it does not use."""

import sys
from pathlib import Path

import numpy as np
import pytest

import skdp
from skdp import DPLogisticRegression, DPStandardScaler, PrivacyAccountant

SKDP = Path(skdp.__file__).parent
X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(200, 3))
# Tools around a fit, callbacks and progress, frames, dask, containers of the output, persons, exact
# sums, and reports.
UNUSED = {
    "_fitting/_callers.py",
    "_fitting/_callbacks.py",
    "_fitting/_fit_progress.py",
    "_fitting/_members.py",
    "_fitting/_tool_rules.py",
    "_data/_chunked.py",
    "_data/_dask.py",
    "_data/_frames.py",
    "_data/_lengths.py",
    "_data/_output.py",
    "_data/_persons.py",
    "_data/_sums.py",
    "ledger/_report.py",
    "ledger/_view.py",
}
SCALER = DPStandardScaler(bounds=(-1, 1))
CLASSIFIER = DPLogisticRegression(classes=[0, 1], mechanism="output", delta=0.0)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize(
    ("estimator", "max_files", "max_functions"), [(SCALER, 32, 200), (CLASSIFIER, 51, 300)]
)
def test_a_fit_of_an_array_enters_only_what_it_uses(estimator, max_files, max_functions):
    accountant = PrivacyAccountant(1e6, 0.5)
    estimator.set_params(epsilon=1.0, accountant=accountant, random_state=0)
    y = (X[:, 0] > 0).astype(int)
    # Descriptions and prices of equal events are computed once.
    estimator.fit(X, y)
    functions = set()

    def profile(frame, action, _):
        code = frame.f_code
        if action == "call" and code.co_filename.startswith(str(SKDP)):
            file = Path(code.co_filename).relative_to(SKDP).as_posix()
            # Comprehensions are code objects of their own before Python 3.12.
            if not code.co_qualname.endswith(("comp>", "genexpr>")):
                functions.add((file, code.co_qualname))

    sys.setprofile(profile)
    try:
        estimator.fit(X, y)
    finally:
        sys.setprofile(None)
    files = {file for file, _ in functions}
    assert not files & UNUSED
    assert len(files) <= max_files, len(files)
    assert len(functions) <= max_functions, len(functions)
