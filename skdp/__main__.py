"""``python -m skdp``: look at a ledger, price a schedule of releases."""

import sys

from skdp._command_line import main

if __name__ == "__main__":
    sys.exit(main())
