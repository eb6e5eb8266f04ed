"""A base of values: families of frozen dataclasses say once that they are."""

from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from typing import Any, dataclass_transform


def checked(check, *, default: Any = MISSING, **limits) -> Any:
    """Return a field that holds what a check returns of its value and its name."""
    return field(default=default, metadata={"check": partial(check, **limits)})


@dataclass_transform(frozen_default=True, field_specifiers=(field, checked))
class FrozenValue:
    """Makes each subclass a frozen dataclass of its annotated attributes.

    A class statement may say `kw_only` and `eq`; they hold for the attributes of that class. What a
    field declares by `checked` is checked when a value is made.
    """

    def __init_subclass__(cls, *, kw_only=False, eq=True, **options):
        super().__init_subclass__(**options)
        dataclass(cls, frozen=True, kw_only=kw_only, eq=eq)
        cls._checks = {f.name: f.metadata["check"] for f in fields(cls) if "check" in f.metadata}

    def __post_init__(self):
        for name, check in self._checks.items():
            value = getattr(self, name)
            # None as the default says that there is no value.
            if value is not None or getattr(type(self), name, MISSING) is not None:
                vars(self)[name] = check(value, name)
