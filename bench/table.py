"""A measurement's result as a table in Markdown, with the machine it was taken on.

Every measurement prints the same way, so that two runs can be laid side by side and put into a document as
they are. Pure but for `machine`, which asks what this machine and this environment are.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field

_PACKAGES = ("motor", "pymongo", "openai", "secantusdb", "xllamacpp")


@dataclass(frozen=True, slots=True)
class Table:
    """A title, columns, rows of cells as text, and notes that say how to read them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = field(default_factory=tuple)

    def markdown(self) -> str:
        """Return the table as Markdown, its columns aligned for reading as plain text too.

        Raises ValueError for a row that has not one cell per column.
        """
        lines = [self.columns, *self.rows]
        if any(len(line) != len(self.columns) for line in lines):
            raise ValueError("each row needs one cell per column")
        cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        widths = [max(3, *(len(line[index]) for line in cells)) for index in range(len(self.columns))]
        head, *rows = [_line(line, widths) for line in cells]
        rule = "| " + " | ".join(_rule(index, width) for index, width in enumerate(widths)) + " |"
        notes = [f"- {note}" for note in self.notes]
        return "\n".join([f"### {self.title}", "", head, rule, *rows, *([""] if notes else []), *notes])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Pad the cells: what a row is about to the left, its figures to the right."""
    first, *others = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return "| " + " | ".join(padded) + " |"


def _rule(index: int, width: int) -> str:
    return "-" * width if index == 0 else "-" * (width - 1) + ":"


def machine() -> str:
    """Say in one line what was measured on: cores, system, load, Python, and the packages that matter."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    packages = ", ".join(f"{name} {version}" for name in _PACKAGES if (version := _version(name)))
    return (
        f"{cores} cores ({platform.machine()}, {platform.system()}){load}; "
        f"Python {platform.python_version()}; {packages}"
    )


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
