"""The Dockerfile, the compose file and the wheel: what can be known of them without a container engine."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
_SECRET = re.compile(r"password|secret|token|api_?key|uri", re.IGNORECASE)
_SERVICE_KEYS = {
    *(
        "build",
        "cap_drop",
        "command",
        "depends_on",
        "entrypoint",
        "environment",
        "extra_hosts",
        "healthcheck",
    ),
    *("image", "init", "logging", "ports", "profiles", "read_only", "restart", "security_opt"),
    *("stop_grace_period", "tmpfs", "user", "volumes"),
}
_HEALTH_KEYS = {"test", "interval", "timeout", "retries", "start_period", "start_interval"}


# The compose file


@pytest.fixture(scope="module")
def compose() -> Mapping[str, Any]:
    # No types come with it, so it is not imported by name.
    yaml = importlib.import_module("yaml")
    loaded: Mapping[str, Any] = yaml.safe_load((ROOT / "docker-compose.yaml").read_text(encoding="utf-8"))
    return loaded


def services(compose: Mapping[str, Any], *, lasting: bool = False) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, service in compose["services"].items():
        if not (lasting and "profiles" in service):
            yield name, service


def test_the_compose_file_keeps_to_what_the_specification_knows(compose: Mapping[str, Any]) -> None:
    assert {key for key in compose if not key.startswith("x-")} == {"name", "services", "volumes"}
    for _, service in services(compose):
        assert set(service) <= _SERVICE_KEYS
        assert {"image", "build"} & set(service)
        assert set(service.get("healthcheck", {})) <= _HEALTH_KEYS
        assert service["restart"] in ("unless-stopped", "no")
        for needed, how in service.get("depends_on", {}).items():
            assert needed in compose["services"]
            assert how["condition"] in ("service_started", "service_healthy")
            if how["condition"] == "service_healthy":
                assert "healthcheck" in compose["services"][needed]


def test_every_published_port_is_for_this_machine_only(compose: Mapping[str, Any]) -> None:
    ports = [port for _, service in services(compose) for port in service.get("ports", ())]

    assert ports == ["127.0.0.1:27017:27017"]


def test_data_and_backups_are_in_named_volumes(compose: Mapping[str, Any]) -> None:
    mounts = [mount.split(":") for _, service in services(compose) for mount in service.get("volumes", ())]
    used = {mount[0] for mount in mounts if not mount[0].startswith(".")}

    assert used == set(compose["volumes"]) >= {"data", "backups", "database"}
    for source, *rest in (mount for mount in mounts if mount[0].startswith(".")):
        assert rest[-1] == "ro"
        assert (ROOT / source).is_file(), "the engine makes a folder of what is not there"


def test_what_lasts_has_a_health_check_and_starts_again(compose: Mapping[str, Any]) -> None:
    assert [name for name, _ in services(compose, lasting=True)] == ["bot", "mongo"]
    for _, service in services(compose, lasting=True):
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"][0] == "CMD"
        assert {"interval", "timeout", "retries", "start_period"} <= set(service["healthcheck"])


def test_nothing_has_more_rights_than_it_needs(compose: Mapping[str, Any]) -> None:
    for _, service in services(compose):
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"])
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["read_only"] is True
        assert service["init"] is True


def test_every_image_from_elsewhere_has_a_version(compose: Mapping[str, Any]) -> None:
    for _, service in services(compose):
        assert "build" in service or re.search(r":\d+\.\d+", service["image"])


def test_no_secret_stands_in_the_compose_file(compose: Mapping[str, Any]) -> None:
    for _, service in services(compose):
        for variable, value in service.get("environment", {}).items():
            if _SECRET.search(variable):
                without = re.sub(r"\$\{[A-Z_]+:[?-][^}]*\}", "", value)
                assert without in ("", "mongodb://:@mongo:27017/?authSource=admin")


def test_the_database_asks_for_a_password_and_the_bot_has_it(compose: Mapping[str, Any]) -> None:
    mongo, bot = compose["services"]["mongo"]["environment"], compose["services"]["bot"]["environment"]

    for variable in (mongo["MONGO_INITDB_ROOT_USERNAME"], mongo["MONGO_INITDB_ROOT_PASSWORD"]):
        assert re.fullmatch(r"\$\{[A-Z_]+:\?.+\}", variable), "compose stops when it is not set"
        assert variable in bot["OMOIDE_MONGO__URI"]


def test_every_variable_that_compose_asks_for_is_in_the_example() -> None:
    compose = (ROOT / "docker-compose.yaml").read_text(encoding="utf-8")
    example = dict(re.findall(r"^([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(encoding="utf-8"), re.M))

    assert set(re.findall(r"(?<!\$)\$\{([A-Z_]+)", compose)) == set(example)
    assert {name: value for name, value in example.items() if value} == {"MONGO_USERNAME": "omoide"}


def test_the_variables_for_the_bot_are_settings(compose: Mapping[str, Any]) -> None:
    from bot.config.listing import FILE_VARIABLE, settings

    known = {FILE_VARIABLE, *(one.variable for one in settings())}
    given = set(compose["services"]["bot"]["environment"]) | set(
        re.findall(r"OMOIDE_[A-Z_]+(?==)", dockerfile())
    )
    assert {name for name in given if name.startswith("OMOIDE_")} <= known


# The Dockerfile


def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions(word: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", "", dockerfile())
    return [line.removeprefix(word).strip() for line in joined.splitlines() if line.startswith(f"{word} ")]


def copied() -> list[str]:
    """Return what the image takes from the project."""
    return [path for line in instructions("COPY") if "--from" not in line for path in line.split()[:-1]]


def test_the_image_starts_from_a_version_and_does_not_run_as_root() -> None:
    assert all(re.match(r"python:3\.1[1-3]-slim\b", line) for line in instructions("FROM"))
    last = dockerfile().rindex("\nFROM ")
    user = re.search(r"^USER (\d+):(\d+)$", dockerfile()[last:], re.M)
    assert user
    assert user.group(1) != "0"
    assert "\nRUN" not in dockerfile()[last + user.end() :]


def test_the_image_installs_hashed_packages_and_has_a_health_check() -> None:
    installs = [line for line in instructions("RUN") if "pip install" in line]

    assert "--require-hashes" in installs[0]
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)
    assert len(instructions("HEALTHCHECK")) == 1
    assert instructions("ENTRYPOINT") == ['["omoide"]']
    assert not instructions("ADD")


def test_no_secret_goes_into_the_image() -> None:
    assert not instructions("ARG")
    assert not any(_SECRET.search(line) for line in instructions("ENV"))
    assert not {".env", "config.toml", "."} & set(copied())


def test_what_the_image_copies_is_there_and_let_through_to_the_builder() -> None:
    through = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line[:1] == "!"
    }

    assert set(copied()) == through
    assert all((ROOT / path).exists() for path in copied())


# The wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from what the image copies, and from nothing else."""
    folder = tmp_path_factory.mktemp("build")
    for path in copied():
        target = folder / path
        target.parent.mkdir(exist_ok=True, parents=True)
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / path, target)
    pip(
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(folder / "wheel"),
        str(folder),
    )
    (built,) = (folder / "wheel").glob("*.whl")
    return built


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_both_packages_whole_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        text = archive.read(metadata).decode()

    ours = {name for name in names if not name.startswith("omoide-")}
    there = {
        str(path.relative_to(ROOT))
        for package in ("memory", "bot")
        for path in (ROOT / package).rglob("*")
        if path.suffix in (".py", ".toml", ".typed")
    }
    assert ours == there
    assert "License-Expression: MIT" in text
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_runs_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    bin_folder = venv / ("Scripts" if sys.platform == "win32" else "bin")
    pip("--python", str(next(bin_folder.glob("python*"))), "install", "--no-deps", "--no-index", str(wheel))
    # The packages it needs are those of this environment: nothing is downloaded.
    (site,) = {*venv.glob("lib/python*/site-packages"), *venv.glob("Lib/site-packages")}
    (site / "needed.pth").write_text(sysconfig.get_path("purelib"))

    done = subprocess.run(
        [str(bin_folder / "omoide"), "--help"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    for command in ("chat", "run", "memory", "forget", "export", "import", "doctor"):
        assert command in done.stdout
