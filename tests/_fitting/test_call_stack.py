"""Calls around a fit are read, judged by rules and priced."""

import inspect
import re
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp._fitting import _tool_rules
from skdp._fitting._call_stack import CallStack, ToolCall, is_outside_of_tools, read_stack
from skdp._fitting._members import FIT_MEMBERS, FIT_METHODS, VALIDATION, VALIDATIONS
from skdp._fitting._search_prices import price_of_search
from skdp._fitting._tool_rules import Operation, judge
from skdp._fitting._waiting_threads import find_waiting
from tests._fitting._running_calls import running_call

PACKAGES = "/env/site-packages/"
# Module, file, name of the function, its first argument, and the name that its code contains.
FUNCTIONS = [
    ("__main__", "script.py", "main", "rows", "print"),
    ("__main__", "script.py", "fit", "rows", "print"),
    ("own_models", "own_models.py", "train", "self", "print"),
    ("own_models", "own_models.py", "train", "self", "fit"),
    ("own_models", "own_models.py", "fit", "self", "print"),
    ("threading", "threading.py", "run", "self", "print"),
    ("joblib.parallel", PACKAGES + "joblib/parallel.py", "__call__", "self", "print"),
    ("_pytest.python", PACKAGES + "_pytest/python.py", "runtest", "self", "print"),
    ("newlib.search", PACKAGES + "newlib/search.py", "search", "rows", "print"),
    ("newlib.search", PACKAGES + "newlib/search.py", "fit", "self", "print"),
    ("sklearn.base", PACKAGES + "sklearn/base.py", "fit_transform", "self", "print"),
    ("sklearn.base", PACKAGES + "sklearn/base.py", "wrapper", "estimator", "print"),
    ("sklearn.pipeline", PACKAGES + "sklearn/pipeline.py", "fit", "self", "print"),
    ("sklearn.ensemble._bagging", PACKAGES + "sklearn/ensemble.py", "fit", "self", "print"),
    ("skdp.preprocessing", PACKAGES + "skdp/preprocessing.py", "fit", "self", "print"),
    (VALIDATION, PACKAGES + "sklearn/validation.py", "cross_validate", "estimator", "print"),
]


class Holder:
    def get_params(self, deep=False):
        return {}


def call_in(described, inner):
    """Return a function with the described code that calls an inner function."""
    module, file, name, argument, used = described
    source = (
        f"def {name}({argument}):\n    if {argument} is None:\n        {used}\n    return inner()"
    )
    names = {"__name__": module, "inner": inner}
    exec(compile(source, file, "exec"), names)
    return lambda: names[name](Holder())


def judge_here():
    frame = sys._getframe()
    # The frames of this test file and of its runner are the same for all calls.
    has_members = False
    outer = frame
    while outer is not None:
        module = outer.f_globals.get("__name__") or ""
        name = outer.f_code.co_name
        is_fit = name in FIT_METHODS and module.startswith(FIT_MEMBERS)
        has_members |= is_fit or (module == VALIDATION and name in VALIDATIONS)
        outer = outer.f_back
    return is_outside_of_tools(frame), read_stack(frame).is_bare and not has_members


@pytest.mark.parametrize("innermost", FUNCTIONS, ids=lambda described: ".".join(described[:3:2]))
def test_calls_that_the_quick_pass_skips_are_bare(innermost):
    for outer in FUNCTIONS:
        is_skipped, is_bare = call_in(outer, call_in(innermost, judge_here))()
        assert is_bare or not is_skipped, outer


def test_a_function_of_a_script_is_outside_of_tools():
    assert call_in(FUNCTIONS[0], judge_here)() == (True, True)
    # Names alone do not show whether the class of a method fits something.
    assert call_in(FUNCTIONS[4], judge_here)() == (False, False)


# Calls are judged by rules with names, and judging them reports nothing and charges nothing.


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


# The calls of a thread that goes on while they are read are found.


def call_of_joblib(owner):
    return running_call("joblib.parallel", "call", self=owner)


@pytest.mark.parametrize("n_suspended", [0, 1, 3])
def test_a_generator_that_is_suspended_hides_no_waiting_call(monkeypatch, n_suspended):
    cache = {}
    task, keeps_task = call_of_joblib(SimpleNamespace(_pickle_cache=cache))
    waiting, keeps_waiting = call_of_joblib(SimpleNamespace(_pickle_cache=cache))
    other = (number for number in range(3))
    next(other)
    snapshots = [{1: other.gi_frame}] * n_suspended + [{1: other.gi_frame, 2: waiting}]
    monkeypatch.setattr(sys, "_current_frames", lambda: snapshots.pop(0))
    visited = set()
    assert find_waiting([task], visited) is waiting
    assert visited == {2}
    keeps_task.close()
    keeps_waiting.close()


def test_the_search_ends_if_no_call_waits(monkeypatch):
    task, keeps_task = call_of_joblib(SimpleNamespace(_pickle_cache={}))
    other = (number for number in range(3))
    next(other)
    monkeypatch.setattr(sys, "_current_frames", lambda: {1: other.gi_frame})
    assert find_waiting([task], set()) is None
    keeps_task.close()


@pytest.mark.parametrize(
    ("module", "function", "argument", "waits"),
    [
        ("threading", "join", "self", True),
        ("threading", "is_alive", "self", False),
        ("multiprocessing.pool", "_join_exited_workers", "worker", False),
        ("multiprocessing.pool", "_wait_for_updates", "sentinels", False),
    ],
)
def test_the_thread_that_maintains_a_pool_waits_for_no_task(
    monkeypatch, module, function, argument, waits
):
    """It holds the objects of all threads of the pool, now and then in a variable."""
    worker = object()
    task, keeps_task = running_call("threading", "run", self=worker)
    other, keeps_other = running_call(module, function, **{argument: worker})
    monkeypatch.setattr(sys, "_current_frames", lambda: {1: other})
    assert (find_waiting([task], set()) is other) == waits
    keeps_task.close()
    keeps_other.close()


def test_another_worker_of_joblib_waits_for_no_task(monkeypatch):
    """Its tasks have the same cache of pickles, and its calls are not around this task."""

    class BatchedCalls:
        _pickle_cache = {}

    task, keeps_task = call_of_joblib(BatchedCalls())
    other, keeps_other = call_of_joblib(BatchedCalls())
    waiting, keeps_waiting = call_of_joblib(
        SimpleNamespace(_pickle_cache=BatchedCalls._pickle_cache)
    )
    monkeypatch.setattr(sys, "_current_frames", lambda: {1: other, 2: waiting})
    assert find_waiting([task], set()) is waiting
    for generator in (keeps_task, keeps_other, keeps_waiting):
        generator.close()


# Prices of searches.


def test_a_class_of_another_library_with_the_name_of_a_search_has_no_price():
    """It has other parameters than scikit-learn's."""
    other = type("RFECV", (), {"estimator": DPLogisticRegression(), "cv": KFold(3)})()
    assert price_of_search(other, np.zeros((9, 2))) is None
