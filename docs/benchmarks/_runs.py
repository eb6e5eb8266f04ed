"""Fits that were measured, kept in a file, so that a run that was stopped is taken up again."""

import json
from pathlib import Path


class Runs:
    """Results by key: of a file of JSON lines, and those that are measured and written to it.

    Parameters
    ----------
    path : str or None
        Of the file, which need not exist; None keeps results in memory alone.
    """

    def __init__(self, path=None):
        self.path, self.found = path, {}
        if path and Path(path).exists():
            for line in Path(path).read_text().splitlines():
                key, result = json.loads(line)
                self.found.setdefault(key, []).append(result)

    def of(self, key, n_fits, measure):
        """Return `n_fits` results; `measure` of a number yields so many, for those that lack."""
        own = self.found.setdefault(key, [])
        if len(own) < n_fits:
            for result in measure(n_fits - len(own)):
                own.append(result)
                if self.path:
                    with open(self.path, "a") as file:
                        file.write(json.dumps([key, result]) + "\n")
        return own[:n_fits]
