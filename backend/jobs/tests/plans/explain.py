"""What a statement of the services costs, in buffers, by the server's own account.

Buffers do not depend on how busy the machine is. Each statement is explained as the
service sends it: with its settings in force, and either with its values written into
it (as Django's cursor sends it) or prepared and used ten times before (as the pipeline
does), with the plan PostgreSQL chooses to keep or with the generic one by force.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from jobs import services
from jobs.tests.support import sql

_EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
WAYS = ("literal", "auto", "force_generic_plan")


@dataclass(frozen=True)
class Plan:
    """A plan that was run: what it touched and what it is made of."""

    root: Mapping[str, Any]

    @property
    def buffers(self) -> int:
        """Pages touched; the event's insert is a tree of its own beside the root."""
        told = [node for node in self.root.get("Plans", ()) if node.get("Operation") == "Insert"]
        return sum(
            node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in (self.root, *told)
        )

    @property
    def scans(self) -> set[str]:
        """How each table and index is read, and every sort."""
        return set(_names(self.root))


def _names(node: Mapping[str, Any]) -> Iterator[str]:
    kind = node["Node Type"]
    if "Index Name" in node:
        yield node["Index Name"]
    elif kind == "Seq Scan" or "Sort" in kind:
        yield f"{kind} {node.get('Relation Name', '')}".strip()
    for child in node.get("Plans", ()):
        yield from _names(child)


def explained(
    statement: str,
    parameters: Mapping[str, Any],
    way: str = "literal",
    *,
    only_look_ups: bool = False,
) -> Plan:
    """Run `statement`, roll it back, and answer its plan."""
    if way == "literal":
        return _settled(statement, parameters, only_look_ups)
    with Prepared(statement, only_look_ups=only_look_ups, plan_cache_mode=way) as prepared:
        for _ in range(3):
            prepared.explained(parameters)
        return prepared.explained(parameters)


def _settled(statement: str, parameters: Mapping[str, Any], only_look_ups: bool) -> Plan:
    """The cheapest of three: now and then one has a page to split or to look for."""
    plans = [_explain(statement, parameters, only_look_ups) for _ in range(3)]
    return min(plans, key=lambda plan: plan.buffers)


def _explain(statement: str, parameters: Mapping[str, Any], only_look_ups: bool) -> Plan:
    with transaction.atomic(), connection.cursor() as cursor:
        if only_look_ups:
            cursor.execute(services._ONLY_LOOK_UPS[0])
        cursor.execute(_EXPLAIN + statement, parameters)
        (answer,) = cursor.fetchone()
        transaction.set_rollback(True)
    return Plan((json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"])


class Prepared:
    """A statement prepared on this connection; its plan may outlive what it was made for."""

    def __init__(self, statement: str, *, only_look_ups: bool, plan_cache_mode: str) -> None:
        self._only_look_ups = only_look_ups
        self._mode = plan_cache_mode
        names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
        self._call = f"EXECUTE measured ({', '.join(f'%({name})s' for name in names)})"
        self._text = re.sub(
            r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", statement
        )

    def __enter__(self) -> Prepared:
        sql(f"SET plan_cache_mode = {self._mode}")
        sql("PREPARE measured AS " + self._text)
        return self

    def __exit__(self, *raised: object) -> None:
        sql("DEALLOCATE measured")
        sql("RESET plan_cache_mode")

    def explained(self, parameters: Mapping[str, Any]) -> Plan:
        """Execute it once, roll it back, and answer its plan."""
        return _settled(self._call, parameters, self._only_look_ups)
