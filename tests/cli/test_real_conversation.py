"""A conversation with nothing stood in for: the bundled model, the embedded database, the command line.

What so small a model says is its own affair; that it is asked, answers, is remembered, and is given what is
remembered, is ours.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cli.omoide import PATIENCE, Omoide, leave, say

pytestmark = [pytest.mark.wire, pytest.mark.timeout(400)]


async def test_people_talk_leave_come_back_and_are_known(tmp_path: Path) -> None:
    omoide = Omoide(tmp_path / "data", env={"OMOIDE_LLM__MAX_TOKENS": "40"})

    chat = await omoide.start("chat", "--user", "mei")
    assert await say(chat, "Hi, I am Mei and I have a cat called Tofu.")
    assert await say(chat, "She is black and very lazy.")
    assert await leave(chat) == 0

    chat = await omoide.start("chat", "--user", "mei", "--session-timeout", "2")
    assert await say(chat, "What is my cat called?")
    exported = (await omoide("export", "mei")).json
    assert [turn["human"] for turn in exported["turns"]] == [
        "Hi, I am Mei and I have a cat called Tofu.",
        "She is black and very lazy.",
        "What is my cat called?",
    ]
    assert len(exported["sessions"]) == 1
    for turn in exported["turns"]:
        assert turn["reply"]
        assert turn["model"] == "smollm2-135m"
        assert turn["tokens"]["prompt"] > 100
        assert turn["tokens"]["completion"] <= 40
    second = exported["turns"][1]["tokens"]
    assert second["cached"] > second["prompt"] / 2  # the prompt only grew at its end

    async with asyncio.timeout(PATIENCE):
        while True:
            session = (await omoide("memory", "mei", "--json")).json["sessions"][0]
            if session["state"] == "closed":
                break
    assert session["summary"]
    assert session["turns"] == 3

    alone = await omoide("chat", "--user", "tom", said="Hello!\n")
    known = await say(chat, "Hello!")
    assert known
    assert await leave(chat) == 0
    of_mei = (await omoide("export", "mei")).json["turns"][-1]["tokens"]["prompt"]
    of_tom = (await omoide("export", "tom")).json["turns"][-1]["tokens"]["prompt"]
    assert alone.code == 0
    assert of_mei > of_tom + 20  # the same words, and what is remembered of her before them

    assert (await omoide("forget", "mei", "--yes")).code == 0
    assert (await omoide("memory", "mei", "--json")).json["turns"] == 0
    for server in ("database", "model"):
        assert not (tmp_path / "data" / server / "server.json").exists()
