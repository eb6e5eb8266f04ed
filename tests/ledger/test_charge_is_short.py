"""A reader who steps through a charge enters few files and functions, and is never deep inside."""

import sys
from pathlib import Path

import skdp
from skdp import PrivacyAccountant
from skdp.accounting import PureDP

SKDP = str(Path(skdp.__file__).parent)


def test_a_charge_enters_few_functions(tmp_path):
    accountant = PrivacyAccountant(1e6, 0.5, ledger=tmp_path / "budget.db")
    event = PureDP(0.25)
    # Prices of equal events are computed once.
    accountant.charge(event, label="a count")
    functions, depths = set(), [0]

    def profile(frame, action, _):
        code = frame.f_code
        if code.co_filename.startswith(SKDP):
            if action == "call":
                functions.add((code.co_filename, code.co_qualname))
                depths.append(depths[-1] + 1)
            elif action == "return":
                depths.append(depths[-1] - 1)

    sys.setprofile(profile)
    try:
        accountant.charge(event, label="a count")
    finally:
        sys.setprofile(None)
    assert len({file for file, _ in functions}) <= 9
    assert len(functions) <= 60
    assert max(depths) <= 10
