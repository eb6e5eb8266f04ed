"""Entry point of ``python -m skdp``: show a ledger, or the cost of planned releases."""

import sys

from skdp._command_line import main

if __name__ == "__main__":
    sys.exit(main())
