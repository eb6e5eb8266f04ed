"""A PostgreSQL server of the tests' own, on a socket in a folder of its own."""

import getpass
import os
import shutil
import subprocess
import tempfile
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest

DEBIAN = Path("/usr/lib/postgresql")


def find_programs():
    """Return the folder of initdb and pg_ctl, or None."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(DEBIAN.glob("*/bin"), reverse=True)
    return next((f for f in folders if (f / "initdb").exists() and (f / "pg_ctl").exists()), None)


def quick_folder():
    """Return a folder in memory, None if there is none: a killed server has lost no file there."""
    folder = Path("/dev/shm")
    is_there = folder.is_dir() and os.access(folder, os.W_OK)
    return folder if is_there and shutil.disk_usage(folder).free > 2e9 else None


@contextmanager
def running_server():
    """Yield a server, or skip the tests that need one."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL's server programs are not installed")
    # The path of a socket must be short, and open to another user.
    folder = Path(tempfile.mkdtemp(prefix="skdp-pg-", dir=quick_folder()))
    folder.chmod(0o755)
    server = Server(folder, programs)
    server.start()
    yield server
    server.stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


class Server:
    """A server that root runs as the user nobody, since PostgreSQL refuses root."""

    def __init__(self, folder, programs):
        self._programs = programs
        self._data = folder / "data"
        self.folder = folder
        self.user = getpass.getuser()
        self._as_user = {}
        if os.getuid() == 0:
            self.user = "nobody"
            self._as_user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
            shutil.chown(folder, "nobody", "nogroup")
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", self.user, "--no-sync")

    def address(self, database="postgres"):
        return f"postgresql:///{database}?host={self.folder}&user={self.user}"

    def new_database(self, options=""):
        """Return the address of a database without a ledger."""
        name = f"d{uuid.uuid4().hex}"
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" {options}')
        return self.address(name)

    def start(self, *settings):
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder}"
        for setting in settings:
            options += f" -c {setting}"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self._data, "-l", log, "-w", "-o", options, "start")

    def stop(self, mode="fast"):
        self._run("pg_ctl", "-D", self._data, "-m", mode, "-w", "stop")

    def _run(self, program, *arguments):
        command = [str(self._programs / program), *map(str, arguments)]
        subprocess.run(
            command,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            **self._as_user,
        )
