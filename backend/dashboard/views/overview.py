"""Overview: what needs attention, where the jobs are, and what happened lately."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db.models.functions import Left
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from dashboard import attention, charts, figures, links
from dashboard.pages import Page
from dashboard.questions import Question
from dashboard.templatetags.dashboard import duration, percent
from jobs import selectors
from jobs.lifecycle import EventType
from jobs.models import JobEvent
from jobs.selectors import metrics
from jobs.selectors.metrics import Activity, Bucket, Counts, TypeActivity

DEFAULT_WINDOW = "1h"
WINDOW_LABELS = {"1h": "1 h", "6h": "6 h", "24h": "24 h"}
WINDOW_WORDS = {"1h": "the last hour", "6h": "the last 6 hours", "24h": "the last 24 hours"}

# The parts of a column, from the bottom up.
OUTCOMES = ("succeeded", "retried", "failed")

MOST_TYPES = 20
NEWEST_EVENTS, NEWEST_EVENTS_READ = 10, 60
# What of a message is read; one line of it is shown.
MESSAGE_LENGTH = 300

THROUGHPUT_HEIGHT = 250.0
LATENCY_HEIGHT = 80.0
NARROWEST_SHARE = 6.0


@dataclass(frozen=True, slots=True)
class Tile:
    """One number, which leads to the list of what it counts."""

    key: str
    label: str
    icon: str
    tone: str
    value: str
    note: str
    url: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """One bucket as the charts and their tables have it; `url`: the jobs made in it."""

    key: str
    label: str
    url: str
    succeeded: str
    retried: str
    failed: str
    bucket: Bucket


@dataclass(frozen=True, slots=True)
class Latency:
    """One of the two charts of times; `p50` and `p95` are the whole window's, in seconds."""

    key: str
    label: str
    hint: str
    p50: float | None
    p95: float | None
    chart: charts.LineChart
    summary: str
    hits: tuple[tuple[charts.Column, str], ...]


@dataclass(frozen=True, slots=True)
class TypeRow:
    """One type's line of the table."""

    key: str
    type: str
    url: str
    per_minute: str
    finished: str
    failed_share: float
    # In per cent of its bar; what is there at all is to be seen.
    failed_width: float
    spark: charts.Sparkline


class Overview(Page):
    """The page that is seen first."""

    template = "dashboard/overview.html"
    live_template = "dashboard/overview_live.html"
    section = "overview"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """What the page shows of the window in the address."""
        question = Question(request)
        window = question.choice("window", tuple(metrics.WINDOWS), DEFAULT_WINDOW)
        question.check()

        counts = metrics.counts()
        activity = metrics.activity(window)
        failed = selectors.failure_groups(
            span=attention.FAILURES_SPAN, most_jobs=attention.MOST_FAILURES_READ
        )
        seen = selectors.workers_seen()
        newest = newest_events()

        return {
            "window": window,
            "windows": [(name, WINDOW_LABELS[name]) for name in metrics.WINDOWS],
            "is_new": not newest and not _holds_any(counts),
            "create_url": _create_url(request),
            "notices": attention.notices(counts, failed, seen),
            "tiles": _tiles(counts, activity, window),
            "activity_html": activity_html(
                activity, reverse("dashboard:jobs"), timezone.get_current_timezone_name()
            ),
            "newest": newest,
        }


@lru_cache(maxsize=2 * len(metrics.WINDOWS))
def activity_html(activity: Activity, jobs_url: str, zone_name: str) -> SafeString:
    """Charts, their tables and the types: most of the page, and the same for every tab.

    It depends on its arguments alone; the zone in force is the one that is named.
    """
    span = timedelta(seconds=activity.bucket_seconds)
    slots = _slots(activity, span, jobs_url)
    throughput = _throughput(activity, span)
    return render_to_string(
        "dashboard/overview/activity.html",
        {
            "activity": activity,
            "window_words": WINDOW_WORDS[activity.window],
            "bucket": "minute" if activity.bucket_seconds == 60 else duration(span),
            "totals": {
                outcome: figures.about(getattr(activity, outcome), activity.is_estimate)
                for outcome in OUTCOMES
            },
            "events_read": f"{activity.events_read:,}",
            "attempts_read": f"{activity.attempts_read:,}",
            "slots": slots,
            "throughput": throughput,
            "columns": list(zip(throughput.columns, slots, strict=True)),
            "throughput_summary": _throughput_summary(activity, slots),
            "latencies": _latencies(activity, span, slots, throughput.columns),
            "types": [_type_row(found, activity) for found in activity.types[:MOST_TYPES]],
            "types_left_out": max(0, len(activity.types) - MOST_TYPES),
        },
    )


def newest_events() -> list[JobEvent]:
    """The newest events with the type of their job; `text` is the message's beginning.

    Renewals are left out unless there is nothing else: a few long jobs would fill the
    list with them.
    """
    newest: list[JobEvent] = list(
        selectors.events()
        .select_related("job")
        .only("id", "type", "attempt", "created_at", "job__type")
        .annotate(text=Left("message", MESSAGE_LENGTH))
        .order_by("-id")[:NEWEST_EVENTS_READ]
    )
    others = [event for event in newest if event.type != EventType.LEASE_RENEWED]
    return (others or newest)[:NEWEST_EVENTS]


def _holds_any(counts: Counts) -> bool:
    return any((counts.ready, counts.scheduled, counts.running, counts.failed))


def _create_url(request: HttpRequest) -> str:
    """Where the API takes jobs; "" where the project has not mounted it."""
    try:
        return request.build_absolute_uri(reverse("jobs:jobs"))
    except NoReverseMatch:
        return ""


