"""System checks of the queue's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, register

from jobs import conf


@register()
def settings_are_in_range(app_configs: Any = None, **kwargs: Any) -> Sequence[CheckMessage]:
    """Every queue setting of the project parses and is in range."""
    messages = []
    for number, setting in enumerate(conf.SETTINGS, start=1):
        try:
            conf.get(setting.name)
        except ValueError as error:
            messages.append(Error(str(error), hint=setting.description, id=f"jobs.E{number:03d}"))
    try:
        conf.wakeup()
    except ValueError as error:
        messages.append(Error(str(error), id="jobs.E100"))
    return messages
