"""The faults of memory, one tree.

MemoryFault
├── StoreFault              the store did not do what was asked
│   ├── StoreUnavailable    unreachable or not ready: the same call may succeed later
│   └── CorruptRecord       a stored document is not what this version can read
├── CompletionFault         the model could not be asked, or gave nothing usable
│   └── CompletionTooLong   the prompt does not fit: a shorter one may
└── BadImport               an import file that cannot be taken as it is

Whether to try again is told by the type and never by the text. (Not named MemoryError: that is a builtin.)
"""


class MemoryFault(Exception):
    """Anything that memory could not do."""


class StoreFault(MemoryFault):
    """The store did not do what was asked of it."""


class StoreUnavailable(StoreFault):
    """The store cannot be reached or is not ready; the same call may succeed later."""


class CorruptRecord(StoreFault):
    """A stored document cannot be read by this version."""


class CompletionFault(MemoryFault):
    """The model could not be asked, or what it gave cannot be used; raised by a Completer."""


class CompletionTooLong(CompletionFault):
    """The prompt does not fit into the model's context; a shorter one may."""


class BadImport(MemoryFault):
    """An import file cannot be taken as it is; the message says which part and why."""
