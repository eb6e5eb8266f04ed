"""Statements under groups and of disjoint parts, and plans whose steps or labels changed."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skdp import (
    DPAdditiveClassifier,
    DPLogisticRegression,
    DPStandardScaler,
    PrivacyAccountant,
    tabular_pipeline,
)
from skdp.pipeline import split_budget

X = np.random.default_rng(0).uniform(size=(60, 2))
Y = (X[:, 0] > 0.5).astype(int)


def test_the_sensitivity_under_groups_is_said_to_be_of_one_row():
    accountant = PrivacyAccountant(1.0, 1e-5, unit="group", max_rows=3)
    group = DPStandardScaler(0.5, bounds=(0, 1), accountant=accountant).fit(X).privacy_
    rows = dict(group.rows())
    assert rows["sensitivity"] == f"{group.sensitivity:g} of one row; " + (
        "epsilon and delta are those of a group"
    )
    assert "noise multipliers are those of one row" in rows["stages"]
    row = dict(DPStandardScaler(0.5, bounds=(0, 1)).fit(X).privacy_.rows())
    assert row["sensitivity"] == f"{group.sensitivity:g}" and "of one row" not in row["stages"]


@pytest.mark.parametrize("by_index", [True, False])
def test_a_part_says_that_its_rows_were_declared_disjoint(by_index):
    accountant = PrivacyAccountant(1.0, 1e-5)
    _, part = accountant.disjoint("clinic", 2, by_index=by_index)
    fitted = DPStandardScaler(0.5, bounds=(0, 1), accountant=part).fit(X)
    (declared,) = [text for text in fitted.privacy_.public if "disjoint" in text]
    assert "part 2 of 2 disjoint parts 'clinic'" in declared
    # The statement, the ledger's table and the handle number the parts alike.
    assert "(part 2 of 2 of 'clinic')" in str(accountant.report())
    assert "part=2 of 2" in repr(part)
    assert ("index" in declared) == by_index
    whole = DPStandardScaler(0.5, bounds=(0, 1), accountant=accountant).fit(X)
    assert not any("disjoint" in text for text in whole.privacy_.public)


@pytest.mark.parametrize("kind", ["split", "additive", "vectorized"])
def test_steps_without_an_accountant_are_not_put_into_a_charged_plan(kind):
    accountant = PrivacyAccountant(1.0, 1e-5)
    if kind == "split":
        steps = make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLogisticRegression(data_norm=2.0))
        pipe = split_budget(steps, 1.0, 1e-5, accountant)
    else:
        model = "classifier" if kind == "additive" else DPLogisticRegression
        pipe = tabular_pipeline(model, bounds=(0, 1), accountant=accountant)
    pipe.set_params(steps=[("model", DPAdditiveClassifier(bounds=(0, 1), delta=1e-6))])
    with pytest.raises(ValueError, match="'model' was put into a plan and has accountant=None"):
        pipe.fit(X, Y)
    assert not accountant.charges
    free = tabular_pipeline("classifier", bounds=(0, 1))
    free.set_params(steps=[("model", DPAdditiveClassifier(bounds=(0, 1), delta=1e-6))]).fit(X, Y)


@pytest.mark.parametrize("labels", [["a", "b"], ["a", "b", "c"], [0, 2]])
def test_labels_that_a_plan_was_not_made_for_cost_nothing(labels):
    accountant = PrivacyAccountant(1.0, 1e-5)
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLogisticRegression(data_norm=2.0))
    with pytest.raises(ValueError, match="classes"):
        split_budget(pipe, 1.0, 1e-5, accountant, classes=labels).fit(X, Y)
    assert not accountant.charges
    split_budget(pipe, 1.0, 1e-5, accountant, classes=[0, 1]).fit(X, Y)
