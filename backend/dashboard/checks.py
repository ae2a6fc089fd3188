"""System checks of the dashboard's one setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register

from dashboard import access


@register()
def access_is_known(app_configs: Any = None, **kwargs: Any) -> Sequence[CheckMessage]:
    """`DASHBOARD_ACCESS` is one of the modes."""
    if access.mode() in access.MODES:
        return []
    return [
        Error(
            f"DASHBOARD_ACCESS must be 'open' or 'login', not {access.mode()!r}.",
            hint="Leave it out for 'login'.",
            id="dashboard.E001",
        )
    ]


@register(Tags.security, deploy=True)
def access_is_closed(app_configs: Any = None, **kwargs: Any) -> Sequence[CheckMessage]:
    """In production strangers may not retry jobs."""
    if access.mode() != access.OPEN:
        return []
    return [
        checks.Warning(
            "DASHBOARD_ACCESS is 'open': whoever reaches the dashboard may see, create and "
            "retry every job.",
            hint="Set it to 'login', unless something in front of the project asks for a login.",
            id="dashboard.W001",
        )
    ]
