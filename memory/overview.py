"""What is remembered of a person, as they may see it: a value made from the store alone."""

from __future__ import annotations

from dataclasses import dataclass

from memory.ports import Store
from memory.types import Audience, MemoryId, Person, Session, SessionState, Turn, may_show


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session, and how many turns it has."""

    session: Session
    turns: int


@dataclass(frozen=True, slots=True)
class Overview:
    """All that is remembered of one person and may be shown in front of one audience, oldest first."""

    memory_id: MemoryId
    person: Person
    turns: int
    sessions: tuple[SessionView, ...]
    window: tuple[Turn, ...]

    @property
    def current(self) -> SessionView | None:
        """The session that is open, the latest if there are several."""
        live = [view for view in self.sessions if view.session.state is SessionState.OPEN]
        return live[-1] if live else None


async def look(store: Store, memory_id: MemoryId, *, in_front_of: Audience) -> Overview:
    """Read the overview. Raises StoreFault."""
    counts = await store.count_turns(memory_id)
    views = tuple(
        SessionView(session, counts.get(session.session_id, 0))
        for session in await store.sessions(memory_id)
        if may_show(session.audience, in_front_of=in_front_of)
    )
    return Overview(
        memory_id=memory_id,
        person=await store.person(memory_id) or Person(memory_id),
        turns=sum(view.turns for view in views),
        sessions=views,
        window=await _window(store, views, in_front_of),
    )


async def _window(store: Store, views: tuple[SessionView, ...], audience: Audience) -> tuple[Turn, ...]:
    """Return the turns that the model is shown verbatim in the conversation with this audience."""
    for view in views:
        session = view.session
        if session.state is SessionState.OPEN and session.audience == audience:
            turns = await store.turns(session.memory_id, session=session)
            return tuple(turn for turn in turns if turn.turn_id >= (session.window_from or ""))
    return ()
