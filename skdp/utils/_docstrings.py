"""What docstrings of estimators say alike, written once."""

import re
import textwrap
from inspect import cleandoc, isfunction


class Shared:
    """What many estimators and functions take and have.

    Parameters
    ----------
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, however many rows each has,
        and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
        accountant with unit="person", or none.
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
    verbose : int, default=0
        0 is silent, 1 prints the charge and, for fits that take steps, about ten progress lines,
        2 prints one line per epoch. No loss is printed, since the guarantee would not cover it.
        scikit-learn's callbacks (1.9 and later, ``set_callbacks``) receive the same progress.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the fit and its assumptions.
    """


# What a docstring says of one parameter or attribute.
ENTRY = re.compile(r"^(\w+) : .*(?:\n .*)*", re.MULTILINE)


def entries(*classes):
    """Return what docstrings of classes say of each parameter or attribute; the last one counts."""
    texts = (cleandoc(each.__doc__ or "") for each in classes)
    return {entry[1]: entry[0] for text in texts for entry in ENTRY.finditer(text)}


# In a docstring a line that is one of these names in braces stands for the text.
PARTS = entries(Shared) | {
    "raises": """\
ValueError
    If a parameter or the data are invalid; nothing was charged.
BudgetExceededError
    If the accountant refuses the charge; nothing was computed and nothing is fitted."""
}


def complete_docstrings(cls):
    """Fill in the parts of a class's docstrings; a method without one gets that of its base.

    Parts are also what docstrings of base classes say of their parameters and attributes.
    """
    cls.__doc__ = completed(cls.__doc__, PARTS | entries(*reversed(cls.__mro__[1:])))
    for name, method in vars(cls).items():
        if isfunction(method):
            method.__doc__ = completed(method.__doc__)
            if method.__doc__ is None and not name.startswith("_"):
                method.__doc__ = getattr(getattr(super(cls, cls), name, None), "__doc__", None)


def documented(**parts):
    """Make a decorator that fills in a docstring, with more parts."""

    def decorate(documented):
        documented.__doc__ = completed(documented.__doc__, PARTS | parts)
        return documented

    return decorate


def completed(docstring, parts=PARTS):
    """Return a docstring with its parts filled in, None where Python runs without docstrings."""
    if docstring is None:
        return None
    lines = []
    for line in docstring.split("\n"):
        mark = line.strip()
        known = mark[:1] == "{" and mark[-1:] == "}" and parts.get(mark[1:-1])
        indent = line[: len(line) - len(line.lstrip())]
        lines.append(textwrap.indent(known, indent) if known else line)
    return "\n".join(lines)
