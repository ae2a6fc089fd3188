"""What is dear to compute, computed once for everybody who asks at the same time.

However many tabs watch the queue, the database is asked once in so many seconds by
each process.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

# Arguments come from addresses that anybody may type.
MAX_ANSWERS_KEPT = 256

_forgetters: list[Callable[[], None]] = []


class _Kept(Generic[Answer]):
    """One answer, and the lock under which it is computed.

    `tries` counts the computations that ended; `error` is what the last one raised.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tries = 0
        self.error: Exception | None = None
        self.expires_at = 0.0
        self.answer: Answer


def at_most_every(
    seconds: float,
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """Compute the decorated function once in `seconds` for each set of (hashable) arguments.

    Whoever asks meanwhile gets the answer that is there; whoever asks while it is being
    computed waits for it, and gets the error where there is one: with a database that hangs
    nobody waits for another's time limit and then for his own. An error is not kept.
    """

    def remember(compute: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        kept: OrderedDict[Hashable, _Kept[Answer]] = OrderedDict()
        lock = threading.Lock()

        @functools.wraps(compute)
        def remembered(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
            key = (args, tuple(sorted(kwargs.items())))
            with lock:
                entry = kept.setdefault(key, _Kept())
                kept.move_to_end(key)
                if len(kept) > MAX_ANSWERS_KEPT:
                    kept.popitem(last=False)
            tries_before = entry.tries
            with entry.lock:
                if time.monotonic() >= entry.expires_at:
                    if entry.error is not None and entry.tries != tries_before:
                        raise entry.error
                    entry.error = None
                    try:
                        entry.answer = compute(*args, **kwargs)
                    except Exception as error:
                        entry.error = error
                        raise
                    finally:
                        entry.tries += 1
                    entry.expires_at = time.monotonic() + seconds
                return entry.answer

        def forget() -> None:
            with lock:
                kept.clear()

        _forgetters.append(forget)
        return remembered

    return remember


def forget_all() -> None:
    """Drop every answer; for whoever changes the tables behind the queue's back."""
    for forget in _forgetters:
        forget()
