"""A server for the tests of the stores, and a store of its own for each test, over each driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import get_args

import pytest

from memory.stores.mongo import Driver, MongoStore
from tests.stores.secantus import SecantusServer, running_server

_numbers = count(1)


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecantusServer]:
    with running_server(tmp_path_factory.mktemp("secantus")) as running:
        yield running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[SecantusServer]:
    """A server that a test may do anything to."""
    with running_server(tmp_path) as running:
        yield running


@pytest.fixture(params=get_args(Driver))
def driver(request: pytest.FixtureRequest) -> Driver:
    chosen: Driver = request.param
    return chosen


@pytest.fixture
def database() -> str:
    return f"test{next(_numbers)}"


@pytest.fixture
async def store(server: SecantusServer, driver: Driver, database: str) -> AsyncIterator[MongoStore]:
    connected = MongoStore.connect(server.uri, database=database, driver=driver)
    await connected.prepare()
    yield connected
    await connected.aclose()
