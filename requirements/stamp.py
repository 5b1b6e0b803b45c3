"""What is installed: a stamp in .venv, removed first and written last, so a half-done set-up has none."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "omoide-setup.json"
GUARD = "omoide-setup.lock"


@dataclass(frozen=True)
class Stamp:
    """What a set-up was made from."""

    root: str  # an environment cannot be moved
    lock: str
    packages: str  # hash of the lock
    installer: str  # hash of the files that install
    python: str
    project: str  # hash of pyproject.toml

    def same_environment(self, other: Stamp) -> bool:
        """Tell whether only the project itself may differ."""
        mine, theirs = asdict(self), asdict(other)
        return all(mine[key] == theirs[key] for key in mine if key != "project")


def current(root: Path, lock: str) -> Stamp:
    """Return the stamp of a set-up made from `lock` as everything is now."""
    here = root / "requirements"
    return Stamp(
        root=str(root),
        lock=lock,
        packages=_digest(here / f"{lock}.lock"),
        installer=_digest(*sorted(here.glob("*.py"))),
        python="{}.{}".format(*sys.version_info[:2]),
        project=_digest(root / "pyproject.toml"),
    )


def read(venv: Path) -> Stamp | None:
    """Return the stamp of a finished set-up whose Python still runs, None if there is none."""
    try:
        stamp = Stamp(**json.loads((venv / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return stamp if python_of(venv).exists() else None


def write(venv: Path, stamp: Stamp) -> None:
    """Record a finished set-up."""
    new = venv / f"{NAME}.new"
    new.write_text(json.dumps(asdict(stamp)), encoding="utf-8")
    new.replace(venv / NAME)


def remove(venv: Path) -> None:
    """Record that a set-up is under way."""
    (venv / NAME).unlink(missing_ok=True)


def python_of(venv: Path) -> Path:
    """Return the interpreter of an environment."""
    return venv / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _digest(*files: Path) -> str:
    hashed = hashlib.sha256()
    for file in files:
        hashed.update(file.read_bytes())
    return hashed.hexdigest()
