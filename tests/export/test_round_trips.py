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

from skdp import PrivacyAccountant
from tests.export._models import NAMES, PIPELINES, PREDICTORS, accountant, answers, model

# skl2onnx 1.20 and the runtime take these in single precision alone.
SINGLE = {"columns", "means", "bins", "cells"}
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


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", PREDICTORS)
def test_predictors_make_a_round_trip(name, form, tmp_path):
    kept = model(name)
    write(kept.fitted, tmp_path / "model", form)
    check_same(answers(read(tmp_path / "model", form), kept.X), kept.answers)


@pytest.mark.parametrize("name", NAMES)
def test_skops_keeps_the_statement_and_the_ledger_with_or_without_an_accountant(name):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    fitted = model(name).fitted
    for given in (accountant(), None):
        dumped = skops.dumps(fitted.set_params(accountant=given))
        loaded = skops.loads(dumped, trusted=skops.get_untrusted_types(data=dumped))
        assert loaded.privacy_ == fitted.privacy_
        assert (loaded.accountant is None) == (given is None)
        assert given is None or loaded.accountant.epsilon_spent == given.epsilon_spent
    fitted.set_params(accountant=accountant())


ELSEWHERE = """
import pathlib, sys
from tests.export.test_round_trips import FORMATS, answers, check_same, joblib, read

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.expected")):
    X, expected = joblib.load(path)
    for form in FORMATS:
        model = read(path.with_suffix(f".{form}"), form)
        check_same(answers(model, X), expected)
        print(path.stem, form)
"""


def test_files_are_read_by_another_process_without_the_ledger(tmp_path, monkeypatch):
    pytest.importorskip("skops.io", reason="skops is not installed")
    elsewhere = PrivacyAccountant(1e9, 0.5, ledger=tmp_path / "ledger.db")
    for i, name in enumerate(PREDICTORS):
        kept = model(name)
        joblib.dump((kept.X, kept.answers), tmp_path / f"{i}.expected")
        fitted = copy.copy(kept.fitted)
        if name not in PIPELINES:
            fitted.accountant = elsewhere
        for form in FORMATS:
            write(fitted, tmp_path / f"{i}.{form}", form)
    (tmp_path / "ledger.db").unlink()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error::UserWarning:skdp", "-c", ELSEWHERE, str(tmp_path)]
    told = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.splitlines()) == len(PREDICTORS) * len(FORMATS)


def onnx_answers(plain, X, single):
    """Return what a runtime answers, of the plain model as ONNX."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    number = np.float32 if single else np.float64
    if isinstance(X, np.ndarray):
        feed = {"X": X.astype(number)}
    else:
        feed = {name: X[[name]].to_numpy() for name in X}
        feed = {n: a.astype(number) if a.dtype.kind in "if" else a for n, a in feed.items()}
    types = [(name, skl2onnx.common.data_types.guess_tensor_type(a)) for name, a in feed.items()]
    options = {id(plain): {"zipmap": False}} if hasattr(plain, "predict_proba") else None
    converted = skl2onnx.to_onnx(plain, initial_types=types, options=options)
    session = runtime.InferenceSession(converted.SerializeToString())
    return dict(
        zip([out.name for out in session.get_outputs()], session.run(None, feed), strict=True)
    )
