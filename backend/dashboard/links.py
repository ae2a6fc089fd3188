"""Addresses of the pages with what they are asked for."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse


def jobs_list(**asked: str | int | datetime) -> str:
    """The list of jobs narrowed down by its own parameters, times in ISO 8601."""
    query = urlencode(
        {
            name: value.isoformat() if isinstance(value, datetime) else str(value)
            for name, value in asked.items()
        }
    )
    jobs = reverse("dashboard:jobs")
    return f"{jobs}?{query}" if query else jobs
