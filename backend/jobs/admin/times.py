"""Times: in the project's zone, or by how far they lie from the database's now."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from django.utils.html import format_html

from jobs.admin.text import EMPTY

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def moment(value: datetime | None) -> str:
    """A time in the project's zone; its offset is in the title."""
    if value is None:
        return EMPTY
    local = timezone.localtime(value)
    return _tag(local, f"{local:%Y-%m-%d %H:%M:%S}", f"{local:%Y-%m-%d %H:%M:%S.%f %z}")


def short_moment(value: datetime, seen_at: datetime) -> str:
    """As `moment`, without the year where it is this one."""
    local = timezone.localtime(value)
    same_year = local.year == timezone.localtime(seen_at).year
    return _tag(local, f"{local:%m-%d %H:%M:%S}" if same_year else f"{local:%Y-%m-%d %H:%M:%S}")


def distance(value: datetime | None, seen_at: datetime) -> str:
    """How far `value` is from the database's now, in its largest unit; the time in the title."""
    if value is None:
        return EMPTY
    seconds = int((value - seen_at).total_seconds())
    text = "now"
    for size, unit in _UNITS:
        if abs(seconds) >= size:
            amount = f"{abs(seconds) // size} {unit}"
            text = f"in {amount}" if seconds > 0 else f"{amount} ago"
            break
    return _tag(timezone.localtime(value), text)


def dated(value: datetime | None, seen_at: datetime) -> str:
    """A time and how far away it is."""
    if value is None:
        return EMPTY
    return format_html("{} ({})", moment(value), distance(value, seen_at))


def _tag(local: datetime, text: str, title: str = "") -> str:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local.isoformat(),
        title or f"{local:%Y-%m-%d %H:%M:%S %z}",
        text,
    )
