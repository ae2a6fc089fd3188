"""What a page may cost the database it watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections, router, transaction
from psycopg import errors

from jobs.deadline import database_deadline
from jobs.models import Job

# One statement may take this long; the server ends it. A whole page may take the
# other, and then it is we who end it: that covers a server that hangs.
STATEMENT_TIMEOUT_MS = 2_000
PAGE_DEADLINE_SECONDS = 6.0

# A page's statement is short or it is a mistake; compiling it would cost more than it.
_LIMITS = f"""SELECT set_config('statement_timeout', '{STATEMENT_TIMEOUT_MS}', true),
    set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)"""


@contextmanager
def bounded() -> Iterator[None]:
    """A transaction in which no statement runs for long.

    Raises Django's `OperationalError`; `was_too_dear` tells a statement that was ended
    from a server that is away.
    """
    using = router.db_for_read(Job)
    with database_deadline(PAGE_DEADLINE_SECONDS, using), transaction.atomic(using=using):
        if connections[using].vendor == "postgresql":
            with connections[using].cursor() as cursor:
                cursor.execute(_LIMITS)
        yield


def was_too_dear(error: BaseException) -> bool:
    """Whether the server ended the statement for the time it took."""
    return isinstance(error.__cause__, errors.QueryCanceled)
