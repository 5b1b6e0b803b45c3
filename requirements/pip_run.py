"""Runs pip inside of the environment, with its settings respected and how far it is shown.

pip tells what it fetches and then is silent while it installs; so the bytes in its temporary folder and the
packages in the environment are counted from outside.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from requirements.progress import Progress
from requirements.stamp import python_of

_TICK = 0.2
# What would make pip install to somewhere else, or take packages from somewhere else for installed.
_DROPPED = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE")


class PipFailed(RuntimeError):
    """pip (or the making of the environment) ended with an error; `output` is all that it said."""

    def __init__(self, output: str) -> None:
        super().__init__("pip failed")
        self.output = output


def pip_environment(env: Mapping[str, str], *, temporary: Path) -> dict[str, str]:
    """Return the environment for pip: the person's, without what would lead it out of .venv."""
    kept = {key: value for key, value in env.items() if key not in _DROPPED}
    own = {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return {**kept, **own, "PIP_NO_INPUT": "1", "PYTHONUNBUFFERED": "1", "TMPDIR": str(temporary)}


def locked(lock: Path) -> int:
    """Return how many packages a lock pins (a few may be for other systems)."""
    return len(re.findall(r"^[A-Za-z0-9._-]+==", lock.read_text(encoding="utf-8"), re.M))


def install(venv: Path, arguments: Sequence[str], *, expected: int, progress: Progress) -> None:
    """Run `pip install` with these arguments, showing how many of `expected` are there. Raises PipFailed."""
    command = [str(python_of(venv)), "-I", "-m", "pip", "install", "--progress-bar", "off", *arguments]
    with tempfile.TemporaryDirectory(prefix="setup-", dir=venv, ignore_cleanup_errors=True) as folder:
        shown = _Shown(venv, Path(folder), expected, progress)
        run(command, env=pip_environment(os.environ, temporary=Path(folder)), heard=shown.heard)


def run(command: Sequence[str], *, env: Mapping[str, str], heard: Callable[[str], None]) -> None:
    """Run a child; `heard` gets each line that it says, and "" several times a second. Raises PipFailed."""
    child = subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    try:
        said = _listen(child, heard)
    finally:
        if child.poll() is None:
            child.terminate()
        code = child.wait()
    if code:
        raise PipFailed(said)


def _listen(child: subprocess.Popen[str], heard: Callable[[str], None]) -> str:
    lines: queue.Queue[str | None] = queue.Queue()
    assert child.stdout is not None
    threading.Thread(target=_read, args=(child.stdout, lines), daemon=True).start()
    said: list[str] = []
    while True:
        try:
            line = lines.get(timeout=_TICK)
        except queue.Empty:
            line = ""
        if line is None:
            return "".join(said)
        said.append(line)
        heard(line)


def _read(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


class _Shown:
    """What is known of a running pip, put on the display."""

    def __init__(self, venv: Path, folder: Path, expected: int, progress: Progress) -> None:
        self._venv = venv
        self._folder = folder
        self._expected = expected
        self._progress = progress
        self._before = self._count()
        self._fetched = 0
        self._installing = False

    def heard(self, line: str) -> None:
        self._fetched += line.startswith(("Collecting ", "Requirement already satisfied"))
        self._installing = self._installing or line.startswith("Installing collected")
        if not self._expected:
            self._progress.show("Installing Omoide")
        elif self._installing:
            self._progress.show("Installing", lambda: f"{self._installed()} of {self._expected} packages")
        else:
            fetched = min(self._fetched, self._expected)
            self._progress.show("Fetching", lambda: f"{fetched} of {self._expected} packages, {self._size()}")

    def _installed(self) -> int:
        return min(self._count() - self._before, self._expected)

    def _count(self) -> int:
        return sum(1 for _ in self._venv.glob("[Ll]ib/**/site-packages/*.dist-info"))

    def _size(self) -> str:
        total = 0
        for path in self._folder.rglob("*"):
            try:
                total += path.stat().st_size
            except OSError:  # gone in the meantime
                continue
        return f"{total / 1e6:.0f} MB"
