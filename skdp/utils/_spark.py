"""Spark DataFrames that are checkpointed: their partitions are the parts of a table.

What a partition gives by itself is computed by Spark's executors; sums come back and are added
here, in the order of `skdp.utils._workers`. This takes pyspark 4, without Spark Connect, and
pyarrow, here and on the executors.
"""

import pickle
from dataclasses import replace
from functools import partial
from itertools import starmap

import numpy as np

from skdp.utils._dask import RUN, DaskWorkers, Run
from skdp.utils._sources import Parts, Source, _matrix, common_type, read_as
from skdp.utils._workers import Call, added

MOVED = "Spark chose where they stand, by values if what came before the checkpoint says so"


def spark_parts(frame):
    """Return the `Parts` of a Spark DataFrame.

    Raises
    ------
    ValueError
        If it was not checkpointed: Spark may compute anything else anew, in another order.
    """
    plan = frame._jdf.queryExecution().logical() if hasattr(frame, "_jdf") else None
    if plan is None or plan.nodeName() != "LogicalRDD" or not plan.rdd().isCheckpointed():
        raise ValueError(
            "the rows of a Spark DataFrame, or their order, could be others each time they are "
            "read: give what its checkpoint() or localCheckpoint() returned, as it is, in a "
            "session without Spark Connect; or write it to Parquet, and give the path"
        )
    form = frame.limit(0).toArrow()
    dtypes = read_as(form.schema.names, form.schema.types)
    width = form.num_columns
    dtype = common_type(dtypes)
    packed = frame.mapInArrow(partial(_packed, dtypes), "rows binary").rdd
    blocks = packed.mapPartitions(partial(_block, dtype, width))
    shapes = [(height, width) for height in blocks.map(len).collect()]
    sources = tuple(Source("a partition", shape, dtype, _refused, True) for shape in shapes)
    return Parts(sources=sources, form=form, moved=MOVED, workers=partial(SparkWorkers, blocks))


def _packed(dtypes, batches):
    for batch in batches:
        rows = pickle.dumps(_matrix(batch.columns, len(batch), dtypes))
        yield type(batch).from_pydict({"rows": [rows]})


def _block(dtype, width, packed):
    batches = [pickle.loads(each.rows) for each in packed]
    return [np.concatenate([np.empty((0, width), dtype), *batches])]


def _refused():
    raise ValueError("rows of a Spark DataFrame are not brought home: write it to Parquet instead")


def _returned(block, value):
    """Return what a call returns where its block is, and anything else as it is."""
    if isinstance(value, tuple):
        return tuple(_returned(block, each) for each in value)
    is_call = isinstance(value, Call)
    return value.function(block, *_returned(block, value.along)) if is_call else value


class SparkWorkers(DaskWorkers):
    """Spark's executors. What is held of rows is computed where it is asked for, each time.

    Parameters
    ----------
    array : RDD of ndarray
        One for each partition.
    borders : tuple of int
        Where partitions begin, and the number of rows.
    """

    def __init__(self, array, borders):
        super().__init__(None, borders)
        self._array = array

    def total(self, calls, then=None):
        total = added(iter(self.results([call for (call,) in calls])), len(calls))
        return total if then is None else then(total)

    def results(self, calls):
        # The part is there either way, as what is held of it may have to be computed.
        at = RUN.get() or Run(), self._array
        calls = {call.number: self._with_part(at, call) for call in calls}
        # Each partition is sent its own part of what goes with the rows.
        sent = [calls.get(number) for number in range(len(self._borders) - 1)]
        pairs = self._array.zip(self._array.context.parallelize(sent, len(sent)))
        return self._array.context.runJob(pairs, partial(starmap, _returned), list(calls))

    def mapped(self, function):
        """Return the workers of the table that a function makes of blocks, by their borders."""
        return partial(SparkWorkers, self._array.map(function))

    def _with_part(self, at, call):
        return replace(call, along=self._part(at, call.along, call.number))

    def _keep(self, at, beside):
        return [self._with_part(at, call) for call in beside.calls]

    def _send(self, at, values):
        return np.split(values, self._borders[1:-1])
