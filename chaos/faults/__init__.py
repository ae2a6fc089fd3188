"""Every kind of fault there is, by its name."""

from __future__ import annotations

from chaos.faults import database, handlers, network, outages, points, workers
from chaos.faults.kinds import SQL_DONE, Fault, Kind, Sql, Unavailable

__all__ = ["KINDS", "SQL_DONE", "Fault", "Kind", "Sql", "Unavailable"]

KINDS: dict[str, Kind] = {
    kind.name: kind
    for module in (workers, points, network, database, outages, handlers)
    for kind in module.KINDS
}
