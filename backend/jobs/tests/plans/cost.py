"""What a page, or anything else that reads, costs: the buffers all its statements touch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from jobs import memo

MOST_BUFFERS = 5_000


class Cost:
    """The statements of a block, and what each touched, dearest last."""

    def __init__(self) -> None:
        self.statements: list[tuple[int, str]] = []

    @property
    def buffers(self) -> int:
        """The sum."""
        return sum(buffers for buffers, _ in self.statements)


@contextmanager
def measured() -> Iterator[Cost]:
    """Explain every reading statement of the block just before it is run."""
    cost = Cost()

    def explain(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if sql.lstrip().upper().startswith(("SELECT", "WITH")) and "set_config" not in sql:
            with connection.connection.cursor() as cursor:
                cursor.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sql, params)
                (answer,) = cursor.fetchone()
            plan = (json.loads(answer) if isinstance(answer, str) else answer)[0]["Plan"]
            buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
            cost.statements.append((buffers, sql))
        return execute(sql, params, many, context)

    memo.forget_all()
    with connection.execute_wrapper(explain):
        yield cost
    memo.forget_all()
