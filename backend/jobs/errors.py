"""The queue's errors, one small tree.

JobQueueError
  ├─ InvalidJob          what was asked for cannot be a job; names the field
  │    └─ InvalidJobs    the same of some among many; names which
  ├─ JobNotFound         there is no job of that id
  ├─ TransitionRefused   the job's status does not allow it
  ├─ LeaseLost           the attempt is no longer the caller's own
  └─ CreateContended     the idempotency key changed hands faster than it could be read

HandlerFailed stands apart: a handler raises it to fail its attempt on purpose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from jobs.lifecycle import EventType, Status


class JobQueueError(Exception):
    """Base of everything the queue raises on its own account."""


class InvalidJob(JobQueueError, ValueError):
    """An argument cannot be stored as part of a job.

    `field` is the argument's name, `reason` a sentence for the person who sent it.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidJobs(InvalidJob):
    """Some of the jobs that were to be created together cannot be; none was.

    `problems` has what is wrong with each of them, by its place in the list from 0;
    `field` and `reason` are the first one's, such as `jobs[3].type`.
    """

    def __init__(self, problems: dict[int, InvalidJob]) -> None:
        place = min(problems)
        first = problems[place]
        where = f"jobs[{place}].{first.field}" if first.field else f"jobs[{place}]"
        super().__init__(where, first.reason)
        self.problems = problems


class JobNotFound(JobQueueError):
    """There is no job with the id `job_id`."""

    def __init__(self, job_id: UUID | str) -> None:
        super().__init__("There is no job with this id.")
        self.job_id = job_id


class TransitionRefused(JobQueueError):
    """The job `job_id` is in `status`, from which `event` does not lead anywhere."""

    def __init__(self, job_id: UUID, event: EventType, status: Status, allowed: Status) -> None:
        super().__init__(f"Only a {allowed} job allows {event}; this one is {status}.")
        self.job_id = job_id
        self.event = event
        self.status = status
        self.allowed = allowed


class LeaseLost(JobQueueError):
    """The attempt was taken back, taken over, or its handler has returned."""

    def __init__(self, job_id: UUID, attempt: int) -> None:
        super().__init__(f"Attempt {attempt} of job {job_id} is no longer this worker's.")
        self.job_id = job_id
        self.attempt = attempt


class CreateContended(JobQueueError):
    """Jobs with this idempotency key kept appearing and vanishing; try again."""

    def __init__(self) -> None:
        super().__init__("The idempotency key is being reused and deleted; try again.")


class HandlerFailed(Exception):
    """Raised by a handler to fail its attempt on purpose.

    The message alone becomes `last_error`; no class name and no traceback.
    """
