"""One server per data folder, whoever is killed and when: with a stand-in that starts in a moment."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import LocalServerError
from bot.local.file_lock import FileLock
from bot.local.ports import is_free
from bot.local.processes import MARK, Child, end, passed_on, serving, until
from bot.local.server_folder import Patience, Recipe
from bot.local.server_record import LOG_LIMIT, Record, read_record, write_record
from bot.local.shared_server import SharedServer
from tests.local.stand_in import QUICK, STAND_IN_USER, pid_at, recipe, user

pytestmark = pytest.mark.wire


@pytest.fixture
async def data_dir(tmp_path: Path) -> AsyncIterator[Path]:
    """A data folder with a name that quoting mistakes would trip over; nothing serves it in the end."""
    data_dir = tmp_path / "my 思い出 'data' é"
    yield data_dir
    left = serving(folder(data_dir))
    for child in left:
        await end(child, folder=folder(data_dir), grace=0.1)


@pytest.fixture
def starts(tmp_path: Path) -> Path:
    """A file that gets a line for each server that was started."""
    path = tmp_path / "starts"
    path.touch()
    return path


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with us."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def folder(data_dir: Path) -> Path:
    return data_dir.resolve() / "stand-in"


def shared(
    data_dir: Path, made: Recipe | None = None, *, patience: Patience = QUICK, told: list[str] | None = None
) -> SharedServer:
    progress = (lambda text: None) if told is None else told.append
    return SharedServer(data_dir, made or recipe(), progress=progress, patience=patience)


def running(data_dir: Path) -> list[int]:
    return [child.pid for child in serving(folder(data_dir))]


def count(starts: Path) -> int:
    return len(starts.read_text().splitlines())


def kill(pid: int | None) -> None:
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


async def another_pid(port: int, *, than: int | None) -> int:
    async with asyncio.timeout(20):
        while True:
            pid = await pid_at(port)
            if pid is not None and pid != than:
                return pid
            await asyncio.sleep(0.05)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def test_the_first_user_starts_it_and_the_last_one_leaving_stops_it(data_dir: Path) -> None:
    told: list[str] = []
    async with shared(data_dir, told=told) as port:
        assert [await pid_at(port)] == running(data_dir)
    assert running(data_dir) == []
    assert await pid_at(port) is None
    assert not (folder(data_dir) / "server.json").exists()
    assert told == ["starting the stand-in"]


async def test_a_second_user_joins_and_neither_leaving_first_stops_it(data_dir: Path, starts: Path) -> None:
    with user(STAND_IN_USER, str(data_dir), str(starts)) as other:
        port = int(await other.where())
        told: list[str] = []
        async with shared(data_dir, recipe(starts=starts), told=told) as mine:
            assert mine == port
            await other.leave()
            assert await pid_at(port) is not None
        assert await pid_at(port) is None
    assert count(starts) == 1
    assert told == []


async def test_two_users_in_one_process_are_two_users(data_dir: Path) -> None:
    first, second = shared(data_dir), shared(data_dir)
    port = await first.__aenter__()
    assert await second.__aenter__() == port
    await first.__aexit__(None, None, None)
    assert await pid_at(port) is not None
    await second.__aexit__(None, None, None)
    assert running(data_dir) == []


async def test_many_that_start_at_the_same_moment_share_one_server(data_dir: Path, starts: Path) -> None:
    with (
        user(STAND_IN_USER, str(data_dir), str(starts)) as one,
        user(STAND_IN_USER, str(data_dir), str(starts)) as two,
        user(STAND_IN_USER, str(data_dir), str(starts)) as three,
    ):
        assert len({await one.where(), await two.where(), await three.where()}) == 1
        assert count(starts) == 1
        await asyncio.gather(one.leave(), two.leave(), three.leave())
    assert running(data_dir) == []


async def test_the_server_of_a_killed_user_is_joined_and_then_stopped(data_dir: Path, starts: Path) -> None:
    with user(STAND_IN_USER, str(data_dir), str(starts)) as killed:
        port = int(await killed.where())
        killed.kill()
    assert await pid_at(port) is not None
    async with shared(data_dir, recipe(starts=starts)) as joined:
        assert joined == port
    assert running(data_dir) == []
    assert count(starts) == 1


async def test_a_killed_user_does_not_keep_the_server_from_being_stopped(
    data_dir: Path, starts: Path
) -> None:
    with user(STAND_IN_USER, str(data_dir), str(starts)) as killed:
        await killed.where()
        async with shared(data_dir):
            killed.kill()
    assert running(data_dir) == []


async def test_a_killed_server_comes_back_at_the_same_port(data_dir: Path) -> None:
    async with shared(data_dir) as port:
        first = await pid_at(port)
        kill(first)
        second = await another_pid(port, than=first)
        assert running(data_dir) == [second]
    assert running(data_dir) == []


async def test_a_killed_server_is_brought_back_by_a_user_who_only_joined(
    data_dir: Path, starts: Path
) -> None:
    with user(STAND_IN_USER, str(data_dir), str(starts)) as starter:
        port = int(await starter.where())
        async with shared(data_dir, recipe(starts=starts)):
            await starter.leave()
            first = await pid_at(port)
            kill(first)
            await another_pid(port, than=first)
    assert running(data_dir) == []
    assert count(starts) == 2


async def test_several_users_of_a_killed_server_start_one_new_one(data_dir: Path, starts: Path) -> None:
    with user(STAND_IN_USER, str(data_dir), str(starts)) as other:
        port = int(await other.where())
        async with shared(data_dir, recipe(starts=starts)):
            for deaths in (1, 2):
                first = await pid_at(port)
                kill(first)
                await another_pid(port, than=first)
                assert count(starts) == 1 + deaths
            await other.leave()
            assert await pid_at(port) is not None
    assert running(data_dir) == []


async def test_a_server_that_keeps_dying_is_given_up_and_leaving_still_works(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with shared(data_dir, patience=replace(QUICK, restarts=1)) as port:
        first = await pid_at(port)
        kill(first)
        kill(await another_pid(port, than=first))
        assert await until(lambda: "is left so" in caplog.text, within=20)
        assert await pid_at(port) is None
    assert running(data_dir) == []


async def test_server_and_user_both_killed_are_replaced(data_dir: Path, starts: Path) -> None:
    with user(STAND_IN_USER, str(data_dir), str(starts)) as killed:
        port = int(await killed.where())
        killed.kill()
        kill(await pid_at(port))
    async with shared(data_dir, recipe(starts=starts)) as mine:
        assert [await pid_at(mine)] == running(data_dir)
    assert count(starts) == 2


async def test_a_pid_that_is_used_again_is_neither_joined_nor_killed(
    data_dir: Path, stranger: subprocess.Popen[bytes]
) -> None:
    folder(data_dir).mkdir(parents=True)
    stale = Record(Child(stranger.pid, "0123456789abcdef"), 20_001, "1")
    write_record(folder(data_dir) / "server.json", stale)
    async with shared(data_dir) as port:
        assert await pid_at(port) != stranger.pid
    assert stranger.poll() is None


async def test_a_server_that_nobody_wrote_down_is_found_and_replaced(data_dir: Path, starts: Path) -> None:
    with user(STAND_IN_USER, str(data_dir), str(starts)) as killed:
        orphan = await pid_at(int(await killed.where()))
        killed.kill()
        # As when its starter was killed between starting it and writing it down.
        (folder(data_dir) / "server.json").unlink()
    async with shared(data_dir):
        assert orphan not in running(data_dir)
        assert len(running(data_dir)) == 1
    assert running(data_dir) == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1, "token": "", "port": 0, "version": ""}']
)
async def test_a_record_that_makes_no_sense_counts_as_none(data_dir: Path, text: str) -> None:
    folder(data_dir).mkdir(parents=True)
    (folder(data_dir) / "server.json").write_text(text)
    assert read_record(folder(data_dir) / "server.json") is None
    async with shared(data_dir) as port:
        assert await pid_at(port) is not None


async def test_a_server_that_hangs_is_replaced_at_its_port_even_if_it_ignores_sigterm(
    data_dir: Path, starts: Path
) -> None:
    with user(STAND_IN_USER, str(data_dir), str(starts)) as killed:
        port = int(await killed.where())
        killed.kill()
    hung = await pid_at(port)
    assert hung is not None
    os.kill(hung, signal.SIGSTOP)
    told: list[str] = []
    async with shared(data_dir, told=told) as mine:
        assert mine == port
        assert await pid_at(port) != hung
    assert told == ["replacing the stand-in, which does not answer", "starting the stand-in"]


async def test_one_that_ignores_being_asked_to_end_is_killed(data_dir: Path) -> None:
    async with shared(data_dir, recipe(manner="stubborn"), patience=replace(QUICK, stop=0.2)) as port:
        assert await pid_at(port) is not None
    assert running(data_dir) == []


async def test_an_unused_server_of_another_version_is_replaced_and_a_used_one_joined(
    data_dir: Path, starts: Path
) -> None:
    newer = recipe(version="2", starts=starts)
    with user(STAND_IN_USER, str(data_dir), str(starts)) as older:
        port = int(await older.where())
        async with shared(data_dir, newer) as mine:
            assert mine == port
        assert count(starts) == 1
        older.kill()
    async with shared(data_dir, newer):
        assert count(starts) == 2


async def test_a_port_that_another_program_has_taken_meanwhile_is_left_to_it(
    data_dir: Path, starts: Path
) -> None:
    with user(STAND_IN_USER, str(data_dir), str(starts)) as killed:
        port = int(await killed.where())
        killed.kill()
        kill(await pid_at(port))
    assert await until(lambda: is_free(port), within=20)
    with socket.create_server(("127.0.0.1", port)):
        async with shared(data_dir) as mine:
            assert mine != port
            assert await pid_at(mine) is not None


async def test_a_killed_server_waits_for_its_port_while_another_program_has_it(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with shared(data_dir, patience=replace(QUICK, look=0.5)) as port:
        first = await pid_at(port)
        kill(first)
        assert await until(lambda: is_free(port), within=20)
        with socket.create_server(("127.0.0.1", port)):
            assert await until(lambda: f"has taken its port {port}" in caplog.text, within=20)
        await another_pid(port, than=first)
    assert running(data_dir) == []


async def test_a_user_killed_while_starting_leaves_nothing_to_trip_over(data_dir: Path, starts: Path) -> None:
    slow = STAND_IN_USER.replace("recipe(starts", "recipe(manner='silent', starts")
    with user(slow, str(data_dir), str(starts)) as killed:
        assert await until(lambda: count(starts) == 1, within=20)
        killed.kill()
    async with shared(data_dir, recipe(starts=starts)) as port:
        assert [await pid_at(port)] == running(data_dir)
    assert running(data_dir) == []


async def test_starting_that_is_cancelled_leaves_no_server(data_dir: Path, starts: Path) -> None:
    entering = asyncio.ensure_future(shared(data_dir, recipe(manner="silent", starts=starts)).__aenter__())
    assert await until(lambda: count(starts) == 1, within=20)
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert running(data_dir) == []


async def test_an_error_in_the_body_comes_out_as_it_is_and_the_server_is_stopped(data_dir: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with shared(data_dir):
            _ = 1 / 0
    assert running(data_dir) == []


async def test_ctrl_c_in_the_terminal_does_not_reach_the_server(data_dir: Path) -> None:
    async with shared(data_dir) as port:
        pid = await pid_at(port)
        assert pid is not None
        assert os.getsid(pid) == pid != os.getsid(0)


async def test_everything_in_the_folder_is_private(data_dir: Path) -> None:
    async with shared(data_dir):
        assert mode(data_dir) == mode(folder(data_dir)) == 0o700
        modes = {path.name: mode(path) for path in folder(data_dir).iterdir()}
    assert modes == dict.fromkeys(("lock", "users", "server.json", "server.log"), 0o600)


async def test_a_link_to_the_data_folder_is_the_same_data_folder(data_dir: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    os.mkdir(data_dir)
    os.symlink(data_dir, link)
    async with shared(data_dir) as port, shared(link) as same:
        assert same == port
    assert running(data_dir) == []


def test_a_server_is_given_no_secrets() -> None:
    given = passed_on({"PATH": "/bin", "LC_ALL": "C", "DISCORD_TOKEN": "x", "OPENAI_API_KEY": "x", MARK: "x"})
    assert given == {"PATH": "/bin", "LC_ALL": "C"}


async def test_a_server_that_fails_is_quoted_and_nothing_is_left(data_dir: Path) -> None:
    folder(data_dir).mkdir(parents=True)
    (folder(data_dir) / "server.log").write_text("said by an earlier one\n")
    with pytest.raises(LocalServerError) as caught:
        await shared(data_dir, recipe(manner="fails")).__aenter__()
    assert str(caught.value) == (
        "the stand-in cannot run: it ended at once. "
        'It said: "the flux is out of balance". To mend it, mend it.'
    )
    async with shared(data_dir) as port:
        assert await pid_at(port) is not None


async def test_what_it_said_is_put_in_plain_words_where_they_are_known(data_dir: Path) -> None:
    known = replace(recipe(manner="fails"), explain=lambda said: "the flux" if "flux" in said else None)
    with pytest.raises(LocalServerError, match=r"cannot run: the flux\. It said"):
        await shared(data_dir, known).__aenter__()


async def test_a_server_that_is_not_ready_in_time_is_ended_and_said_so(data_dir: Path) -> None:
    with pytest.raises(LocalServerError, match=r"it was not ready within 0\.5 s"):
        await shared(data_dir, recipe(manner="silent"), patience=replace(QUICK, start=0.5)).__aenter__()
    assert running(data_dir) == []


async def test_a_program_that_is_not_there_is_named(data_dir: Path) -> None:
    missing = replace(recipe(), command=lambda port: ["/no/such/program", str(port)])
    with pytest.raises(LocalServerError, match="there is no program /no/such/program"):
        await shared(data_dir, missing).__aenter__()


async def test_a_folder_that_cannot_be_written_to_is_named_with_the_mend(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65_534)  # root may write anywhere, so be nobody for a moment
    try:
        with pytest.raises(LocalServerError, match=r"closed.* cannot be written to\. To mend it, mend it\."):
            await shared(closed / "data").__aenter__()
    finally:
        if root:
            os.seteuid(0)


async def test_a_system_without_file_locks_is_named_with_the_mend(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entering = shared(data_dir).__aenter__()
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(LocalServerError, match=r"Windows does not have\. To mend it, mend it\."):
        await entering


async def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(LocalServerError, match="data: "):
        await shared(tmp_path / "data").__aenter__()


async def test_others_who_never_finish_starting_it_are_not_waited_for_without_end(data_dir: Path) -> None:
    folder(data_dir).mkdir(parents=True)
    holder = FileLock(folder(data_dir) / "lock")
    assert holder.take()
    told: list[str] = []
    with pytest.raises(LocalServerError, match="for too long"):
        await shared(data_dir, patience=replace(QUICK, turn=0.1), told=told).__aenter__()
    assert told == ["waiting for another process that is starting or stopping the stand-in"]
    holder.drop()


async def test_a_log_that_has_grown_big_is_begun_anew(data_dir: Path) -> None:
    folder(data_dir).mkdir(parents=True)
    grown = folder(data_dir) / "server.log"
    grown.write_bytes(b"x" * (LOG_LIMIT + 1))
    async with shared(data_dir):
        assert grown.stat().st_size < LOG_LIMIT


def test_the_record_is_whole_and_leaves_no_other_file(tmp_path: Path) -> None:
    record = Record(Child(42, "t"), 20_000, "1")
    write_record(tmp_path / "server.json", record)
    assert read_record(tmp_path / "server.json") == record
    assert [path.name for path in tmp_path.iterdir()] == ["server.json"]
