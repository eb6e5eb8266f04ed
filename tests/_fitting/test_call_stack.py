"""The quick pass over the call stack agrees with the check of callers."""

import sys

import pytest

from skdp._fitting._call_stack import is_outside_of_tools, read_stack
from skdp._fitting._members import FIT_MEMBERS, FIT_METHODS, VALIDATION, VALIDATIONS

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
