"""Ways in which a hand in SQL, or a fault in the queue, breaks a history: which rule tells."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from string import Template
from uuid import UUID

from jobs.tests.support import events, sql

_CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid IN ('jobs_job'::regclass, 'jobs_jobevent'::regclass) AND contype IN ('c', 'f')
"""


@dataclass(frozen=True, slots=True)
class Corruption:
    """What is done to the job of that name in the gallery, and the rule that tells of it.

    In `statement`, `$job` is the job's id, `$claimed1` the id of its first `claimed` event,
    and so on for every type.
    """

    rule: str
    job: str
    statement: str


def drop_constraints() -> list[tuple[str, str, str]]:
    """Let nothing be in the way of a corruption; each one's table, name and definition."""
    sql("SET CONSTRAINTS ALL IMMEDIATE")
    constraints = sql(_CONSTRAINTS)
    for table, name, _ in constraints:
        sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    return constraints


def corrupt(corruption: Corruption, job_id: UUID) -> None:
    """Do it to this job."""
    seen: Counter[str] = Counter()
    names = {"job": f"'{job_id}'::uuid"}
    for event in events(job_id):
        seen[event.type] += 1
        names[f"{event.type}{seen[event.type]}"] = str(event.pk)
    sql(Template(corruption.statement).substitute(names))


COLUMNS = "job_id, type, attempt, worker_id, message, data, created_at"


def again(event: str, **changed: str) -> str:
    """A statement that adds a copy of an event at the end, with some columns changed."""
    columns = [changed.get(name, name) for name in COLUMNS.split(", ")]
    return (
        f"INSERT INTO jobs_jobevent ({COLUMNS})"
        f" SELECT {', '.join(columns)} FROM jobs_jobevent WHERE id = {event}"
    )


def job_set(what: str) -> str:
    """A statement that changes the row."""
    return f"UPDATE jobs_job SET {what} WHERE id = $job"


def event_set(event: str, what: str) -> str:
    """A statement that changes an event."""
    return f"UPDATE jobs_jobevent SET {what} WHERE id = {event}"


def data_set(event: str, key: str, value: str) -> str:
    """A statement that changes one key of an event's data; `value` is SQL over its row."""
    return event_set(event, f"data = jsonb_set(data, '{{{key}}}', to_jsonb({value}))")


def lease_of(event: str, seconds: int) -> str:
    """A statement that makes a claim one for so long."""
    return (
        data_set(event, "lease_seconds", str(seconds))
        + "; "
        + data_set(event, "locked_until", f"created_at + {SECOND} * {seconds}")
    )


def nullable(table: str, column: str) -> str:
    """A statement that lets the column be null."""
    return f"ALTER TABLE {table} ALTER {column} DROP NOT NULL; "


def without(*events: str) -> str:
    """A statement that deletes events."""
    return f"DELETE FROM jobs_jobevent WHERE id IN ({', '.join(events)})"


LAST_CHANGE = "(SELECT updated_at FROM jobs_job WHERE id = $job)"
SECOND = "interval '1 second'"
A_MOMENT = "interval '1 microsecond'"

