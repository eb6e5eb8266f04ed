"""Public objects are shown in one style, and what a reader sees first holds no hash."""

import re

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPAdditiveClassifier, DPLogisticRegression, PrivacyAccountant, privacy_report
from skdp.audit import audit_epsilon, membership_inference
from skdp.datasets import make_customers
from skdp.model_selection import dp_cross_val_score
from skdp.pipeline import check_pipeline

X = np.random.default_rng(0).uniform(size=(200, 2))
y = (X[:, 0] > 0.5).astype(int)


def _model(**params):
    return DPLogisticRegression(**params).fit(X, y)


def _accountant():
    accountant = PrivacyAccountant(9.0, 1e-4, dataset="people & others")
    _model(accountant=accountant)
    return accountant


SHOWN = {
    "accountant": _accountant,
    "budget": lambda: _accountant().report(),
    "statement": lambda: _model(accountant=_accountant()).privacy_,
    "report": lambda: privacy_report(_model(accountant=_accountant())),
    "verdict": lambda: check_pipeline(make_pipeline(StandardScaler(), DPLogisticRegression())),
    "additive model": lambda: DPAdditiveClassifier(bounds=(0, 1)).fit(X, y),
    "scores": lambda: dp_cross_val_score(DPLogisticRegression(), X, y, cv=2),
    "audit": lambda: audit_epsilon(DPLogisticRegression(mechanism="output"), n_fits=20),
    "schema": lambda: make_customers(20).schema,
    "membership": lambda: membership_inference(DPLogisticRegression(), X, y, attack="loss"),
}


def style_of(shown):
    (style,) = re.findall("<style>(.*?)</style>", shown, re.DOTALL)
    return style


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("make", SHOWN.values(), ids=SHOWN)
def test_objects_are_shown_in_one_style_without_a_hash_at_the_top(make):
    shown = make()._repr_html_()
    assert shown.startswith('<div class="skdp-document">')
    assert style_of(shown) == style_of(_model().privacy_._repr_html_())
    rows = re.findall(r"<(?:tr|p)\b.*?</(?:tr|p)>", shown, re.DOTALL)
    assert not any(re.search(r"[0-9a-f]{32}", row) for row in rows[:2])


def test_printed_rows_are_rows_of_a_table():
    scores = SHOWN["scores"]()
    title, _, *lines = str(scores).splitlines()
    shown = scores._repr_html_()
    assert f"<h2>{title}</h2>" in shown
    assert shown.count("<tr>") == len(lines) == 3
    assert f"{scores.mean_noise_:.2g}" in shown


def test_an_accountant_whose_ledger_is_gone_is_shown(tmp_path):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=tmp_path / "budget.db", dataset="<people>")
    (tmp_path / "budget.db").unlink()
    assert "&lt;people&gt;" in accountant._repr_html_()
