"""Everything that changes the queue's state; nothing else does.

Each function is one short transaction in which the row's change and its event
land together or not at all. Time is the database's. Inside a caller's `atomic`
block a function becomes part of it: a rolled-back caller leaves nothing behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, router, transaction

from jobs import conf, sql
from jobs.errors import CreateContended, InvalidJob, JobNotFound, TransitionRefused
from jobs.lifecycle import TRANSITIONS, EventType, Status
from jobs.models import Job, JobEvent, new_job_id
from jobs.new_jobs import MAX_AT_ONCE, CheckedJob, NewJob, all_checked, as_json, checked
from jobs.own_session import run_in_own_session
from jobs.pipeline import Statement, run_alone, run_in_one_transaction, setting
from jobs.records import Owner, Record, clean_lease_seconds
from jobs.storable import is_storable_text
from jobs.wakeup import tell_workers

# What a worker needs of a claim, in the order of ClaimedAttempt's fields.
_CLAIM_COLUMNS = ("id", "locked_by", "attempts", "type", "payload", "max_attempts", "fencing_token")
# Whose record held, in a row of the same form.
_RECORD_COLUMNS = (
    *("id", "worker_id", "attempts"),
    *("NULL::text", "NULL::jsonb", "NULL::int", "NULL::bigint"),
)

_CREATE = sql.load("create")
_CLAIM_ONE = sql.load("claim")
_RECORD_ONE = sql.load("record", (*sql.JOB_COLUMNS, "event_id"))
# What is in a job is nobody's business when its lease ran out, and may not be readable.
_RECORD_EXPIRED = sql.load(
    "record", tuple(name for name in sql.JOB_COLUMNS if name not in ("payload", "result"))
)
_RECORD_MANY = sql.load("record", ("id", "worker_id", "attempts"))
# What came in is recorded and what comes next is claimed by one statement. No job can be
# in both parts: a record's is running in the statement's snapshot, a claim's is queued.
_EXCHANGE = sql.together(sql.load("record", _RECORD_COLUMNS), sql.load("claim", _CLAIM_COLUMNS))
_EXPIRED = sql.load("expired")
_RETRY_ONE = sql.load("retry")
_RETRY_MANY = sql.load("retry", ("id", "priority", "updated_at"), on_locked="SKIP LOCKED")

# What the planner may not use in these transactions. All that is left are index
# look-ups and nested loops, which cost the same whatever the table's statistics say,
# and whatever it held when the statement was prepared; `claim.sql` has the numbers.
_NOT_PLANNED = dict.fromkeys(
    ("enable_sort", "enable_bitmapscan", "enable_seqscan", "enable_hashjoin", "enable_mergejoin"),
    "off",
)
_ONLY_LOOK_UPS = setting(_NOT_PLANNED)
# A round carries many records: where somebody holds one job's row, the others must not
# wait for long. Nothing of ours holds a row for more than milliseconds.
ROUND_LOCK_TIMEOUT_MS = 500
_IN_A_ROUND = {
    **_NOT_PLANNED,
    "lock_timeout": str(ROUND_LOCK_TIMEOUT_MS),
    # Knowing how many workers there are, the planner thinks a plan for this one round
    # cheaper, and makes it each time: half of a round of four was planning.
    "plan_cache_mode": "force_generic_plan",
}
# For a caller whose transaction goes on: its own statements are planned as ever. Before
# PostgreSQL 18 a table read under these settings also counted as dear enough for JIT.
_AS_BEFORE: Statement = (
    "SELECT set_config(name, reset_val, true) FROM pg_settings WHERE name IN ("
    + ", ".join(f"'{name}'" for name in _IN_A_ROUND)
    + ")",
    {},
)

# One transaction holds this many rows at most, for well under a second.
MAX_RETRIES_AT_ONCE = 500

# So many jobs are created at once at most.
MAX_CREATES_AT_ONCE = MAX_AT_ONCE
_STATUS_OF_CREATED = TRANSITIONS[EventType.CREATED].target.value
# How often a create looks again for a job that held its key and vanished.
_CREATE_TRIES = 5


@dataclass(frozen=True, slots=True)
class ClaimedAttempt:
    """An attempt a worker now owns; `fencing_token` is its `claimed` event's id."""

    owner: Owner
    type: str
    payload_text: str
    max_attempts: int
    fencing_token: int

    @property
    def payload(self) -> dict[str, Any]:
        """The payload; raises `ValueError` for JSON that Python does not read."""
        payload: dict[str, Any] = json.loads(self.payload_text)
        return payload


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one round with the database brought: whose records held, what was claimed."""

    recorded: frozenset[Owner]
    claimed: list[ClaimedAttempt]


@dataclass(frozen=True, slots=True)
class Retries:
    """What became of each job of a bulk retry.

    `skipped` says in which status the others are: `None` for a job that is not there.
    `FAILED` are those that somebody else was just retrying, or that failed later than
    was asked for.
    """

    retried: list[UUID]
    skipped: dict[UUID, Status | None]


def create_job(
    *,
    type: str,  # noqa: A002 - the contract's own name
    payload: dict[str, Any] | None = None,
    priority: int = conf.DEFAULT_PRIORITY,
    available_at: datetime | None = None,
    max_attempts: int | None = None,
    idempotency_key: str | None = None,
) -> tuple[Job, bool]:
    """Create a queued job; `(job, True)`, or `(existing job, False)` for a known key.

    `payload=None` is `{}`, `available_at=None` now, `max_attempts=None` the
    configured default. Raises `InvalidJob` naming the argument, and
    `CreateContended` where the key's job vanished each time it was looked for.
    """
    wanted = [checked(type, payload, priority, available_at, max_attempts, idempotency_key)]
    for _ in range(_CREATE_TRIES):
        answers = _create(wanted)
        if answers:
            return answers[0]
    raise CreateContended


def create_jobs(
    *, jobs: Sequence[NewJob | Mapping[str, Any]], deferring: Sequence[str] = ()
) -> list[tuple[Job, bool]]:
    """Create queued jobs, all of them or none: what `create_job` answers for each, in order.

    At most `MAX_CREATES_AT_ONCE`. Where a key comes twice, the first job with it is made
    and the others answer that one. Jobs that existed come without the columns `deferring`,
    which are read where they are asked for. Creators of the same keys wait for each other, in
    whatever order they have them. Raises `InvalidJobs` with what is wrong with which,
    `InvalidJob` naming `jobs` for too many of them, and `CreateContended`.
    """
    wanted = all_checked(jobs)
    if not wanted:
        return []
    for _ in range(_CREATE_TRIES):
        with transaction.atomic(using=_alias()):
            answers = _create(wanted, deferring)
            if answers:
                return answers
            # Whoever makes the key that vanished may wait for one of ours, and would be
            # waited for: what was made out of order is given back first.
            transaction.set_rollback(True, using=_alias())
    raise CreateContended


def _create(
    wanted: Sequence[CheckedJob], deferring: Sequence[str] = ()
) -> list[tuple[Job, bool]] | None:
    """One statement makes those of new keys; where some are known, a second one finds them.

    `None`: the job of a key vanished in between.
    """
    ids = [new_job_id() for _ in wanted]
    # In the order of the keys, for `create.sql` says why; of a key given twice the first.
    to_make = sorted(range(len(wanted)), key=lambda place: wanted[place].idempotency_key or "")
    made = _made([(ids[place], wanted[place]) for place in to_make])
    answers = {place: (made[ids[place]], True) for place in to_make if ids[place] in made}
    if len(answers) < len(wanted):
        to_find = [place for place in to_make if place not in answers]
        keys = [wanted[place].idempotency_key for place in to_find]
        known = _jobs_with_keys(keys, deferring)
        for place in to_find:
            job = known.get(wanted[place].idempotency_key)
            if job is None:
                return None
            answers[place] = job, False
    _tell_workers_of(made.values())
    return [answers[place] for place in range(len(wanted))]


def _made(to_make: Sequence[tuple[UUID, CheckedJob]]) -> dict[UUID, Job]:
    """Insert those whose key is new; the jobs by their ids."""
    alias = _alias()
    asked_as = dict(to_make)
    made = {}
    created_at: datetime | None = None
    for job_id, payload, first_created_at in run_alone(
        alias, (_CREATE, {"jobs": as_json(to_make)})
    ):
        created_at = created_at or first_created_at
        asked = asked_as[job_id]
        values = (
            *(job_id, asked.type, json.loads(payload), _STATUS_OF_CREATED, asked.priority),
            *(asked.available_at or created_at, 0, asked.max_attempts, asked.idempotency_key),
            *(None, None, "", None, created_at, created_at, None),
        )
        made[job_id] = Job.from_db(alias, sql.JOB_COLUMNS, values)
    return made


def _jobs_with_keys(keys: Sequence[str | None], deferring: Sequence[str]) -> dict[str | None, Job]:
    found = Job.objects.using(_alias()).defer(*deferring).filter(idempotency_key__in=keys)
    return {job.idempotency_key: job for job in found}


def claim_next_job(*, worker_id: str, lease_seconds: int | None = None) -> Job | None:
    """Claim the best due job for `worker_id`; `None` when nothing is claimable.

    `lease_seconds=None` is the configured lease.
    """
    parameters = _claim_parameters([worker_id], lease_seconds)
    with _only_look_ups():
        jobs = _jobs(_CLAIM_ONE, parameters)
    return jobs[0] if jobs else None


def complete_job(*, job_id: UUID, worker_id: str, attempt: int, result: Any = None) -> Job | None:
    """Record that the attempt succeeded; `None` when it is no longer the worker's.

    Raises `NotStorable` for a `result` that is no JSON.
    """
    return _record_one(Record.succeeded(Owner.checked(job_id, worker_id, attempt), result))[0]


def fail_job(*, job_id: UUID, worker_id: str, attempt: int, error: str) -> Job | None:
    """Record that the attempt failed: requeued with backoff, or failed for good.

    `None` when the attempt is no longer the worker's. `error` is cut to 8,192
    characters, and what cannot be stored in it is replaced.
    """
    return _record_one(Record.failed(Owner.checked(job_id, worker_id, attempt), error))[0]


def renew_lease(
    *, job_id: UUID, worker_id: str, attempt: int, lease_seconds: int | None = None
) -> Job | None:
    """Let the lease end `lease_seconds` from now; `None` when the attempt was lost.

    A lease never moves backwards. `lease_seconds=None` is the configured lease.
    """
    return _record_one(
        Record.lease_renewed(Owner.checked(job_id, worker_id, attempt), lease_seconds)
    )[0]


def report_progress(
    *,
    job_id: UUID,
    worker_id: str,
    attempt: int,
    message: str = "",
    data: dict[str, Any] | None = None,
) -> JobEvent | None:
    """Add a `progress` event to the attempt; `None` when it is no longer the worker's."""
    record = Record.progress(Owner.checked(job_id, worker_id, attempt), message, data)
    event_id = _record_one(record)[1]
    return None if event_id is None else JobEvent.objects.using(_alias()).get(pk=event_id)


