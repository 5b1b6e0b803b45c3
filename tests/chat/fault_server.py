"""A chat server that goes wrong on request, in every way a socket allows.

Small and raw on purpose: a real server library would not let itself break in mid-line. It answers chat
requests with what was scripted, one item each, then with an echo for ever, and keeps every request so that
a test can look at the prompt. It lives on 127.0.0.1 at a free port and waits for nothing but events.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

CHAT = "/v1/chat/completions"
MODELS = "/v1/models"
PROPS = "/props"


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, object]

    @property
    def prompt(self) -> list[tuple[str, str]]:
        """The messages as (role, content)."""
        messages = self.body.get("messages")
        assert isinstance(messages, list)
        return [(message["role"], message["content"]) for message in messages]


class Exchange:
    """One request and the socket to answer it on."""

    def __init__(
        self, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.received = received
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    async def answer(
        self, status: int, content: bytes, *, kind: str = "application/json", headers: Mapping[str, str] = {}
    ) -> None:
        """Send a whole answer."""
        lines = {"Content-Type": kind, "Content-Length": str(len(content)), **headers}
        await self.send(_head(status, lines) + content)

    async def begin_stream(self) -> None:
        """Send the head of a streamed answer."""
        await self.send(_head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}))

    async def event(self, data: object) -> None:
        """Send one event; text goes out as it is, anything else as JSON."""
        await self.part(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())

    async def part(self, content: bytes) -> None:
        """Send one part of the chunked body."""
        await self.send(f"{len(content):x}\r\n".encode() + content + b"\r\n")

    async def end_stream(self) -> None:
        """End the chunked body properly."""
        await self.send(b"0\r\n\r\n")

    async def say(self, text: str, *, count: int = 3, of: str = "content") -> None:
        """Stream a text in pieces."""
        size = max(-(-len(text) // count), 1)
        for start in range(0, len(text), size):
            await self.event(chunk({of: text[start : start + size]}))

    async def gone(self) -> None:
        """Return when the client has closed its side."""
        with contextlib.suppress(ConnectionError):
            await self._reader.read()

    def drop(self) -> None:
        """Cut the connection without a word."""
        self._writer.transport.abort()


class Fault(Protocol):
    """How one request is answered."""

    async def play(self, exchange: Exchange) -> None: ...


def chunk(delta: Mapping[str, object], *, finish: str | None = None) -> dict[str, object]:
    """Make one chunk of a reply."""
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "model": "fault", "choices": [choice]}


@dataclass(frozen=True, slots=True)
class Says:
    """A good reply, unless its text is blank or its finish is not: the whole protocol as it should be."""

    text: str
    finish: str | None = "stop"
    reasoning: str = ""  # sent apart, as reasoning_content
    usage: Mapping[str, object] | None = None
    more: Mapping[str, object] = field(default_factory=dict)  # beside the usage
    pieces: int = 3

    async def play(self, exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.event(chunk({"role": "assistant", "content": None}))
        await exchange.say(self.reasoning, of="reasoning_content")
        await exchange.say(self.text, count=self.pieces)
        if self.finish is not None:
            await exchange.event(chunk({}, finish=self.finish))
        if "stream_options" in exchange.received.body:
            counted = self.usage or self._counted(exchange.received)
            await exchange.event({**chunk({}), "choices": [], "usage": counted, **self.more})
        await exchange.event("[DONE]")
        await exchange.end_stream()

    def _counted(self, received: Received) -> dict[str, int]:
        prompt = sum(len(content.split()) for _, content in received.prompt)
        return {"prompt_tokens": prompt, "completion_tokens": len(self.text.split())}


@dataclass(frozen=True, slots=True)
class Echoes:
    """The default: says the last message back."""

    async def play(self, exchange: Exchange) -> None:
        await Says(f"You said: {exchange.received.prompt[-1][1]}").play(exchange)


@dataclass(frozen=True, slots=True)
class Fails:
    """An error answer; `error` is what stands in its error object, `body` replaces all of it."""

    status: int
    error: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None

    async def play(self, exchange: Exchange) -> None:
        body = self.body if self.body is not None else {"error": dict(self.error)}
        await exchange.answer(self.status, json.dumps(body).encode(), headers=self.headers)


@dataclass(frozen=True, slots=True)
class Answers:
    """Any whole answer: a proxy's page, a reply that was not streamed."""

    content: str
    kind: str = "application/json"
    status: int = 200

    async def play(self, exchange: Exchange) -> None:
        await exchange.answer(self.status, self.content.encode(), kind=self.kind)


