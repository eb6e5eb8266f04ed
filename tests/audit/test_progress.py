"""Audits say beforehand how many fits they make, to whoever looks at a terminal."""

import io
import sys

import numpy as np
import pytest

from skdp import DPLogisticRegression
from skdp.audit import audit_epsilon, membership_inference

X = np.random.default_rng(0).uniform(size=(60, 2))
y = (X[:, 0] > 0.5).astype(int)
RUNS = {
    "audit_epsilon: {} of 40 fits": lambda **of: audit_epsilon(
        DPLogisticRegression(mechanism="output"), n_fits=20, n_samples=20, **of
    ),
    "membership_inference: {} of 4 shadow models": lambda **of: membership_inference(
        DPLogisticRegression(), X, y, n_shadow=4, **of
    ),
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("line", "run"), RUNS.items(), ids=["epsilon", "membership"])
def test_a_terminal_shows_one_line_that_counts_to_the_end(line, run, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    run()
    first, *_, last = terminal.getvalue().strip().split("\r")
    assert first == line.format(0)
    assert last == line.format(40 if "fits" in line else 4)


def test_a_notebook_shows_it_too(monkeypatch):
    kind = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
    monkeypatch.setattr(sys, "stderr", kind())
    RUNS["membership_inference: {} of 4 shadow models"]()
    assert sys.stderr.getvalue().strip().endswith("4 of 4 shadow models")


@pytest.mark.parametrize(("line", "run"), RUNS.items(), ids=["epsilon", "membership"])
def test_nothing_is_shown_elsewhere_or_where_it_is_not_wanted(line, run, monkeypatch, capsys):
    run()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    run(verbose=0)
    assert sys.stderr.getvalue() == ""
