"""States in their colours; the style sheet knows each tone in light and dark."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.display import shown
from jobs.lifecycle import EventType, Status

STATUS_TONES = {
    Status.QUEUED: "neutral",
    Status.RUNNING: "info",
    Status.SUCCEEDED: "success",
    Status.FAILED: "danger",
}
EVENT_TONES = {
    EventType.CREATED: "neutral",
    EventType.CLAIMED: "info",
    EventType.PROGRESS: "neutral",
    EventType.LEASE_RENEWED: "neutral",
    EventType.SUCCEEDED: "success",
    EventType.RETRY_SCHEDULED: "warning",
    EventType.FAILED: "danger",
    EventType.TIMEOUT_REQUEUED: "warning",
    EventType.MANUAL_RETRY: "info",
}


def status_badge(job: Any) -> SafeString:
    """The job's status; a running job whose lease ran out says so."""
    if job.status == Status.RUNNING and job.locked_until < job.seen_at:
        return _badge("warning", "running, overdue")
    return _badge(STATUS_TONES.get(job.status, "neutral"), job.status)


def event_badge(event: Any) -> SafeString:
    """The event's type."""
    return _badge(EVENT_TONES.get(event.type, "neutral"), event.type.replace("_", " "))


def _badge(tone: str, text: str) -> SafeString:
    return format_html('<span class="rl-badge" data-tone="{}">{}</span>', tone, shown(text))
