"""Checks of the arguments that the functions on events share."""

from __future__ import annotations

import math

RELATIONS = ("add_remove", "replace_one")


def check_relation(relation):
    if relation not in RELATIONS:
        raise ValueError(f"relation must be one of {RELATIONS}, got {relation!r}")


def check_delta(delta):
    if isinstance(delta, bool) or not 0.0 <= delta <= 1.0:
        raise ValueError(f"delta must lie in [0, 1], got {delta!r}")


def check_epsilon(epsilon):
    if isinstance(epsilon, bool) or not epsilon >= 0.0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon!r}")


def check_group_size(group_size):
    if isinstance(group_size, bool) or int(group_size) != group_size or group_size < 1:
        raise ValueError(f"group_size must be a positive integer, got {group_size!r}")


def check_order(order):
    if not (order > 1.0 and math.isfinite(order)):
        raise ValueError(f"order must be finite and greater than 1, got {order!r}")


def check_tolerance(tolerance):
    if not (0.0 < tolerance < math.inf):
        raise ValueError(f"tolerance must be positive, got {tolerance!r}")
