"""Sets up .venv for `make`: python3 requirements/install.py --for chat|run|setup|test

The first thing that runs on a fresh machine, under whatever "python3" is there. So this file keeps to what
old Pythons understand, to be able to say that they are too old; everything else is imported after that.
"""

import os
import sys

OLDEST = (3, 11)
NEWEST = (3, 13)


def version_complaint(version: "tuple[int, ...]", found: "list[str]", goal: str) -> "str | None":
    """Return what to say about a Python of this version, None if it will do.

    `found` are commands of fitting ones on this machine, `goal` is what make was asked for.
    """
    if OLDEST <= tuple(version[:2]) <= NEWEST:
        return None
    this = ".".join(str(part) for part in version[:3])
    lines = [f"Omoide needs Python 3.11, 3.12 or 3.13, and this is Python {this} ({sys.executable})."]
    if found:
        lines.append(f"{found[0]} is on this machine: run")
    else:
        lines.append("Install one, from your system's packages or python.org, then run")
    lines.append("    make PYTHON={} {}".format(found[0] if found else "python3.12", goal))
    return "\n".join(lines)


def others_on_the_path(path: str) -> "list[str]":
    """Return the commands of fitting Pythons on a PATH, newest first."""
    folders = path.split(os.pathsep)
    names = [f"python3.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    return [name for name in names if any(os.path.isfile(os.path.join(folder, name)) for folder in folders)]


if __name__ == "__main__":
    complaint = version_complaint(
        tuple(sys.version_info[:3]),
        others_on_the_path(os.environ.get("PATH", "")),
        os.environ.get("SETUP_GOAL", "chat"),
    )
    if complaint:
        sys.stderr.write(complaint + "\n")
        sys.exit(1)
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from requirements.environment import main

    sys.exit(main(sys.argv[1:]))
