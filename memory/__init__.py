"""The memory core: everything a companion keeps about the people it talks to.

It knows no platform and no model vendor. Only what is exported here may be used from outside; the stores in
`memory.stores` are named by the composition root alone.
"""

from memory.archive import Archive, Imported, Unfinished
from memory.blocks import BlockItem, BlockPolicy, MemoryBlock
from memory.clock import SystemClock
from memory.closing import ClosingPolicy
from memory.core import Memory, MemorySettings, Opening
from memory.days import day_of, find_zone
from memory.errors import (
    BadImport,
    CompletionFault,
    CompletionTooLong,
    CorruptRecord,
    MemoryFault,
    StoreFault,
    StoreUnavailable,
)
from memory.forgetting import Erased, Plan, Scope
from memory.overview import Overview, SessionView
from memory.portability import Portrait, from_json, moment, to_json, turn_to_json
from memory.ports import Clock, Completer, Completion, PromptMessage, Role, Store
from memory.summarise import quoted
from memory.tasks import TaskSet, log_failure
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
    time_ordered_id,
)
from memory.window import WindowMode, WindowPolicy

__all__ = [
    "DIRECT",
    "Archive",
    "Audience",
    "BadImport",
    "BlockItem",
    "BlockPolicy",
    "Clock",
    "ClosingPolicy",
    "Completer",
    "Completion",
    "CompletionFault",
    "CompletionTooLong",
    "CorruptRecord",
    "Erased",
    "Holdings",
    "Imported",
    "Memory",
    "MemoryBlock",
    "MemoryFault",
    "MemoryId",
    "MemorySettings",
    "Opening",
    "Outcome",
    "Overview",
    "Person",
    "Plan",
    "Portrait",
    "PromptMessage",
    "Role",
    "RunningSummary",
    "Scope",
    "Session",
    "SessionId",
    "SessionState",
    "SessionView",
    "Store",
    "StoreFault",
    "StoreUnavailable",
    "SystemClock",
    "TaskSet",
    "Turn",
    "TurnId",
    "Unfinished",
    "Usage",
    "WindowMode",
    "WindowPolicy",
    "day_of",
    "find_zone",
    "from_json",
    "log_failure",
    "moment",
    "quoted",
    "time_ordered_id",
    "to_json",
    "turn_to_json",
]
