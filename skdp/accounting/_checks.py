"""Checks of the arguments that the functions on events share."""

from __future__ import annotations

import math

from skdp.utils._validation import RELATIONS, check_choice

MAX_GROUP_SIZE = 10**9


def as_number(name, value):
    """`value` as a float; truth values and text are no numbers."""
    try:
        if isinstance(value, (bool, str, bytes, bytearray)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None


def check_relation(relation):
    check_choice(relation, "relation", RELATIONS)


def check_delta(delta, name="delta"):
    if not 0.0 <= as_number(name, delta) <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {delta!r}")


def check_epsilon(epsilon):
    if not as_number("epsilon", epsilon) >= 0.0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon!r}")


def check_group_size(group_size):
    number = as_number("group_size", group_size)
    if not (1.0 <= number <= MAX_GROUP_SIZE and number.is_integer()):
        raise ValueError(
            f"group_size must be an integer from 1 to {MAX_GROUP_SIZE:g}, got {group_size!r}"
        )


def check_order(order):
    if not 1.0 < as_number("order", order) < math.inf:
        raise ValueError(f"order must be finite and greater than 1, got {order!r}")


def check_tolerance(tolerance):
    if not 0.0 < as_number("tolerance", tolerance) < math.inf:
        raise ValueError(f"tolerance must be positive, got {tolerance!r}")
