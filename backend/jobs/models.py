"""The two tables: `jobs_job` is the truth, `jobs_jobevent` how it got there.

Choices and CHECK constraints come from `lifecycle`. Only `services` writes here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self
from uuid import UUID

import uuid_utils.compat
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Now

from jobs import conf
from jobs.lifecycle import SHAPE_COLUMNS, SHAPES, EventType, Status

# These events are rare enough that walking the whole feed for one would hurt; the
# other three stand on almost every page of it.
SPARSE_EVENT_TYPES = tuple(
    event.value
    for event in EventType
    if event not in (EventType.CREATED, EventType.CLAIMED, EventType.SUCCEEDED)
)


def new_job_id() -> UUID:
    """A time-ordered UUID (version 7): new rows land side by side in every index."""
    return uuid_utils.compat.uuid7()


def _choices(enum: type[StrEnum]) -> list[tuple[str, str]]:
    return [(member.value, member.value.replace("_", " ")) for member in enum]


def _shape_of_each_status() -> Q:
    condition = Q()
    for status, filled in SHAPES.items():
        columns = {f"{column}__isnull": column not in filled for column in SHAPE_COLUMNS}
        condition |= Q(status=status.value, **columns)
    return condition


class JobQuerySet(models.QuerySet["Job"]):
    """Which jobs, in the queue's own words."""

    def in_status(self, status: Status) -> Self:
        """Jobs in `status`."""
        return self.filter(status=status.value)

    def of_type_containing(self, text: str) -> Self:
        """Jobs whose type contains `text`, whatever its case; `%` and `_` are literal."""
        return self.filter(type__icontains=text)

    def newest_first(self) -> Self:
        """The order of every list; `id` settles ties so that pages never overlap."""
        return self.order_by("-created_at", "-id")


class Job(models.Model):
    """One piece of work and where it is."""

    id = models.UUIDField(primary_key=True, default=new_job_id, editable=False)
    type = models.CharField(max_length=conf.MAX_TYPE_LENGTH)
    payload = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    status = models.CharField(
        max_length=16,
        choices=_choices(Status),
        default=Status.QUEUED.value,
        db_default=Status.QUEUED.value,
    )
    priority = models.SmallIntegerField(
        default=conf.DEFAULT_PRIORITY, db_default=conf.DEFAULT_PRIORITY
    )
    available_at = models.DateTimeField(db_default=Now())
    attempts = models.IntegerField(default=0, db_default=0)
    max_attempts = models.IntegerField(default=conf.default_max_attempts)
    idempotency_key = models.CharField(max_length=conf.MAX_KEY_LENGTH, null=True)  # noqa: DJ001
    locked_by = models.CharField(max_length=conf.MAX_WORKER_ID_LENGTH, null=True)  # noqa: DJ001
    locked_until = models.DateTimeField(null=True)
    last_error = models.TextField(default="", db_default="")
    result = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="job_status_known",
                condition=Q(status__in=[status.value for status in Status]),
            ),
            models.CheckConstraint(
                name="job_status_valid_shape", condition=_shape_of_each_status()
            ),
            models.CheckConstraint(
                name="job_attempts_valid",
                condition=Q(attempts__gte=0)
                & Q(max_attempts__gte=1)
                & Q(attempts__lte=models.F("max_attempts")),
            ),
            models.CheckConstraint(name="job_type_not_empty", condition=~Q(type="")),
            models.UniqueConstraint(
                name="job_idempotency_key_unique",
                fields=("idempotency_key",),
                condition=Q(idempotency_key__isnull=False),
            ),
        )
        indexes = (
            # In the order of the claim, so that the claim reads and never sorts.
            models.Index(
                models.F("priority").desc(),
                "available_at",
                "created_at",
                "id",
                name="job_claim_idx",
                condition=Q(status=Status.QUEUED.value),
            ),
            models.Index(
                fields=("locked_until",),
                name="job_timeout_idx",
                condition=Q(status=Status.RUNNING.value),
            ),
            # The newest-first list, read backwards.
            models.Index(fields=("created_at", "id"), name="jobs_job_created_at_idx"),
            # The same list of failed jobs, which are few among many; a full index on
            # status nearly halved the drain rate, this one costs 5 %.
            models.Index(
                fields=("created_at", "id"),
                name="jobs_job_status_idx",
                condition=Q(status=Status.FAILED.value),
            ),
            # What waits for another attempt. No other index has attempts, and to look at
            # each of 93,000 queued jobs among ten million took seconds; a job that succeeds
            # at once never stands in it.
            models.Index(
                fields=("created_at", "id"),
                name="job_retry_idx",
                condition=Q(status=Status.QUEUED.value, attempts__gt=0),
            ),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.id}"


class JobEvent(models.Model):
    """One thing that happened to a job; append-only."""

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="events", db_index=False)
    type = models.CharField(max_length=32, choices=_choices(EventType))
    attempt = models.IntegerField(default=0, db_default=0)
    worker_id = models.CharField(max_length=conf.MAX_WORKER_ID_LENGTH, null=True)  # noqa: DJ001
    message = models.TextField(default="", db_default="")
    data = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="job_event_type_known",
                condition=Q(type__in=[event.value for event in EventType]),
            ),
        )
        indexes = (
            models.Index(fields=("job", "id"), name="job_event_job_id_idx"),
            models.Index(
                fields=("type", "id"),
                name="jobs_jobevent_type_idx",
                condition=Q(type__in=SPARSE_EVENT_TYPES),
            ),
        )

    def __str__(self) -> str:
        return f"{self.type} of {self.job_id}"
