"""The slow part of a set-up: makes the virtual environment, fills it from a lock, installs the project."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from requirements import choice, stamp
from requirements.pip_run import PipFailed, install, locked, run
from requirements.progress import Progress
from requirements.troubles import explain

# Without a wheel a package would be compiled for minutes: better to say at once that it does not fit. And
# compiling every module of every package takes half of all the time; Python does it at the first import.
_FAST = ("--only-binary", ":all:", "--no-compile")


class NoVenv(RuntimeError):
    """This Python cannot make virtual environments; the text says how to mend it."""


def explained(error: Exception) -> str:
    """Return what to tell the person about what `make` raised."""
    if isinstance(error, NoVenv):
        return str(error)
    output = error.output if isinstance(error, PipFailed) else str(error)
    return explain(
        output, system=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )


def make(root: Path, venv: Path, need: str, extra: Sequence[str]) -> None:
    """Make an environment hold a lock and the project, `extra` being arguments for pip.

    Raises PipFailed, NoVenv and OSError.
    """
    have = stamp.read(venv)
    kept = have is not None and have.same_environment(stamp.current(root, have.lock))
    lock = have.lock if have and kept and choice.covers(have.lock, need) else need
    stamp.remove(venv)
    if not kept:
        _make_venv(venv)
    if not (have and kept and have.lock == lock):
        _install_lock(root, venv, lock, extra)
    _install_project(root, venv, extra)
    stamp.write(venv, stamp.current(root, lock))


def _make_venv(venv: Path) -> None:
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        version = "{}.{}".format(*sys.version_info[:2])
        raise NoVenv(
            f"This Python ({sys.executable}) lacks the module that makes virtual environments.\n"
            f"On Debian and Ubuntu: sudo apt install python{version}-venv"
        )
    progress = Progress(sys.stderr)
    for old in venv.iterdir():
        if old.name != stamp.GUARD:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    # The interpreter below a virtual environment that may be active, since that may be this very one.
    python = getattr(sys, "_base_executable", None) or sys.executable
    try:
        run(
            [python, "-I", "-m", "venv", str(venv)],
            env=os.environ,
            heard=lambda _: progress.show("Making .venv"),
        )
    finally:
        progress.clear()


def _install_lock(root: Path, venv: Path, lock: str, extra: Sequence[str]) -> None:
    path = root / "requirements" / f"{lock}.lock"
    expected = locked(path)
    progress = Progress(sys.stderr)
    arguments = ["--no-deps", "--require-hashes", *_FAST, "-r", str(path), *extra]
    try:
        install(venv, arguments, expected=expected, progress=progress)
    finally:
        progress.clear()
    progress.done(f"Installed the packages of requirements/{lock}.lock")


def _install_project(root: Path, venv: Path, extra: Sequence[str]) -> None:
    progress = Progress(sys.stderr)
    arguments = ["--no-deps", "--no-build-isolation", *extra, "-e", str(root)]
    try:
        install(venv, arguments, expected=0, progress=progress)
    finally:
        progress.clear()
