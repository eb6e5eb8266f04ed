"""Tables of checkpointed Spark DataFrames, and function calls on their partitions.

Spark's executors compute a value for each partition. The sums over partitions are added in this
process, in the order of `skdp._data._workers`. This module needs pyspark 4 without Spark Connect,
and pyarrow both here and on the executors.
"""

import pickle
from dataclasses import replace
from functools import partial
from itertools import starmap

import numpy as np

from skdp._data._dask import RUN, DaskWorkers, Run
from skdp._data._sources import Parts, Source, common_type, matrix_of_columns, read_as
from skdp._data._workers import Call, tree_sum

ORDER_PROBLEM = "Spark chose where they stand, by values if what came before the checkpoint says so"


def spark_parts(frame):
    """Return the `Parts` of a Spark DataFrame.

    Raises
    ------
    ValueError
        If it was not checkpointed: Spark may recompute such a DataFrame in another order.
    """
    plan = None
    if hasattr(frame, "_jdf"):
        plan = frame._jdf.queryExecution().logical()
    if plan is None or plan.nodeName() != "LogicalRDD" or not plan.rdd().isCheckpointed():
        raise ValueError(
            "the rows of this Spark DataFrame, or their order, could change each time they are "
            "read. Pass the unchanged result of its checkpoint() or localCheckpoint(), in a "
            "session without Spark Connect, or write it to Parquet and pass the path"
        )
    meta = frame.limit(0).toArrow()
    dtypes = read_as(meta.schema.names, meta.schema.types)
    width = meta.num_columns
    dtype = common_type(dtypes)
    packed = frame.mapInArrow(partial(_packed, dtypes), "rows binary").rdd
    blocks = packed.mapPartitions(partial(_block, dtype, width))
    shapes = [(height, width) for height in blocks.map(len).collect()]
    sources = tuple(Source("a partition", shape, dtype, _refused, True) for shape in shapes)
    return Parts(
        sources=sources,
        meta=meta,
        order_problem=ORDER_PROBLEM,
        workers=partial(SparkWorkers, blocks),
    )


def _packed(dtypes, batches):
    """Yield Arrow batches of one cell each: the pickled array of a batch's rows."""
    for batch in batches:
        rows = pickle.dumps(matrix_of_columns(batch.columns, len(batch), dtypes))
        yield type(batch).from_pydict({"rows": [rows]})


def _block(dtype, width, packed):
    """Return a list with a single array that contains all rows of a partition."""
    batches = [pickle.loads(batch.rows) for batch in packed]
    return [np.concatenate([np.empty((0, width), dtype), *batches])]


def _refused():
    """Raise `ValueError` instead of opening a partition, which only executors read."""
    raise ValueError(
        "the rows of a Spark DataFrame are not read in this process: write it to Parquet instead"
    )


def _returned(block, value):
    """Return the value of a `Call` for its block; other values are returned unchanged."""
    if isinstance(value, tuple):
        return tuple(_returned(block, item) for item in value)
    is_call = isinstance(value, Call)
    if is_call:
        return value.function(block, *_returned(block, value.row_args))
    return value


class SparkWorkers(DaskWorkers):
    """Workers of Spark: its executors.

    Values of `persist` are not stored but computed again each time they are needed.

    Parameters
    ----------
    array : RDD of ndarray
        One array per partition.
    offsets : tuple of int
        The first row of each partition, and the number of rows.
    """

    def __init__(self, array, offsets):
        super().__init__(None, offsets)
        self._array = array

    def run_on_all(self, function):
        """Do nothing: Spark does not list its executors, and those with rows run calls."""

    def total(self, calls, finalize=None):
        """Return the sum of the calls' values, added here; see `JoblibWorkers.total`."""
        total = tree_sum(iter(self.results([call for (call,) in calls])), len(calls))
        if finalize is None:
            return total
        return finalize(total)

    def results(self, calls):
        """Return the list of the calls' values, computed where the partitions are."""
        # Calls always receive the partition, from which values of `persist` may be computed.
        at = RUN.get() or Run(), self._array
        calls = {call.number: self._with_part(at, call) for call in calls}
        # Each partition receives only its rows of `row_args`.
        sent = [calls.get(number) for number in range(len(self._offsets) - 1)]
        pairs = self._array.zip(self._array.context.parallelize(sent, len(sent)))
        return self._array.context.runJob(pairs, partial(starmap, _returned), list(calls))

    def mapped(self, function):
        """Return a function from `offsets` to the workers of the table with `function` applied."""
        return partial(SparkWorkers, self._array.map(function))

    def _with_part(self, at, call):
        """Return a call with its partition's values in place of the references to them."""
        return replace(call, row_args=self._part(at, call.row_args, call.number))

    def _keep(self, at, reference):
        return [self._with_part(at, call) for call in reference.calls]

    def _send(self, at, values):
        return np.split(values, self._offsets[1:-1])
