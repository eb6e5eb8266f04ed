"""Children of tests: forked, ended by `os._exit`, and heard when they fail.

A child of multiprocessing ends as a whole Python does: it waits for threads, and calls what
other tests of the same worker left to be called at exit. What goes wrong there is its status.
"""

import os
import signal
import traceback


class Child:
    """A forked process that calls a function and does nothing else.

    Parameters
    ----------
    target : callable
    *arguments
        What it is called with.
    """

    def __init__(self, target, *arguments):
        self._told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                target(*arguments)
                status = 0
            except BaseException:
                os.write(tell, traceback.format_exc().encode())
            finally:
                os._exit(status)
        os.close(tell)

    def join(self):
        """Wait until it ends, and raise what it raised."""
        with open(self._told) as told:
            problem = told.read()
        status = os.waitpid(self.pid, 0)[1]
        assert status == 0, f"a child ended with status {status}:\n{problem}"

    def kill(self):
        """Kill it, unless it has ended, and return its status."""
        os.kill(self.pid, signal.SIGKILL)
        os.close(self._told)
        return os.waitpid(self.pid, 0)[1]
