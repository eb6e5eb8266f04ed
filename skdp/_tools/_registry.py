"""Lookup in the registry: the entry for a class, and for a function of a module."""

import sys
from functools import cache

from skdp._tools import _library_tools, _sklearn_steps, _sklearn_tools
from skdp._tools._advice import DECLARE
from skdp._tools._classes import public_path
from skdp._tools._entries import KnownStep, Tool
from skdp._tools._entry_kinds import STUDY

TOOLS: tuple[Tool, ...] = (*_sklearn_steps.TOOLS, *_sklearn_tools.TOOLS, *_library_tools.TOOLS)
# The classes as steps. Keys are the public module and name of a class, or a module for all its
# other classes. Classes of modules without an entry are "unknown".
KNOWN_STEPS = {name: tool.step for tool in TOOLS for name in tool.classes}
# The calls. Keys are "module:function" or prefixes of module names; the longest matching prefix
# applies.
KNOWN_CALLERS = {module: tool.call for tool in TOOLS for module in tool.modules}
UNKNOWN = KnownStep(kind="unknown", advice=DECLARE)


@cache
def find_class(module, name):
    """Return the entry for a class as a step.

    Parameters
    ----------
    module, name : str
        The class's ``__module__`` and ``__name__``.

    Returns
    -------
    KnownStep
        The entry with the longest matching name, or `UNKNOWN`.
    """
    packages = public_path(module).split(".")
    paths = [".".join(packages[:n]) for n in range(len(packages), 0, -1)]
    keys = [f"{path}.{name}" for path in paths] + paths
    return next((KNOWN_STEPS[key] for key in keys if key in KNOWN_STEPS), UNKNOWN)


def find_entry(estimator):
    """Return the registry's entry for the class of an estimator, or `UNKNOWN`."""
    return find_class(type(estimator).__module__, type(estimator).__name__)


# Tools that call user-defined functions and compute nothing from rows.
RUNNERS = frozenset(
    "joblib dask distributed ray pyspark cloudpickle loky multiprocess ipyparallel mpi4py "
    "IPython ipykernel pytest _pytest pluggy pytest_benchmark hypothesis tenacity tqdm wrapt "
    "decorator coverage threadpoolctl line_profiler memory_profiler typeguard beartype skdp".split()
)
# Modules that pass rows on unchanged, or pass columns to each estimator or function. pandas does so
# in a table's `apply`, `agg` and `pipe`. Groups of rows depend on values, so `TOOLS` has entries
# for them.
PASSES_ON = (
    "numpy.lib",
    "pandas.core.apply",
    "pandas.core.common",
    "pandas.core.frame",
    "pandas.core.generic",
    "pandas.core.series",
    "sklearn.base",
    "sklearn.callback",
    "sklearn.compose",
    "sklearn.ensemble._base",
    "sklearn.feature_selection._base",
    "sklearn.frozen",
    "sklearn.inspection",
    "sklearn.metrics",
    "sklearn.model_selection._plot",
    "sklearn.pipeline",
    "sklearn.utils",
    "skrub._apply_to_cols",
    "skrub._apply_to_each_col",
    "skrub._apply_to_sub_frame",
    "skrub._wrap_transformer",
)


@cache
def is_known(module):
    """Return True if the registry has an entry about a module or its functions."""
    packages = module.split(".")
    beginnings = {".".join(packages[: i + 1]) for i in range(len(packages))}
    return any(key.partition(":")[0] in beginnings for key in KNOWN_CALLERS)


@cache
def known_caller(module, function):
    """Return the registry's entry for a function of a module, or None.

    Parameters
    ----------
    module, function : str

    Returns
    -------
    KnownCaller or None
    """
    tool = KNOWN_CALLERS.get(f"{module}:{function}")
    if tool is not None:
        return tool
    packages = module.split(".")
    for length in range(len(packages), 0, -1):
        tool = KNOWN_CALLERS.get(".".join(packages[:length]))
        if tool is not None:
            if tool.functions is None or function in tool.functions:
                return tool
            return None
    return None


def is_study(frame):
    """Return True for a call of a tool that compares the results of a user-defined function."""
    return known_caller(frame.f_globals["__name__"], frame.f_code.co_name) is STUDY


@cache
def passes_on(module):
    """Return True if functions of a module only call other functions with unchanged rows."""
    package = module.partition(".")[0]
    # Python's own threads, pools and context managers run other modules' functions.
    if package in RUNNERS or package in sys.stdlib_module_names or is_known(module):
        return True
    return any(module == name or module.startswith(name + ".") for name in PASSES_ON)
