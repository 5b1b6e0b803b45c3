"""Makes .venv what a purpose needs; does nothing if it is that, and begins anew after a half-done try.

The stamp is removed before anything changes and written when all is done; one set-up runs at a time.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from requirements import choice, stamp
from requirements.pip_run import PipFailed, install, locked
from requirements.progress import Progress
from requirements.troubles import explain

ROOT = Path(__file__).parents[1]
_GUARD = "omoide-setup.lock"
# Compiled for minutes where there is no wheel: better to say so at once.
_WHEELS_ONLY = ("--only-binary", ":all:")


class SetupFailed(Exception):
    """The set-up cannot go on; the text says why and what to do."""


def main(arguments: Sequence[str]) -> int:
    """Set up what the purpose on the command line needs; returns the exit code."""
    parser = argparse.ArgumentParser(prog="install.py", description="Sets up .venv.")
    parser.add_argument("--for", dest="purpose", choices=choice.PURPOSES, default="setup")
    purpose = parser.parse_args(arguments).purpose
    config = choice.read_config(Path(os.environ.get("OMOIDE_CONFIG") or ROOT / "config.toml"))
    need = choice.needed(purpose, env=os.environ, config=config)
    try:
        set_up(ROOT, need)
    except SetupFailed as failed:
        print(f"\n{failed}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nThe set-up was interrupted; the next one begins anew.", file=sys.stderr)
        return 130
    return 0


def set_up(root: Path, need: str, *, extra: Sequence[str] = ()) -> bool:
    """Install a lock and the project into .venv; returns False if all of it was there. Raises SetupFailed.

    `extra` are arguments for pip.
    """
    venv = root / ".venv"
    if _is_done(root, venv, need):
        return False
    try:
        venv.mkdir(exist_ok=True)
        with _alone(venv):
            if _is_done(root, venv, need):
                return False
            _install(root, venv, need, extra)
    except PipFailed as failed:
        raise SetupFailed(explain(failed.output, system=_system())) from failed
    except OSError as error:
        raise SetupFailed(explain(str(error), system=_system())) from error
    return True


def _is_done(root: Path, venv: Path, need: str) -> bool:
    have = stamp.read(venv)
    return have is not None and choice.covers(have.lock, need) and have == stamp.current(root, have.lock)


def _install(root: Path, venv: Path, need: str, extra: Sequence[str]) -> None:
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
        raise SetupFailed(
            f"This Python ({sys.executable}) lacks the module that makes virtual environments.\n"
            f"On Debian and Ubuntu: sudo apt install python{version}-venv"
        )
    progress = Progress(sys.stderr)
    progress.show("Making .venv")
    for old in venv.iterdir():
        if old.name != _GUARD:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    # The interpreter below a virtual environment that may be active, since that may be this very one.
    python = getattr(sys, "_base_executable", None) or sys.executable
    made = subprocess.run(
        [python, "-I", "-m", "venv", str(venv)], capture_output=True, text=True, errors="replace", check=False
    )
    progress.clear()
    if made.returncode:
        raise PipFailed(made.stdout + made.stderr)


def _install_lock(root: Path, venv: Path, lock: str, extra: Sequence[str]) -> None:
    path = root / "requirements" / f"{lock}.lock"
    expected = locked(path)
    progress = Progress(sys.stderr)
    arguments = ["--no-deps", "--require-hashes", *_WHEELS_ONLY, "-r", str(path), *extra]
    try:
        install(venv, arguments, expected=expected, progress=progress)
    finally:
        progress.clear()
    progress.done(f"Installed the packages of requirements/{lock}.lock")


def _install_project(root: Path, venv: Path, extra: Sequence[str]) -> None:
    progress = Progress(sys.stderr)
    arguments = ["--no-deps", "--no-build-isolation", *extra, "-e", str(root)]
    try:
        install(venv, arguments, expected=1, progress=progress)
    finally:
        progress.clear()


@contextmanager
def _alone(venv: Path) -> Iterator[None]:
    """Wait until no other set-up of this folder runs; one that was killed does not count."""
    with (venv / _GUARD).open("a+") as guard:
        if not _taken(guard, wait=False):
            print("Another set-up is running here; waiting for it.", file=sys.stderr)
            while not _taken(guard, wait=True):
                pass
        yield


def _taken(guard: IO[str], *, wait: bool) -> bool:
    if sys.platform == "win32":
        import msvcrt

        guard.seek(0)
        try:
            msvcrt.locking(guard.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(guard, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _system() -> str:
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