@dataclass(frozen=True, slots=True)
class HangsUp:
    """Takes the request and closes the connection without an answer."""

    async def play(self, exchange: Exchange) -> None:
        exchange.drop()


@dataclass(frozen=True, slots=True)
class Breaks:
    """The connection is cut in the middle of the reply, after this text."""

    text: str

    async def play(self, exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.say(self.text)
        await exchange.send(b'40\r\ndata: {"choices": [{"del')
        exchange.drop()


@dataclass(frozen=True, slots=True)
class Ends:
    """The stream ends in good order after this text, but nothing says why: no finish_reason, no [DONE]."""

    text: str

    async def play(self, exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.say(self.text)
        await exchange.end_stream()


@dataclass(frozen=True, slots=True)
class Sends:
    """After this text, events as given: broken JSON, an error object, anything; then a proper end."""

    text: str
    events: Sequence[object]

    async def play(self, exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.say(self.text)
        for data in self.events:
            await exchange.event(data)
        await exchange.end_stream()


@dataclass(frozen=True, slots=True)
class Stalls:
    """After `text` nothing comes, until the test sets `go` or the client leaves, which sets `left`.

    With `head` False not even the head of the answer is sent before. `alive` sends comments, as servers do
    that want the connection kept while they think.
    """

    text: str = ""
    head: bool = True
    alive: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def play(self, exchange: Exchange) -> None:
        if self.head:
            await exchange.begin_stream()
            await exchange.say(self.text)
        for _ in range(self.alive):
            await exchange.part(b": still thinking\n\n")
        self.reached.set()
        async with asyncio.TaskGroup() as tasks:
            waits = [tasks.create_task(self.go.wait()), tasks.create_task(exchange.gone())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        if not self.go.is_set():
            self.left.set()
            return
        if not self.head:
            await exchange.begin_stream()
        await exchange.say("and so on.")
        await exchange.event(chunk({}, finish="stop"))
        await exchange.event("[DONE]")
        await exchange.end_stream()


class FaultServer:
    """The server; an async context manager."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        """Every request, in order."""
        self.models: list[Mapping[str, object]] = [{"id": "fault", "object": "model"}]
        """What is listed under /v1/models."""
        self.props: Mapping[str, object] | None = None
        """What is served under /props; None for 404."""
        self._scripts: dict[str, deque[Fault]] = {}
        self._server: asyncio.Server | None = None
        self._port = 0
        self._connections: dict[asyncio.StreamWriter, asyncio.Future[None]] = {}

    @property
    def base_url(self) -> str:
        """The address for a client, with /v1."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def chats(self) -> list[Received]:
        """The chat requests among all requests."""
        return [received for received in self.requests if received.path == CHAT]

    def script(self, *faults: Fault, path: str = CHAT) -> None:
        """Add to what the next requests for `path` get, one each."""
        self._scripts.setdefault(path, deque()).extend(faults)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Drop every connection and stop listening: new ones are refused. Twice is harmless."""
        if self._server is None:
            return
        self._server.close()
        for writer in self._connections:
            writer.transport.abort()
        await asyncio.gather(*self._connections.values())
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._connections[writer] = done
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                received = await _receive(reader)
                self.requests.append(received)
                await self._fault_for(received).play(Exchange(received, reader, writer))
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        finally:
            del self._connections[writer]
            done.set_result(None)

    def _fault_for(self, received: Received) -> Fault:
        if script := self._scripts.get(received.path):
            return script.popleft()
        if received.path == CHAT:
            return Echoes()
        if received.path == MODELS:
            return Answers(json.dumps({"object": "list", "data": self.models}))
        if received.path == PROPS and self.props is not None:
            return Answers(json.dumps(self.props))
        return Fails(404, {"message": "no such address"})


def refused_url() -> str:
    """Return an address where nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


async def _receive(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    content = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, json.loads(content) if content else {})


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode()
