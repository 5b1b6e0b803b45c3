"""The import law: what may import what, and which file owns which foreign library, kept by this test."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

import memory

ROOT = Path(__file__).parent.parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("memory", "bot")
    for path in sorted((ROOT / package).rglob("*.py"))
}
LAYERS = {  # lowest first: a unit imports itself, the units of the rows above it here, and nothing else
    "memory": "errors types | ports | tasks days tokens window clock | summarise blocks backlog schedule"
    " overview search forgetting portability | conversation archive | closing folding sessions.held"
    " | eviction sessions.loading sessions.ends | sessions.current | sessions.late | sessions.live | sessions"
    " | core stores",
    "bot": "errors texts message log platforms.base | config | local chat | commands | dispatch"
    " | platforms | app | cli | __main__",
}
RANKS = {
    f"{package}.{unit}": rank
    for package, rows in LAYERS.items()
    for rank, row in enumerate(rows.split("|"))
    for unit in row.split()
} | {"memory": 99}
OWNERS = {
    **dict.fromkeys(("motor", "pymongo", "bson", "gridfs"), "memory/stores/mongo.py"),
    "aiocron": "memory/schedule.py",
    "openai": "bot/chat/openai.py",
    "pydantic": "bot/config/values.py",
    "psutil": "bot/local/*.py",
    "tzlocal": "bot/app.py",
    "xllamacpp": "bot/local/model_server.py",
    **{name: f"bot/platforms/{name}*.py" for name in ("discord", "telegram")},
    "prompt_toolkit": "bot/platforms/terminal*.py",
}
BOUNDARIES = {"memory/schedule.py", "memory/closing.py", "bot/dispatch.py"}


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Give each import of a file as (module, name); the name is "" where a module itself is imported."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{path}: relative"
            whole = [(f"{node.module}.{alias.name}", alias.name) for alias in node.names]
            yield from ((name, "") if name in FILES else (node.module, own) for name, own in whole)


def unit(module: str) -> str:
    found = [name for name in RANKS if module == name or module.startswith(f"{name}.")]
    assert found, f"{module} has no place in LAYERS"
    return max(found, key=len) if module != "memory" else module


@pytest.mark.parametrize("module", [name for name in FILES if name != "bot"])
def test_each_module_imports_only_what_it_may(module: str) -> None:
    path = FILES[module].relative_to(ROOT).as_posix()
    for target, name in imports(FILES[module]):
        top, here = target.split(".")[0], f"{path} imports {target} {name}"
        if top not in ("memory", "bot"):
            assert top in sys.stdlib_module_names or fnmatch(path, OWNERS.get(top, "nobody")), here
        elif top == "memory" and module.startswith("bot"):
            stores = path == "bot/app.py" and target.startswith("memory.stores.")
            assert stores or (target == "memory" and name in memory.__all__), here
        else:
            assert top == module.split(".")[0], here
            assert (
                target == "bot" or unit(target) == unit(module) or RANKS[unit(target)] < RANKS[unit(module)]
            ), here
            platforms = unit(module) == unit(target) == "bot.platforms"
            assert not platforms or target.split("_")[0] == module.split("_")[0], here


@pytest.mark.parametrize("path", FILES.values(), ids=FILES.keys())
def test_tasks_are_owned_failures_caught_at_boundaries_and_names_say_something(path: Path) -> None:
    here = path.relative_to(ROOT).as_posix()
    assert path.stem not in ("utils", "helpers", "common", "manager", "handler", "misc")
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in ("create_task", "ensure_future"):
            grouped = "TaskGroup()" in path.read_text("utf-8") and "_tasks" in ast.unparse(node.value)
            assert grouped or here == "memory/tasks.py", f"{here}:{node.lineno} starts a task of its own"
        if isinstance(node, ast.ExceptHandler):
            kinds = set(re.findall(r"\w+", ast.unparse(node.type) if node.type else "BaseException"))
            assert "Exception" not in kinds or here in BOUNDARIES, f"{here}:{node.lineno} is no boundary"
            raises = isinstance(node.body[-1], ast.Raise)
            assert "BaseException" not in kinds or raises, f"{here}:{node.lineno} swallows everything"
