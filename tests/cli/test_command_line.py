"""The contract of the command line, over a real embedded database and a model behind HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest

from bot.local.database import EmbeddedDatabase
from tests.chat.fault_server import Fails, FaultServer, Says, Stalls
from tests.cli.omoide import PATIENCE, Omoide, leave, say

pytestmark = pytest.mark.wire


@pytest.fixture
async def model() -> AsyncIterator[FaultServer]:
    async with FaultServer() as server:
        yield server


@pytest.fixture
async def omoide(tmp_path: Path, model: FaultServer) -> AsyncIterator[Omoide]:
    """The command line over a database that is running already: every command joins it."""
    async with EmbeddedDatabase(tmp_path / "data", progress=lambda text: None):
        yield Omoide(tmp_path / "data", model.base_url)


async def test_what_is_said_through_a_pipe_is_answered_remembered_exported_erased_and_restored(
    omoide: Omoide, tmp_path: Path
) -> None:
    chat = await omoide("chat", "--user", "mei", said="Hello there\nMy cat is called Tofu\n")
    assert (chat.code, chat.err) == (0, "")
    first, second = chat.out.splitlines()
    assert first.startswith("You said: [")
    assert first.endswith("] Hello there")
    assert second.endswith("] My cat is called Tofu")

    remembered = (await omoide("memory", "mei", "--json")).json
    assert list(remembered) == ["memory_id", "turns", "window", "sessions", "episodes", "facts"]
    assert (remembered["memory_id"], remembered["turns"]) == ("terminal:mei", 2)
    assert [turn["human"] for turn in remembered["window"]] == ["Hello there", "My cat is called Tofu"]
    (session,) = remembered["sessions"]
    assert list(session) == ["id", "state", "audience", "started_at", "ended_at", "turns", "summary"]
    assert (session["state"], session["audience"], session["turns"]) == ("open", "direct", 2)
    assert (session["ended_at"], session["summary"]) == (None, None)
    assert datetime.fromisoformat(session["started_at"]).utcoffset() is not None

    shown = await omoide("memory", "mei")
    assert shown.out.splitlines()[0] == "I remember 2 turns in 1 session."

    file = tmp_path / "mei.json"
    assert (await omoide("export", "mei", "-o", str(file))).code == 0
    assert file.stat().st_mode & 0o077 == 0
    assert json.loads(file.read_text())["turns"][1]["human"] == "My cat is called Tofu"

    assert (await omoide("forget", "mei")).code == 2
    gone = await omoide("forget", "mei", "--yes")
    assert (gone.code, gone.out) == (0, "Forgotten: 2 turns, 1 session. Nothing of it is left.\n")
    assert (await omoide("memory", "mei", "--json")).json["turns"] == 0
    assert (await omoide("forget", "mei", "--yes")).out == "There is nothing to forget.\n"
    assert (await omoide("export", "mei")).code == 1

    assert (await omoide("import", str(file))).code == 0
    assert (await omoide("memory", "mei", "--json")).json == remembered
    again = await omoide("import", "-", said=file.read_text())
    assert "0 turns and 0 sessions added; 3 were there already" in again.err


async def test_a_session_ends_while_a_script_waits_and_the_next_one_knows_it(
    omoide: Omoide, model: FaultServer
) -> None:
    model.script(Says("Noted."), Says("Mei has a cat called Tofu."), Says("Tofu."))
    chat = await omoide.start("chat", "--user", "mei", "--session-timeout", "1")
    assert await say(chat, "My cat is called Tofu") == "Noted."
    async with asyncio.timeout(PATIENCE):
        while True:
            sessions = (await omoide("memory", "mei", "--json")).json["sessions"]
            if sessions[0]["state"] == "closed":
                break
    assert sessions[0]["summary"] == "Mei has a cat called Tofu."
    started, ended = (datetime.fromisoformat(sessions[0][key]) for key in ("started_at", "ended_at"))
    assert (ended - started).total_seconds() >= 1
    assert await say(chat, "What is my cat called?") == "Tofu."
    assert await leave(chat) == 0
    assert "> Mei has a cat called Tofu." in model.chats[-1].prompt[0][1]


async def test_a_session_that_ran_out_while_nobody_was_there_is_summarised_at_the_next_start(
    omoide: Omoide, model: FaultServer
) -> None:
    model.script(Says("Noted."), Says("A cat called Tofu."))
    await omoide("chat", "--user", "mei", "--session-timeout", "0.2", said="My cat is called Tofu\n")
    chat = await omoide.start("chat", "--user", "tom")
    await say(chat, "Hello")
    assert await leave(chat) == 0
    (session,) = (await omoide("memory", "mei", "--json")).json["sessions"]
    assert (session["state"], session["summary"]) == ("closed", "A cat called Tofu.")


async def test_two_terminals_share_one_memory(omoide: Omoide) -> None:
    one, two = await omoide.start("chat", "--user", "mei"), await omoide.start("chat", "--user", "mei")
    await say(one, "from the first")
    await asyncio.sleep(1.1)  # real time: a second is how long a process may trust what it has read
    await say(two, "from the second")
    await asyncio.sleep(1.1)
    await say(one, "from the first again")
    assert await leave(one) == await leave(two) == 0
    remembered = (await omoide("memory", "mei", "--json")).json
    assert len(remembered["sessions"]) == 1
    assert [turn["human"] for turn in remembered["window"]] == [
        "from the first",
        "from the second",
        "from the first again",
    ]


async def test_a_killed_chat_loses_nothing_that_was_answered_and_trips_nobody_up(
    tmp_path: Path, model: FaultServer
) -> None:
    omoide = Omoide(tmp_path / "data", model.base_url)
    chat = await omoide.start("chat", "--user", "mei")
    await say(chat, "Remember the number 17")
    stalls = Stalls("I was about")
    model.script(stalls)
    assert chat.stdin is not None
    chat.stdin.write(b"and this one is lost\n")
    await asyncio.wait_for(stalls.reached.wait(), PATIENCE)
    chat.kill()
    await chat.wait()
    remembered = (await omoide("memory", "mei", "--json")).json
    assert [turn["human"] for turn in remembered["window"]] == ["Remember the number 17"]
    assert not (tmp_path / "data" / "database" / "server.json").exists()  # the last one has stopped it


async def test_sigterm_ends_a_chat_in_order(tmp_path: Path, model: FaultServer) -> None:
    omoide = Omoide(tmp_path / "data", model.base_url)
    chat = await omoide.start("chat", "--user", "mei")
    await say(chat, "Hello")
    chat.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(chat.wait(), PATIENCE) == 143
    assert not (tmp_path / "data" / "database" / "server.json").exists()
    assert (await omoide("memory", "mei", "--json")).json["sessions"][0]["state"] == "open"


async def test_doctor_says_what_is_well_and_how_to_mend_what_is_not(
    omoide: Omoide, model: FaultServer
) -> None:
    well = await omoide("doctor")
    assert well.code == 0
    assert [line[:2] for line in well.out.splitlines()] == ["ok"] * 5
    model.script(*[Fails(401)] * 3)
    ill = await omoide("doctor")
    assert ill.code == 1
    assert "mend: set OMOIDE_LLM__API_KEY" in ill.out
    away = Omoide(
        omoide.data_dir,
        model.base_url,
        {"OMOIDE_MONGO__URI": "mongodb://127.0.0.1:1/", "OMOIDE_MONGO__TIMEOUT": "0.3"},
    )
    gone = await away("doctor")
    assert gone.code == 1
    assert "mend: start it, or set OMOIDE_MONGO__URI" in gone.out


async def test_a_database_that_is_away_is_a_clear_error_for_commands_and_no_end_of_talk(
    tmp_path: Path, model: FaultServer
) -> None:
    env = {"OMOIDE_MONGO__URI": "mongodb://someone:s3cret@127.0.0.1:1/", "OMOIDE_MONGO__TIMEOUT": "0.3"}
    omoide = Omoide(tmp_path, model.base_url, env)
    asked = await omoide("memory", "mei")
    assert asked.code == 1
    assert len(asked.err.splitlines()) == 1
    assert "s3cret" not in asked.err
    chat = await omoide("chat", "--user", "mei", said="Hello\n")
    assert chat.out.endswith("] Hello\n")
    assert "1 turns could not be stored" in (tmp_path / "log" / "chat.log").read_text()
    assert "s3cret" not in (tmp_path / "log" / "chat.log").read_text()


async def test_what_is_remembered_cannot_command_the_terminal(omoide: Omoide, model: FaultServer) -> None:
    model.script(Says("Noted."), Says("A cat.\x1b[2J\x9b2J\u202e"))
    chat = await omoide.start("chat", "--user", "mei", "--session-timeout", "0.5")
    await say(chat, "Hello")
    async with asyncio.timeout(PATIENCE):
        while "A cat." not in (shown := (await omoide("memory", "mei")).out):
            pass
    assert await leave(chat) == 0
    assert "A cat.[2J2J" in shown
    assert not set("\x1b\x9b\u202e") & set(shown)
    portrait = json.loads((await omoide("export", "mei")).out)
    portrait["memory_id"] = "terminal:\x1b[2J"
    taken = await omoide("import", "-", said=json.dumps(portrait))
    assert "\x1b" not in taken.err


async def test_a_data_folder_that_cannot_be_is_said_in_one_line_and_doctor_says_how_to_mend_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "data", tmp_path / ("x" * 300)):
        omoide = Omoide(folder, "http://127.0.0.1:1/v1")
        for command in (["chat"], ["memory", "mei"]):
            result = await omoide(*command)
            assert (result.code, len(result.err.splitlines())) == (2, 1)
            assert "OMOIDE_DATA_DIR" in result.err
        found = await omoide("doctor", "--quick")
        assert found.code == 1
        assert "OMOIDE_DATA_DIR" in found.out
        assert "Traceback" not in found.err


async def test_a_terminal_that_cannot_write_chinese_gets_no_trace_and_scripts_get_every_character(
    omoide: Omoide, model: FaultServer
) -> None:
    model.script(Says("你好 🐈"))
    await omoide("chat", "--user", "mei", said="猫\n")
    poor = Omoide(omoide.data_dir, model.base_url, {"PYTHONIOENCODING": "ascii", "LANG": "zh_CN.UTF-8"})
    shown = await poor("memory", "mei")
    assert (shown.code, shown.err) == (0, "")
    assert (await poor("memory", "mei", "--json")).json["window"][0]["reply"] == "你好 🐈"
    assert (await poor("export", "mei")).json["turns"][0]["human"] == "猫"


async def test_an_export_replaces_files_only_and_leaves_nothing_half_done(
    omoide: Omoide, tmp_path: Path
) -> None:
    await omoide("chat", "--user", "mei", said="Hello\n")
    folder = tmp_path / "exports"
    (folder / "taken").mkdir(parents=True)
    refused = await omoide("export", "mei", "-o", str(folder / "taken"))
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    (folder / "link").symlink_to("/dev/stdout")
    shown = await omoide("export", "mei", "-o", str(folder / "link"))
    assert shown.json["memory_id"] == "terminal:mei"
    assert sorted(path.name for path in folder.iterdir()) == ["link", "taken"]
    (folder / "other").symlink_to(folder / "mei.json")
    await omoide("export", "mei", "-o", str(folder / "other"))
    assert (folder / "other").is_symlink()
    assert (folder / "mei.json").stat().st_mode & 0o077 == 0


async def test_the_data_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    env = {"OMOIDE_MONGO__URI": "mongodb://127.0.0.1:1/", "OMOIDE_MONGO__TIMEOUT": "0.1"}
    await Omoide(tmp_path / "some" / "data", "http://127.0.0.1:1/v1", env)("memory", "mei")
    assert (tmp_path / "some" / "data").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_chat_without_anything_to_read_or_write_says_so(closed: str, tmp_path: Path) -> None:
    env = {**os.environ, "OMOIDE_DATA_DIR": str(tmp_path)}
    command = ["sh", "-c", f"{sys.executable} -m bot chat --user mei {closed}"]
    result = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)


async def test_ctrl_c_at_the_question_forgets_nothing(omoide: Omoide) -> None:
    await omoide("chat", "--user", "mei", said="Hello\n")
    ours, theirs = pty.openpty()
    asked = await omoide.start("forget", "mei", stdin=theirs)
    os.close(theirs)
    assert asked.stdout is not None
    await asyncio.wait_for(asked.stdout.readuntil(b"[y/N] "), PATIENCE)
    asked.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(asked.wait(), PATIENCE) == 130
    os.close(ours)
    assert (await omoide("memory", "mei", "--json")).json["turns"] == 1


@pytest.mark.parametrize(
    ("arguments", "env", "words"),
    [
        (["chat", "--user", ""], {}, "no name"),
        (["memory", "a\nb"], {}, "neither a name nor a memory id"),
        (["chat"], {"OMOIDE_SESSION__TIMEOT": "5"}, "OMOIDE_SESSION__TIMEOUT"),
        (["chat"], {"OMOIDE_SESSION__TIMEOUT": "soon"}, "OMOIDE_SESSION__TIMEOUT"),
        (["import", "/no/such/file"], {}, "cannot read /no/such/file"),
        (["run"], {}, "omoide chat"),
    ],
)
async def test_what_is_asked_for_wrongly_is_said_in_one_line(
    arguments: list[str], env: dict[str, str], words: str, tmp_path: Path
) -> None:
    result = await Omoide(tmp_path, "http://127.0.0.1:1/v1", env)(*arguments)
    assert result.code == 2
    assert words in result.err
    assert "Traceback" not in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no json", "is no JSON"),
        ("[]", "the file: an object was expected"),
        ('{"format": "other"}', "no export of Omoide"),
        ('{"format": "omoide-export", "version": 99}', "version 99"),
        ('{"format": "omoide-export", "version": 1, "memory_id": 5}', "memory_id: a text was expected"),
    ],
)
async def test_a_bad_import_names_the_place_and_writes_nothing(text: str, words: str, tmp_path: Path) -> None:
    result = await Omoide(tmp_path, "http://127.0.0.1:1/v1")("import", "-", said=text)
    assert result.code in (1, 2)
    assert words in result.err
    assert not (tmp_path / "database").exists()


def test_help_answers_without_loading_what_only_a_talk_needs() -> None:
    code = "import sys, bot.cli; bot.cli.main(['chat', '--help'])"
    shown = "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = f"import sys, atexit; atexit.register(lambda: {shown});"
    result = subprocess.run([sys.executable, "-c", loaded + code], capture_output=True, text=True, check=True)
    assert "--session-timeout" in result.stdout
    heavy = {"openai", "motor", "pymongo", "prompt_toolkit", "pydantic", "aiocron", "asyncio", "memory"}
    assert not heavy & set(result.stdout.splitlines()[-1].split())