def _tiles(counts: Counts, activity: Activity, window: str) -> tuple[Tile, ...]:
    overdue = figures.capped(counts, "overdue")
    attempts = activity.succeeded + activity.retried + activity.failed
    share = percent(activity.succeeded / attempts) if attempts else ""
    return (
        Tile(
            "ready",
            "Ready",
            "ready",
            "queued",
            figures.capped(counts, "ready"),
            "oldest due" if counts.oldest_ready_at else "none waits",
            links.jobs_list(state="ready"),
            counts.oldest_ready_at,
        ),
        Tile(
            "scheduled",
            "Scheduled",
            "clock",
            "scheduled",
            figures.capped(counts, "scheduled"),
            "due later",
            links.jobs_list(state="scheduled"),
        ),
        Tile(
            "running",
            "Running",
            "play",
            "running",
            figures.capped(counts, "running"),
            f"{overdue} overdue" if counts.overdue else "none overdue",
            links.jobs_list(state="running"),
        ),
        Tile(
            "succeeded",
            "Succeeded",
            "check",
            "succeeded",
            figures.about(activity.succeeded, activity.is_estimate),
            f"in {WINDOW_LABELS[window]}" + (f", {share} of attempts" if share else ""),
            links.jobs_list(state="succeeded"),
        ),
        Tile(
            "failed",
            "Failed",
            "cross",
            "failed",
            figures.capped(counts, "failed"),
            "for good, until retried" if counts.failed else "none",
            links.jobs_list(state="failed"),
        ),
        Tile(
            "retries",
            "Retries pending",
            "retry",
            "warning",
            figures.capped(counts, "retries_pending"),
            "failed, and go again",
            links.jobs_list(retrying=1),
        ),
    )


def _slots(activity: Activity, span: timedelta, jobs_url: str) -> tuple[Slot, ...]:
    def moment(value: datetime) -> str:
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"

    return tuple(
        Slot(
            key=f"{bucket.start.timestamp():.0f}",
            label=f"{_clock(bucket.start)}\N{EN DASH}{_clock(bucket.start + span)}",
            url=(
                f"{jobs_url}?created_after={moment(bucket.start)}"
                f"&created_before={moment(bucket.start + span)}"
            ),
            succeeded=figures.about(bucket.succeeded, activity.is_estimate),
            retried=figures.about(bucket.retried, activity.is_estimate),
            failed=figures.about(bucket.failed, activity.is_estimate),
            bucket=bucket,
        )
        for bucket in activity.buckets
    )


def _clock(moment: datetime) -> str:
    return f"{timezone.localtime(moment):%H:%M}"


def _throughput(activity: Activity, span: timedelta) -> charts.ColumnChart:
    return charts.column_chart(
        [bucket.start for bucket in activity.buckets],
        span,
        [[getattr(bucket, outcome) for outcome in OUTCOMES] for bucket in activity.buckets],
        zone=timezone.get_current_timezone(),
        height=THROUGHPUT_HEIGHT,
    )


def _throughput_summary(activity: Activity, slots: Sequence[Slot]) -> str:
    counted = ", ".join(
        f"{figures.about(getattr(activity, outcome), activity.is_estimate)} {outcome}"
        for outcome in OUTCOMES
    )
    text = f"Attempts that ended in {WINDOW_WORDS[activity.window]}: {counted}."
    if not slots:
        return text
    busiest = max(slots, key=lambda slot: _ended(slot.bucket))
    if not _ended(busiest.bucket):
        return text
    most = figures.about(_ended(busiest.bucket), activity.is_estimate)
    return f"{text} The most in one column: {most}, {busiest.label}."


def _ended(bucket: Bucket) -> float:
    return bucket.succeeded + bucket.retried + bucket.failed


def _latencies(
    activity: Activity,
    span: timedelta,
    slots: Sequence[Slot],
    columns: Sequence[charts.Column],
) -> tuple[Latency, Latency]:
    def latency(key: str, label: str, hint: str) -> Latency:
        p50: float | None = getattr(activity, f"{key}_p50")
        p95: float | None = getattr(activity, f"{key}_p95")
        pairs = [
            (getattr(bucket, f"{key}_p50"), getattr(bucket, f"{key}_p95"))
            for bucket in activity.buckets
        ]
        chart = charts.line_chart(
            [bucket.start for bucket in activity.buckets],
            span,
            list(zip(*pairs, strict=True)),
            zone=timezone.get_current_timezone(),
            height=LATENCY_HEIGHT,
        )
        return Latency(
            key=key,
            label=label,
            hint=hint,
            p50=p50,
            p95=p95,
            chart=chart,
            summary=f"{label}: p50 {duration(p50)}, p95 {duration(p95)} over the whole span.",
            hits=tuple(
                (column, f"{slot.label}: p50 {duration(low)}, p95 {duration(high)}")
                for column, slot, (low, high) in zip(columns, slots, pairs, strict=True)
            ),
        )

    return (
        latency("wait", "Wait", "until claimed"),
        latency("run", "Run", "until ended"),
    )


def type_key(job_type: str) -> str:
    """A name for the type that an element's id may have."""
    return hashlib.blake2b(job_type.encode(), digest_size=6).hexdigest()


def _type_row(found: TypeActivity, activity: Activity) -> TypeRow:
    is_estimate = activity.is_estimate or not activity.attempts_are_all
    return TypeRow(
        key=type_key(found.type),
        type=found.type,
        url=links.jobs_list(type_is=found.type),
        per_minute=figures.rate(found.per_minute, is_estimate),
        finished=figures.about(found.finished, is_estimate),
        failed_share=found.failed_share,
        failed_width=round(max(100 * found.failed_share, NARROWEST_SHARE), 1),
        spark=charts.sparkline(found.spark),
    )