def cleanup_expired_jobs(*, batch_size: int | None = None) -> list[Job]:
    """Take back attempts whose lease ran out: requeued with backoff, or failed.

    At most `batch_size` (`None`: the configured one), oldest lease first; what
    somebody else holds is skipped. Answers the jobs it moved. Raises `ValueError` for
    a `batch_size` out of range.
    """
    name = "JOB_WORKER_CLEANUP_BATCH_SIZE"
    limit = (
        conf.get(name)
        if batch_size is None
        else conf.checked(name, batch_size, called="batch_size")
    )
    with _only_look_ups():
        with connections[_alias()].cursor() as cursor:
            cursor.execute(_EXPIRED, {"batch_size": limit})
            expired = cursor.fetchall()
        if not expired:
            return []
        records = [Record.lease_expired(Owner(*row)) for row in expired]
        return _jobs(_RECORD_EXPIRED, _record_parameters(records))


def retry_job(*, job_id: UUID) -> Job:
    """Queue a failed job again with all its attempts.

    Raises `JobNotFound`, also for what is no id, and `TransitionRefused` where the job
    is not failed.
    """
    try:
        job_id = Owner.checked(job_id, "", 0).job_id
    except InvalidJob:
        raise JobNotFound(job_id) from None
    jobs = _jobs(_RETRY_ONE, {"job_ids": [job_id], "as_of": None})
    if jobs:
        _tell_workers_of(jobs)
        return jobs[0]
    status = Job.objects.using(_alias()).filter(pk=job_id).values_list("status", flat=True).first()
    if status is None:
        raise JobNotFound(job_id)
    source = TRANSITIONS[EventType.MANUAL_RETRY].source
    assert source is not None
    raise TransitionRefused(job_id, EventType.MANUAL_RETRY, Status(status), source)


