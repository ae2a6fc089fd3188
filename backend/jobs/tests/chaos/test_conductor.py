"""The conductor keeps apart what excludes each other, and mends whatever it broke."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest
from chaos import conductor as module
from chaos import ledger
from chaos.conductor import Conductor
from chaos.faults import Fault, Kind, Sql, Unavailable
from chaos.plan import Planned
from chaos.stage import Stage


class Scene:
    """Kinds of faults that write down when they begin and end."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.kinds: dict[str, Kind] = {}
        self.lines: list[str] = []
        self.conductor: Conductor | None = None

    def kind(self, name: str, sql: Sql, *, steps: int = 3, felt: str = "felt", **more: Any) -> None:
        """A kind that waits for so many ticks."""

        def begin(stage: Stage, target: int, variant: int) -> Fault:
            self.lines.append(f"{name} begins")
            try:
                for _ in range(steps):
                    yield 0.0
                if error := more.get("error"):
                    raise error
            finally:
                self.lines.append(f"{name} ends")
            return felt

        takes = frozenset(more.get("takes", ()))
        self.kinds[name] = Kind(name, begin, sql, lambda _stage, _target: takes)

    def play(self, *names: str, seconds: float = 0.3) -> Conductor:
        """Play a plan in which all are due at once, in that order."""
        stage = SimpleNamespace(
            ledger=ledger.Ledger(self.directory, "conductor"), tend=lambda: None
        )
        plan = [Planned(0.0, name, 0, 0) for name in names]
        played = Conductor(cast(Stage, stage), plan)
        played.play(seconds, lambda _line: None)
        return played


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """No kind yet."""
    scene = Scene(tmp_path)
    monkeypatch.setattr(module, "KINDS", scene.kinds)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(module, "TICK_SECONDS", 0.001)
    return scene


def test_what_takes_the_server_away_waits_and_is_then_alone(scene: Scene) -> None:
    scene.kind("shared", Sql.SHARED)
    scene.kind("signal", Sql.UNUSED)
    scene.kind("outage", Sql.EXCLUSIVE)
    played = scene.play("shared", "outage", "signal", "shared")
    assert scene.lines.index("signal begins") < scene.lines.index("outage begins")
    begins = [number for number, line in enumerate(scene.lines) if line == "shared begins"]
    outage = slice(scene.lines.index("outage begins"), scene.lines.index("outage ends"))
    assert begins[0] < outage.start < outage.stop < begins[1]
    assert "shared ends" not in scene.lines[outage]
    assert played.felt == {"shared": 2, "signal": 1, "outage": 1}


def test_two_that_take_the_same_thing_follow_each_other(scene: Scene) -> None:
    scene.kind("one", Sql.UNUSED, takes=["worker-1"])
    scene.kind("other", Sql.UNUSED, takes=["worker-1", "worker-2"])
    scene.play("one", "other")
    assert scene.lines == ["one begins", "one ends", "other begins", "other ends"]


def test_what_was_not_felt_is_tried_again_but_not_for_ever(scene: Scene) -> None:
    scene.kind("vain", Sql.UNUSED, felt="")
    played = scene.play("vain")
    assert played.fired["vain"] == module.MOST_TRIES
    assert played.felt["vain"] == 0


def test_an_error_ends_one_fault_and_what_cannot_be_is_said(scene: Scene) -> None:
    scene.kind("broken", Sql.SHARED, error=psycopg.OperationalError("gone"))
    scene.kind("missing", Sql.SHARED, error=Unavailable("only root can"))
    scene.kind("sound", Sql.SHARED)
    played = scene.play("broken", "missing", "sound")
    assert played.felt == {"sound": 1}
    assert played.unavailable == {"missing": "only root can"}
    phases = {
        entry.fields["kind"]: entry.phase
        for entry in ledger.read(scene.directory)
        if entry.phase != ledger.INVOKE
    }
    assert phases == {"broken": "ok", "missing": "fail", "sound": "ok"}


def test_what_does_not_end_is_ended_and_mended(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "END_SECONDS", 0.05)
    scene.kind("endless", Sql.UNUSED, steps=10**9)
    scene.play("endless", seconds=0.05)
    assert scene.lines == ["endless begins", "endless ends"]
