"""How values are written on the pages.

Nothing here depends on when it is rendered: an age is a `<time>` that a script keeps
up to date and that reads as an absolute time without one.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django import template
from django.template import Context
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from dashboard.icons import ICONS
from dashboard.states import EVENTS, STATES, Look
from jobs import display

register = template.Library()

NOTHING = mark_safe('<span class="nothing">\N{EN DASH}</span>')


@register.simple_tag
def icon(name: str) -> SafeString:
    """An icon of `icons`; the text beside it says what it means."""
    return format_html(
        '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="{}"/></svg>',
        ICONS[name],
    )


@register.simple_tag
def state_badge(state: str) -> SafeString:
    """A job's state, a name of `states.STATES`."""
    return _badge(STATES[state])


@register.simple_tag
def event_badge(event_type: str) -> SafeString:
    """An event's type."""
    return _badge(EVENTS.get(event_type) or Look(event_type, "dots", "neutral"))


def _badge(look: Look) -> SafeString:
    return format_html(
        '<span class="badge" data-tone="{}">{}{}</span>', look.tone, icon(look.icon), look.label
    )


@register.filter
def shown(text: str | None, max_chars: int | None = None) -> str:
    """A text that anybody could have written, hidden characters spelled out."""
    return display.shown(str(text), max_chars) if text else ""


@register.filter
def one_line(text: str | None, max_chars: int = 120) -> str:
    """As `shown`, on one line."""
    return display.shown(" ".join(str(text).split()), max_chars) if text else ""


@register.filter
def short_id(job_id: UUID) -> str:
    """Both ends of an id."""
    return display.short_id(job_id)


@register.filter
def moment(value: datetime | None) -> SafeString:
    """An absolute time in the project's zone."""
    if value is None:
        return NOTHING
    local = timezone.localtime(value)
    return _time(local, f"{local:%Y-%m-%d %H:%M:%S}", "")


@register.filter
def clock(value: datetime | None) -> SafeString:
    """The time of day, to the millisecond; the date is in the title."""
    if value is None:
        return NOTHING
    local = timezone.localtime(value)
    return _time(local, f"{local:%H:%M:%S}.{local.microsecond // 1000:03d}", "")


@register.filter
def ago(value: datetime | None) -> SafeString:
    """How long ago or how far ahead, kept up to date by `times.js`."""
    if value is None:
        return NOTHING
    local = timezone.localtime(value)
    return _time(local, f"{local:%Y-%m-%d %H:%M:%S}", "ago")


@register.filter
def left(value: datetime | None) -> SafeString:
    """A countdown to a lease's end, which goes on below zero as "over by"."""
    if value is None:
        return NOTHING
    local = timezone.localtime(value)
    return _time(local, f"until {local:%H:%M:%S}", "left")


@register.filter
def so_far(value: datetime | None) -> SafeString:
    """How long something has been going on by now."""
    if value is None:
        return NOTHING
    local = timezone.localtime(value)
    return _time(local, f"since {local:%H:%M:%S}", "so-far")


def _time(local: datetime, text: str, kind: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}"{}>{}</time>',
        local.isoformat(),
        f"{local:%Y-%m-%d %H:%M:%S.%f %z}",
        mark_safe(f' data-time="{kind}"') if kind else "",
        text,
    )


@register.filter
def duration(value: timedelta | float | None) -> str:
    """A span in the one or two units that matter: `740 ms`, `12.4 s`, `3 min 5 s`, `2 h 10 min`."""
    if value is None:
        return "\N{EN DASH}"
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    sign = "\N{MINUS SIGN}" if seconds < 0 else ""
    seconds = abs(seconds)
    if seconds < 0.9995:
        return f"{sign}{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{sign}{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller_size, smaller in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller_size
            return f"{sign}{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{sign}{whole} s"


@register.filter
def number(value: int | float | None) -> str:
    """A number with its thousands apart; a count that stopped has a plus of its own."""
    if value is None:
        return "\N{EN DASH}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


@register.filter
def percent(value: float | None) -> str:
    """A share from 0 to 1."""
    if value is None:
        return "\N{EN DASH}"
    if 0 < value < 0.001:
        return "<0.1 %"
    return f"{value * 100:.1f} %" if value < 0.1 else f"{value * 100:.0f} %"


@register.simple_tag(takes_context=True)
def query(context: Context, **changes: Any) -> str:
    """The address's query with `changes` made; `None` or "" takes a name out."""
    given = context["request"].GET.copy()
    for name, value in changes.items():
        given.pop(name, None)
        if value not in (None, ""):
            given[name] = str(value)
    text = given.urlencode()
    return f"?{text}" if text else "?"
