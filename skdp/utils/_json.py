"""Canonical JSON, so that equal values have equal text when it is hashed or compared."""

import json
from functools import lru_cache


@lru_cache
def _encoder(default):
    # Cached, because `json.dumps` with options creates an encoder at each call.
    return json.JSONEncoder(default=default, sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value, default=None):
    """Return JSON with sorted keys and no spaces; `default` converts values of other types."""
    return _encoder(default).encode(value)
