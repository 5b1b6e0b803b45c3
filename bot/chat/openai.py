"""The language model behind an OpenAI-compatible server: the only importer of openai.

It exists to turn a protocol that many servers speak, each a little differently, into ChatModel and
Completer. The rule it keeps: whatever goes wrong leaves as a ModelError; before any text it says what it
was, after text it is ModelInterrupted with that as its cause. Nothing is retried here but what the server
refuses to be asked (a parameter it does not know), and each of those once.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from types import MappingProxyType, TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

import openai

from bot.chat.chunks import Chunk, Reply, read_chunk
from bot.chat.model import Finished, TextPiece, read_whole
from bot.chat.reasoning import Opening
from bot.chat.request import Request
from bot.chat.translation import error_of, from_error, from_status, mapping_of, number_of
from bot.errors import (
    ModelBroken,
    ModelError,
    ModelInterrupted,
    ModelMalformed,
    ModelMissing,
    ModelSilent,
    ModelTooSlow,
    ModelUnauthorized,
    ModelUnreachable,
)
from memory import Completion, PromptMessage

_OPENAI = "https://api.openai.com/v1"
_NO_KEY = "none"  # the client insists on one; a server without keys ignores it
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_CONTEXT_KEYS = ("context_length", "max_model_len", "max_context_length", "context_window")
_CHECK_TOKENS = 16  # some models answer a smaller allowance with an error
_NAMED_AT_MOST = 5

_T = TypeVar("_T")
_Stream = openai.AsyncStream[object]


@dataclass(frozen=True, slots=True)
class Found:
    """What `check` found: a model that answers, and the names of all that the server lists (maybe none)."""

    model: str
    listed: tuple[str, ...]


class OpenAIModel:
    """A ChatModel and Completer that speaks to one model at one server; an async context manager."""

    def __init__(
        self,
        *,
        base_url: str | None,
        api_key: str | None,
        model: str,
        timeout: float = 60.0,
        connect_timeout: float = 10.0,
        temperature: float | None = None,
        extra: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Prepare; nothing is sent yet.

        `timeout` is in seconds, to the first chunk and from each chunk to the next. `extra` goes into the
        body of every request as it is.
        """
        self._base_url = (base_url or _OPENAI).rstrip("/")
        self._model = model
        self._timeout = timeout
        self._request = Request(model=model, temperature=temperature, extra=dict(extra))
        self._opening = Opening.BY_MARK
        self._host = urlsplit(self._base_url).hostname or ""
        self._client = openai.AsyncOpenAI(
            base_url=self._base_url,
            api_key=api_key or _NO_KEY,
            max_retries=0,
            # Reading is timed here, chunk by chunk: a server's keep-alive comments are no answer.
            timeout=openai.Timeout(None, connect=connect_timeout),
            http_client=_http_client(self._base_url),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; twice is harmless."""
        await self._client.close()

    async def stream(
        self, prompt: Sequence[PromptMessage], *, max_tokens: int
    ) -> AsyncGenerator[TextPiece | Finished, None]:
        """Stream the reply as ChatModel says; after the first piece, only ModelInterrupted is raised."""
        async with aclosing(self._reply(prompt, max_tokens, self._opening)) as pieces:
            async for piece in pieces:
                yield piece

    async def complete(self, prompt: Sequence[PromptMessage], *, max_tokens: int) -> Completion:
        """Answer in one piece. Raises CompletionFault with the ModelError as its cause."""
        known = self._opening is Opening.BY_TEMPLATE
        opening = self._opening if known else Opening.UNKNOWN
        return await read_whole(self._reply(prompt, max_tokens, opening))

    async def check(self) -> Found:
        """Have the model say a word. Raises ModelError; a ModelMissing names models that there are."""
        pieces = self.stream([PromptMessage("user", "Hi")], max_tokens=_CHECK_TOKENS)
        try:
            async with aclosing(pieces):
                async for _ in pieces:
                    pass
        except ModelSilent:
            pass  # it thought for longer than that: it is there
        except ModelMissing as error:
            names = _names(await self._models())
            near = get_close_matches(self._model, names, n=_NAMED_AT_MOST, cutoff=0.3)
            there = ", ".join(near or names[:_NAMED_AT_MOST]) or "none that it lists"
            raise ModelMissing(f"{self._host} has no model {self._model!r}; it has {there}") from error
        return Found(self._model, _names(await self._models()))

    async def context_limit(self) -> int | None:
        """Return how many tokens a prompt and its reply may have together; None where nobody tells."""
        entries = await self._models()
        named = [entry for entry in entries if entry.get("id") == self._model]
        for entry in named or entries[:1] * (len(entries) == 1):
            if limit := _limit_in(entry):
                return limit
        try:
            props = await self._get(urlunsplit((*urlsplit(self._base_url)[:2], "/props", "", "")))
        except ModelError:
            return None
        return number_of(mapping_of(props.get("default_generation_settings")).get("n_ctx"))

    async def _reply(
        self, prompt: Sequence[PromptMessage], max_tokens: int, opening: Opening
    ) -> AsyncGenerator[TextPiece | Finished, None]:
        reply = Reply(model=self._model, opening=opening)
        try:
            async with aclosing(self._chunks(prompt, max_tokens)) as chunks:
                async for chunk in chunks:
                    if text := reply.take(chunk):
                        yield TextPiece(text)
        except ModelError as error:
            if reply.shown and not reply.ended:
                raise ModelInterrupted(f"the reply broke off: {error}") from error
            if not reply.ended:
                raise
        if text := reply.rest():
            yield TextPiece(text)
        finished = reply.finished()
        if not reply.cut:
            # A server whose template opens the reasoning in the prompt does so each time: see `reasoning`.
            self._opening = Opening.BY_TEMPLATE if reply.unopened else Opening.BY_MARK
        yield finished

    async def _chunks(self, prompt: Sequence[PromptMessage], max_tokens: int) -> AsyncGenerator[Chunk, None]:
        response = await self._ask(prompt, max_tokens)
        try:
            if "json" in response.response.headers.get("content-type", ""):
                yield self._whole_answer(await self._in_time(response.response.aread()))
                return
            while (data := await self._in_time(anext(response, None))) is not None:
                yield read_chunk(mapping_of(data))
        finally:
            await response.close()

    async def _ask(self, prompt: Sequence[PromptMessage], max_tokens: int) -> _Stream:
        """Send the request, and again without a part that the server refuses; what it takes is remembered."""
        request = self._request
        while True:
            body = request.body(prompt, max_tokens=max_tokens)
            try:
                response = await self._in_time(
                    self._client.post(
                        "/chat/completions", cast_to=object, body=body, stream=True, stream_cls=_Stream
                    )
                )
            except ModelMalformed as fault:
                answer, less = fault.__cause__, None
                if isinstance(answer, openai.APIStatusError) and answer.status_code in (400, 422):
                    less = request.after(error_of(answer.body))
                if less is None:
                    raise
                request = less
            else:
                self._request = request.taken()
                return response

    @staticmethod
    def _whole_answer(content: bytes) -> Chunk:
        """Read what a server sent that does not stream: a whole reply, or an error under a good status."""
        try:
            data = mapping_of(json.loads(content))
        except ValueError as error:
            raise ModelMalformed("what came is no JSON") from error
        if data.get("choices"):
            return read_chunk(data)
        raise from_error(error_of(data), where="the server") or ModelMalformed("what came is no reply")

    async def _models(self) -> list[Mapping[str, object]]:
        """Return what the server lists as models; nothing where it does not."""
        try:
            listed = (await self._get("/models")).get("data")
        except ModelError:
            return []
        return [mapping_of(entry) for entry in listed] if isinstance(listed, list) else []

    async def _get(self, path: str) -> Mapping[str, object]:
        return mapping_of(await self._in_time(self._client.get(path, cast_to=object)))

    async def _in_time(self, answer: Awaitable[_T]) -> _T:
        """Wait for the server within the timeout. Raises ModelError for all that the client raises."""
        try:
            async with asyncio.timeout(self._timeout):
                return await answer
        except TimeoutError as error:
            raise ModelTooSlow(f"nothing came for {self._timeout:g} s") from error
        except UnicodeEncodeError:
            # Not chained: this error would carry the key.
            raise ModelUnauthorized("the key has characters that no key has") from None
        except ValueError as error:
            raise ModelMalformed("what came is no JSON") from error
        except openai.OpenAIError as error:
            raise self._translated(error) from error

    def _translated(self, error: openai.OpenAIError) -> ModelError:
        # Its text is the server's, which may quote the prompt or the key: a traceback must not show it.
        error.args = (type(error).__name__,)
        if isinstance(error, openai.APIStatusError):
            headers, now = error.response.headers, datetime.now(UTC)
            return from_status(error.status_code, error.body, headers=headers, now=now)
        if isinstance(error, openai.APIConnectionError):
            return ModelUnreachable(f"no connection to {self._host}")
        if isinstance(error, openai.APIError):
            where = "the server, in its stream"
            return from_error(error_of(error.body), where=where) or ModelBroken("the server sent an error")
        return ModelMalformed("the client library cannot read what came")


def _http_client(base_url: str) -> openai.DefaultAsyncHttpxClient:
    address = urlsplit(base_url)
    if address.scheme != "http" or address.hostname not in _LOOPBACK:
        return openai.DefaultAsyncHttpxClient()
    # For a server on this machine: no proxy that the environment names, it could not reach it; and no
    # certificate authorities, loading them takes longer than all the rest (a redirect to https then fails).
    no_authorities = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # And no connection is used twice: connecting costs nothing here, and a small server that closes one just
    # as the next request is sent would cost the request.
    return openai.DefaultAsyncHttpxClient(
        trust_env=False, verify=no_authorities, headers={"Connection": "close"}
    )


def _names(entries: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    return tuple(str(entry["id"]) for entry in entries if entry.get("id"))


def _limit_in(entry: Mapping[str, object]) -> int | None:
    """Return the context length from a server's entry about a model: each has its own name for it."""
    found = [mapping_of(entry.get("meta")).get("n_ctx"), *(entry.get(key) for key in _CONTEXT_KEYS)]
    return next((limit for value in found if (limit := number_of(value))), None)
