"""Makes .venv what a purpose needs; does nothing if it is that, and begins anew after a half-done try.

The stamp is removed before anything changes and written when all is done; one set-up runs at a time.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from requirements import choice, stamp

ROOT = Path(__file__).parents[1]


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
    # Only now, since mostly there is nothing to do and everybody waits for that answer.
    from requirements.installing import explained, make

    try:
        venv.mkdir(exist_ok=True)
        with _alone(venv):
            if _is_done(root, venv, need):
                return False
            make(root, venv, need, extra)
    except (OSError, RuntimeError) as error:
        raise SetupFailed(explained(error)) from error
    return True


def _is_done(root: Path, venv: Path, need: str) -> bool:
    have = stamp.read(venv)
    return have is not None and choice.covers(have.lock, need) and have == stamp.current(root, have.lock)


@contextmanager
def _alone(venv: Path) -> Iterator[None]:
    """Wait until no other set-up of this folder runs; one that was killed does not count."""
    with (venv / stamp.GUARD).open("a+") as guard:
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
