"""One job, by its id or a part of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from jobs.errors import JobNotFound
from jobs.models import Job


def job(job_id: UUID) -> Job:
    """The job of that id; raises `JobNotFound`."""
    found = Job.objects.filter(pk=job_id).first()
    if found is None:
        raise JobNotFound(job_id)
    return found


def job_is_made_of(job_id: UUID, *, type: str, payload: dict[str, Any]) -> bool:  # noqa: A002
    """Whether the stored job has this type and payload, compared as `jsonb` does.

    There `1` equals `1.0` and `true` does not equal `1`; Python thinks otherwise.
    """
    return Job.objects.filter(pk=job_id, type=type, payload=payload).exists()


# Ids that begin alike were made in the same minute.
_IDS_LOOKED_AT = 20_000


def job_id_with_ends(start: str, end: str) -> UUID | None:
    """The newest job whose id begins with 8 and ends with 6 such digits; `None`: none has.

    Looks at 20,000 ids that begin so at most.
    """
    alike = Job.objects.filter(id__gte=UUID(start + "0" * 24), id__lte=UUID(start + "f" * 24))
    ids = alike.order_by("-id").values_list("id", flat=True)[:_IDS_LOOKED_AT]
    return next((job_id for job_id in ids if job_id.hex.endswith(end)), None)
