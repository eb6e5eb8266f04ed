"""Calls are judged by rules with names, and judging them reports nothing and charges nothing."""

import inspect
import re
import warnings

import pytest
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp._fitting import _tool_rules
from skdp._fitting._call_stack import CallStack, ToolCall
from skdp._fitting._tool_rules import Operation, judge
from tests._fitting._running_calls import running_call

ACCOUNTANT = PrivacyAccountant(1.0, 1e-5)
MODEL = DPLogisticRegression(0.1, delta=1e-6, data_norm=2.0, accountant=ACCOUNTANT)
RAW = make_pipeline(StandardScaler(), MODEL)
TOOLS = {
    "bagging": ("sklearn.ensemble._bagging", BaggingClassifier(MODEL), [("known_tool", True)]),
    "stacking": (
        "sklearn.ensemble._stacking",
        StackingClassifier([("a", MODEL)], cv="prefit"),
        [("known_tool", False)],
    ),
    "voting": ("sklearn.ensemble._voting", VotingClassifier([("a", MODEL)]), []),
    "raw member": (
        "sklearn.ensemble._voting",
        VotingClassifier([("a", RAW)]),
        [("raw_steps", False)],
    ),
    "pipeline": ("sklearn.pipeline", RAW, [("raw_steps", False)]),
}


@pytest.mark.parametrize("name", TOOLS)
def test_calls_are_judged_without_a_report(name):
    module, tool, expected = TOOLS[name]
    frame, generator = running_call(module, "fit", self=tool, X=None, y=None)
    stack = CallStack(
        calls=[ToolCall.of(frame)],
        direct=None,
        is_outermost=False,
        of_user=(),
        batches=[],
        is_parallel=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (judge(Operation(MODEL, "clone"), stack) for _ in range(2))
    assert [(finding.rule, finding.is_refused) for finding in first] == expected
    assert [finding.problem for finding in second] == [finding.problem for finding in first]
    assert ACCOUNTANT.epsilon_spent == 0.0
    generator.close()


def test_every_rule_is_described():
    rules = re.findall(r'ToolFinding\(\s*"(\w+)"', inspect.getsource(_tool_rules))
    described = re.findall(r"^(\w+) {2,}", inspect.getdoc(_tool_rules), re.MULTILINE)
    assert set(rules) == set(described)
