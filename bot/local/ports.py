"""Loopback ports for the servers of a data folder.

They are taken below the range from which systems give out ports by themselves: while a server is being
started again on its port, no outgoing connection can be sitting on it.
"""

from __future__ import annotations

import random
import socket

RANGE = range(20_000, 32_000)
TRIES = 50


def is_free(port: int) -> bool:
    """Tell whether a server could listen on 127.0.0.1 at this port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do it: connections of a killed server that still linger are not in the way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_port() -> int:
    """Find a port that is free; any that the system has if the usual ones are all taken."""
    for port in random.sample(RANGE, TRIES):
        if is_free(port):
            return port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
