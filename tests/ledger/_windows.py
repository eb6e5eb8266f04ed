"""A simulation of Windows for ledgers in files: its locks, and a layer of paths.

The ledger's modules see neither `fcntl` nor what `os` lacks on Windows. Their paths begin with a
drive, are separated by backslashes, and name a file in whatever case; the files themselves are on
this system. Not simulated is that an open file can be neither removed nor renamed, and that there
is no fork.
"""

import fcntl
import ntpath
import os
import sqlite3
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from urllib.parse import unquote

LACKING = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "fchmod", "pread", "pwrite")
DRIVE = "C:"


def windows_path(path):
    """Return the name that a file of this system has there."""
    return DRIVE + str(path).replace("/", "\\")


def path_here(name):
    """Return the path on this system of a name that may have any case."""
    name = os.fspath(name)
    drive, rest = ntpath.splitdrive(name)
    if not drive:
        return name
    assert drive.upper() == DRIVE and "/" not in rest, f"the path {name!r} was not composed there"
    path = Path("/")
    for part in PureWindowsPath(rest).parts[1:]:
        found = path / part
        if not os.path.lexists(found) and path.is_dir():
            same = (entry for entry in path.iterdir() if entry.name.lower() == part.lower())
            found = next(same, found)
        path = found
    return str(path)


class WindowsPath(PureWindowsPath):
    """A path that also knows whether its file exists, as `Path` does."""

    def exists(self):
        return os.path.exists(path_here(self))


class FakeOS:
    """The module `os`, with the names that Windows has, for paths of this simulation."""

    name = "nt"

    def __init__(self):
        self.path = SimpleNamespace(
            realpath=self._realpath,
            exists=lambda path: os.path.exists(path_here(path)),
            lexists=lambda path: os.path.lexists(path_here(path)),
        )

    def __getattr__(self, name):
        if name in LACKING:
            raise AttributeError(name)
        return getattr(os, name)

    def _realpath(self, path):
        # Windows also returns the case in which the file was made.
        path = os.fspath(path).replace("/", "\\") if ":" in os.fspath(path) else path
        return windows_path(os.path.realpath(path_here(path)))

    def stat(self, path, **options):
        return os.stat(path_here(path), **options)

    def lstat(self, path):
        return os.lstat(path_here(path))

    def open(self, path, *arguments):
        return os.open(path_here(path), *arguments)


def connect(address, **options):
    """Connect to a database by a URI with a drive."""
    address, _, query = address.partition("?")
    assert address.startswith(f"file:///{DRIVE}/")
    name = unquote(address.removeprefix("file:///")).replace("/", "\\")
    return sqlite3.connect(f"{Path(path_here(name)).as_uri()}?{query}", **options)


class FakeLocks:
    """The module `msvcrt`: its lock covers a byte where the descriptor stands."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def locking(self, descriptor, mode, count):
        # The bytes that are covered cannot be read by others: they must not be the text.
        assert count == 1 and os.lseek(descriptor, 0, os.SEEK_CUR) > 1 << 20
        if mode == self.LK_UNLCK:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None


def simulate_windows(monkeypatch):
    """Let the ledger's modules run as on Windows until `monkeypatch` is undone."""
    lock, ledger = "skdp.ledger._file_lock", "skdp.ledger._sqlite"
    monkeypatch.setattr(f"{lock}.fcntl", None)
    monkeypatch.setattr(f"{lock}.msvcrt", FakeLocks())
    monkeypatch.setattr("skdp.ledger._registry.os", FakeOS())
    monkeypatch.setattr(f"{lock}.os", FakeOS())
    monkeypatch.setattr(f"{ledger}.os", FakeOS())
    monkeypatch.setattr(f"{ledger}.Path", WindowsPath)
    fake = SimpleNamespace(connect=connect, Error=sqlite3.Error)
    monkeypatch.setattr(f"{ledger}.sqlite3", fake)
