"""The embedded PostgreSQL: for trying Rowlease out and for its tests, never for production.

It starts a private server below a directory, as a child that cannot outlive this process, and
answers how to connect to it. Standard library only, so that `run.py` can use it before anything
is installed. Linux.
"""

from devdb.binaries import Binaries, find_binaries
from devdb.errors import DevDatabaseError
from devdb.server import (
    Connection,
    OwnedServer,
    Server,
    SharedServer,
    running_server,
    start_server,
    throwaway_server,
)

__all__ = [
    "Binaries",
    "Connection",
    "DevDatabaseError",
    "OwnedServer",
    "Server",
    "SharedServer",
    "find_binaries",
    "running_server",
    "start_server",
    "throwaway_server",
]
