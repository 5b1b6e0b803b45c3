"""What a platform offers to the rest: a sink for each reply. Platforms know nothing of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer that a person can pick: a button, or a number in the terminal."""

    label: str
    token: str  # opaque; given back when it is picked


class Sink(Protocol):
    """Where the answer to one message goes; pieces of a reply, or messages of their own.

    A sink shows text as text: it is untrusted, whatever stands in it, and never markup or a mention. It
    raises nothing when the person is gone.
    """

    async def typing(self) -> None:
        """Show that an answer is on its way."""
        ...

    async def add(self, text: str) -> None:
        """Show some more of the reply."""
        ...

    async def end(self) -> None:
        """The reply is complete as far as it came."""
        ...

    async def say(self, text: str, *, choices: Sequence[Choice] = (), private: bool = False) -> None:
        """Send a message of its own; `private` ones are for its person alone, also in a group."""
        ...
