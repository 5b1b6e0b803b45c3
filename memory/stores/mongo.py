"""MongoDB, by either of its two async drivers: the one file that knows them, their errors and their options.

Motor is the default and is in maintenance; PyMongo's own async API takes over on the day it ends. Nothing of
a driver leaves this file: errors are StoreFaults whose text names no password and no stored content.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, NoReturn
from urllib.parse import parse_qsl, urlsplit

from bson.errors import BSONError, InvalidBSON
from pymongo import AsyncMongoClient, ReadPreference
from pymongo.errors import (
    ConnectionFailure,
    CursorNotFound,
    DuplicateKeyError,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
)

from memory.clock import SystemClock
from memory.errors import CorruptRecord, StoreFault, StoreUnavailable
from memory.ports import Clock
from memory.stores.documents import Document
from memory.stores.documentstore import DocumentStore
from memory.stores.queries import Filter, Index, Pipeline, Update

Driver = Literal["motor", "pymongo"]

_BATCH = 200  # documents of one answer, so that a long result never lies in memory whole

_REFUSED = {13: "the user may not do this", 18: "user name or password are wrong"}
# What a server says while it starts, stops, elects another primary, or has too much to do.
_PASSING = frozenset({6, 7, 50, 89, 91, 112, 189, 262, 9001, 10058, 10107, 11600, 11602, 13435, 13436})
_PASSING_LABELS = ("RetryableWriteError", "TransientTransactionError")


class MongoStore(DocumentStore):
    """A Store in a MongoDB database."""

    @classmethod
    def connect(
        cls,
        uri: str,
        *,
        database: str = "omoide",
        driver: Driver = "motor",
        timeout: float = 10.0,
        clock: Clock | None = None,
    ) -> MongoStore:
        """Make the store; nothing is sent yet. No call takes longer than `timeout` seconds.

        What the address says of timeouts wins. Raises StoreFault for an address or a name that is not valid.
        """
        return cls(MongoBackend(_client(uri, driver, timeout), database), clock=clock or SystemClock())


class MongoBackend:
    """One database over one client of either driver."""

    def __init__(self, client: AsyncMongoClient[dict[str, Any]], database: str) -> None:
        self._client = client
        with _translated:
            # Sessions move on by conditions: what a secondary says may be old.
            self._database = client.get_database(database, read_preference=ReadPreference.PRIMARY)

    async def describe(self) -> str:
        """See Backend.describe."""
        with _translated:
            build = await self._database.command("buildInfo")
        if "secantusVersion" in build:
            return f"SecantusDB {build['secantusVersion']}"
        return f"MongoDB {build.get('version', 'of an unknown version')}"

    async def aclose(self) -> None:
        """See Backend.aclose."""
        closing: Any = self._client.close()
        if inspect.isawaitable(closing):
            await closing

    async def ensure_index(self, index: Index) -> None:
        """See Backend.ensure_index."""
        options: dict[str, Any] = {"name": index.name, "unique": index.unique}
        if index.only is not None:
            options["partialFilterExpression"] = dict(index.only)
        with _translated:
            await self._database[index.collection].create_index([(key, 1) for key in index.keys], **options)

    async def insert(self, collection: str, document: Document) -> bool:
        """See Backend.insert."""
        with _translated:
            try:
                # A copy: the driver writes into what it is given.
                await self._database[collection].insert_one(dict(document))
            except DuplicateKeyError:
                return False
        return True

    async def put(self, collection: str, document: Document) -> None:
        """See Backend.put."""
        for last_try in (False, True):
            with _translated:
                try:
                    await self._database[collection].replace_one(
                        {"_id": document["_id"]}, dict(document), upsert=True
                    )
                except DuplicateKeyError:
                    # Somebody inserted it at the same moment: now it is there to be replaced.
                    if last_try:
                        raise
                else:
                    return

    async def update(self, collection: str, found: Filter, update: Update) -> bool:
        """See Backend.update."""
        with _translated:
            result = await self._database[collection].update_one(found, update)
        return result.matched_count == 1

    async def delete(self, collection: str, found: Filter) -> int:
        """See Backend.delete."""
        with _translated:
            result = await self._database[collection].delete_many(found)
        return result.deleted_count

    async def get(self, collection: str, found: Filter) -> Document | None:
        """See Backend.get."""
        with _translated:
            return await self._database[collection].find_one(found)

    async def select(self, collection: str, pipeline: Pipeline) -> AsyncGenerator[Document]:
        """See Backend.select."""
        with _translated:
            # Motor returns the cursor at once, PyMongo when it is awaited.
            cursor: Any = self._database[collection].aggregate(list(pipeline), batchSize=_BATCH)
            if inspect.isawaitable(cursor):
                cursor = await cursor
        try:
            while (document := await _next(cursor)) is not None:
                yield document
        finally:
            with suppress(PyMongoError):
                await cursor.close()


async def _next(cursor: Any) -> Document | None:
    with _translated:
        try:
            document: Document = await anext(cursor)
        except StopAsyncIteration:
            return None
    return document


# Connecting


def _client(uri: str, driver: Driver, timeout: float) -> AsyncMongoClient[dict[str, Any]]:
    milliseconds = max(1, int(timeout * 1000))
    defaults = dict.fromkeys(("timeoutMS", "serverSelectionTimeoutMS", "connectTimeoutMS"), milliseconds)
    try:
        named = {name.lower() for name, _ in parse_qsl(urlsplit(uri).query)}
        options = {name: value for name, value in defaults.items() if name.lower() not in named}
        client: AsyncMongoClient[dict[str, Any]]
        client = _client_class(driver)(uri, tz_aware=True, connect=False, **options)
        return client
    except (PyMongoError, ValueError, TypeError) as fault:
        # The driver quotes from the address, and there may be a password in it: then not even the cause.
        if "@" in uri:
            raise StoreFault(_BAD_ADDRESS) from None
        raise StoreFault(f"{_BAD_ADDRESS} ({fault})") from fault


_BAD_ADDRESS = (
    "the address of the database is not valid: it looks like mongodb://user:password@host:27017/,"
    " with every special character of user name and password percent-encoded"
)


def _client_class(driver: Driver) -> Any:
    if driver == "pymongo":
        return AsyncMongoClient
    # Here and not above: whoever has chosen the other driver need not have this one, nor wait for it.
    from motor.motor_asyncio import AsyncIOMotorClient

    return AsyncIOMotorClient


# Errors


class _Translation:
    """Turns what a driver raises inside of `with` into a fault of memory; it has no state."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        match raised:
            case None:
                return
            case InvalidBSON():
                raise CorruptRecord("a stored document cannot be decoded") from raised
            case BSONError() | OverflowError() | UnicodeError():
                name = type(raised).__name__
                raise StoreFault(f"a value cannot be stored or asked for ({name})") from raised
            case PyMongoError():
                _raise_for(raised)


_translated = _Translation()


def _raise_for(fault: PyMongoError) -> NoReturn:
    name = type(fault).__name__
    if isinstance(fault, OperationFailure):
        if fault.code in _REFUSED:
            raise StoreFault(
                f"the database refuses us, {_REFUSED[fault.code]}: check the address in mongo.uri"
                " (or OMOIDE_MONGO__URI) and the user's roles"
            ) from fault
        name = f"{name} {fault.code}{_code_name(fault.details)}"
    if _passes(fault):
        raise StoreUnavailable(f"the database does not answer ({name})") from fault
    raise StoreFault(f"the database did not do what was asked ({name})") from fault


def _passes(fault: PyMongoError) -> bool:
    if isinstance(fault, (ConnectionFailure, ExecutionTimeout, CursorNotFound)) or fault.timeout:
        return True
    if isinstance(fault, OperationFailure) and fault.code in _PASSING:
        return True
    return any(fault.has_error_label(label) for label in _PASSING_LABELS)


def _code_name(details: Mapping[str, Any] | None) -> str:
    name = (details or {}).get("codeName")
    return f" {name}" if isinstance(name, str) else ""
