"""Locks between processes, on files; the kernel drops them when their holder dies, however it dies.

That is why they, and no counter or pid file, say who uses a server: nothing has to be cleaned up after
a kill -9. Taking a lock never waits, so the event loop is never blocked; who wants to wait asks again.
This is the only file that imports fcntl, and only when a lock is taken: Windows does not have it.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path


class FileLock:
    """One lock on one file, which is made when it is missing and never removed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self, *, shared: bool = False) -> bool:
        """Take the lock, or turn the one held into this kind; False if another holder is in the way.

        After False nothing is held any more. Raises OSError if the file cannot be opened or the system
        has no such locks.
        """
        if sys.platform == "win32":
            raise OSError(errno.ENOTSUP, "it needs file locks, which Windows does not have")
        import fcntl

        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            self.drop()
            return False
        except OSError:
            self.drop()
            raise
        return True

    def drop(self) -> None:
        """Let go of the lock; one that is not held is no error."""
        if self._file is not None and sys.platform != "win32":
            import fcntl

            file, self._file = self._file, None
            try:
                # Not left to closing: a program that is just being started may hold a copy for a moment.
                fcntl.flock(file, fcntl.LOCK_UN)
            finally:
                os.close(file)
