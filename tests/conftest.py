"""What holds for every test, and for the processes that tests start."""

import os

# Tests run on as many workers as there are processors. Where each starts as many threads again,
# they wait for one another: a fit of scikit-learn's k-means takes many times the processor time.
# The libraries read it when they are imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from skdp.ledger import register_ledger
from tests._memory_ledger import MemoryLedger

register_ledger("memory", MemoryLedger)
