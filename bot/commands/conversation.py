"""/new, /stop, /timezone: about the conversation itself."""

from __future__ import annotations

import difflib
from zoneinfo import available_timezones

from bot.commands.command import Answer, Call
from bot.commands.remembering import written, zone_of
from memory import find_zone


async def begin_anew(call: Call) -> Answer:
    """End the session that is open."""
    ended = await call.memory.end_session(call.memory_id, call.audience)
    return Answer(call.texts("new.done" if ended else "new.nothing"), private=False)


async def stop_reply(call: Call) -> Answer:
    """Stop the reply that is running; the reply's own end says so."""
    return Answer(call.texts("stopped" if call.stop() else "nothing-to-stop"), private=False)


async def tell_or_set_zone(call: Call) -> Answer:
    """Show the person's time zone, or set it."""
    if call.arguments:
        return await _set_zone(call, call.arguments)
    overview = await call.memory.archive.overview(call.memory_id, in_front_of=call.audience)
    zone = zone_of(overview.person, call.zone)
    key = "timezone.is" if overview.person.timezone else "timezone.default"
    return Answer(call.texts(key, zone=zone.key, time=written(call.at, zone)))


async def _set_zone(call: Call, name: str) -> Answer:
    zone = find_zone(_spelled(name))
    if zone is None:
        nearest = difflib.get_close_matches(_spelled(name), available_timezones(), n=1)
        if nearest:
            return Answer(call.texts("timezone.nearest", name=name, nearest=nearest[0]))
        return Answer(call.texts("timezone.unknown", name=name))
    await call.memory.archive.set_timezone(call.memory_id, zone)
    return Answer(call.texts("timezone.set", zone=zone.key, time=written(call.at, zone)))


def _spelled(name: str) -> str:
    """Return the name as the database of zones spells it, whatever the letter case; else as it is."""
    wanted = name.strip().replace(" ", "_").casefold()
    return next((zone for zone in available_timezones() if zone.casefold() == wanted), name)
