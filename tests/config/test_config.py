"""The settings: which one wins, what is refused and in which words, and that config.toml tells the truth."""

from __future__ import annotations

import pickle
import re
import sys
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.config import Config, Secret, hosts_of, load, settings_table
from bot.config.describe import config_file
from bot.config.listing import Setting, nearest_name, settings
from bot.config.reading import default_data_dir
from bot.config.source import line_of
from bot.config.values import read_value
from bot.errors import ConfigError

ROOT = Path(__file__).parents[2]
HOME = {"HOME": "/home/mei"}


@pytest.fixture
def write(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def read(path: Path, text: str, env: Mapping[str, str] = HOME) -> Config:
    path.write_text(text, encoding="utf-8")
    return load(path=path, env=env)


def complaint(path: Path, text: str = "", **env: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(path, text, {**HOME, **env})
    return str(caught.value).replace(str(path), "config.toml")


# Which one wins


def test_without_a_file_and_variables_the_defaults_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    config = load(path=None, env=HOME)

    assert config == Config(data_dir=default_data_dir(HOME, platform=sys.platform))
    assert config.llm.local


def test_the_file_in_the_current_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.toml").write_text('[persona]\nname = "Aki"\n')

    assert load(path=None, env=HOME).persona.name == "Aki"


def test_omoide_config_names_the_file(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("[session]\ntimeout = 60\n")

    assert load(path=None, env={**HOME, "OMOIDE_CONFIG": str(other)}).session.timeout == 60.0


def test_a_named_file_has_to_be_there(tmp_path: Path) -> None:
    gone = tmp_path / "gone.toml"
    with pytest.raises(ConfigError, match=r"gone\.toml: there is no such settings file"):
        load(path=None, env={**HOME, "OMOIDE_CONFIG": str(gone)})


def test_a_folder_is_no_settings_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(path=tmp_path, env=HOME)


def test_the_environment_wins_over_the_file(write: Path) -> None:
    config = read(write, "[session]\ntimeout = 60\n", {**HOME, "OMOIDE_SESSION__TIMEOUT": "2"})

    assert config.session.timeout == 2.0


def test_an_empty_variable_counts_as_not_there(write: Path) -> None:
    env = {**HOME, "OMOIDE_LLM__API_KEY": "", "OMOIDE_SESSION__TIMEOUT": " ", "OMOIDE_CONFIG": ""}

    config = read(write, "[session]\ntimeout = 60\n", env)

    assert (config.session.timeout, config.llm.api_key) == (60.0, None)


def test_an_empty_text_leaves_an_optional_setting_unset(write: Path) -> None:
    config = read(write, '[llm]\nmodel = ""\ntemperature = ""\n')

    assert (config.llm.model, config.llm.temperature) == (None, None)


def test_text_from_the_environment_is_parsed(write: Path) -> None:
    env = {
        "OMOIDE_LLM__MAX_TOKENS": "64",
        "OMOIDE_LLM__TEMPERATURE": "0.5",
        "OMOIDE_WINDOW__MODE": "messages",
    }

    config = read(write, "", {**HOME, **env})

    assert (config.llm.max_tokens, config.llm.temperature, config.window.mode) == (64, 0.5, "messages")


def test_other_programs_variables_are_left_alone(write: Path) -> None:
    env = {**HOME, "DISCORD_TOKEN": "d", "TELEGRAM_TOKEN": "t", "OMOIDEX": "x", "LLM__MODEL": "x"}

    assert read(write, "", env) == read(write, "")


def test_a_file_from_a_windows_editor_is_read(write: Path) -> None:
    write.write_bytes(b'\xef\xbb\xbf[persona]\r\nname = "Aki"\r\n')

    assert load(path=write, env=HOME).persona.name == "Aki"


# The model's address


@pytest.mark.parametrize(
    ("env", "endpoint", "model", "local"),
    [
        ({}, "https://api.openai.com/v1", "smollm2-135m", True),
        ({"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1", "gpt-5.4-mini", False),
        ({"OMOIDE_LLM__API_KEY": "k"}, "https://api.openai.com/v1", "gpt-5.4-mini", False),
        ({"OMOIDE_LLM__BASE_URL": "http://h:1/v1"}, "http://h:1/v1", "gpt-5.4-mini", False),
        ({"OMOIDE_LLM__BASE_URL": "http://h:1/v1", "OMOIDE_LLM__MODEL": "m"}, "http://h:1/v1", "m", False),
    ],
)
def test_an_address_or_a_key_switches_the_bundled_model_off(
    write: Path, env: dict[str, str], endpoint: str, model: str, *, local: bool
) -> None:
    llm = read(write, "", {**HOME, **env}).llm

    assert (llm.endpoint, llm.model_name, llm.local) == (endpoint, model, local)


def test_the_key_of_the_settings_comes_before_openais_variable(write: Path) -> None:
    llm = read(write, "[llm]\napi_key = 'ours'\n", {**HOME, "OPENAI_API_KEY": "theirs"}).llm

    assert llm.api_key == Secret("ours")


# What is refused


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[llm]\n\nmodle = 'x'\n", "config.toml:3: there is no setting llm.modle; did you mean llm.model?"),
        ("[sesion]\ntimeout = 1\n", "config.toml:1: there is no section [sesion]; did you mean [session]?"),
        ("[llm]\nuri = 'x'\n", "config.toml:2: there is no setting llm.uri; did you mean mongo.uri?"),
        ("datadir = '/x'\n", "config.toml:1: there is no setting datadir; did you mean data_dir?"),
        ("mongo = 3\n", "config.toml:1: mongo is a section: write [mongo], its keys below"),
        (
            "# why\n[llm]\ntimeout = 'soon'\n",
            'config.toml:3: llm.timeout must be a number above 0 and at most 3600, not "soon"',
        ),
        (
            "[llm]\nmax_tokens = 1.5\n",
            "config.toml:2: llm.max_tokens must be a whole number at least 1, not 1.5",
        ),
        (
            "[llm]\nmax_tokens = true\n",
            "config.toml:2: llm.max_tokens must be a whole number at least 1, not true",
        ),
        ("[persona]\nname = 3\n", "config.toml:2: persona.name must be a text, not 3"),
        ("[persona]\nname = ['a']\n", "config.toml:2: persona.name must be a text, not a list"),
        ("[persona]\nname = 2026-01-01\n", "config.toml:2: persona.name must be a text, not a date"),
        ("[persona]\nname = ' '\n", 'config.toml:2: persona.name must be a text that is not empty, not " "'),
        ("persona.prompt.x = 1\n", "config.toml:1: persona.prompt must be a text, not a section"),
        (
            "[window]\nevict_to = 0\n",
            "config.toml:2: window.evict_to must be a number above 0 and at most 1, not 0",
        ),
        (
            "[window]\nevict_to = 1.1\n",
            "config.toml:2: window.evict_to must be a number above 0 and at most 1, not 1.1",
        ),
        (
            "[session]\ntimeout = inf\n",
            "session.timeout must be a number above 0 and at most 31536000, not Infinity",
        ),
        ("[mongo]\ndriver = 'moto'\n", 'mongo.driver must be one of "motor", "pymongo", not "moto"'),
        ("[mongo]\ndatabase = 'a b'\n", "mongo.database must be a name of at most 38 characters"),
        ("[memory]\ntimezone = 'Europe/Berln'\n", "(did you mean Europe/Berlin?)"),
        ("[memory]\ntimezone = '../etc'\n", "memory.timezone must be an IANA time zone"),
        ("[persona]\nlanguage = 'English, please'\n", "persona.language must be "),
        ("[llm]\nbase_url = '127.0.0.1:80'\n", "llm.base_url must be an address such as http://"),
        ("[llm]\nbase_url = 'http://[::1/v1'\n", "llm.base_url must be an address such as http://"),
        ("[llm]\nbase_url = 'http://h/ v1'\n", "llm.base_url must be an address such as http://"),
        ("[llm]\n\nmodel = x\n", "config.toml:3: this is not TOML: invalid value"),
        ("[llm]\nmodel = 'x'\nmodel = 'y'\n", "config.toml:3: this is not TOML: cannot overwrite a value"),
    ],
)
def test_what_is_wrong_in_the_file_is_told_with_its_line(write: Path, text: str, told: str) -> None:
    assert told in complaint(write, text)


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        (
            "OMOIDE_MONGO_URI",
            "x",
            "OMOIDE_MONGO_URI: there is no such setting; did you mean OMOIDE_MONGO__URI?",
        ),
        ("OMOIDE_CONFG", "x", "OMOIDE_CONFG: there is no such setting; did you mean OMOIDE_CONFIG?"),
        (
            "omoide_llm__model",
            "x",
            "omoide_llm__model: there is no such setting; did you mean OMOIDE_LLM__MODEL?",
        ),
        ("OMOIDE_QQQ", "", "OMOIDE_QQQ: there is no such setting"),
        (
            "OMOIDE_LLM__TIMEOUT",
            "soon",
            'OMOIDE_LLM__TIMEOUT: llm.timeout must be a number above 0 and at most 3600, not "soon"',
        ),
        ("OMOIDE_LLM__MAX_TOKENS", "many", "OMOIDE_LLM__MAX_TOKENS: llm.max_tokens must be a whole number"),
        ("OMOIDE_LOG__LEVEL", "loud", "OMOIDE_LOG__LEVEL: log.level must be one of"),
        ("OMOIDE_LLM__TEMPERATURE", "nan", "OMOIDE_LLM__TEMPERATURE: llm.temperature must be a number"),
    ],
)
def test_what_is_wrong_in_the_environment_is_told_with_its_variable(
    write: Path, variable: str, value: str, told: str
) -> None:
    assert told in complaint(write, **{variable: value})


