"""From an incoming message to the right answer: commands, talk, picked choices; the error boundary of it all.

One conversation at a time: what comes for one memory id and audience is taken in order, and messages that
pile up become one turn. What must not wait (/stop) is answered at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from functools import partial
from zoneinfo import ZoneInfo

from bot.chat.engine import Engine, Key
from bot.chat.policy import Excuse
from bot.commands import Answer, Call, Offers, named, parse, unknown
from bot.message import IncomingMessage, audience_of, memory_id_of
from bot.platforms.base import Sink
from bot.texts import Texts
from memory import Clock, Memory, StoreUnavailable, TaskSet, log_failure

log = logging.getLogger(__name__)


_LONGEST = 200_000  # characters: no model takes it, and a document of the store ends at 16 MB


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A message in the queue; `picked` is the token of a choice, `done` is set when it is answered."""

    message: IncomingMessage
    sink: Sink
    done: asyncio.Future[None]
    picked: str | None = None

    @property
    def talk(self) -> bool:
        return self.picked is None and parse(self.message.text) is None

    def settle(self) -> None:
        """Note that nothing more comes of it; whoever waited may have gone."""
        if not self.done.done():
            self.done.set_result(None)


class Dispatcher:
    """Takes messages in and sees to it that each gets its answer."""

    def __init__(
        self,
        engine: Engine,
        memory: Memory,
        clock: Clock,
        *,
        zone: ZoneInfo,
        language: str = "auto",
        debounce: float = 0.0,
    ) -> None:
        """Take the engine and what commands work with.

        `language` of our own texts: "auto" is each person's own. `debounce`: seconds to wait for more of a
        burst before answering it.
        """
        self._engine = engine
        self._memory = memory
        self._clock = clock
        self._zone = zone
        self._language = language
        self._debounce = debounce
        self._offers = Offers(clock)
        self._queues: dict[Key, deque[_Waiting]] = {}
        self._tasks = TaskSet()
        self._closing = False

    def receive(
        self, message: IncomingMessage, sink: Sink, *, picked: str | None = None
    ) -> asyncio.Future[None]:
        """Take a message in, or a choice that somebody picked; returns a future that is set when answered."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(message, sink, done, picked)
        if self._closing:
            waiting.settle()
            return done
        parsed = parse(message.text) if picked is None else None
        command = named(parsed[0]) if parsed else None
        if command is not None and command.at_once:
            self._tasks.spawn(self._settle([waiting]), name="command")
            return done
        key = _key(message)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
            self._tasks.spawn(self._work(key, queue), name="conversation")
        queue.append(waiting)
        return done

    async def _work(self, key: Key, queue: deque[_Waiting]) -> None:
        """Answer what is in one conversation's queue until it is empty."""
        try:
            while queue:
                if queue[0].talk and self._debounce:
                    await self._wait_for_more(queue)
                batch = [queue.popleft()]
                while batch[0].talk and queue and queue[0].talk:
                    batch.append(queue.popleft())
                await self._settle(batch)
        except asyncio.CancelledError:
            await self._keep(key, queue)
            raise
        finally:
            del self._queues[key]
            for waiting in queue:
                waiting.settle()

    async def _keep(self, key: Key, queue: deque[_Waiting]) -> None:
        """Store what was said and will not be answered, for the next talk."""
        for waiting in queue:
            if waiting.talk:
                await self._engine.keep(key, waiting.message.text, at=waiting.message.at)

    async def _wait_for_more(self, queue: deque[_Waiting]) -> None:
        count = 0
        while count != len(queue):
            count = len(queue)
            await self._clock.sleep(self._debounce)

    async def _settle(self, batch: list[_Waiting]) -> None:
        """Answer a batch; here ends whatever goes wrong with it."""
        try:
            await self._answer(batch)
        except StoreUnavailable as fault:
            log.warning("not answered from memory, the store is away: %s", fault)
            await self._apologise(batch[-1], "memory-away")
        except Exception as fault:  # noqa: BLE001 - the boundary: one bad message must not end the conversation
            log_failure(log, "answering a message", fault)
            await self._apologise(batch[-1], "trouble")
        finally:
            for waiting in batch:
                waiting.settle()

    async def _apologise(self, waiting: _Waiting, key: str) -> None:
        try:
            await waiting.sink.say(self._texts(waiting.message)(key))
        except Exception as fault:  # noqa: BLE001 - the boundary: what comes next must be answered all the same
            log_failure(log, "saying so", fault)

    async def _answer(self, batch: list[_Waiting]) -> None:
        first, last = batch[0].message, batch[-1]
        if last.talk:
            text = "\n".join(waiting.message.text for waiting in batch)
            if len(text) > _LONGEST:
                await last.sink.say(self._texts(first)(Excuse.TOO_LONG.value))
                return
            said = await self._engine.answer(
                _key(first), text, name=first.author.name, at=first.at, sink=last.sink
            )
            if said.excuse is not None:
                await last.sink.say(self._texts(first)(said.excuse.value))
            return
        answer = await self._command(last.message, last.picked)
        await last.sink.say(answer.text, choices=answer.choices, private=answer.private)

    async def _command(self, message: IncomingMessage, picked: str | None) -> Answer:
        name, arguments = parse(message.text) or ("", "")
        call = self._call(message, arguments)
        if picked is not None:
            action = self._offers.take(picked, call.memory_id)
            return await action(call) if action else Answer(call.texts("choice.stale"))
        command = named(name)
        return await command.run(call) if command else unknown(call, name)

    def _call(self, message: IncomingMessage, arguments: str) -> Call:
        memory_id, audience = key = _key(message)
        return Call(
            memory_id=memory_id,
            audience=audience,
            arguments=arguments,
            at=message.at,
            texts=self._texts(message),
            memory=self._memory,
            offers=self._offers,
            zone=self._zone,
            stop=partial(self._engine.stop, key),
        )

    def _texts(self, message: IncomingMessage) -> Texts:
        return Texts(message.author.locale if self._language == "auto" else self._language)

    async def aclose(self, *, grace: float) -> None:
        """Take nothing more, give what is running `grace` seconds, then end it; what was said is kept."""
        self._closing = True
        try:
            if not await self._tasks.drain(grace=grace):
                log.warning("replies were cut off by the shutdown")
        finally:
            await self._tasks.aclose()  # also for somebody who is in a hurry


def _key(message: IncomingMessage) -> Key:
    return memory_id_of(message.platform, message.author.account), audience_of(message)
