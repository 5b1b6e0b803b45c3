"""The commands, as people give them."""

from __future__ import annotations

from bot.commands import COMMANDS, parse
from bot.errors import ModelBroken
from memory import DIRECT, Holdings, MemoryId
from memory.stores.inmemory import InMemoryStore
from tests.clock import settle
from tests.conversations.companion import Companion, Someone, companion, whole

MEI = MemoryId("terminal:mei")


async def _two_sessions(it: Companion) -> Someone:
    """Talk in one session that ends, and in one that is open; takes four replies from the script."""
    mei = it.someone()
    await mei.says("My cat is called Tofu.")
    await mei.says("She is black.")
    await it.clock.advance(1800)
    await mei.says("And I play chess.")
    return mei


SCRIPT = ("A fine name.", "Like the night.", "Mei has a black cat, Tofu.", "I like chess too.")


async def test_memory_tells_what_is_remembered_in_numbers_and_summaries() -> None:
    async with companion(*SCRIPT) as it:
        mei = await _two_sessions(it)
        shown = await mei.says("/memory")
    assert shown.private
    assert shown.text.splitlines() == [
        "I remember 3 turns in 2 sessions.",
        "This session: since 2026-03-04 13:30, 1 turn, 1 of them word for word before me.",
        "Earlier sessions:",
        "• 2026-03-04 13:00 (2 turns): Mei has a black cat, Tofu.",
    ]


async def test_memory_of_a_stranger_is_empty() -> None:
    async with companion() as it:
        assert (await it.someone().says("/memory")).text == "I don't remember anything of you yet."


async def test_memory_shows_that_a_summary_failed_and_when_it_came() -> None:
    async with companion("Hi.", *[ModelBroken("x")] * 3, "Mei said hi.") as it:
        mei = it.someone()
        await mei.says("Hello")
        await it.clock.advance(1805)
        assert (
            "could not be made yet (ModelBroken, tries: 1); its turns are kept"
            in (await mei.says("/memory")).text
        )
        await it.clock.advance(60)
        await it.memory.sweep()
        await settle()
        assert "Mei said hi." in (await mei.says("/memory")).text


async def test_search_finds_all_words_in_any_case_newest_first_and_in_chinese() -> None:
    async with companion("Lovely.", "Again?", "真好。") as it:
        mei = it.someone()
        await mei.says("I saw a Black CAT in Rome")
        await mei.says("the cat was black")
        await mei.says("我今天看见一只黑猫")
        found = (await mei.says("/memory search black cat")).text.splitlines()
        assert [line.split(" you: ")[1] for line in found[1:]] == [
            "the cat was black – me: Again?",
            "I saw a Black CAT in Rome – me: Lovely.",
        ]
        assert "看见一只黑猫" in (await mei.says("/memory search 黑猫")).text
        assert (await mei.says("/memory search dog")).text == "I found nothing with “dog”."
        assert "SEARCH WORDS" in (await mei.says("/memory search")).text.upper()


async def test_what_is_found_has_the_time_of_the_persons_own_clock() -> None:
    async with companion("Oh.") as it:
        mei = it.someone()
        await mei.says("/timezone Asia/Shanghai")
        await mei.says("My cat is called Tofu.")
        assert "2026-03-04 20:00" in (await mei.says("/memory")).text
        assert "• 2026-03-04 20:00 you: My cat" in (await mei.says("/memory search tofu")).text


async def test_a_zone_alone_is_shown_too_since_it_is_remembered() -> None:
    async with companion() as it:
        mei = it.someone()
        await mei.says("/timezone Asia/Shanghai")
        assert (await mei.says("/memory")).text.splitlines() == [
            "I don't remember anything of you yet.",
            "Your time zone: Asia/Shanghai.",
        ]


async def test_any_blank_parts_a_command_from_its_words() -> None:
    async with companion("Oh.") as it:
        mei = it.someone()
        await mei.says("My cat is called Tofu.")
        for blanks in ("/memory\tsearch\ttofu", "/memory\u3000search\u3000tofu", "/memory  search  tofu"):
            assert "called Tofu" in (await mei.says(blanks)).text
        assert parse("/new\nlines are talk") is None
        assert parse("/forget\u3000 everything") == ("forget", "everything")
        assert parse("  ") is None


