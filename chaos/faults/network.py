"""What the way between one participant and the server can do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from chaos.faults.kinds import Fault, Kind, a_proxy, until
from chaos.proxy import Proxy, Way
from chaos.stage import Stage

# A worker takes some seconds to start, and has no connection before.
PATIENCE_SECONDS = 8
# Longer than a worker waits for an answer; now and then a stall lasts so long.
LONG_STALL_SECONDS = 17
LONG_STALL_EVERY = 10

Break = Callable[[Proxy, int], float]


def on_the_way(do: Break, stage: Stage, target: int, variant: int) -> Fault:
    """Do it to one participant's way, for as long as it says, and mend it."""
    participant = stage.participants[target % len(stage.participants)]
    proxy = participant.proxy
    yield from until(lambda: proxy.connections, PATIENCE_SECONDS)
    before = proxy.felt
    try:
        lasts_seconds = do(proxy, variant)
        if lasts_seconds:
            yield lasts_seconds
        yield from until(lambda: proxy.felt > before, PATIENCE_SECONDS)
        if do is answer_lost:
            proxy.cut()
    finally:
        proxy.come_back()
    felt = proxy.felt - before
    return f"{participant.who}: {felt} times" if felt else ""


def cut(proxy: Proxy, variant: int) -> float:
    """Every connection ends, in whatever it is doing."""
    proxy.cut()
    return 0


def reset(proxy: Proxy, variant: int) -> float:
    """Every connection is reset."""
    proxy.reset()
    return 0


def refused(proxy: Proxy, variant: int) -> float:
    """Every connection ends, and no new one is let through for a second."""
    proxy.go_down()
    return 1


def slow(proxy: Proxy, variant: int) -> float:
    """Every message takes 0.05 to 0.3 s longer, for two seconds."""
    proxy.latency_seconds = 0.05 * (1 + variant % 6)
    return 2


def stalled(proxy: Proxy, variant: int) -> float:
    """Nothing passes one way, the other, or both, and then everything does."""
    proxy.stall(*[(Way.ASKED,), (Way.ANSWERED,), tuple(Way)][variant % 3])
    return LONG_STALL_SECONDS if variant % LONG_STALL_EVERY == 0 else 1 + variant % 3


def half_closed(proxy: Proxy, variant: int) -> float:
    """One direction ends."""
    proxy.half_close([*Way][variant % 2])
    return 0


def torn(proxy: Proxy, variant: int) -> float:
    """A connection ends in the middle of a message."""
    proxy.cut_after(1 + variant * 97 % 3_000, [*Way][variant % 2])
    return 0


def request_lost(proxy: Proxy, variant: int) -> float:
    """A connection ends with what was just asked, which never arrives."""
    proxy.cut_after(0, Way.ASKED)
    return 0


def answer_lost(proxy: Proxy, variant: int) -> float:
    """What is asked arrives, no answer does, and then every connection ends."""
    proxy.swallow_answers()
    return 0.2


def commit_answer_lost(proxy: Proxy, variant: int) -> float:
    """A connection ends just after something was committed, whose answer never arrives."""
    proxy.cut_after_commit()
    return 0


BREAKS: dict[str, Break] = {
    "way-cut": cut,
    "way-reset": reset,
    "way-refused": refused,
    "way-slow": slow,
    "way-stalled": stalled,
    "way-half-closed": half_closed,
    "message-torn": torn,
    "request-lost": request_lost,
    "answer-lost": answer_lost,
    "commit-answer-lost": commit_answer_lost,
}
KINDS = tuple(Kind(name, partial(on_the_way, do), takes=a_proxy) for name, do in BREAKS.items())
