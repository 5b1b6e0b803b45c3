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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from requirements.progress import Progress
from requirements.stamp import python_of

_TICK = 0.2
# What would make pip install to somewhere else, or take packages from somewhere else for installed.
_DROPPED = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE")


class PipFailed(Exception):
    """pip ended with an error; `output` is all that it said."""

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
    """Run `pip install` with these arguments, showing how far it is. Raises PipFailed."""
    command = [str(python_of(venv)), "-I", "-m", "pip", "install", "--progress-bar", "off", *arguments]
    with tempfile.TemporaryDirectory(prefix="setup-", dir=venv, ignore_cleanup_errors=True) as folder:
        env = pip_environment(os.environ, temporary=Path(folder))
        child = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        try:
            output = _follow(child, venv=venv, folder=Path(folder), expected=expected, progress=progress)
        finally:
            if child.poll() is None:
                child.terminate()
            code = child.wait()
    if code:
        raise PipFailed(output)


def _follow(
    child: subprocess.Popen[str], *, venv: Path, folder: Path, expected: int, progress: Progress
) -> str:
    lines: queue.Queue[str | None] = queue.Queue()
    assert child.stdout is not None
    threading.Thread(target=_read, args=(child.stdout, lines), daemon=True).start()
    said: list[str] = []
    fetched, installing = 0, False
    while True:
        try:
            line = lines.get(timeout=_TICK)
        except queue.Empty:
            line = ""
        if line is None:
            return "".join(said)
        said.append(line)
        fetched += line.startswith(("Collecting ", "Requirement already satisfied"))
        installing = installing or line.startswith("Installing collected")
        if installing:
            progress.show("Installing", f"{_installed(venv)} of {expected} packages")
        else:
            progress.show("Fetching", f"{min(fetched, expected)} of {expected} packages, {_size(folder)}")


def _read(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _installed(venv: Path) -> int:
    return sum(1 for _ in venv.glob("[Ll]ib/**/site-packages/*.dist-info"))


def _size(folder: Path) -> str:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:  # gone in the meantime
            continue
    return f"{total / 1e6:.0f} MB"
