"""The estimators inside an object: its steps and models, and the private ones among them."""

import dis
from dataclasses import is_dataclass
from functools import cache
from inspect import Parameter, signature, unwrap
from itertools import islice
from numbers import Number
from types import FunctionType, MemberDescriptorType, SimpleNamespace

import numpy as np
from sklearn.frozen import FrozenEstimator

from skdp._tools._classes import behaves_as, is_in_library

VAR_POSITIONAL = Parameter.VAR_POSITIONAL
VAR_KEYWORD = Parameter.VAR_KEYWORD
# The class of estimators that are never fitted again.
FROZEN = frozenset({"sklearn.frozen.FrozenEstimator"})
# Maximum length of a list that is searched for steps. Lists of rows are longer.
MAX_PARTS = 1000
# Maximum number of values of a list that may begin with a number or a word, as a pair of a weight
# and a model does, and still hold a step. Longer ones are rows of a table.
MAX_MIXED = 10
# Methods of objects that can be steps of a pipeline. Some classes have no `get_params`.
STEP_METHODS = ("fit", "transform", "fit_transform", "fit_resample", "fit_predict")


def is_private(value):
    """Return True for a private estimator, which has `epsilon` and `accountant`."""
    names = ()
    if is_estimator(value):
        names = value.get_params(deep=False)
    return "epsilon" in names and "accountant" in names


def holds_private(value):
    """Return True for a private estimator, or a step or model that has one inside it.

    An object that was given an accountant also counts: its fit makes releases with functions, or
    with private estimators that it creates.
    """
    if not is_step(value):
        return False
    return any(map(_charges, (value, *nested_parts(value).values())))


def _charges(part):
    """Return True for a step or model that has an accountant in a parameter."""
    if is_private(part):
        return True
    # The attribute is read from the class, because a handle may have to read its ledger.
    return any(hasattr(type(value), "charge") for value in _constructor_params(part).values())


def is_frozen(value):
    """Return True for a fitted estimator that is never fitted again."""
    return type(value) is FrozenEstimator or behaves_as(value, FROZEN)


def is_estimator(value):
    """Return True for an estimator that is not a class."""
    return hasattr(value, "get_params") and hasattr(value, "fit") and not isinstance(value, type)


def is_step(value):
    """Return True for an object that a pipeline or an ensemble can fit or apply to rows."""
    if value is None or isinstance(value, type | str | float | int | np.ndarray):
        return False
    # Some objects, such as skrub's data ops, have every attribute, so the class is inspected.
    kind = type(value)
    # The data frames of pandas have a method `transform`, too; `iloc` tells them apart.
    return any(hasattr(kind, method) for method in STEP_METHODS) and not hasattr(kind, "iloc")


def parts_of(value):
    """Yield the names and values of the steps and models that an object was given.

    They are found by their methods, in any parameter of the constructor, in attributes of the
    class, and in lists, tuples, dictionaries and records of these. An object of a user-defined
    class, or one that does not store its parameters under their names, is searched in all of its
    attributes, without fitted ones.

    Parameters
    ----------
    value : object

    Yields
    ------
    name : str
        Name of the parameter, followed by names or positions inside lists and dictionaries.
    part : object
    """
    params = {name: getattr(value, name, None) for name in _class_step_names(type(value))}
    for name, param in (params | _constructor_params(value)).items():
        yield from parts_in(name, param)


def parts_in(name, value):
    """Yield the names and values of the steps and models in a value; see `parts_of`.

    Unlike `parts_of`, it does not look into a step or model. Callers pass a parameter, a fitted
    attribute or an argument of a function.

    Parameters
    ----------
    name : str
        Name of the value, which begins the names of its parts; "" if only the parts are needed.
    value : object
        A step or model, or a list, tuple, dictionary or record of these.

    Yields
    ------
    name : str
    part : object
    """
    if is_step(value):
        yield name, value
    elif isinstance(value, dict):
        # The lists in a dictionary are candidates of a search, which are checked with the search;
        # they are no parts.
        for key, item in islice(value.items(), MAX_PARTS):
            if is_step(item):
                yield f"{name}[{key!r}]", item
    elif is_record(value):
        for key, item in attributes_of(value).items():
            if is_step(item):
                yield f"{name}.{key}", item
    elif type(value) in (list, tuple) and not _is_row(value):
        for i, item in enumerate(value[:MAX_PARTS]):
            # Steps are pairs (name, step), or triples that also contain columns.
            is_named = isinstance(item, tuple) and len(item) > 1 and isinstance(item[0], str)
            if is_named and is_step(item[1]):
                yield item[0], item[1]
            else:
                yield from parts_in(f"{name}[{i}]", item)


def _is_row(value):
    """Return True for a list that is a row of a table, judging by its length and its first value.

    Only a long list is judged: a short one that begins with a number or a word is searched for
    steps, too.
    """
    return len(value) > MAX_MIXED and isinstance(value[0], Number | str | None)


def is_record(value):
    """Return True for a named tuple, a namespace or an instance of a data class."""
    is_named_tuple = isinstance(value, tuple) and hasattr(type(value), "_fields")
    is_instance = isinstance(value, SimpleNamespace) or is_dataclass(type(value))
    return is_named_tuple or is_instance


