import numpy as np


class Scripted:
    """A stream whose words are given, one batch (or one word) for each request."""

    def __init__(self, *batches):
        self.batches = [np.atleast_1d(np.array(batch, dtype=np.uint64)) for batch in batches]

    def words(self, n):
        batch = self.batches.pop(0)
        assert batch.size == n
        return batch