def retry_jobs(*, job_ids: Sequence[UUID], as_of: datetime | None = None) -> Retries:
    """Queue those of these jobs that are failed again, each as `retry_job` does.

    One transaction; every job is retried once or skipped whole, and nothing waits: a job
    that somebody else is just retrying is skipped. With `as_of`, a time of the database's
    clock, so is a job that failed later. Raises `InvalidJob` for more than
    `MAX_RETRIES_AT_ONCE` ids, for what is no id, and for a naive `as_of`.
    """
    if len(job_ids) > MAX_RETRIES_AT_ONCE:
        raise InvalidJob("job_ids", f"At most {MAX_RETRIES_AT_ONCE} jobs at once.")
    if as_of is not None and as_of.tzinfo is None:
        raise InvalidJob("as_of", "Must have a time zone.")
    wanted = list(dict.fromkeys(Owner.checked(job_id, "", 0).job_id for job_id in job_ids))
    if not wanted:
        return Retries([], {})
    with transaction.atomic(using=_alias()):
        with connections[_alias()].cursor() as cursor:
            cursor.execute(_RETRY_MANY, {"job_ids": wanted, "as_of": as_of})
            moved = cursor.fetchall()
        retried = {job_id for job_id, _, _ in moved}
        if moved:
            priorities = {priority for _, priority, _ in moved}
            tell_workers(_alias(), priorities, moved[0][2], _ONLY_LOOK_UPS)
        left = [job_id for job_id in wanted if job_id not in retried]
        found = Job.objects.using(_alias()).filter(pk__in=left).values_list("pk", "status")
        status_of = {job_id: Status(status) for job_id, status in found} if left else {}
    return Retries(
        [job_id for job_id in wanted if job_id in retried],
        {job_id: status_of.get(job_id) for job_id in left},
    )