CORRUPTIONS = {
    "its `created` event is gone": Corruption("created_once", "retried", without("$created1")),
    "it is created a second time": Corruption("created_once", "waiting", again("$created1")),
    "an event of a new type": Corruption(
        "event_known", "waiting", again("$created1", type="'paused'")
    ),
    "claimed by a second worker meanwhile": Corruption(
        "claimed_from_queued", "at_work", again("$claimed1", worker_id="'thief'")
    ),
    "claimed after it failed": Corruption("claimed_from_queued", "given_up", again("$claimed1")),
    "an outcome is gone": Corruption(
        "claimed_from_queued", "retried", without("$retry_scheduled1")
    ),
    "a claim is gone": Corruption("inside_claim", "requeued", without("$claimed1")),
    "progress after the attempt ended": Corruption(
        "inside_claim",
        "requeued",
        again("$claimed1", type="'progress'", created_at=LAST_CHANGE),
    ),
    "an attempt that ended twice": Corruption(
        "inside_claim", "requeued", again("$retry_scheduled1")
    ),
    "progress of a stale worker": Corruption(
        "of_the_owner", "retried", event_set("$progress1", "worker_id = 'stale'")
    ),
    "an outcome of an earlier attempt": Corruption(
        "of_the_owner", "retried", event_set("$succeeded1", "attempt = 1")
    ),
    "retried by hand while queued": Corruption(
        "retried_after_failed",
        "requeued",
        again("$retry_scheduled1", type="'manual_retry'", attempt="0", worker_id="NULL"),
    ),
    "`failed` is gone": Corruption("retried_after_failed", "retried", without("$failed1")),
    "progress after success": Corruption(
        "succeeded_is_final",
        "retried",
        again("$progress1", attempt="2", created_at=LAST_CHANGE),
    ),
    "succeeded twice": Corruption("succeeded_is_final", "retried", again("$succeeded1")),
    "a whole attempt is gone": Corruption(
        "attempts_dense", "retried", without("$claimed3", "$retry_scheduled1")
    ),
    "an attempt number is left out": Corruption(
        "attempts_dense",
        "at_work",
        event_set("$claimed1", "attempt = 2")
        + "; UPDATE jobs_jobevent SET attempt = 2 WHERE job_id = $job AND attempt = 1; "
        + job_set("attempts = 2"),
    ),
    "more attempts than allowed": Corruption(
        "attempts_bounded", "given_up", job_set("max_attempts = 1, attempts = 2")
    ),
    "failed with attempts left": Corruption(
        "failed_when_exhausted", "given_up", job_set("max_attempts = 3")
    ),
    "requeued on the last attempt": Corruption(
        "failed_when_exhausted", "requeued", job_set("max_attempts = 1, attempts = 1")
    ),
    "a lease longer than was granted": Corruption(
        "lease_as_granted",
        "retried",
        data_set("$claimed2", "locked_until", f"created_at + {SECOND} * 31"),
    ),
    "renewed until before the renewal": Corruption(
        "lease_as_granted",
        "retried",
        data_set("$lease_renewed1", "locked_until", f"created_at - {SECOND}"),
    ),
    "a claim whose lease ended before it": Corruption(
        "lease_as_granted", "retried", lease_of("$claimed1", -5)
    ),
    "a claim for a year": Corruption(
        "lease_as_granted", "retried", lease_of("$claimed3", 31_536_000)
    ),
    "renewed for a moment": Corruption(
        "lease_as_granted",
        "retried",
        lease_of("$claimed1", 1)
        + "; "
        + data_set("$lease_renewed1", "locked_until", f"created_at + {SECOND} - {A_MOMENT}"),
    ),
    "renewed for a thousand years": Corruption(
        "lease_as_granted",
        "at_work",
        data_set("$lease_renewed1", "locked_until", "created_at + interval '1000 years'")
        + "; "
        + job_set("locked_until = locked_until + interval '1000 years' - interval '60 seconds'"),
    ),
    "a lease that moved backwards": Corruption(
        "lease_never_shortened",
        "at_work",
        data_set("$lease_renewed1", "locked_until", f"created_at + {SECOND} * 29")
        + "; "
        + job_set(
            "locked_until = (SELECT (data->>'locked_until')::timestamptz FROM jobs_jobevent"
            " WHERE id = $lease_renewed1)"
        ),
    ),
    "claimed while a lease held": Corruption(
        "leases_disjoint",
        "retried",
        event_set("$claimed2", f"created_at = created_at - {SECOND} * 6"),
    ),
    "claimed again before the lease of a claim that never ended": Corruption(
        "leases_disjoint", "at_work", again("$claimed1", attempt="2")
    ),
    "requeued a moment before the lease ended": Corruption(
        "taken_back_after_lease",
        "retried",
        data_set(
            "$lease_renewed1",
            "locked_until",
            "(SELECT created_at FROM jobs_jobevent WHERE id = $timeout_requeued1)",
        ),
    ),
    "failed for a lease that held": Corruption(
        "taken_back_after_lease",
        "given_up",
        data_set("$claimed2", "locked_until", f"created_at + {SECOND} * 3600")
        + "; "
        + data_set("$claimed2", "lease_seconds", "3600"),
    ),
    "due a microsecond too late": Corruption(
        "delay_as_told",
        "requeued",
        job_set(f"available_at = available_at + {A_MOMENT}")
        + "; "
        + data_set("$retry_scheduled1", "available_at", f"created_at + {SECOND} * 5 + {A_MOMENT}"),
    ),
    "a delay that no backoff has": Corruption(
        "delay_as_told",
        "requeued",
        job_set(f"available_at = available_at - {SECOND} * 5")
        + "; "
        + data_set("$retry_scheduled1", "available_at", "created_at")
        + "; "
        + data_set("$retry_scheduled1", "delay_seconds", "0"),
    ),
    "the first backoff is doubled": Corruption(
        "backoff_exact",
        "requeued",
        job_set(f"available_at = available_at + {SECOND} * 5")
        + "; "
        + data_set("$retry_scheduled1", "available_at", f"created_at + {SECOND} * 10")
        + "; "
        + data_set("$retry_scheduled1", "delay_seconds", "10"),
    ),
    "claimed a microsecond too early": Corruption(
        "claimed_when_due",
        "retried",
        event_set(
            "$claimed4",
            "created_at = (SELECT (data->>'available_at')::timestamptz FROM jobs_jobevent"
            f" WHERE id = $retry_scheduled1) - {A_MOMENT}",
        ),
    ),
    "claimed before the time it was created for": Corruption(
        "claimed_when_due",
        "at_work",
        data_set("$created1", "available_at", f"created_at + {SECOND} * 3600")
        + "; "
        + job_set(f"available_at = created_at + {SECOND} * 3600"),
    ),
    "a claim that names no lease": Corruption(
        "event_complete", "at_work", event_set("$claimed1", "data = '{}'")
    ),
    "a lease that is no time": Corruption(
        "event_complete", "at_work", data_set("$lease_renewed1", "locked_until", "'soon'::text")
    ),
    "a delay that is no number": Corruption(
        "event_complete", "requeued", data_set("$retry_scheduled1", "delay_seconds", "'NaN'::text")
    ),
    "a delay beyond all numbers": Corruption(
        "event_complete",
        "requeued",
        data_set("$retry_scheduled1", "delay_seconds", "1e305::float8"),
    ),
    "a claim at no time": Corruption(
        "claimed_when_due",
        "at_work",
        nullable("jobs_jobevent", "created_at") + event_set("$claimed1", "created_at = NULL"),
    ),
    "a claim that counts as nothing": Corruption(
        "attempts_dense",
        "retried",
        nullable("jobs_jobevent", "attempt") + event_set("$claimed2", "attempt = NULL"),
    ),
    "a row that counts nothing": Corruption(
        "row_attempts", "requeued", nullable("jobs_job", "attempts") + job_set("attempts = NULL")
    ),
    "a row that allows nothing": Corruption(
        "attempts_bounded",
        "retried",
        nullable("jobs_job", "max_attempts") + job_set("max_attempts = NULL"),
    ),
    "a failure without a cause": Corruption(
        "event_complete", "given_up", event_set("$failed1", "data = data - 'cause'")
    ),
    "a handler's failure that took a lease back": Corruption(
        "event_complete", "retried", data_set("$timeout_requeued1", "cause", "'handler'::text")
    ),
    "a message that is not the error": Corruption(
        "event_complete", "requeued", event_set("$retry_scheduled1", "message = 'all is well'")
    ),
    "a claim by nobody": Corruption(
        "event_complete", "retried", event_set("$claimed4", "worker_id = NULL")
    ),
    "an attempt of a worker without a name": Corruption(
        "event_complete",
        "at_work",
        "UPDATE jobs_jobevent SET worker_id = '' WHERE job_id = $job AND attempt = 1; "
        + job_set("locked_by = ''"),
    ),
    "a failure that says nothing": Corruption(
        "event_complete",
        "requeued",
        event_set("$retry_scheduled1", "message = ''")
        + "; "
        + data_set("$retry_scheduled1", "error", "''::text")
        + "; "
        + job_set("last_error = ''"),
    ),
    "created by a worker": Corruption(
        "event_complete", "waiting", event_set("$created1", "worker_id = 'w'")
    ),
    "a retry that hides an error": Corruption(
        "retry_tells_what_it_cleared",
        "retried",
        event_set(
            "$manual_retry1", "data = jsonb_set(data, '{cleared,last_error}', to_jsonb(''::text))"
        ),
    ),
    "all its events are gone": Corruption(
        "history_present", "retried", "DELETE FROM jobs_jobevent WHERE job_id = $job"
    ),
    "the job is gone, its events are not": Corruption(
        "event_has_job", "given_up", "DELETE FROM jobs_job WHERE id = $job"
    ),
    "succeeded without an event": Corruption(
        "row_status",
        "waiting",
        job_set("status = 'succeeded', finished_at = statement_timestamp()"),
    ),
    "the row went back to queued": Corruption(
        "row_status", "at_work", job_set("status = 'queued', locked_by = NULL, locked_until = NULL")
    ),
    "attempts are counted wrongly": Corruption("row_attempts", "requeued", job_set("attempts = 2")),
    "the row names another worker": Corruption(
        "row_lease", "at_work", job_set("locked_by = 'thief'")
    ),
    "the row's lease was made longer by hand": Corruption(
        "row_lease", "at_work", job_set("locked_until = locked_until + interval '1 hour'")
    ),
    "the row ended at another time": Corruption(
        "row_finished_at", "retried", job_set(f"finished_at = finished_at + {A_MOMENT}")
    ),
    "made due by hand": Corruption(
        "row_available_at", "requeued", job_set("available_at = statement_timestamp()")
    ),
    "the error was rewritten": Corruption(
        "row_outcome", "given_up", job_set("last_error = 'it was nothing'")
    ),
    "a failed job with a result": Corruption(
        "row_outcome", "given_up", job_set("""result = '{"n": 1}'""")
    ),
    "a success that keeps an error": Corruption(
        "row_outcome", "retried", job_set("last_error = 'it broke'")
    ),
    "changed without an event": Corruption(
        "row_times", "at_work", job_set(f"updated_at = updated_at + {SECOND}")
    ),
    "made older": Corruption(
        "row_times", "waiting", job_set(f"created_at = created_at - {SECOND}")
    ),
    "another priority than it was created with": Corruption(
        "row_as_created", "waiting", job_set("priority = priority - 1")
    ),
    "another type than it was created with": Corruption(
        "row_as_created", "waiting", job_set("type = 'demo.fail'")
    ),
    "queued with no attempt left": Corruption(
        "queued_has_attempts", "requeued", job_set("max_attempts = 1")
    ),
}
