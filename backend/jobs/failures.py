"""What a handler raised, in words that can be stored, whatever it was."""

from __future__ import annotations

import traceback

from jobs import conf
from jobs.errors import HandlerFailed

# The frames nearest to the fault are the ones that explain it.
_TRACEBACK_FRAMES = 30


def describe(error: BaseException) -> tuple[str, dict[str, str]]:
    """`last_error` for what a handler raised, and details for the event.

    `ClassName: message`, or the class name alone where there is no message or
    making one raises. A handler that failed on purpose is its message alone.
    """
    message = _message_of(error)
    name = type(error).__name__
    if isinstance(error, HandlerFailed):
        return message or name, {}
    text = f"{name}: {message}" if message else name
    return text, {
        "class": f"{type(error).__module__}.{type(error).__qualname__}",
        "traceback": _traceback_of(error),
    }


def _message_of(error: BaseException) -> str:
    try:
        # Cut at once: a message may be a hundred megabytes.
        return str(error)[: conf.MAX_ERROR_LENGTH]
    except BaseException:
        return ""


def _traceback_of(error: BaseException) -> str:
    try:
        frames = traceback.format_tb(error.__traceback__, limit=-_TRACEBACK_FRAMES)
        return "".join(frames)[-conf.MAX_TRACEBACK_LENGTH :]
    except BaseException:
        return ""
