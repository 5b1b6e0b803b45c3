"""The memory core: everything a companion keeps about the people it talks to.

It knows no platform and no model vendor. Only what is exported here may be used from outside.
"""

from memory.errors import (
    BadImport,
    CompletionFault,
    CorruptRecord,
    MemoryFault,
    StoreFault,
    StoreUnavailable,
)
from memory.ports import Clock, Completer, Completion, PromptMessage, Role, Store
from memory.types import (
    DIRECT,
    Audience,
    Holdings,
    MemoryId,
    Outcome,
    Person,
    RunningSummary,
    Session,
    SessionId,
    SessionState,
    Turn,
    TurnId,
    Usage,
)

__all__ = [
    "DIRECT",
    "Audience",
    "BadImport",
    "Clock",
    "Completer",
    "Completion",
    "CompletionFault",
    "CorruptRecord",
    "Holdings",
    "MemoryFault",
    "MemoryId",
    "Outcome",
    "Person",
    "PromptMessage",
    "Role",
    "RunningSummary",
    "Session",
    "SessionId",
    "SessionState",
    "Store",
    "StoreFault",
    "StoreUnavailable",
    "Turn",
    "TurnId",
    "Usage",
]
