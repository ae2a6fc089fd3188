"""A job's page: state, error, facts, payload, result, timeline."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from jobs import selectors
from jobs.admin import limits
from jobs.admin.badges import event_badge, status_badge
from jobs.admin.cut import events_with_texts
from jobs.admin.text import plain, section
from jobs.admin.times import dated, moment
from jobs.display import short_id, shown


def job_page(request: HttpRequest, job: Any) -> dict[str, Any]:
    """What the template takes, but for the retry."""
    newest = list(
        events_with_texts(
            selectors.events_of(job.pk),
            message=limits.TIMELINE_MESSAGE_CHARS,
            data=limits.TIMELINE_DATA_CHARS,
            traceback=limits.TIMELINE_TRACEBACK_CHARS,
        )[: limits.MAX_TIMELINE_EVENTS + 1]
    )
    may_see_events = request.user.has_perm("jobs.view_jobevent") or request.user.has_perm(
        "jobs.change_jobevent"
    )
    events_url = f"{reverse('admin:jobs_jobevent_changelist')}?job={job.pk}"
    return {
        "title": shown(job.type, 60),
        "subtitle": short_id(job.pk),
        "badge": status_badge(job),
        "error": shown(job.last_error),
        "facts": _facts(job),
        "texts": [
            section("Payload", job.payload_text, job.payload_chars),
            section("Result", job.result_text, job.result_chars),
        ],
        "events": [_told(event) for event in reversed(newest[: limits.MAX_TIMELINE_EVENTS])],
        "older_events": len(newest) > limits.MAX_TIMELINE_EVENTS,
        "max_events": limits.MAX_TIMELINE_EVENTS,
        "events_url": events_url if may_see_events else None,
    }


def _facts(job: Any) -> list[tuple[str, str]]:
    return [
        ("Id", format_html('<span class="rl-mono">{}</span>', job.pk)),
        ("Type", plain(job.type)),
        ("Status", status_badge(job)),
        ("Attempts", f"{job.attempts} of {job.max_attempts}"),
        ("Priority", str(job.priority)),
        ("Available at", moment(job.available_at)),
        ("Locked by", plain(job.locked_by)),
        ("Locked until", dated(job.locked_until, job.seen_at)),
        ("Idempotency key", plain(job.idempotency_key)),
        ("Created", dated(job.created_at, job.seen_at)),
        ("Updated", dated(job.updated_at, job.seen_at)),
        ("Finished", dated(job.finished_at, job.seen_at)),
    ]


def _told(event: Any) -> dict[str, Any]:
    """One line of the timeline."""
    data = event.data_text
    return {
        "url": reverse("admin:jobs_jobevent_change", args=[event.pk]),
        "time": moment(event.created_at),
        "badge": event_badge(event),
        "attempt": event.attempt,
        "worker": shown(event.worker_id or ""),
        "message": section("Message", event.message_text, event.message_chars),
        "data": None if data == "{\n}" else section("Data", data, event.data_chars),
        "traceback": event.traceback_text
        and section("Traceback", event.traceback_text, event.traceback_chars),
    }
