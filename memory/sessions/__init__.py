"""Sessions: opened by the first turn, moved by each, ended when their time has come.

The store is the truth: a session is open there, with its deadline, and ends there in conditional writes.
What is held here is a copy that spares a warm turn all reads but a glance, at most once a second.
"""

from memory.sessions.held import Key
from memory.sessions.live import Sessions

__all__ = ["Key", "Sessions"]
