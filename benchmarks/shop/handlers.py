"""What a small shop has done in the background: some of it fails, some at the second try."""

from __future__ import annotations

import threading
import time
from typing import Any

from jobs.context import JobContext
from jobs.errors import HandlerFailed
from jobs.handlers import register

# A job with `held` in its payload runs until this is set.
let_go = threading.Event()


def _work(context: JobContext) -> None:
    time.sleep(float(context.payload.get("seconds", 0)))
    if context.attempt <= int(context.payload.get("fails", 0)):
        raise HandlerFailed(context.payload["error"])


@register("mail.welcome", example={"customer": 4711, "language": "en"})
def welcome(context: JobContext) -> dict[str, Any]:
    """Sends the first mail to a new customer."""
    _work(context)
    return {"message_id": f"<{context.job_id}@mail.example>"}


@register("billing.charge", example={"invoice": 90210, "cents": 1999})
def charge(context: JobContext) -> dict[str, Any]:
    """Charges an invoice, once: the provider knows the fencing token."""
    _work(context)
    if "card" in context.payload:
        card = {"number": context.payload["card"]}
        return {"charged": card["token"]}  # It has none: this is how a mistake looks.
    return {"charged_cents": context.payload.get("cents", 0)}


@register("images.resize", example={"path": "products/812.jpg", "widths": [320, 960]})
def resize(context: JobContext) -> dict[str, Any]:
    """Makes a product's picture smaller, in each of `widths`."""
    widths = context.payload.get("widths", [])
    for done, width in enumerate(widths, start=1):
        _work(context)
        context.progress(f"{width} px", {"percent": round(100 * done / len(widths))})
    return {"made": len(widths)}


@register("reports.monthly", example={"month": "2026-01"})
def monthly(context: JobContext) -> dict[str, Any]:
    """Adds up a month, renewing its lease for each of its parts."""
    for percent in (20, 40, 60, 80):
        _work(context)
        context.renew()
        context.progress(f"{percent} % of the orders", {"percent": percent})
    if context.payload.get("held"):
        let_go.wait()
    return {"orders": 18_204, "revenue_cents": 2**53 + 1}


@register("search.reindex", example={"shard": 3})
def reindex(context: JobContext) -> None:
    """Indexes a shard anew."""
    _work(context)
    context.renew()
    if context.payload.get("held"):
        let_go.wait()
