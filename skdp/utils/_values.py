"""Frozen dataclasses whose fields are checked when an instance is created."""

from dataclasses import MISSING, field, fields
from functools import cache, partial
from typing import Any


def checked(check, *, default: Any = MISSING, **limits) -> Any:
    """Return a dataclass field whose value is checked, and converted, by ``check(value, name)``."""
    return field(default=default, metadata={"check": partial(check, **limits)})


def computed() -> Any:
    """Return a dataclass field that `__post_init__` computes unless a value is passed."""
    return field(default=None)


class FrozenValue:
    """Base class of frozen dataclasses whose fields may declare a check.

    Subclasses are decorated with ``@dataclass(frozen=True)``. A field that is declared by `checked`
    is checked, and converted, when an instance is created.
    """

    def __post_init__(self):
        for name, check in _checks_of(type(self)).items():
            value = getattr(self, name)
            # None is not checked for a field whose default is None.
            if value is not None or getattr(type(self), name, MISSING) is not None:
                vars(self)[name] = check(value, name)


@cache
def _checks_of(cls):
    """Return the checks of a class, by field name."""
    return {f.name: f.metadata["check"] for f in fields(cls) if "check" in f.metadata}
