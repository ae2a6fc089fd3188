"""A long history: jobs that the services made, copied many times, and some copies broken.

A copy has an id, and ids of its events, of its own; all else is the original's, so every
copy is what the services write.
"""

from __future__ import annotations

from uuid import UUID

from jobs.sql import JOB_COLUMNS
from jobs.tests.history.corruptions import (
    COLUMNS,
    CORRUPTIONS,
    Corruption,
    corrupt,
    drop_constraints,
)
from jobs.tests.history.support import gallery
from jobs.tests.support import sql, succeeded

# Most jobs of a queue just succeed.
SUCCEEDED = 20
# Of so many of each job at once each has its first event, then each its second: as the
# events of workers that run side by side are stored.
CHUNK = 1_000

# A job that every cleanup forgot: the one rule that the others' corruptions leave out.
FORGOTTEN = Corruption(
    "running_within_bound",
    "at_work",
    "UPDATE jobs_job SET locked_until = locked_until - interval '90 days' WHERE id = $job",
)

_COLUMNS = ", ".join(name for name in JOB_COLUMNS if name != "id")
_ID = (
    "(lpad(to_hex(copy), 12, '0') || '7' || lpad(to_hex(place), 3, '0') || '8'"
    " || substr(md5(copy::text), 1, 15))::uuid"
)
_ORIGINAL_JOBS = (
    "CREATE TEMP TABLE original_job AS"
    " SELECT row_number() OVER (ORDER BY id) AS place, * FROM jobs_job"
)
_ORIGINAL_EVENTS = (
    "CREATE TEMP TABLE original_event AS"
    " SELECT place, row_number() OVER (PARTITION BY job_id ORDER BY e.id) AS number, e.*"
    " FROM jobs_jobevent AS e JOIN (SELECT id, place FROM original_job) AS j ON j.id = job_id"
)
_COPIES = "FROM generate_series(%s, %s) AS copy CROSS JOIN"
_COPY_JOBS = (
    f"INSERT INTO jobs_job (id, {_COLUMNS}) SELECT {_ID}, {_COLUMNS}"
    f" {_COPIES} original_job ORDER BY copy, place"
)
_COPY_EVENTS = (
    f"INSERT INTO jobs_jobevent ({COLUMNS}) SELECT {COLUMNS.replace('job_id', _ID)}"
    f" {_COPIES} original_event ORDER BY number, copy, place"
)


class Copies:
    """A few jobs of every history in an empty queue, and their copies."""

    def __init__(self) -> None:
        for _ in range(SUCCEEDED):
            succeeded()
        self._jobs = gallery()
        sql(_ORIGINAL_JOBS)
        sql(_ORIGINAL_EVENTS)
        ((self._events_of_each,),) = sql("SELECT count(*) FROM original_event")
        self._made = 0

    def fill(self, event_count: int) -> None:
        """Copy them until there are `event_count` events, or a few less."""
        wanted = event_count // self._events_of_each - 1
        # Every key is there, and need not be looked up ten million times.
        sql("SET session_replication_role = replica")
        while self._made < wanted:
            last = min(self._made + CHUNK, wanted)
            sql(_COPY_JOBS, self._made + 1, last)
            sql(_COPY_EVENTS, self._made + 1, last)
            self._made = last
        sql("RESET session_replication_role")

    def corrupt(self) -> dict[str, tuple[str, UUID]]:
        """Break a copy in each way there is; by its name the rule that should tell, and the job.

        The constraints that would be in the way are put back, but not validated.
        """
        constraints = drop_constraints()
        corruptions = {**CORRUPTIONS, "forgotten by every cleanup": FORGOTTEN}
        done = {}
        for number, (name, corruption) in enumerate(corruptions.items(), 1):
            copy = number * self._made // (len(corruptions) + 1) + 1
            ((job_id,),) = sql(
                f"SELECT {_ID} FROM original_job, (SELECT %s::int AS copy) AS c WHERE id = %s",
                copy,
                self._jobs[corruption.job],
            )
            corrupt(corruption, job_id)
            done[name] = corruption.rule, job_id
        for table, name, definition in constraints:
            sql(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition} NOT VALID")
        return done
