"""The one JSON text of a value: what is hashed, stored and compared must be written in one way."""

import json
from functools import lru_cache


@lru_cache
def _encoder(other):
    # Kept, because `json.dumps` with options makes a new one at each call.
    return json.JSONEncoder(default=other, sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value, other=None):
    """Return the one JSON text of a value: sorted keys, no spaces; `other` writes what it lacks."""
    return _encoder(other).encode(value)
