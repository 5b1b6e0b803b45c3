"""A result is printed as Markdown that also reads well as it is."""

from __future__ import annotations

import platform

import pytest

from bench.table import Table, machine


def test_a_table_is_aligned_and_its_notes_follow() -> None:
    table = Table("Speed", ("side", "ms"), (("floor", "1.0"), ("a longer name", "12.5")), ("a note",))
    assert table.markdown().splitlines() == [
        "### Speed",
        "",
        "| side          |   ms |",
        "| ------------- | ---: |",
        "| floor         |  1.0 |",
        "| a longer name | 12.5 |",
        "",
        "- a note",
    ]


def test_a_bar_in_a_cell_does_not_begin_a_column() -> None:
    assert "a\\|b" in Table("T", ("x", "y"), (("a|b", "1"),)).markdown()


def test_a_row_with_a_cell_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="one cell per column"):
        Table("T", ("x", "y"), (("only one",),)).markdown()


def test_the_machine_is_described_with_its_python() -> None:
    assert f"Python {platform.python_version()}" in machine()
