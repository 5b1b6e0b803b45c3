"""The filter that keeps reasoning out of the chat: by example, and for any text cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.chat.reasoning import Opening, ReasoningFilter, without_reasoning


def seen(*pieces: str, opening: Opening = Opening.BY_MARK, cut: bool = False) -> str:
    reasoning = ReasoningFilter(opening)
    return "".join(reasoning.feed(piece) for piece in pieces) + reasoning.end(cut=cut)


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("<think>hm</think>Hello.", "Hello."),
        ("<think>hm</think>\n\n  Hello.", "Hello."),
        ("<THINK>hm</Think>Hello.", "Hello."),
        ("<thinking>hm</thinking>Hello.", "Hello."),
        ("<reasoning>hm</reasoning>Hello.", "Hello."),
        ("<reflection>hm</reflection>Hello.", "Hello."),
        ("<thought>hm</thought>Hello.", "Hello."),
        ("< think >hm</ think >Hello.", "Hello."),
        ('<think type="deep" n=2>hm</think>Hello.', "Hello."),
        ("<think/>Hello.", "Hello."),
        ("<think></think>Hello.", "Hello."),
        ("[THINK]hm[/THINK]Hello.", "Hello."),
        ("Well. <think>hm</think> Hello.", "Well. Hello."),
        ("Well<think>hm</think> then.", "Well then."),
        ("Hello.<think>never closed, to the end", "Hello."),
        ("<think>only this", ""),
        ("<think>a<think>b</think>c</think>Hello.", "Hello."),
        ("<think>a <b> & c < d</think>Hello.", "Hello."),
        ("<think>one</think>Hello.<think>two</think> Bye.", "Hello. Bye."),
        ("<<think>hm</think>", "<"),
    ],
)
def test_reasoning_is_removed_in_each_form(text: str, visible: str) -> None:
    assert seen(text) == visible


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a < b and b > c, <3 and <thinly> and <thinker>",
        "I am <thinking about you> and <think of it> too",
        "a [link](http://example.org), [THINKING] aloud, a list[0]",
        "it ends with <thin",
        "it ends with <think",
        "<|im_end|> and <|end|> and <|start|> are nothing here",
        "# Title\n\n```python\nif a < b:\n    pass\n```\n",
    ],
)
def test_text_without_reasoning_passes_unchanged(text: str) -> None:
    assert seen(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Models write `<think>` and `</think>` around it.",
        "Models write ``<think>`` too.",
        "```xml\n<think>hm</think>\n```\nThat is how.",
        "```xml\n<think>hm\n``` not the end\n</think>\n```\nThat is how.",
        "~~~\n<think>\n~~~\n",
        "> ```\n> <think>\n> ```\n",
        "````\n```\n<think>\n````\n",
    ],
)
def test_code_that_talks_about_the_mark_is_shown(text: str) -> None:
    assert seen(text) == text


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("```\ncode\n```\n<think>hm</think>Hello.", "```\ncode\n```\nHello."),
        ("```one line``` <think>hm</think>Hello.", "```one line``` Hello."),
        ("a stray ` here\n<think>hm</think>Hello.", "a stray ` here\nHello."),
        ("<think>they ask about `</think>` and `<think>` now</think>Hello.", "Hello."),
        ("<think>use ```\ncode</think>Hello.", "Hello."),
        ("<think>ends in code `x`</think>Hello.", "Hello."),
    ],
)
def test_code_around_real_reasoning_does_not_hide_its_end(text: str, visible: str) -> None:
    assert seen(text) == visible


def test_a_mark_that_reasoning_only_mentions_does_not_swallow_the_reply() -> None:
    assert seen("<think>what does <think> mean?</think>It means reasoning.") == "It means reasoning."


def test_a_cut_reply_never_gives_out_what_may_be_reasoning() -> None:
    assert seen("<think>a<think>b</think>c, and here it was c", cut=True) == ""


def test_of_an_unopened_mark_only_the_mark_can_be_dropped_and_it_is_reported() -> None:
    reasoning = ReasoningFilter()
    assert reasoning.feed("They greet me.\n") == "They greet me.\n"
    assert reasoning.feed("</think>\n\nHello.") == "Hello."
    assert reasoning.unopened


def test_an_opened_reply_is_held_until_its_mark_and_shown_from_there() -> None:
    reasoning = ReasoningFilter(Opening.BY_TEMPLATE)
    assert reasoning.feed("They greet me.\n") == ""
    assert reasoning.feed("</think>\n\nHel") == "Hel"
    assert reasoning.feed("lo.") == "lo."
    assert reasoning.unopened


def test_an_opened_reply_without_the_mark_is_given_out_at_its_end() -> None:
    reasoning = ReasoningFilter(Opening.BY_TEMPLATE)
    assert reasoning.feed("Hello.") == ""
    assert reasoning.end() == "Hello."
    assert not reasoning.unopened


def test_an_opened_reply_that_was_cut_before_the_mark_shows_nothing() -> None:
    assert seen("They greet me, so", opening=Opening.BY_TEMPLATE, cut=True) == ""


def test_a_cut_reply_of_which_nothing_is_known_is_shown() -> None:
    assert seen("Hello, my", opening=Opening.UNKNOWN, cut=True) == "Hello, my"


@pytest.mark.parametrize("opening", Opening)
def test_reasoning_that_is_never_closed_is_not_given_out_with_what_waited_before_it(opening: Opening) -> None:
    assert seen("Hello. <think>secret", opening=opening) == "Hello. "


def test_text_around_reasoning_is_shown_also_where_nothing_was_known() -> None:
    assert seen("Hello. <think>hm</think> Bye.", opening=Opening.UNKNOWN) == "Hello. Bye."


def test_code_in_opened_reasoning_does_not_hide_its_end() -> None:
    text = "maybe ```\ncode </think>Hello, `</think>` you."
    assert seen(text, opening=Opening.BY_TEMPLATE) == "Hello, `</think>` you."
    text = "they wrote `</think>` here</think>Hello."
    assert seen(text, opening=Opening.BY_TEMPLATE) == "Hello."


def test_an_opened_reply_that_opens_by_itself_is_read_like_any_other() -> None:
    reasoning = ReasoningFilter(Opening.BY_TEMPLATE)
    assert reasoning.feed("\n<think>hm</think>Hello.") == "Hello."
    assert not reasoning.unopened


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        (
            "<|channel|>analysis<|message|>They greet.<|end|>"
            "<|start|>assistant<|channel|>final<|message|>Hello.",
            "Hello.",
        ),
        ("<|channel|>final<|message|>Hello.<|return|>", "Hello."),
        ("<|channel|>commentary to=me<|message|>x<|end|><|start|>assistant<|message|>Hello.", "Hello."),
        ("<|channel|>analysis<|message|>never ended", ""),
    ],
)
def test_only_the_final_channel_is_shown(text: str, visible: str) -> None:
    assert seen(text) == visible


def test_a_lone_bracket_waits_only_until_it_cannot_be_a_mark() -> None:
    reasoning = ReasoningFilter()
    assert reasoning.feed("a <") == "a "
    assert reasoning.feed("b") == "<b"
    assert reasoning.feed("<th") == ""
    assert reasoning.feed("e") == "<the"
    assert reasoning.feed(" end") == " end"


def test_a_tag_that_never_ends_is_not_waited_for_for_ever() -> None:
    reasoning = ReasoningFilter()
    text = f"<think a='{'x' * 300}"
    assert reasoning.feed(text) == text


def test_ordinary_text_is_passed_on_at_once() -> None:
    reasoning = ReasoningFilter()
    assert [reasoning.feed(piece) for piece in ("Hel", "lo, ", "you")] == ["Hel", "lo, ", "you"]


def test_a_whole_text_loses_also_what_stood_before_an_unopened_mark() -> None:
    assert without_reasoning("They greet me.\n</think>\n\nHello.") == "Hello."
    assert without_reasoning("Hello.") == "Hello."


_SCRAPS = st.sampled_from(
    [
        "<think>", "</think>", "<THINKING a='b'>", "</thinking>", "< think >", "<think/>", "<think",
        "<", ">", "`", "```", "\n", "\n```\n", " ", "[", "[THINK]", "[/THINK]", "<|channel|>", "analysis",
        "final", "<|message|>", "<|end|>", "<|start|>", "word", "ひ", "</", "a=",
    ]
)  # fmt: skip
_TEXTS = st.lists(_SCRAPS | st.text(max_size=5), max_size=25).map("".join)


@given(
    text=_TEXTS,
    cuts=st.lists(st.integers(0, 200), max_size=12),
    opening=st.sampled_from(Opening),
    cut=st.booleans(),
)
def test_the_visible_text_does_not_depend_on_the_pieces(
    text: str, cuts: list[int], opening: Opening, cut: bool
) -> None:
    ends = sorted({min(at, len(text)) for at in cuts} | {len(text)})
    pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    whole = seen(text, opening=opening, cut=cut)
    assert seen(*pieces, opening=opening, cut=cut) == whole
    assert seen(*text, opening=opening, cut=cut) == whole


@given(text=st.text(alphabet=st.characters(exclude_characters="<[")) | st.text(alphabet="<>/thinkg `\n=[]a"))
def test_any_text_without_a_mark_passes_unchanged(text: str) -> None:
    lowered = text.lower().replace(" ", "").replace("\t", "")
    if "<think" not in lowered and "</think" not in lowered:
        assert seen(text) == text


_PLAIN = st.text(alphabet="abc .\n", max_size=10)
_THOUGHT = st.text(alphabet="SECRET <>\n", max_size=20)


@given(
    parts=st.lists(st.tuples(_PLAIN, _THOUGHT, st.sampled_from(["think", "Thinking", "reflection"]))),
    last=_PLAIN,
    closed=st.booleans(),
)
def test_nothing_of_the_reasoning_is_ever_visible(
    parts: list[tuple[str, str, str]], last: str, closed: bool
) -> None:
    text = "".join(f"{plain}<{name}>{thought}</{name}>" for plain, thought, name in parts) + last
    if not closed:
        text += "<think>SECRET"
    visible = seen(text)
    assert not set(visible) & set("SECRET<>")
    said = "".join(plain for plain, _, _ in parts) + last
    assert "".join(visible.split()) == "".join(said.split())


@given(text=_TEXTS, cut=st.booleans())
def test_waiting_to_know_changes_nothing_where_no_mark_was_unopened(text: str, cut: bool) -> None:
    watched = ReasoningFilter()
    shown = watched.feed(text) + watched.end(cut=cut)
    if not watched.unopened:
        assert seen(text, opening=Opening.UNKNOWN, cut=cut) == shown
