"""What a page says after an action led to it.

The address brings the name of a text (`?notice=created`), never a text: nobody can make
a page of ours say something by sending a link around.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence or two, with a tone of the style sheet and an icon of `icons`."""

    tone: str
    icon: str
    text: str


NOTICES: dict[str, Notice] = {
    "created": Notice("succeeded", "check", "The job was created."),
    "existing": Notice(
        "running",
        "key",
        "A job with this idempotency key existed already. This is it, unchanged; no new job was "
        "created.",
    ),
    "mismatch": Notice(
        "warning",
        "alert",
        "A job with this idempotency key existed already. This is it, unchanged; no new job was "
        "created. Its type or its payload differs from what was sent.",
    ),
    "retried": Notice(
        "succeeded", "check", "The job is queued again, and its attempts start from 0."
    ),
    "not_failed": Notice(
        "warning",
        "alert",
        "The job was not retried: only a failed job can be, and it is no longer failed.",
    ),
}


def of(request: HttpRequest) -> Notice | None:
    """The notice that the address names; `None` for no name or one that is not known."""
    return NOTICES.get(request.GET.get("notice", ""))
