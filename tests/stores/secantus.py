"""A real SecantusDB server for tests: a child process on a free loopback port, in a folder of its own.

The server is only ever started and spoken to, never imported. It logs the port it got; nothing is guessed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "secantusd-py"
_PORT = re.compile(r"listening on [^\s:]+:(\d+)")


class SecantusServer:
    """One server process; it can be killed, stopped, and started again on the same folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._runs = 0
        self.port = 0

    @property
    def uri(self) -> str:
        """What a client connects to, with the settings that this server needs."""
        return f"mongodb://127.0.0.1:{self.port}/?directConnection=true&retryWrites=false&journal=true"

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process is not None
        return self._process.pid

    def start(self, *, port: int = 0, within: float = 60.0) -> None:
        """Start it and wait until it listens."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._runs += 1
        log = self._folder / f"server-{self._runs}.log"
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [
                    str(PROGRAM),
                    *("--host", "127.0.0.1", "--port", str(port)),
                    *("--storage-path", str(self._folder / "data"), "--log-level", "INFO"),
                ],
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self.port = _await_port(self._process, log, within=within)

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ask it to end, and make sure that it does."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()


def _await_port(process: subprocess.Popen[bytes], log: Path, *, within: float) -> int:
    end = time.monotonic() + within
    while time.monotonic() < end:
        text = log.read_text(errors="replace")
        if found := _PORT.search(text):
            return int(found[1])
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}: {text[-2000:]}")
        time.sleep(0.02)  # waits for a real process; there is nothing to be told by
    process.kill()
    process.wait()
    raise RuntimeError(f"the server did not listen within {within} s: {log.read_text(errors='replace')}")


@contextmanager
def running_server(folder: Path) -> Iterator[SecantusServer]:
    """Run a server for the length of a with statement."""
    server = SecantusServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
