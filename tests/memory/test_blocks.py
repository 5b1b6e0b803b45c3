"""The memory block: the last sessions and all of yesterday's, within its limit, for the right audience."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.blocks import BlockPolicy, MemoryBlock, load_block
from memory.stores.inmemory import InMemoryStore
from memory.tokens import TokenEstimator
from memory.types import DIRECT, Audience, MemoryId, Session, SessionId, SessionState, Turn, TurnId

ANN = MemoryId("terminal:ann")
BERLIN = ZoneInfo("Europe/Berlin")
ESTIMATOR = TokenEstimator()
GROUP = Audience("group:1")
NOW = datetime(2026, 3, 4, 11, tzinfo=UTC)  # noon in Berlin
HOUR = timedelta(hours=1)


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


async def past(
    store: InMemoryStore,
    hours_ago: float,
    text: str | None,
    *,
    lasting: float = 0.5,
    audience: Audience = DIRECT,
    state: SessionState = SessionState.CLOSED,
) -> Session:
    """Store a session that began so many hours before now."""
    start = NOW - hours_ago * HOUR
    session = Session(
        SessionId(f"{999 - hours_ago:08}{audience}"),
        ANN,
        audience,
        started_at=start,
        due_at=None if state is SessionState.CLOSED else NOW + HOUR,
        state=state,
        ended_at=None if state is SessionState.OPEN else start + lasting * HOUR,
        summary=text if state is SessionState.CLOSED else None,
    )
    await store.put_session(session)
    return session


async def said(
    store: InMemoryStore, session: Session, human: str, reply: str = "Yes.", *, n: int = 0
) -> None:
    at = session.started_at + timedelta(minutes=n)
    turn_id = TurnId(f"{session.session_id}{n}")
    await store.add_turn(Turn(turn_id, ANN, session.session_id, session.audience, at, human, reply, at))


async def block(
    store: InMemoryStore, *, audience: Audience = DIRECT, recent: int = 3, tokens: int = 1000
) -> MemoryBlock:
    current = Session(SessionId(f"now {audience}"), ANN, audience, started_at=NOW, due_at=NOW + HOUR)
    await store.open_session(current)
    policy = BlockPolicy(recent_sessions=recent, block_tokens=tokens)
    return await load_block(store, current, zone=BERLIN, policy=policy, estimator=ESTIMATOR)


def shown(block: MemoryBlock) -> list[str]:
    return [item.text for item in block.items]


async def test_without_a_past_it_is_empty(store: InMemoryStore) -> None:
    assert not await block(store)


async def test_the_last_sessions_are_shown_oldest_first(store: InMemoryStore) -> None:
    for hours in (500, 400, 300, 200, 100):
        await past(store, hours, f"{hours} hours ago")
    assert shown(await block(store)) == ["300 hours ago", "200 hours ago", "100 hours ago"]


async def test_all_of_yesterdays_are_shown_however_many(store: InMemoryStore) -> None:
    # Noon in Berlin: yesterday was from 36 to 12 hours ago.
    for hours in (40, 35.9, 30, 25, 20, 15, 12.1, 11, 5):
        await past(store, hours, f"{hours}")
    assert shown(await block(store, recent=1)) == ["35.9", "30", "25", "20", "15", "12.1", "5"]


async def test_a_session_that_went_on_over_midnight_is_yesterdays_too(store: InMemoryStore) -> None:
    await past(store, 37, "over midnight", lasting=2)
    await past(store, 38, "before midnight", lasting=1)
    await past(store, 5, "today")
    assert shown(await block(store, recent=1)) == ["over midnight", "today"]


async def test_a_session_is_shown_once_though_it_is_recent_and_of_yesterday(store: InMemoryStore) -> None:
    await past(store, 20, "yesterday")
    assert shown(await block(store)) == ["yesterday"]


async def test_what_began_later_than_the_session_does_not_change_its_block(store: InMemoryStore) -> None:
    await past(store, 5, "before")
    before = await block(store)
    await past(store, -1, "later")
    assert await block(store) == before


async def test_where_there_is_no_summary_yet_its_last_words_stand_for_it(store: InMemoryStore) -> None:
    session = await past(store, 5, None, state=SessionState.CLOSING)
    for number in range(6):
        await said(store, session, f"turn {number}", "" if number == 5 else "Yes.", n=number)
    (item,) = (await block(store)).items
    assert item.kind == "excerpt"
    assert item.text.splitlines() == [
        *("They: turn 2", "You: Yes.", "They: turn 3", "You: Yes.", "They: turn 4", "You: Yes."),
        "They: turn 5",
    ]


async def test_a_session_in_which_nothing_was_said_is_left_out(store: InMemoryStore) -> None:
    await past(store, 5, None)
    await past(store, 4, None, state=SessionState.CLOSING)
    assert not await block(store)


async def test_a_group_sees_only_what_was_said_in_it_and_a_direct_chat_sees_all(store: InMemoryStore) -> None:
    await past(store, 30, "secret")
    await past(store, 20, "in the group", audience=GROUP)
    await past(store, 10, "in another group", audience=Audience("group:2"))
    assert shown(await block(store, audience=GROUP)) == ["in the group"]
    assert shown(await block(store)) == ["secret", "in the group", "in another group"]


async def test_somebody_elses_are_never_shown(store: InMemoryStore) -> None:
    other = Session(
        SessionId("b"), MemoryId("terminal:bob"), DIRECT, NOW - HOUR, None, SessionState.CLOSED, summary="his"
    )
    await store.put_session(other)
    assert not await block(store)


async def test_when_the_room_is_short_the_newest_are_kept_and_the_oldest_cut(store: InMemoryStore) -> None:
    for hours in (30, 20, 10):
        await past(store, hours, f"{hours}: " + "so it went on and on " * 20)
    items = (await block(store, tokens=250)).items
    assert items[-1].text.startswith("10: ")
    assert items[0].text.endswith("…")
    assert sum(ESTIMATOR.count(item.text) for item in items) <= 250


@given(st.lists(st.text(st.sampled_from("ab 思い出é"), max_size=600), max_size=4), st.integers(0, 400))
async def test_the_block_never_takes_more_than_its_tokens(texts: list[str], tokens: int) -> None:
    store = InMemoryStore()
    for number, text in enumerate(texts):
        await past(store, 10 + number, text)
    items = (await block(store, tokens=tokens)).items
    assert sum(ESTIMATOR.count(item.text) for item in items) <= tokens


async def test_a_text_whose_beginning_weighs_more_is_cut_by_weight(store: InMemoryStore) -> None:
    await past(store, 5, "思い出" * 100 + "abc" * 100)
    (item,) = (await block(store, tokens=100)).items
    assert ESTIMATOR.count(item.text) <= 100
    assert item.text.startswith("思い出")
