"""Two other memories over MongoDB for comparison, where they are installed; they are in no lock of ours.

To have them in the table, install them into the environment that runs the measurement:
langchain-mongodb, langgraph and langgraph-checkpoint-mongodb.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Protocol

from pymongo import MongoClient

from bench.instant import REPLY
from bench.script import MESSAGES

Side = Callable[[str], Awaitable[None]]


class Stack(Protocol):
    """What keeps the connections open while they are measured."""

    def enter_context(self, cm: Any, /) -> Any:
        """Enter a context manager, to be left with the stack."""
        ...


@contextmanager
def langchain(uri: str, turns: int) -> Iterator[Side]:
    """langchain-mongodb's history: read all messages, then add the two of this turn."""
    messages = importlib.import_module("langchain_core.messages")
    histories = importlib.import_module("langchain_mongodb.chat_message_histories")
    history = histories.MongoDBChatMessageHistory(
        connection_string=uri, session_id=f"person-{turns}", database_name="langchain"
    )
    for number in range(turns):
        human = messages.HumanMessage(MESSAGES[number % len(MESSAGES)])
        history.add_messages([human, messages.AIMessage(REPLY)])

    async def turn(text: str) -> None:
        prompt = [*history.messages, messages.HumanMessage(text)]
        history.add_messages([prompt[-1], messages.AIMessage(REPLY)])

    yield turn


@contextmanager
def langgraph(uri: str, turns: int) -> Iterator[Side]:
    """A graph of one node that answers, with its state kept by the MongoDB checkpointer."""
    messages = importlib.import_module("langchain_core.messages")
    graphs = importlib.import_module("langgraph.graph")
    saver = importlib.import_module("langgraph.checkpoint.mongodb").MongoDBSaver
    builder = graphs.StateGraph(graphs.MessagesState)
    builder.add_node("answer", lambda state: {"messages": [messages.AIMessage(REPLY)]})
    builder.add_edge(graphs.START, "answer")
    config = {"configurable": {"thread_id": f"person-{turns}"}}
    client: MongoClient[dict[str, Any]] = MongoClient(uri)
    try:
        graph = builder.compile(checkpointer=saver(client, db_name=f"langgraph-{turns}"))
        past = [
            kind(text)
            for number in range(turns)
            for kind, text in (
                (messages.HumanMessage, MESSAGES[number % len(MESSAGES)]),
                (messages.AIMessage, REPLY),
            )
        ]
        graph.update_state(config, {"messages": past}, as_node="answer")

        async def turn(text: str) -> None:
            graph.invoke({"messages": [messages.HumanMessage(text)]}, config)

        yield turn
    finally:
        client.close()


_PEERS = {
    "langchain-mongodb's history": ("langchain_mongodb", langchain),
    "LangGraph with its MongoDB checkpointer": ("langgraph.checkpoint.mongodb", langgraph),
}


def sides(stack: Stack, uri: str, histories: Sequence[int]) -> tuple[list[tuple[str, Side]], list[str]]:
    """Return the peers that are installed, at each length of history, and the names of those that are not."""
    found: list[tuple[str, Side]] = []
    missing: list[str] = []
    for name, (package, way) in _PEERS.items():
        if not installed(package):
            missing.append(name)
            continue
        for turns in histories:
            found.append((f"{name}, {turns:,} turns before", stack.enter_context(way(uri, turns))))
    return found, missing


def installed(package: str) -> bool:
    """Tell whether a package is there, without importing it."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
