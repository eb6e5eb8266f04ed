"""A base of values: families of frozen dataclasses say once that they are."""

from dataclasses import dataclass, field
from typing import dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class FrozenValue:
    """Makes each subclass a frozen dataclass of its annotated attributes.

    A class statement may say `kw_only` and `eq`; they hold for the attributes of that class.
    """

    def __init_subclass__(cls, *, kw_only=False, eq=True, **options):
        super().__init_subclass__(**options)
        dataclass(cls, frozen=True, kw_only=kw_only, eq=eq)
