"""The thread that waits for a task, whose calls are the outer calls of the task's thread.

joblib and Python's executors run tasks in other threads, and pickle tasks for worker processes in
their pools' threads. The call stack of such a thread ends at the pool. The tool is on the stack of
the thread that waits for the task, and both threads share an object: a future, a queue, or joblib's
cache of pickles.
"""

import sys
import threading
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR

from skdp._tools._registry import is_known

PARALLEL = "joblib.parallel"
# Modules of Python's threads, executors and pools. Their threads run or send tasks for another
# thread, which waits for them.
EXECUTORS = frozenset(
    "threading concurrent.futures.thread concurrent.futures.process concurrent.futures._base "
    "multiprocessing.pool multiprocessing.queues".split()
)
# Modules of joblib whose threads pickle tasks for worker processes.
SENDS_TASKS_OF_JOBLIB = frozenset({"joblib.externals.loky.backend.queues", "joblib.pool"})
# Python's functions that do this, each in a separate thread.
SENDS_TASKS = frozenset(
    {("multiprocessing.pool", "_handle_tasks"), ("multiprocessing.queues", "_feed")}
)
# Code flags of functions whose calls can be suspended.
SUSPENDABLE = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
# Other threads continue while their calls are read, so a generator may be suspended before its
# outer call is read. All threads are then read again, at most this number of times.
MAX_READS = 20
# Modules whose calls run or send tasks for another thread.
TASK_MODULES = EXECUTORS | SENDS_TASKS_OF_JOBLIB | {PARALLEL}
# Class of joblib whose call runs tasks in a worker.
TASKS_OF_JOBLIB = "BatchedCalls"


def is_sent_to_workers():
    """Return True if the current pickle is a task for worker processes of joblib or Python.

    A worker cannot see the tool that sent it an estimator, so callers are checked when the task is
    pickled. These libraries pickle tasks in separate threads. Other pickles need no check.
    """
    if threading.current_thread() is threading.main_thread():
        return False
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module in SENDS_TASKS_OF_JOBLIB or (module, frame.f_code.co_name) in SENDS_TASKS:
            return True
        frame = frame.f_back
    return False


def find_waiting(batches, visited):
    """Return the call in another thread that waits for a task.

    Parameters
    ----------
    batches : list of frames
        Calls that run or send the task.
    visited : set of int
        Threads that were already searched. The thread of the result is added.

    Returns
    -------
    frame or None
        None if there is no such call, as in a worker process.
    """
    pickles = [_pickles_of(frame) for frame in batches]
    shared = _objects_of_tasks(batches)
    for _ in range(MAX_READS):
        was_suspended = False
        for thread, frame in sys._current_frames().items():
            if thread in visited:
                continue
            while frame is not None:
                if _waits_for(frame, shared) or _waits_in_joblib(frame, pickles):
                    visited.add(thread)
                    return frame
                outermost = frame
                frame = frame.f_back
            # No thread begins in a generator, so this generator was suspended, and its outer calls
            # are lost.
            was_suspended = was_suspended or bool(outermost.f_code.co_flags & SUSPENDABLE)
        if not was_suspended:
            break
    return None


def _waits_in_joblib(frame, pickles):
    """Return True for a joblib call that waits for a task with one of the given pickle caches."""
    if frame.f_globals.get("__name__") != PARALLEL:
        return False
    # Another worker may run tasks with the same cache, but its calls are not around this task.
    if type(frame.f_locals.get("self")).__name__ == TASKS_OF_JOBLIB:
        return False
    cache = _pickles_of(frame)
    return cache is not None and any(cache is other for other in pickles)


def _objects_of_tasks(batches):
    """Return the Python objects that only a task's thread and the waiting thread reference.

    These are the thread, the executor or the pool that runs or sends a task, and its future.
    """
    shared = []
    for frame in batches:
        module = frame.f_globals.get("__name__")
        if module not in EXECUTORS:
            continue
        variables = frame.f_locals
        if module == "threading":
            shared.append(variables.get("self"))
        elif module == "multiprocessing.pool":
            # The queues of the pool, in a thread that runs or sends its tasks.
            shared += [variables.get(name) for name in ("inqueue", "taskqueue")]
        elif module == "multiprocessing.queues":
            pending = getattr(
                getattr(variables.get("onerror"), "__self__", None), "pending_work_items", {}
            )
            item = pending.get(getattr(variables.get("obj"), "work_id", None))
            shared.append(getattr(item, "future", None))
        else:
            reference = variables.get("executor_reference")
            if callable(reference):
                shared.append(reference())
            shared.append(getattr(variables.get("self"), "future", None))
    return [value for value in shared if value is not None]


def _waits_for(frame, shared):
    """Return True if a call waits for one of the given objects, or if a known tool started it."""
    if not shared:
        return False
    module = frame.f_globals.get("__name__") or ""
    if module == "multiprocessing.pool":
        values = _queues_of(frame.f_locals)
    elif module == "threading":
        # Any thread may check whether another is alive, but only the waiting one starts and joins
        # it.
        values = []
        if frame.f_code.co_name in ("start", "join"):
            values = [frame.f_locals.get("self")]
    elif module in EXECUTORS or is_known(module):
        variables = frame.f_locals
        values = list(variables.values())
        for group in (variables.get("fs"), variables.get("futures")):
            if isinstance(group, list | tuple | set):
                values += list(group)
    else:
        # Between these calls, the thread is a variable of the function that started it.
        shared = [value for value in shared if isinstance(value, threading.Thread)]
        if not shared:
            return False
        values = list(frame.f_locals.values())
    return any(value is other for value in shared for other in values)


def _queues_of(variables):
    """Return the queues of the pool for which a call of `multiprocessing.pool` waits."""
    if "taskqueue" in variables or "inqueue" in variables:
        # This is another thread of the pool.
        return []
    owner = variables.get("self")
    # The result of `map_async` references the pool.
    queues = []
    for holder in (owner, getattr(owner, "_pool", None)):
        queues += [getattr(holder, "_inqueue", None), getattr(holder, "_taskqueue", None)]
    return queues


def _pickles_of(frame):
    """Return an object that a joblib call shares only with its tasks, or None.

    It is the dictionary in which joblib caches pickles.
    """
    variables = frame.f_locals
    owner = variables.get("self")
    if frame.f_globals.get("__name__") in SENDS_TASKS_OF_JOBLIB:
        # An item from loky has a function. An item from a pool is a tuple with a wrapped function.
        owner = variables.get("obj")
        if isinstance(owner, tuple) and len(owner) > 2:
            owner = owner[2]
        for name in ("fn", "func"):
            owner = getattr(owner, name, owner)
    return getattr(owner, "_pickle_cache", None)
