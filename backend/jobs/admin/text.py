"""Texts that anybody could have written, as a page may show them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from jobs.display import shown

EMPTY = mark_safe('<span class="rl-empty">\N{EN DASH}</span>')


def cell(text: str | None, max_chars: int, css_class: str = "") -> str:
    """A text of a list: one line, cut to `max_chars`, whole in the title as far as it came."""
    if not text:
        return EMPTY
    return format_html(
        '<bdi class="rl-cell {}" title="{}">{}</bdi>',
        css_class,
        shown(text),
        shown(" ".join(text.split()), max_chars),
    )


def plain(text: str | None) -> str:
    """A short text of a page, kept from reordering its surroundings."""
    return format_html("<bdi>{}</bdi>", shown(text)) if text else EMPTY


def section(title: str, text: str | None, total_chars: int | None) -> dict[str, Any]:
    """A text under its title, as `text.html` takes it; it may be a part of `total_chars`."""
    cut = text is not None and total_chars is not None and total_chars > len(text)
    return {
        "title": title,
        "text": None if text is None else shown(text),
        "shown_chars": f"{len(text or ''):,}",
        "total_chars": f"{total_chars:,}" if cut else None,
    }


def job_link(job_id: UUID, text: str) -> SafeString:
    """`text` leading to the job's page."""
    return format_html(
        '<a class="rl-link" href="{}" title="{}">{}</a>',
        reverse("admin:jobs_job_change", args=[job_id]),
        job_id,
        text,
    )
