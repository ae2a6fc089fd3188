"""The queue as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Finds every installed app's `handlers.py` once all apps are loaded."""

    name = "jobs"
    verbose_name = "Job queue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the handlers of all apps and the system checks."""
        from django.utils.module_loading import autodiscover_modules

        from jobs import checks  # noqa: F401

        autodiscover_modules("handlers")
