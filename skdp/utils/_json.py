"""Canonical JSON, so that equal values have the same text, which can be hashed or compared."""

import json
from functools import lru_cache


@lru_cache
def _encoder(default):
    """Return the encoder of canonical JSON: sorted keys, no spaces, no NaN."""
    # The encoder is cached, because `json.dumps` with options would create one at each call.
    return json.JSONEncoder(default=default, sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value, default=None):
    """Return JSON with sorted keys and no spaces; `default` converts values of other types."""
    return _encoder(default).encode(value)
