"""Each view shapes, asks a selector or calls a service, and answers in time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.decorators import method_decorator
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import bulk_retry, query, registry, selectors, services
from jobs.insight import openapi
from jobs.insight.serializers import (
    MISSING,
    FailureFilterSerializer,
    FailuresSerializer,
    RetriesSerializer,
    RetryJobsSerializer,
    TimeseriesSerializer,
    TypesSerializer,
    WindowFilterSerializer,
)
from jobs.lifecycle import Status
from jobs.selectors import job_cursor
from jobs.selectors.estimation import SPARK_PARTS
from jobs.selectors.job_filter import Cursor, JobFilter
from jobs.views import QueueView, answer_in_time

# Chunks are begun for so long; the last one ends within the call's time.
MAX_SECONDS = 1.0
COUNTED_AT_ONCE = 1_000


def _activity(request: Request) -> selectors.Activity:
    wanted = query.filters(request, WindowFilterSerializer, paging=())
    with answer_in_time():
        return selectors.activity(wanted["window"])


class TimeseriesView(QueueView):
    """What happened lately."""

    @openapi.timeseries
    def get(self, request: Request) -> Response:
        """Successes, failures, retries, wait and run time, in equal buckets."""
        return Response(TimeseriesSerializer(asdict(_activity(request))).data)


class TypesView(QueueView):
    """The job types."""

    @openapi.types
    def get(self, request: Request) -> Response:
        """The registered types and those seen lately, with what their jobs did."""
        activity = _activity(request)
        seen = {each.type: asdict(each) for each in activity.types}
        registered = {each.name: each.doc for each in registry.described_types()}
        types = [
            {
                "finished": 0.0,
                "failed_share": None,
                "per_minute": 0.0,
                "spark": [0.0] * SPARK_PARTS,
                **seen.get(name, {}),
                "type": name,
                "is_registered": name in registered,
                "description": registered.get(name, "").partition("\n")[0],
            }
            for name in sorted({*registered, *seen})
        ]
        return Response(TypesSerializer({**asdict(activity), "types": types}).data)


class FailuresView(QueueView):
    """The failed jobs in groups."""

    @openapi.failures
    def get(self, request: Request) -> Response:
        """The groups of failed jobs whose errors are alike, largest first."""
        wanted = query.filters(request, FailureFilterSerializer, paging=())
        with answer_in_time():
            groups = selectors.failure_groups(wanted.get("since"), wanted.get("type", ""))
        return Response(FailuresSerializer(asdict(groups)).data)


@method_decorator(transaction.non_atomic_requests, name="dispatch")
class RetryJobsView(QueueView):
    """The second chance of many."""

    @openapi.retry_jobs
    def post(self, request: Request) -> Response:
        """Retry the failed ones of some jobs, or failed jobs that match, in steps."""
        body = RetryJobsSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        wanted = body.validated_data
        with answer_in_time():
            if "ids" in wanted:
                answer = _retry(wanted["ids"], wanted.get("as_of"))
            else:
                step = _count if wanted["dry_run"] else _retry_matching
                as_of = wanted.get("as_of") or selectors.database_now()
                answer = step(wanted["filter"], as_of, wanted.get("after"))
        return Response(RetriesSerializer(answer).data)


def _retry(job_ids: list[UUID], as_of: datetime | None) -> dict[str, Any]:
    done = services.retry_jobs(job_ids=job_ids, as_of=as_of)
    return _answer(
        as_of,
        matched=len(done.retried) + len(done.skipped),
        retried=len(done.retried),
        skipped=Counter(done.skipped.values()),
        not_retried=list(done.skipped),
    )


def _retry_matching(wanted: JobFilter, as_of: datetime, after: Cursor | None) -> dict[str, Any]:
    done = bulk_retry.retry_matching(wanted, as_of, after=after, max_seconds=MAX_SECONDS)
    return _answer(
        as_of,
        matched=done.matched,
        retried=done.retried,
        skipped=done.skipped,
        further=done.further,
    )


def _count(wanted: JobFilter, as_of: datetime, after: Cursor | None) -> dict[str, Any]:
    """How many would be retried, as far as can be counted in time."""
    started = time.monotonic()
    matched = 0
    while True:
        found = selectors.failed_jobs(wanted, as_of, COUNTED_AT_ONCE, after=after)
        matched += len(found.places)
        after = found.places[-1] if found.has_more else found.further
        is_enough = time.monotonic() - started >= MAX_SECONDS or matched >= selectors.COUNT_LIMIT
        if after is None or is_enough:
            return _answer(as_of, dry_run=True, matched=matched, further=after)


def _answer(
    as_of: datetime | None,
    *,
    matched: int,
    retried: int = 0,
    skipped: Mapping[Status | None, int] | None = None,
    further: Cursor | None = None,
    not_retried: list[UUID] | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    counts = skipped or {}
    return {
        "dry_run": dry_run,
        "as_of": as_of,
        "matched": matched,
        "retried": retried,
        "skipped": {
            **{status.value: counts.get(status, 0) for status in Status},
            MISSING: counts.get(None, 0),
        },
        "further": job_cursor.written(further),
        "not_retried": not_retried or [],
    }
