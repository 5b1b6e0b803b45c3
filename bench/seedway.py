"""The seeds' way of a turn, written anew for the comparison: which calls they make, and how.

For every message, blocking and on the main thread: the last two summaries (all of them sorted by a time
that is text with whole minutes, no index), all summaries of yesterday (a range over the same text), the
history as one text, and an insert of a document that goes through JSON text and back.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from pymongo import MongoClient

from bench.history import TURNS_A_SESSION
from bench.instant import NOTE, REPLY
from bench.script import MESSAGES

_SHOWN = 8  # messages
_MINUTES = "%Y-%m-%dT%H:%M"


class SeedWay:
    """One conversation, with what the seeds keep in globals."""

    def __init__(self, database: Any) -> None:
        self._daily = database["daily"]
        self._summaries = database["session-history"]
        self._said: list[tuple[str, str]] = []

    def fill(self, turns: int) -> None:
        """Put so many turns in ended sessions into the database."""
        today = datetime.now().replace(second=0, microsecond=0)  # noqa: DTZ005 - that is how they do it
        daily, summaries = [], []
        for number in range(0, turns, TURNS_A_SESSION):
            session = number // TURNS_A_SESSION
            at = (today - timedelta(days=1 + session // 2, hours=5 * (session % 2))).strftime(_MINUTES)
            here = min(TURNS_A_SESSION, turns - number)
            daily += [_turn(MESSAGES[index], REPLY, at) for index in range(here)]
            pool = json.dumps([str(uuid.uuid4()) for _ in range(here)])
            session_id = json.dumps(uuid.uuid4().hex)
            summaries.append(
                {"timestamp": at, "session_id": session_id, "session_summary": NOTE, "chat_id_pool": pool}
            )
        self._daily.insert_many(daily)
        self._summaries.insert_many(summaries)

    async def turn(self, text: str) -> None:
        """Take a turn; nothing in it gives way to anybody."""
        self._said.append(("human", text))
        recent = [
            [found["timestamp"], found["session_summary"]]
            for found in self._summaries.find().sort("timestamp", -1).limit(2)
        ]
        yesterday = "\n".join(f"{one['timestamp']} {one['session_summary']}" for one in self._yesterday())
        shown = "\n".join(f"{role}: {said}" for role, said in self._said[-_SHOWN:-1])
        _prompt = f"yesterday: {yesterday}\nrecent: {recent}\nhistory:\n{shown}"
        self._said.append(("ai", REPLY))
        now = datetime.now().strftime(_MINUTES)  # noqa: DTZ005 - that is how they do it
        self._daily.insert_one(json.loads(json.dumps(_turn(text, REPLY, now), indent=4)))

    def _yesterday(self) -> list[dict[str, Any]]:
        today = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)  # noqa: DTZ005 - as above
        start = today - timedelta(days=1)
        between = {"$gte": start.isoformat(), "$lte": today.isoformat()}
        return list(self._summaries.find({"timestamp": between}))


def _turn(human: str, reply: str, at: str) -> dict[str, str]:
    return {
        "message_id": str(uuid.uuid4()),
        "ai_reply": reply,
        "human_message": human,
        "timestamp": at,
        "session_id": str(uuid.uuid4()),
    }


@contextmanager
def talking(uri: str, turns: int) -> Iterator[Callable[[str], Awaitable[None]]]:
    """Open a database of its own with a past of so many turns; gives what takes a turn."""
    client: MongoClient[dict[str, Any]] = MongoClient(uri)
    try:
        way = SeedWay(client[f"seeds-{turns}"])
        way.fill(turns)
        yield way.turn
    finally:
        client.close()