def test_all_that_is_wrong_is_told_at_once(write: Path) -> None:
    told = complaint(write, "[llm]\ntimeout = -1\nmodle = 'x'\n", OMOIDE_LOG__FORMAT="xml")

    assert told.startswith("3 settings are wrong:\n")
    assert re.findall(r"^  ([^ ]+): ", told, re.M) == ["config.toml:2", "config.toml:3", "OMOIDE_LOG__FORMAT"]


def test_text_that_is_not_utf8_is_refused(write: Path) -> None:
    write.write_bytes(b"\xff\xfe[\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(path=write, env=HOME)


def test_a_key_inside_of_a_text_over_lines_is_not_taken_for_the_key() -> None:
    text = '[persona]\nprompt = """\ntimeout = 1\n[llm]\n"""\n\n[llm]\n# timeout\n"timeout" = 2\n'

    assert line_of(text, ("persona", "prompt")) == 2
    assert line_of(text, ("llm", "timeout")) == 9


@given(st.sampled_from(settings()), st.text(max_size=20))
def test_no_value_ends_in_anything_but_a_config_or_a_config_error(one: Setting, text: str) -> None:
    with suppress(ConfigError):
        load(path=ROOT / "config.toml", env={**HOME, one.variable: text})


# Secrets


@pytest.mark.parametrize(
    ("text", "env"),
    [
        ("[llm]\napi_key = 'hunter2'\n", {}),
        ("[mongo]\nuri = 'mongodb://me:hunter2@host'\n", {}),
        ("", {"OPENAI_API_KEY": "hunter2"}),
        ("", {"OMOIDE_LLM__API_KEY": "hunter2"}),
    ],
)
def test_a_secret_that_is_read_is_shown_only_by_revealing_it(
    write: Path, text: str, env: dict[str, str]
) -> None:
    config = read(write, text, {**HOME, **env})

    kept = config.llm.api_key or config.mongo.uri
    assert kept is not None
    assert "hunter2" in kept.reveal()
    assert "hunter2" not in f"{config} {config!r} {config.llm} {config.mongo} {kept} {kept!r}"


@pytest.mark.parametrize(
    ("text", "env"),
    [
        ("[llm]\napikey = 'hunter2'\n", {}),
        ("[llm]\napi_key = ['hunter2']\n", {}),
        ("[llm]\napi_key = 'hunter2\n", {}),
        ("[llm]\napi_key = hunter2\n", {}),
        ("[mongo]\nuri = 'mongo://me:hunter2@host'\n", {}),
        ("[llm]\nbase_url = 'https://me:hunter2@host/v1'\n", {}),
        ("", {"OMOIDE_MONGO__URI": "me:hunter2@host"}),
        ("", {"OMOIDE_MONGO__DATABASE": "me:hunter2@host"}),
        ("", {"OMOIDE_LLM__KEY": "hunter2"}),
    ],
)
def test_a_secret_that_is_refused_is_not_quoted(write: Path, text: str, env: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read(write, text, {**HOME, **env})

    error = caught.value
    assert "hunter2" not in f"{error!s} {error!r} {error.__cause__!r} {error.__context__!r}"


def test_a_secret_is_not_pickled() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret("hunter2"))


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("mongodb://me:p%40ss@a:1,b:2/db?tls=true", "mongodb://a:1,b:2"),
        ("mongodb+srv://me:x@cluster.example", "mongodb+srv://cluster.example"),
        ("mongodb://localhost", "mongodb://localhost"),
    ],
)
def test_of_an_address_only_its_hosts_are_shown(address: str, shown: str) -> None:
    assert hosts_of(Secret(address)) == shown