def attributes_of(value):
    """Return the attributes of an object by name, wherever its class stores them."""
    attributes = {
        name: getattr(value, name)
        for name in _slot_names(type(value))
        # A slot may be empty.
        if hasattr(value, name)
    }
    if isinstance(value, tuple) and hasattr(type(value), "_fields"):
        attributes |= value._asdict()
    return attributes | getattr(value, "__dict__", {})


@cache
def _slot_names(kind):
    """Return the names of the attributes that a class stores in slots."""
    return tuple(
        name
        for cls in kind.__mro__
        for name, item in vars(cls).items()
        if isinstance(item, MemberDescriptorType)
    )


@cache
def _class_step_names(kind):
    """Return the names of the attributes of a class that are steps or models."""
    return tuple(name for cls in kind.__mro__ for name, item in vars(cls).items() if is_step(item))


def _constructor_params(value):
    """Return the parameters of an object by name, as `get_params(deep=False)` does.

    A user-defined class may create more parts in its constructor, or before a fit.
    """
    names = _constructor_names(type(value))
    params = {}
    if hasattr(type(value), "get_params"):
        try:
            params = value.get_params(deep=False)
        except (TypeError, AttributeError, RuntimeError):
            names = None
        else:
            # `get_params` leaves out arguments that a constructor accepts as **kwargs.
            if names is not None and is_in_library(type(value)):
                return params
    attributes = attributes_of(value)
    if is_in_library(type(value)) and names is not None and attributes.keys() >= set(names):
        return {name: attributes[name] for name in names}
    set_by_library = frozenset()
    if not is_in_library(type(value)):
        set_by_library = _names_set_by_libraries(type(value))
    set_by_user = {
        name: item
        for name, item in attributes.items()
        if not (name.endswith("_") or name in set_by_library)
    }
    return set_by_user | params


@cache
def _names_set_by_libraries(kind):
    """Return the names of the attributes that the library's base classes of a class assign.

    In a class that is derived from a tool, the entry of the tool covers these attributes. The
    constructor's parameters are among them.
    """
    names = set()
    for cls in filter(is_in_library, kind.__mro__):
        for item in vars(cls).values():
            function = unwrap(item) if callable(item) else None
            if isinstance(function, FunctionType):
                names |= {
                    instruction.argval
                    for instruction in dis.get_instructions(function)
                    if instruction.opname == "STORE_ATTR"
                }
    return frozenset(names)


@cache
def _constructor_names(kind):
    """Return the names of a constructor's parameters; None if it accepts arbitrary parameters."""
    try:
        parameters = list(signature(kind).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(parameter.kind in (VAR_POSITIONAL, VAR_KEYWORD) for parameter in parameters):
        return None
    return tuple(parameter.name for parameter in parameters)


def nested_parts(value):
    """Return the steps and models inside an object at any depth, by their names.

    Parameters of private estimators are left out.
    """
    nested = {}
    _add_nested_parts(value, "", nested, {id(value)})
    return nested


def _add_nested_parts(value, prefix, nested, visited):
    """Add the parts of a value, at any depth, to the dictionary `nested`; see `nested_parts`.

    Parameters
    ----------
    value : object
    prefix : str
        Path of the value, which begins the names of its parts: "" or a path that ends in "__".
    nested : dict
        Maps the path of a part to the part.
    visited : set of int
        Identities of the value and of the objects around it.
    """
    for name, part in parts_of(value):
        path = f"{prefix}{name}"
        # A list may contain one object several times, and objects may contain each other.
        if id(part) in visited:
            nested.setdefault(path, part)
            continue
        nested[path] = part
        if not is_private(part):
            _add_nested_parts(part, f"{path}__", nested, visited | {id(part)})


def copy_parts(value):
    """Return a copy of an estimator and those inside it, so that `set_params` changes no others.

    Everything else is shared. `clone` would cause the private estimators to be judged again.
    """
    if type(value) in (list, tuple):
        return type(value)(map(copy_parts, value))
    if not is_estimator(value) or is_frozen(value):
        return value
    copied = object.__new__(type(value))
    vars(copied).update(vars(value))
    for name, part in value.get_params(deep=False).items():
        vars(copied)[name] = copy_parts(part)
    return copied


def set_copies(estimator, values):
    """Set parameters of an estimator to values as `copy_parts` copies them, and return it."""
    return estimator.set_params(**{name: copy_parts(value) for name, value in values.items()})


def learns_raw(part):
    """Return True for a model or step that learns when fitted and contains no private one."""
    if is_frozen(part) or not hasattr(part, "fit") or holds_private(part):
        return False
    # A class can declare that its fits are charged or that they learn nothing.
    return vars(type(part)).get("__skdp_kind__") not in ("private", "stateless", "declared")


def raw_callbacks(estimator):
    """Return the callbacks of an estimator that may store rows or scores of rows."""
    callbacks = getattr(estimator, "_skl_callbacks", ())
    return [callback for callback in callbacks if not _stores_nothing(callback)]


def _stores_nothing(callback):
    """Return True for scikit-learn's progress bar."""
    kind = type(callback)
    return kind.__module__.partition(".")[0] == "sklearn" and kind.__name__ == "ProgressBar"
