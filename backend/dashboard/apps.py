"""The web page as a Django app that any project can mount."""

from __future__ import annotations

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """Pages only: it has no tables of its own."""

    name = "dashboard"
    verbose_name = "Dashboard"

    def ready(self) -> None:
        """Register the system checks."""
        from dashboard import checks  # noqa: F401