# The data folder


@pytest.mark.parametrize(
    ("platform", "env", "folder"),
    [
        ("linux", HOME, "/home/mei/.local/share/omoide"),
        ("linux", {**HOME, "XDG_DATA_HOME": "/data"}, "/data/omoide"),
        ("linux", {**HOME, "XDG_DATA_HOME": "data"}, "/home/mei/.local/share/omoide"),
        ("darwin", {**HOME, "XDG_DATA_HOME": "/data"}, "/home/mei/Library/Application Support/omoide"),
        ("win32", {"LOCALAPPDATA": "/c/Local"}, "/c/Local/omoide"),
    ],
)
def test_data_live_in_the_platforms_folder(platform: str, env: dict[str, str], folder: str) -> None:
    assert default_data_dir(env, platform=platform) == Path(folder)


def test_a_relative_data_folder_starts_where_it_was_written(
    write: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    assert read(write, "data_dir = 'data'\n").data_dir == tmp_path / "data"
    assert read(write, "", {**HOME, "OMOIDE_DATA_DIR": "data"}).data_dir == here / "data"


def test_a_tilde_is_the_home_folder(write: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/mei")

    assert read(write, "data_dir = '~/omoide'\n").data_dir == Path("/home/mei/omoide")


# What is written for people


def test_every_field_of_every_section_is_a_setting() -> None:
    defaults = Config(data_dir=Path("/x"))
    names = {"data_dir"}
    for section in fields(Config):
        value = getattr(defaults, section.name)
        if is_dataclass(value):
            names |= {f"{section.name}.{one.name}" for one in fields(value)}

    assert {one.name for one in settings()} == names


def test_every_default_is_sound() -> None:
    for one in settings():
        if one.default is not None:
            assert read_value(one, one.default) == one.default


def test_the_settings_file_uncommented_is_the_defaults(write: Path) -> None:
    text = re.sub(r"^#(?=\S)", "", config_file(), flags=re.M)

    assert sum(len(one) if isinstance(one, dict) else 1 for one in tomllib.loads(text).values()) == len(
        settings()
    )
    assert read(write, text) == read(write, config_file()) == read(write, "")


def test_config_toml_has_every_setting_with_its_default_where_its_owner_has_not_changed_it() -> None:
    kept = (ROOT / "config.toml").read_text(encoding="utf-8")
    changed = tomllib.loads(kept)
    for block in config_file().split("\n\n"):
        found = re.search(r"^#(\w+) =", block, re.M)
        if not found or found[1] in str(changed):
            continue
        assert block.strip() in kept


def test_the_table_has_a_row_for_every_setting() -> None:
    rows = settings_table().splitlines()

    assert len(rows) == 2 + len(settings())
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)
    assert any(row.startswith("| `session.timeout` | `1800` | seconds without a message") for row in rows)


@pytest.mark.parametrize(
    ("section", "key", "name"),
    [("llm", "URL", "llm.base_url"), ("session", "idle_timeout", "session.timeout"), ("llm", "zzzz", None)],
)
def test_the_nearest_name_is_one_that_exists_or_none(section: str, key: str, name: str | None) -> None:
    assert nearest_name(section, key) in (name, None)
