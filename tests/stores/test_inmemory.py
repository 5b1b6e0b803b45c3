"""The store in memory keeps the contract."""

from __future__ import annotations

import pytest

from memory.ports import Store
from memory.stores.inmemory import InMemoryStore
from tests.stores.contract import StoreContract


class TestInMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return InMemoryStore()
