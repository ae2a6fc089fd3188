"""How long a failed attempt waits before the next."""

from __future__ import annotations

# 2**64 seconds is past any allowed maximum, so further doublings cannot matter.
_MAX_DOUBLINGS = 64


def backoff_seconds(attempt: int, base_seconds: float, max_seconds: float) -> float:
    """The delay after `attempt` (1 is the first), in seconds.

    `min(base_seconds * 2 ** (attempt - 1), max_seconds)`, deterministic. The
    exponent is capped before it is used, so no attempt number overflows it; a number
    below 1, which only a hand-made row or a stranger's call has, waits like the first.
    """
    doublings: int = max(0, min(attempt - 1, _MAX_DOUBLINGS))
    return min(base_seconds * (1 << doublings), max_seconds)
