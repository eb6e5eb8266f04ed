"""Fitted models travel: by pickle, joblib and skops as they are, by ONNX as plain ones."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import FixedThresholdClassifier

from skdp import DPAdditiveClassifier, DPCalibratedClassifierCV, PrivacyAccountant
from skdp.export import to_sklearn
from tests.export._models import NAMES, PIPELINES, PREDICTORS, accountant, answers, model

# Imputers, bins and means of the target: skl2onnx 1.20 and the runtime take single precision alone.
SINGLE = {"columns", "means", "bins", "cells", "table", "curves", "beside"}
ROOT = Path(__file__).parents[2]
FORMATS = ("pickle", "joblib", "skops")


def write(fitted, path, form):
    if form == "skops":
        pytest.importorskip("skops.io", reason="skops is not installed").dump(fitted, path)
    elif form == "joblib":
        joblib.dump(fitted, path)
    else:
        path.write_bytes(pickle.dumps(fitted))


def read(path, form):
    if form == "skops":
        import skops.io

        return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    return joblib.load(path) if form == "joblib" else pickle.loads(path.read_bytes())


def check_same(found, expected):
    assert found.keys() == expected.keys() and found
    for name in found:
        np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.quick_cases(every=30)
@pytest.mark.parametrize("name", PREDICTORS)
def test_predictors_make_a_round_trip(name, tmp_path):
    kept = model(name)
    for form in FORMATS:
        write(kept.fitted, tmp_path / form, form)
        check_same(answers(read(tmp_path / form, form), kept.X), kept.answers)


@pytest.mark.quick_cases(every=34)
@pytest.mark.parametrize("name", NAMES)
def test_skops_keeps_the_statement_and_the_ledger_with_or_without_an_accountant(name):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    fitted = model(name).fitted
    for given in (accountant(), None):
        dumped = skops.dumps(copy.copy(fitted).set_params(accountant=given))
        loaded = skops.loads(dumped, trusted=skops.get_untrusted_types(data=dumped))
        assert loaded.privacy_ == fitted.privacy_
        assert (loaded.accountant is None) == (given is None)
        assert given is None or loaded.accountant.epsilon_spent == given.epsilon_spent


@pytest.mark.parametrize("form", FORMATS)
def test_bounds_that_are_dates_of_pandas_make_a_round_trip(form, tmp_path):
    """The file has NumPy's dates, because skops cannot make those of pandas again."""
    pd = pytest.importorskip("pandas")
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(300) % 30, unit="D")
    table, y = pd.DataFrame({"since": days}), np.arange(300) % 2
    bounds = {"since": (pd.Timestamp("2020-01-01"), pd.Timestamp("2020-02-01"))}
    fitted = DPAdditiveClassifier(bounds=bounds, delta=1e-6).fit(table, y)
    write(fitted, tmp_path / form, form)
    loaded = read(tmp_path / form, form)
    np.testing.assert_array_equal(loaded.predict_proba(table), fitted.predict_proba(table))
    assert loaded.bounds == bounds
    # The estimator itself keeps what it was given, as a clone does.
    assert fitted.bounds is bounds


ELSEWHERE = """
import pathlib, pickle, sys
import joblib, numpy, skops.io

def read_skops(path):
    return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))

READERS = {".pickle": joblib.load, ".joblib": joblib.load, ".skops": read_skops}
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    if path.suffix in READERS:
        X, expected = joblib.load(path.with_suffix(".expected"))
        numpy.testing.assert_array_equal(READERS[path.suffix](path).predict(X), expected)
        print(path.name)
assert not [name for name in sys.modules if name.startswith("tests")]
"""


@pytest.mark.thorough
def test_files_are_read_by_another_process_without_the_ledger(tmp_path):
    pytest.importorskip("skops.io", reason="skops is not installed")
    (tmp_path / "files").mkdir()
    elsewhere = PrivacyAccountant(1e9, 0.5, ledger=tmp_path / "ledger.db")
    for i, name in enumerate(PREDICTORS):
        kept, path = model(name), tmp_path / "files" / f"{i}"
        fitted = copy.copy(kept.fitted)
        if name not in PIPELINES:
            fitted.set_params(accountant=elsewhere)
        joblib.dump((kept.X, kept.answers["predict"]), path.with_suffix(".expected"))
        for form in FORMATS:
            write(fitted, path.with_suffix(f".{form}"), form)
    (tmp_path / "ledger.db").unlink()
    command = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "files")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.splitlines()) == len(PREDICTORS) * len(FORMATS)


def onnx_answers(plain, X, number):
    """Return what a runtime answers, of the plain model as ONNX, to numbers of a type."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    tensors = skl2onnx.common.data_types
    columns = {name: X[[name]].to_numpy() for name in X} if "work" in X else {"X": np.asarray(X)}
    feed = {n: a if a.dtype.kind == "O" else a.astype(number) for n, a in columns.items()}
    of_number = {np.float32: tensors.FloatTensorType, np.float64: tensors.DoubleTensorType}[number]
    types = [
        (n, (tensors.StringTensorType if a.dtype.kind == "O" else of_number)([None, a.shape[1]]))
        for n, a in feed.items()
    ]
    options = {id(plain): {"zipmap": False}} if is_classifier(plain) else None
    converted = skl2onnx.to_onnx(plain, initial_types=types, options=options)
    session = runtime.InferenceSession(converted.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


def check_onnx(found, expected):
    """The numbers of a label are its scores where there are no probabilities."""
    label = expected["predict"]
    if "label" in found:
        np.testing.assert_array_equal(found["label"], label.astype(found["label"].dtype))
    scores = expected.get("predict_proba", expected.get("decision_function"))
    for name, each in found.items():
        if name == "variable":
            scores = label
        if name == "label" or scores is None:
            continue
        if scores.ndim == 1 and each.shape[1] == 2:
            each = each[:, 1]
        # Single precision rounds by the largest of the numbers that are summed.
        atol = 1e-6 * max(1.0, np.abs(scores).max())
        np.testing.assert_allclose(each.reshape(scores.shape), scores, rtol=1e-6, atol=atol)


@pytest.mark.quick_cases(every=6)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", PREDICTORS)
def test_predictors_answer_the_same_as_onnx(name):
    kept = model(name)
    if isinstance(kept.fitted, DPCalibratedClassifierCV):
        pytest.skip("scikit-learn has no calibration by noisy counts")
    if isinstance(to_sklearn(kept.fitted), FixedThresholdClassifier):
        pytest.skip("skl2onnx has no converter of a threshold")
    # Models of raw tables impute gaps.
    single = name in SINGLE or hasattr(kept.fitted, "shape_functions_")
    number = np.float32 if single else np.float64
    check_onnx(onnx_answers(to_sklearn(kept.fitted), kept.X, number), kept.answers)