def record_and_claim(
    *,
    records: Sequence[Record] = (),
    worker_ids: Sequence[str] = (),
    lease_seconds: int | None = None,
    is_own_session: bool = False,
) -> Exchange:
    """The batched form: write `records`, then claim a job for each of `worker_ids`.

    One transaction and one round trip. Each record passes the fence by itself;
    `recorded` holds the owners of those that did. At most one record for an owner.
    `is_own_session` is for a thread that uses its connection for nothing but this module;
    it spares the settings of each round. Raises Django's `OperationalError` where a row
    stays locked for half a second.
    """
    exchange = (
        _EXCHANGE,
        {**_record_parameters(records), **_claim_parameters(worker_ids, lease_seconds)},
    )
    goes_on = connections[_alias()].in_atomic_block
    if is_own_session and not goes_on:
        rows = run_in_own_session(_alias(), _IN_A_ROUND, exchange)
    else:
        statements = [setting(_IN_A_ROUND), exchange, *([_AS_BEFORE] if goes_on else [])]
        rows = run_in_one_transaction(_alias(), statements)[1]
    recorded = []
    claimed = []
    for job_id, worker_id, attempt, job_type, payload, max_attempts, fencing_token in rows:
        owner = Owner(job_id, worker_id, attempt)
        if fencing_token is None:
            recorded.append(owner)
        else:
            claimed.append(ClaimedAttempt(owner, job_type, payload, max_attempts, fencing_token))
    return Exchange(frozenset(recorded), claimed)


def _alias() -> str:
    return router.db_for_write(Job)


def _tell_workers_of(jobs: Iterable[Job]) -> None:
    """Tell of those of these jobs, just made or queued again, that are due."""
    due = [job for job in jobs if job.available_at <= job.updated_at]
    if due:
        since = min(job.updated_at for job in due)
        tell_workers(_alias(), {job.priority for job in due}, since, _ONLY_LOOK_UPS)


@contextmanager
def _only_look_ups() -> Iterator[None]:
    """A transaction, or a part of the caller's, whose statements are planned as look-ups."""
    connection = connections[_alias()]
    goes_on = connection.in_atomic_block
    with transaction.atomic(using=_alias()), connection.cursor() as cursor:
        cursor.execute(_ONLY_LOOK_UPS[0])
        yield
        if goes_on:
            cursor.execute(_AS_BEFORE[0])


def _jobs(statement: str, parameters: dict[str, Any]) -> list[Job]:
    return list(Job.objects.using(_alias()).raw(statement, parameters))


def _record_one(record: Record) -> tuple[Job | None, int | None]:
    if not record.owner.can_exist:
        return None, None
    for job in _jobs(_RECORD_ONE, _record_parameters([record])):
        event_id: int = getattr(job, "event_id")  # noqa: B009 - a column of the answer, not of Job
        return job, event_id
    return None, None


def _claim_parameters(worker_ids: Sequence[str], lease_seconds: int | None) -> dict[str, Any]:
    for worker_id in worker_ids:
        if not isinstance(worker_id, str):
            raise InvalidJob("worker_id", "Must be a string.")
        if not worker_id or len(worker_id) > conf.MAX_WORKER_ID_LENGTH:
            raise InvalidJob("worker_id", f"1 to {conf.MAX_WORKER_ID_LENGTH} characters.")
        if not is_storable_text(worker_id):
            raise InvalidJob("worker_id", "NUL characters and lone surrogates are not allowed.")
    return {"worker_ids": list(worker_ids), "lease_seconds": clean_lease_seconds(lease_seconds)}


def _record_parameters(records: Iterable[Record]) -> dict[str, Any]:
    """The records as the JSON array that `record.sql` reads; what is `None` is left out."""
    return {"records": json.dumps([record.as_json() for record in records])}
