"""Every setting there is: its type, its default, what it must be and what it does, in this one place.

config.toml, the table in the README and every error message are made from what stands here. Values only:
nothing here reads a file or the environment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from bot.config import rules
from bot.config.secret import Secret

OPENAI_ENDPOINT = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-5.4-mini"
LOCAL_MODEL = "smollm2-135m"

_YEAR = 365 * 24 * 3600.0

PROMPT = """\
You are {char}, a companion who talks with {user}. You are warm, curious and honest.
Answer in one to three short sentences, in plain words, as in a chat between friends.
Say what you think, and ask a question when you would like to know more.
What you remember about {user} is given to you: use it when it fits, and never make up memories.
You never pretend to be a human being."""


@dataclass(frozen=True, slots=True)
class Note:
    """What is known about a setting beside its type and its default."""

    about: str
    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    rule: Callable[[object], str | None] | None = None
    unset: str = ""  # what holds while an optional setting is not set


@dataclass(frozen=True, slots=True)
class PersonaSettings:
    """Who talks."""

    name: Annotated[str, Note("the name of the companion, {char} in the prompt", rule=rules.is_named)] = (
        "Omoide"
    )
    prompt: Annotated[
        str,
        Note(
            "who the companion is; {user} is the person's name, {char} the companion's", rule=rules.is_named
        ),
    ] = PROMPT
    greeting: Annotated[
        str, Note('what the companion says when someone comes for the first time; "" for nothing')
    ] = "Hi {user}! I am {char}. What is on your mind?"
    language: Annotated[
        str,
        Note('language of the companion: "auto" (the person\'s own), "en", "zh" …', rule=rules.is_language),
    ] = "auto"


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """The language model: anything that speaks OpenAI's HTTP."""

    base_url: Annotated[
        str | None,
        Note(
            "address of an OpenAI-compatible server, with its /v1",
            rule=rules.is_web_address,
            unset="OpenAI's when there is a key, else the bundled model",
        ),
    ] = None
    api_key: Annotated[
        Secret | None,
        Note("key for that server; better kept in the environment", unset="OPENAI_API_KEY, else none"),
    ] = None
    model: Annotated[
        str | None,
        Note(
            "name of the model",
            rule=rules.is_named,
            unset=f"{OPENAI_MODEL}, for the bundled one {LOCAL_MODEL}",
        ),
    ] = None
    timeout: Annotated[
        float, Note("seconds to wait for the first piece of a reply, and between two", above=0, at_most=3600)
    ] = 60.0
    max_tokens: Annotated[int, Note("longest reply, in tokens", at_least=1)] = 500
    context_tokens: Annotated[
        int | None,
        Note(
            "how many tokens the model can take at once",
            at_least=512,
            unset="asked from the server, else 8192",
        ),
    ] = None
    temperature: Annotated[
        float | None,
        Note(
            "how freely the model picks its words, from 0 to 2",
            at_least=0,
            at_most=2,
            unset="the server's own",
        ),
    ] = None

    @property
    def local(self) -> bool:
        """Tell whether the bundled model answers: neither an address nor a key is set."""
        return self.base_url is None and self.api_key is None

    @property
    def endpoint(self) -> str:
        """Return the address of the server; of no meaning for the bundled model."""
        return self.base_url or OPENAI_ENDPOINT

    @property
    def model_name(self) -> str:
        """Return the model that is asked for."""
        return self.model or (LOCAL_MODEL if self.local else OPENAI_MODEL)


@dataclass(frozen=True, slots=True)
class MongoSettings:
    """The database."""

    uri: Annotated[
        Secret | None,
        Note(
            "address of a MongoDB server; with a password in it, better kept in the environment",
            rule=rules.is_mongo_address,
            unset="the embedded database, in data_dir",
        ),
    ] = None
    database: Annotated[str, Note("name of the database", rule=rules.is_database_name)] = "omoide"
    driver: Annotated[
        Literal["motor", "pymongo"], Note('the client library: "motor", or "pymongo" (its successor)')
    ] = "motor"
    timeout: Annotated[float, Note("seconds to wait for the database", above=0, at_most=3600)] = 10.0


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """How much of the conversation the model is shown word for word."""

    mode: Annotated[
        Literal["tokens", "messages", "unlimited"],
        Note('what limits the window: "tokens", "messages" or "unlimited"'),
    ] = "tokens"
    max_tokens: Annotated[int, Note('most tokens in the window (mode "tokens")', at_least=1)] = 3000
    max_messages: Annotated[int, Note('most messages in the window (mode "messages")', at_least=2)] = 40
    evict_to: Annotated[
        float,
        Note(
            "part of the limit that is left when old turns go out; 1 slides turn by turn",
            above=0,
            at_most=1,
        ),
    ] = 0.5


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """When a conversation counts as over."""

    timeout: Annotated[
        float,
        Note(
            "seconds without a message after which a session ends and is summarised", above=0, at_most=_YEAR
        ),
    ] = 1800.0
    recent_sessions: Annotated[
        int, Note("how many past sessions are remembered by their summary", at_least=0)
    ] = 3


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """How what is remembered is put before the model."""

    role: Annotated[
        Literal["system", "assistant"],
        Note('in whose voice memories are given to the model: "system" or "assistant"'),
    ] = "system"
    block_tokens: Annotated[int, Note("most tokens of memories at the start of a session", at_least=1)] = 1000
    summary_tokens: Annotated[int, Note("longest summary of a session, in tokens", at_least=1)] = 250
    timezone: Annotated[
        str | None,
        Note(
            "IANA time zone of people who have set none of their own",
            rule=rules.is_zone,
            unset="this machine's",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is logged, and in which form."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Note('least level that is logged: "debug" (shows message text), "info", "warning" or "error"'),
    ] = "info"
    format: Annotated[Literal["text", "json"], Note('form of a line: "text" or "json"')] = "text"


@dataclass(frozen=True, slots=True)
class ShutdownSettings:
    """How the program ends."""

    grace: Annotated[
        float, Note("seconds that running replies have to end at a shutdown", at_least=0, at_most=3600)
    ] = 10.0


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, sound and complete."""

    data_dir: Annotated[
        Path,
        Note(
            "folder of the embedded database and of all else that is kept",
            unset="the platform's data folder: ~/.local/share/omoide on Linux",
        ),
    ]
    persona: PersonaSettings = PersonaSettings()
    llm: LlmSettings = LlmSettings()
    mongo: MongoSettings = MongoSettings()
    window: WindowSettings = WindowSettings()
    session: SessionSettings = SessionSettings()
    memory: MemorySettings = MemorySettings()
    log: LogSettings = LogSettings()
    shutdown: ShutdownSettings = ShutdownSettings()
