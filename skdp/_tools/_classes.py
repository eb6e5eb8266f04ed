"""Classes of other libraries, which are recognized only by module and name.

A user may write a class of any name, including one that is derived from a known class and overrides
its methods.
"""

import sys
from functools import cache
from itertools import takewhile

# A derived class may define methods that begin and end with two underscores, such as a constructor,
# without changing its behavior. These methods are exceptions.
BEHAVIOR = frozenset({"__getattribute__", "__getattr__", "__call__", "__iter__"})


# Folders of installed packages.
INSTALLED = ("site-packages", "dist-packages")


def public_path(module):
    """Return the public package of a module. Libraries define classes in its private modules.

    Parameters
    ----------
    module : str

    Returns
    -------
    str
    """
    return ".".join(takewhile(lambda part: not part.startswith("_"), module.split(".")))


def is_of_classes(value, *names):
    """Return True if a value is an instance of one of these library classes, or of a derived class.

    Parameters
    ----------
    value : object
    *names : str
        The library and the name of each class, such as "sklearn.RFECV".
    """
    return any(_name_in_library(cls) in names for cls in type(value).__mro__)


def behaves_as(value, names):
    """Return True if a value is an instance of a known class and behaves like that class.

    A derived class counts if it defines no methods besides a constructor.

    Parameters
    ----------
    value : object
    names : frozenset of str
        The public packages and names of the classes, such as "sklearn.model_selection.KFold".
    """
    # A method can also be replaced in an instance. A repeated splitter stores the class of its
    # folds.
    return _class_behaves_as(type(value), names) and not any(
        callable(item) and not (isinstance(item, type) and _class_behaves_as(item, names))
        for item in getattr(value, "__dict__", {}).values()
    )


@cache
def _class_behaves_as(kind, names):
    """Return True if instances of a class behave like a named class; see `behaves_as`."""
    for i, cls in enumerate(kind.__mro__):
        if f"{public_path(cls.__module__)}.{cls.__name__}" in names:
            # A class that follows it in the method resolution order may override methods of its
            # base classes.
            return kind.__mro__[i:] == cls.__mro__
        if any(_is_behavior(name, item) for name, item in vars(cls).items()):
            return False
    return False


def _is_behavior(name, item):
    """Return True for an attribute of a class that changes what its instances do."""
    if name.startswith("__") and name.endswith("__"):
        return name in BEHAVIOR
    # scikit-learn defines metadata requests anew for each derived class.
    is_request = name.startswith("set_") and name.endswith("_request")
    return not is_request and (callable(item) or hasattr(item, "__get__"))


@cache
def is_in_library(kind):
    """Return True for a class of skdp, of Python or of an installed package."""
    package = kind.__module__.partition(".")[0]
    path = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    is_installed = any(folder in path for folder in INSTALLED)
    return package == "skdp" or package in sys.stdlib_module_names or is_installed


def _name_in_library(cls):
    return f"{cls.__module__.partition('.')[0]}.{cls.__name__}"
