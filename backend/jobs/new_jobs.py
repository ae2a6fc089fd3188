"""What is asked for when jobs are created, and what they are once they are checked.

Pure. `NewJob` is a caller's wish; `CheckedJob` is what the statement is given of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from jobs import conf
from jobs.errors import InvalidJob, InvalidJobs
from jobs.validation import (
    clean_available_at,
    clean_idempotency_key,
    clean_max_attempts,
    clean_payload,
    clean_priority,
    clean_type,
)

MAX_AT_ONCE = 1_000
# What all payloads of one call may have, so that one statement's values stay far from the
# gigabyte that PostgreSQL takes. No limit for a payload can be greater.
MAX_BYTES_AT_ONCE = 67_108_864


@dataclass(frozen=True, slots=True)
class NewJob:
    """The arguments of `create_job`, not yet checked."""

    type: str
    payload: dict[str, Any] | None = None
    priority: int = conf.DEFAULT_PRIORITY
    available_at: datetime | None = None
    max_attempts: int | None = None
    idempotency_key: str | None = None


_FIELDS = tuple(field.name for field in fields(NewJob))
_NAMES = frozenset(_FIELDS)


class CheckedJob(NamedTuple):
    """A job that can be stored; `payload` is JSON text."""

    type: str
    payload: str
    priority: int
    available_at: datetime | None
    max_attempts: int
    idempotency_key: str | None


def checked(
    type: Any,  # noqa: A002 - the contract's own name
    payload: Any = None,
    priority: Any = conf.DEFAULT_PRIORITY,
    available_at: Any = None,
    max_attempts: Any = None,
    idempotency_key: Any = None,
    *,
    max_payload_bytes: int | None = None,
) -> CheckedJob:
    """The job; raises `InvalidJob` naming the first argument that cannot be stored.

    `max_payload_bytes=None` is the configured limit.
    """
    return CheckedJob(
        clean_type(type),
        clean_payload(payload, max_payload_bytes),
        clean_priority(priority),
        clean_available_at(available_at),
        clean_max_attempts(max_attempts),
        clean_idempotency_key(idempotency_key),
    )


def all_checked(jobs: Sequence[NewJob | Mapping[str, Any]]) -> list[CheckedJob]:
    """The jobs in their order.

    Raises `InvalidJobs` with what is wrong with each that cannot be stored, and
    `InvalidJob` naming `jobs` where they are no sequence, or more than may be at once.
    """
    if not isinstance(jobs, Sequence) or isinstance(jobs, str | bytes):
        raise InvalidJob("jobs", "Must be a list of jobs.")
    if len(jobs) > MAX_AT_ONCE:
        raise InvalidJob("jobs", f"At most {MAX_AT_ONCE} jobs at once.")
    good: list[CheckedJob] = []
    problems: dict[int, InvalidJob] = {}
    # Asked once: a setting is looked up, and checked, each time.
    max_payload_bytes = conf.get("JOB_PAYLOAD_MAX_BYTES")
    default_attempts = conf.default_max_attempts()
    for place, job in enumerate(jobs):
        try:
            arguments = _arguments(job)
            if arguments.get("max_attempts") is None:
                arguments["max_attempts"] = default_attempts
            good.append(checked(**arguments, max_payload_bytes=max_payload_bytes))
        except InvalidJob as problem:
            problems[place] = problem
    if problems:
        raise InvalidJobs(problems)
    if sum(len(job.payload) for job in good) > MAX_BYTES_AT_ONCE // 4 and (
        sum(len(job.payload.encode()) for job in good) > MAX_BYTES_AT_ONCE
    ):
        raise InvalidJob("jobs", f"At most {MAX_BYTES_AT_ONCE} bytes of payloads at once.")
    return good


def _arguments(job: Any) -> dict[str, Any]:
    if isinstance(job, NewJob):
        return {name: getattr(job, name) for name in _FIELDS}
    if not isinstance(job, Mapping):
        raise InvalidJob("", "Must be a NewJob or a mapping of its fields.")
    unknown = next((name for name in job if name not in _NAMES), None)
    if unknown is not None:
        raise InvalidJob(f"{unknown!s:.100}", "A job has no such field.")
    if "type" not in job:
        raise InvalidJob("type", "This field is required.")
    return dict(job)


def as_json(jobs: Iterable[tuple[UUID, CheckedJob]]) -> str:
    """The jobs, each by its id, as the JSON array that `create.sql` reads."""
    return "[" + ",".join(_as_object(job_id, job) for job_id, job in jobs) + "]"


def _as_object(job_id: UUID, job: CheckedJob) -> str:
    # The payload is JSON already, and a type has no character that JSON would escape.
    text = (
        f'{{"id":"{job_id}","type":"{job.type}","payload":{job.payload},'
        f'"priority":{job.priority},"max_attempts":{job.max_attempts}'
    )
    if job.available_at is not None:
        text += f',"available_at":"{job.available_at.isoformat()}"'
    if job.idempotency_key is not None:
        key = json.dumps(job.idempotency_key, ensure_ascii=False)
        text += f',"idempotency_key":{key}'
    return text + "}"
