"""A PostgreSQL server of the tests' own, on a socket in a folder of its own."""

import getpass
import os
import shutil
import subprocess
from pathlib import Path

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