async def test_in_a_group_only_what_was_said_there_is_shown() -> None:
    async with companion("Oh.", "Hello all.") as it:
        mei, in_group = it.someone(), it.someone(chat="club")
        await mei.says("My secret is 17.")
        await in_group.says("Hello!")
        assert "1 turn in 1 session" in (await in_group.says("/memory")).text
        assert "nothing" in (await in_group.says("/memory search secret")).text
        assert "2 turns in 2 sessions" in (await mei.says("/memory")).text


async def test_forget_offers_with_counts_asks_and_says_what_went() -> None:
    async with companion(*SCRIPT) as it:
        mei = await _two_sessions(it)
        offered = await mei.says("/forget")
        assert [choice.label for choice in offered.choices] == [
            "the last exchange (1 turn)",
            "this session (1 turn, 1 session)",
            "everything (3 turns, 2 sessions, 1 summary)",
            "no, keep it",
        ]
        asked = await mei.picks(offered, 3)
        assert asked.text == "This will be erased for good: 3 turns, 2 sessions, 1 summary. Are you sure?"
        assert await it.store.holdings(MEI) == Holdings(turns=3, sessions=2, summaries=1)
        done = await mei.picks(asked, 1)
        assert done.text == "Forgotten: 3 turns, 2 sessions, 1 summary. Nothing of it is left."
        assert not await it.store.holdings(MEI)


async def test_no_keeps_everything() -> None:
    async with companion(*SCRIPT) as it:
        mei = await _two_sessions(it)
        kept = await mei.picks(await mei.says("/forget everything"), 2)
        assert kept.text == "Good, I keep it."
        assert (await it.store.holdings(MEI)).turns == 3


async def test_a_confirmation_is_good_for_its_person_once_and_for_two_minutes() -> None:
    stale = "That question is no longer open. Please ask again."
    async with companion(*SCRIPT) as it:
        mei = await _two_sessions(it)
        asked = await mei.says("/forget everything")
        assert (await it.someone("tom").picks(asked, 1)).text == stale
        await it.clock.advance(121)
        assert (await mei.picks(asked, 1)).text == stale
        again = await mei.says("/forget everything")
        await mei.picks(again, 2)
        assert (await mei.picks(again, 1)).text == stale
        assert (await it.store.holdings(MEI)).turns == 3


async def test_the_last_exchange_goes_and_the_model_is_not_shown_it_any_more() -> None:
    async with companion("One.", "Two.", "Three.") as it:
        mei = it.someone()
        await mei.says("keep this")
        await mei.says("forget this")
        done = await mei.picks(await mei.says("/forget last"), 1)
        assert done.text == "Forgotten: 1 turn. Nothing of it is left."
        await mei.says("go on")
        assert "keep this" in whole(it.prompt)
        assert "forget this" not in whole(it.prompt)


async def test_a_summary_is_made_anew_without_the_exchange_that_was_forgotten() -> None:
    async with companion("One.", "Two.", "Cat and secret.", "Only the cat.", "Hello.") as it:
        mei = it.someone()
        await mei.says("I have a cat")
        await mei.says("my secret is 17")
        await it.clock.advance(1800)
        await mei.picks(await mei.says("/forget last"), 1)
        await it.clock.advance(1)
        remade = it.model.prompts[-1]
        assert "I have a cat" in whole(remade)
        assert "17" not in whole(remade)
        (session,) = await it.store.sessions(MEI)
        assert session.summary == "Only the cat."
        await mei.says("What do you know?")
        assert "> Only the cat." in it.prompt[0].content


async def test_forgetting_the_session_keeps_the_others() -> None:
    async with companion(*SCRIPT, "Yes?") as it:
        mei = await _two_sessions(it)
        done = await mei.picks(await mei.says("/forget session"), 1)
        assert done.text == "Forgotten: 1 turn, 1 session. Nothing of it is left."
        await mei.says("Hello?")
        assert "chess" not in whole(it.prompt)
        assert "Tofu" in whole(it.prompt)


