"""How many functions of skdp a call enters: a count of its work that no machine changes."""

import sys
from pathlib import Path

import skdp

SKDP = str(Path(skdp.__file__).parent)


def count_calls(function):
    """Return how often functions and generators of skdp are entered while one is called."""
    n_calls = 0

    def profile(frame, event, _):
        nonlocal n_calls
        n_calls += event == "call" and frame.f_code.co_filename.startswith(SKDP)

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return n_calls
