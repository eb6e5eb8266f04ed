"""Frozen dataclasses whose fields are checked when a value is made."""

from dataclasses import MISSING, field, fields
from functools import cache, partial
from typing import Any


def checked(check, *, default: Any = MISSING, **limits) -> Any:
    """Return a field that holds what a check returns of its value and its name."""
    return field(default=default, metadata={"check": partial(check, **limits)})


class FrozenValue:
    """Base of frozen dataclasses whose fields may declare a check.

    Each subclass is decorated by ``@dataclass(frozen=True)``. A field that is made by `checked` is
    checked, and converted, when a value is made.
    """

    def __post_init__(self):
        for name, check in _checks_of(type(self)).items():
            value = getattr(self, name)
            # A field whose default is None may be left out.
            if value is not None or getattr(type(self), name, MISSING) is not None:
                vars(self)[name] = check(value, name)


@cache
def _checks_of(cls):
    """Return the check of each field of a class that declares one."""
    return {f.name: f.metadata["check"] for f in fields(cls) if "check" in f.metadata}
