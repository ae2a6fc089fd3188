"""What a listener makes of its session: when it wakes the worker, when it gives the session up."""

from __future__ import annotations

from typing import Any, Self

import psycopg
import pytest

from jobs import listener
from jobs.listener import Listener
from jobs.listening import Interrupted


class ScriptedSession:
    """Hears what `script` says, a wait at a time, and is then interrupted."""

    script: tuple[list[str], ...] = ()
    still_listens = True

    def __init__(self, *_: object) -> None:
        self._left = iter(self.script)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Nothing is held."""

    def listen(self, channel: str) -> None:
        """As if it could be heard."""

    def is_listening(self, channel: str) -> bool:
        """What the server would say."""
        return self.still_listens

    def notifications(self, seconds: float) -> list[str]:
        """The next wait's payloads; none where nothing came."""
        for payloads in self._left:
            return payloads
        raise Interrupted


def wakes(monkeypatch: pytest.MonkeyPatch, *script: list[str], still_listens: bool = True) -> int:
    """How often the worker is woken by a session that hears `script`."""
    kind = type("Session", (ScriptedSession,), {"script": script, "still_listens": still_listens})
    monkeypatch.setattr(listener, "Session", kind)
    monkeypatch.setattr(listener, "_parameters", dict[str, Any])
    woken: list[None] = []
    under_test = Listener(lambda: woken.append(None))
    try:
        with pytest.raises(Interrupted):
            under_test._listen()
    finally:
        under_test._stopper.close()
        under_test._interrupt.close()
    return len(woken)


def test_a_new_session_wakes_the_worker_for_what_was_told_before_it_could_hear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert wakes(monkeypatch) == 1


def test_each_wait_that_heard_a_hint_wakes_the_worker_once_and_silence_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert wakes(monkeypatch, [""], [], ["", "another's", ""], []) == 3


def test_a_session_that_is_silent_and_no_longer_listens_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(psycopg.OperationalError, match="no longer listens"):
        wakes(monkeypatch, [""], [], still_listens=False)
