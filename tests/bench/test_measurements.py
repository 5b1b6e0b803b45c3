"""What the measurements are made of: a past to measure with, sums, comparisons, clocks that stand still."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from bench.cache import Tally, processed, tabulate
from bench.history import TURNS_A_SESSION, sessions
from bench.instant import REPLY, InstantModel, SteppingClock
from bench.overhead import Timed
from bench.overhead import tabulate as tabulate_overhead
from bench.peers import installed
from bench.script import MESSAGES
from bench.sessions import ArrangedClock, held, lag
from bench.start import environment
from bot.chat.model import TextPiece
from memory import MemoryId, SessionState, Usage
from tests.clock import NOON

PERSON = MemoryId("terminal:person")


def test_the_script_has_forty_different_messages() -> None:
    assert len(MESSAGES) == len(set(MESSAGES)) == 40


@pytest.mark.parametrize("turns", [1, TURNS_A_SESSION, 10 * TURNS_A_SESSION + 1])
def test_a_past_has_as_many_turns_as_asked_for_in_ended_sessions_of_earlier_days(turns: int) -> None:
    past = list(sessions(PERSON, turns, now=NOON))
    said = [turn for _, of_session in past for turn in of_session]
    assert len(said) == len({turn.turn_id for turn in said}) == turns
    assert all(turn.at < NOON - timedelta(hours=12) for turn in said)
    for session, of_session in past:
        assert session.state is SessionState.CLOSED
        assert session.started_at == of_session[0].at
        assert {turn.session_id for turn in of_session} == {session.session_id}


def test_sessions_of_a_past_do_not_overlap() -> None:
    past = sorted(
        (session.started_at, session.ended_at or NOON) for session, _ in sessions(PERSON, 200, now=NOON)
    )
    assert all(end < start for (_, end), (start, _) in pairwise(past))


def test_processed_tokens_are_those_that_did_not_come_out_of_the_cache() -> None:
    usages = [Usage(prompt=100, completion=5, cached=90), Usage(prompt=50, completion=5)]
    assert processed(usages) == 60
    tally = Tally(replies=usages, background=[Usage(prompt=40, completion=1, cached=10)])
    assert tally.cached == 0.6
    assert (tally.processed, tally.processed_in_all) == (60, 90)


def test_layouts_are_compared_with_the_first_one() -> None:
    own = Tally(replies=[Usage(prompt=100, completion=1, cached=90)], first=[0.1])
    other = Tally(replies=[Usage(prompt=100, completion=1, cached=50)], first=[0.5], evictions=3)
    rows = tabulate({"own": own, "other": other}).rows
    assert [row[4] for row in rows] == ["1.0 x", "5.0 x"]


def test_sides_are_compared_with_the_floor_and_missing_ones_named() -> None:
    async def nothing(text: str) -> None:
        return None

    base, side = Timed("floor", nothing, [1.0, 2.0, 4.0]), Timed("side", nothing, [2.0, 4.0, 8.0])
    rows = tabulate_overhead(base, [side], ["a peer"]).rows
    assert [row[2] for row in rows] == ["1.0 (1.0-1.0) x", "2.0 (2.0-2.0) x", ""]
    assert rows[2][:2] == ("a peer", "not installed")


async def test_the_instant_model_streams_its_reply_in_pieces() -> None:
    pieces = [piece async for piece in InstantModel().stream([], max_tokens=1)]
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)).strip() == REPLY
    assert len(pieces) > 3


def test_a_stepping_clock_moves_only_by_hand() -> None:
    clock = SteppingClock()
    before = clock.now()
    assert clock.now() == before
    clock.step(1.5)
    assert clock.now() == before + timedelta(seconds=1.5)


async def test_an_arranged_clock_stands_until_it_is_released_and_then_runs_on() -> None:
    clock, at = ArrangedClock(), datetime(2026, 1, 1, tzinfo=UTC)
    clock.put(at)
    assert clock.now() == clock.now() == at
    clock.release(at + timedelta(hours=1))
    assert at + timedelta(hours=1) <= clock.now() < at + timedelta(hours=2)


async def test_idle_sessions_and_lags_are_measured_to_the_end() -> None:
    assert (await held(20, traced=True))["bytes"] > 0
    found: Mapping[str, float] = await lag(30, 10, lead=timedelta(), within=0.0)
    assert found["probes"] > 0
    assert found["p50"] <= found["p99"] <= found["max"]


def test_a_package_that_is_nowhere_counts_as_not_installed() -> None:
    assert not installed("no_such_package.of_ours")
    assert installed("bench.peers")


def test_a_measured_command_sees_no_settings_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("OMOIDE_LLM__API_KEY", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    folder = tmp_path_factory.mktemp("data")
    env = environment(folder)
    assert env["OMOIDE_DATA_DIR"] == str(folder)
    assert "secret" not in env.values()