async def test_what_was_forgotten_is_not_in_a_conversation_that_goes_on_elsewhere() -> None:
    async with companion("Hm.", "Mei plays chess.", "Yes.", "And?", "Still here.") as it:
        in_group, direct = it.someone(chat="club"), it.someone()
        await in_group.says("I play chess.")
        await it.clock.advance(1800)
        await direct.says("What do I play?")
        assert "Mei plays chess." in whole(it.prompt)
        await in_group.picks(await in_group.says("/forget session"), 1)
        await direct.says("And now?")
        assert "Mei plays chess." not in whole(it.prompt)


async def test_new_ends_the_session_and_the_next_turn_opens_another() -> None:
    async with companion("Hi.", "Mei said hello.", "Hello again.") as it:
        mei = it.someone()
        assert (await mei.says("/new")).text == "This page is still blank."
        await mei.says("Hello")
        assert "fresh page" in (await mei.says("/new")).text
        await mei.says("Me again")
        assert [m.content for m in it.prompt[1:]] == ["[Wed 2026-03-04 13:00] Me again"]
        assert len(await it.store.sessions(MEI)) == 2


async def test_a_time_zone_is_set_shown_and_used() -> None:
    async with companion("Good evening.") as it:
        mei = it.someone()
        assert "Europe/Berlin" in (await mei.says("/timezone")).text
        assert "Asia/Shanghai" in (await mei.says("/timezone asia/shanghai")).text
        assert (await mei.says("/timezone")).text.startswith(
            "Your time zone is Asia/Shanghai; for you it is 2026-03-04 20:00"
        )
        assert "Did you mean Europe/Berlin" in (await mei.says("/timezone Europe/Brelin")).text
        assert "I know no time zone" in (await mei.says("/timezone ../../etc/passwd")).text
        await mei.says("Hello")
        assert it.prompt[-1].content == "[Wed 2026-03-04 20:00] Hello"


async def test_help_names_every_command_and_a_wrong_name_gets_the_nearest() -> None:
    async with companion() as it:
        mei = it.someone()
        shown = (await mei.says("/help")).text
        assert all(f"/{command.name}" in shown for command in COMMANDS)
        assert "Did you mean /memory" in (await mei.says("/memroy")).text
        assert "There is no command /xyzzy" in (await mei.says("/xyzzy")).text


async def test_what_only_looks_like_a_command_is_talk() -> None:
    async with companion("A path.", "A half.", "A slash.") as it:
        mei = it.someone()
        for text in ("/usr/bin is full", "1/2 or /2", "/ hm"):
            assert (await mei.says(text)).reply
        assert len(await it.store.turns(MEI)) == 3


async def test_commands_speak_the_persons_language() -> None:
    async with companion() as it:
        assert (await it.someone(locale="zh").says("/memory")).text == "我还没有记住你的任何事。"


async def test_an_export_restores_everything_and_twice_changes_nothing() -> None:
    from memory import from_json, to_json

    async with companion(*SCRIPT) as it:
        await (await _two_sessions(it)).says("/timezone Asia/Tokyo")
        portrait = await it.memory.archive.export(MEI)
        assert portrait is not None
        before = await it.memory.archive.overview(MEI, in_front_of=DIRECT)
    async with companion(store=InMemoryStore(), clock=it.clock) as other:
        added = await other.memory.archive.take_in(from_json(to_json(portrait)))
        assert (added.turns, added.sessions, added.known) == (3, 2, 0)
        again = await other.memory.archive.take_in(portrait)
        assert (again.turns, again.sessions, again.known) == (0, 0, 5)
        assert await other.memory.archive.overview(MEI, in_front_of=DIRECT) == before


async def test_the_last_exchange_can_be_forgotten_again_and_again_back_into_earlier_sessions() -> None:
    async with companion("One.", "A note.", "Two.") as it:
        mei = it.someone()
        await mei.says("a")
        await it.clock.advance(1800)
        await mei.says("b")
        for left in (1, 0):
            done = await mei.picks(await mei.says("/forget last"), 1)
            assert done.text.startswith("Forgotten: 1 turn")
            assert (await it.store.holdings(MEI)).turns == left
        assert (await mei.says("/forget last")).text == "There is nothing to forget."
