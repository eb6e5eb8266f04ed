"""What the accountant and its ledger take: composing, charging, asking.

Usage: python docs/benchmarks/ledger.py [repetitions]

Composition is timed without the disk, by folding charges in memory; charges are timed with it. The
peer's accountant, where diffprivlib imports, composes the same releases; it writes nothing.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from skdp import PrivacyAccountant
from skdp.accounting import Gaussian, Laplace, PoissonSampled, PureDP
from skdp.accounting._composition import _rdp_at_quick_orders
from skdp.ledger import Charge
from skdp.ledger._state import LedgerConfig, State

CHARGES, DISTINCT = 2000, 20


def releases():
    events = [Gaussian(20.0 + i) for i in range(DISTINCT // 2)]
    events += [PoissonSampled(0.01, Gaussian(1.0 + i / 10)) * 10 for i in range(DISTINCT // 2)]
    return events


def compose(composition, events, **terms):
    """Return the seconds that 2,000 decisions take, and the total."""
    _rdp_at_quick_orders.cache_clear()
    terms = LedgerConfig(1000.0, 1e-5, composition=composition, **terms)
    state = State(config=terms)
    start = time.perf_counter()
    for i in range(CHARGES):
        asked = Charge("", events[i % len(events)], 0.0, 0.0, False, "", "")
        state = state.with_charge(state.price_charge(asked))
    spent = state.spent[0]
    return time.perf_counter() - start, spent


def main():
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    laplace = [Laplace(0.01 + i / 1000) for i in range(DISTINCT)]
    for name, events in (("Gaussian and sampled", releases()), ("Laplace", laplace)):
        runs = [compose("auto", events) for _ in range(repetitions)]
        seconds = np.median([run[0] for run in runs])
        print(f"{CHARGES} charges of {DISTINCT} {name} events by 'auto': {seconds:.2f} s")
    try:
        from diffprivlib import BudgetAccountant
    except ImportError:
        print("diffprivlib is not here")
    else:
        peer = BudgetAccountant(delta=1e-5)
        start = time.perf_counter()
        for i in range(CHARGES):
            peer.spend(0.01 + (i % DISTINCT) / 1000, 0.0)
        print(f"the same Laplace charges by diffprivlib: {time.perf_counter() - start:.2f} s")

    with tempfile.TemporaryDirectory() as folder:
        accountant = PrivacyAccountant(1e6, 1e-5, ledger=Path(folder) / "budget.db")
        start = time.perf_counter()
        for _ in range(10_000):
            accountant.charge(PureDP(0.01))
        per_charge = (time.perf_counter() - start) / 10_000
        print(f"a charge, on disk when it returns: {1e3 * per_charge:.2f} ms")
        for name, ask in (
            ("can_afford", lambda: accountant.can_afford(PureDP(0.01))),
            ("epsilon_remaining", lambda: accountant.epsilon_remaining),
        ):
            times = []
            for _ in range(100):
                start = time.perf_counter()
                ask()
                times.append(time.perf_counter() - start)
            print(f"{name} on 10,000 records: {1e3 * np.median(times):.3f} ms")


if __name__ == "__main__":
    main()
