"""README says only what is true: the settings table, the command line, the targets, the files it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.cli import main
from bot.commands import COMMANDS
from bot.config import settings_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _block(before: str) -> str:
    """Return the first fenced block after this text."""
    return README.split(before, 1)[1].split("```", 2)[1].split("\n", 1)[1]


def test_the_settings_table_is_the_one_of_the_code() -> None:
    assert settings_table().strip() in README


def test_every_command_stands_in_its_table() -> None:
    for command in COMMANDS:
        assert re.search(rf"^\| `/{command.name}\b", README, re.MULTILINE), command.name


def test_the_command_line_is_as_described(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for line in _block("## The command line").splitlines() if line.startswith("omoide ")]
    named = {line.split()[1] for line in lines}
    assert named == {"chat", "run", "memory", "forget", "export", "import", "doctor"}
    for line in lines:
        name = line.split()[1]
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        shown = capsys.readouterr().out
        for option in re.findall(r"--?[a-z][a-z-]*", line.split("   ")[0]):
            assert option in shown, (name, option)


def test_every_make_target_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert {"setup", "chat", "run", "test", "check", "fmt", "bench"} <= targets
    assert set(re.findall(r"`make ([a-z]+)", README)) <= targets


def test_the_map_names_every_module_and_none_that_is_not_there() -> None:
    drawn = _block("## The code on one screen")
    words = set(re.findall(r"[a-z_]+", drawn))
    for folder in ("memory", "bot"):
        for path in (ROOT / folder).iterdir():
            name = path.stem if path.suffix == ".py" else path.name
            if (path.is_dir() or path.suffix == ".py") and not name.startswith("_"):
                assert name in words or name in {"errors"}, f"{folder}/{path.name} is not on the map"


def test_ci_runs_what_readme_tells_people_to_run() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    commands = re.findall(r"^make ([a-z]+)$", ci, re.MULTILINE)
    assert "test" in commands
    assert all(f"make {command}" in README for command in commands)


def test_nothing_in_it_is_left_to_fill_in() -> None:
    assert not re.findall(r"\b[A-Z]+_TABLE\b|\bTRANSCRIPT\b|\bBENCH\b|\bTODO\b", README)
