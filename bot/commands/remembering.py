"""/memory: what is remembered, and finding what was said."""

from __future__ import annotations

from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from bot.commands.command import Answer, Call
from bot.texts import Texts
from memory import Overview, Person, SessionState, SessionView, StoreUnavailable, Turn, find_zone

_MOST_SESSIONS = 8
_MOST_FOUND = 8
_LONGEST_QUOTE = 160


async def show_memory(call: Call) -> Answer:
    """Show what is remembered, or search it."""
    verb, *rest = call.arguments.split(maxsplit=1) or [""]
    if verb.casefold() in {"search", "查找", "搜索"}:
        return await _search(call, "".join(rest))
    if verb:
        return Answer(call.texts("memory.usage"))
    try:
        overview = await call.memory.archive.overview(call.memory_id, in_front_of=call.audience)
        lines = list(overview_lines(overview, call.texts, call.zone))
    except StoreUnavailable:
        lines = [call.texts("memory-away")]
    if waiting := call.memory.waiting(call.memory_id):
        turns = call.texts.counted("count.turns", waiting)
        lines.append(call.texts("memory.unstored", turns=turns))
    return Answer("\n".join(lines))


def overview_lines(overview: Overview, texts: Texts, default_zone: ZoneInfo) -> tuple[str, ...]:
    """Write an overview down, in lines."""
    lines = _sessions(overview, texts, zone_of(overview.person, default_zone))
    if overview.person.timezone:
        lines.append(texts("memory.zone", zone=overview.person.timezone))
    return tuple(lines)


def zone_of(person: Person, default: ZoneInfo) -> ZoneInfo:
    """Return the person's own zone, or the default while they have none that is known here."""
    return (find_zone(person.timezone) if person.timezone else None) or default


def _sessions(overview: Overview, texts: Texts, zone: ZoneInfo) -> list[str]:
    if not overview.sessions:
        return [texts("memory.nothing")]
    lines = [
        texts(
            "memory.head",
            turns=texts.counted("count.turns", overview.turns),
            sessions=texts.counted("count.sessions", len(overview.sessions)),
        )
    ]
    lines.extend(_current(overview, texts, zone))
    earlier = [view for view in overview.sessions if view.session.state is not SessionState.OPEN]
    if earlier:
        lines.append(texts("memory.earlier"))
        lines.extend(f"• {_session(view, texts, zone)}" for view in reversed(earlier[-_MOST_SESSIONS:]))
    if len(earlier) > _MOST_SESSIONS:
        lines.append(texts("memory.more", count=len(earlier) - _MOST_SESSIONS))
    return lines


def _current(overview: Overview, texts: Texts, zone: ZoneInfo) -> list[str]:
    view = overview.current
    if view is None:
        return [texts("memory.no-current")]
    turns = texts.counted("count.turns", view.turns)
    since = written(view.session.started_at, zone)
    lines = [texts("memory.current", since=since, turns=turns, window=len(overview.window))]
    if view.session.running:
        lines.append(texts("memory.running", text=shortened(view.session.running.text)))
    return lines


def _session(view: SessionView, texts: Texts, zone: ZoneInfo) -> str:
    session = view.session
    if session.summary:
        text = shortened(session.summary, longest=400)
    elif session.state is SessionState.CLOSED:
        text = texts("memory.empty")
    elif session.fault:
        text = texts("memory.failed", fault=session.fault, attempts=session.attempts)
    else:
        text = texts("memory.pending")
    turns = texts.counted("count.turns", view.turns)
    return texts("memory.session", when=written(session.started_at, zone), turns=turns, text=text)


async def _search(call: Call, words: str) -> Answer:
    if not words:
        return Answer(call.texts("search.usage"))
    archive = call.memory.archive
    found = await archive.search(call.memory_id, words, in_front_of=call.audience, limit=_MOST_FOUND)
    if not found:
        return Answer(call.texts("search.nothing", words=words))
    overview = await archive.overview(call.memory_id, in_front_of=call.audience)
    zone = zone_of(overview.person, call.zone)
    lines = [_found(turn, call.texts, zone) for turn in found]
    return Answer("\n".join([call.texts("search.head", words=words), *lines]))


def _found(turn: Turn, texts: Texts, zone: ZoneInfo) -> str:
    reply = shortened(turn.reply) if turn.reply else texts("search.no-reply")
    when = written(turn.at, zone)
    return "• " + texts("search.line", when=when, human=shortened(turn.human), reply=reply)


def written(at: datetime, zone: tzinfo) -> str:
    """Write a moment as the person's clock shows it."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M}"


def shortened(text: str, *, longest: int = _LONGEST_QUOTE) -> str:
    """Put a text on one line, cut to a length."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
