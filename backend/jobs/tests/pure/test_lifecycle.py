"""The state machine is the contract's table, row for row."""

from __future__ import annotations

import dataclasses

import pytest

from jobs.lifecycle import (
    SHAPE_COLUMNS,
    SHAPES,
    TERMINAL,
    TRANSITIONS,
    EventType,
    Status,
    mermaid,
)

CONTRACT = {
    (None, "queued", "created"),
    ("queued", "running", "claimed"),
    ("running", "running", "lease_renewed"),
    ("running", "running", "progress"),
    ("running", "succeeded", "succeeded"),
    ("running", "queued", "retry_scheduled"),
    ("running", "failed", "failed"),
    ("running", "queued", "timeout_requeued"),
    ("failed", "queued", "manual_retry"),
}


def test_the_transitions_are_exactly_those_of_the_contract() -> None:
    ours = {(t.source and t.source.value, t.target.value, e.value) for e, t in TRANSITIONS.items()}
    assert ours == CONTRACT


def test_there_are_four_statuses_and_nine_events_and_no_others() -> None:
    assert [status.value for status in Status] == ["queued", "running", "succeeded", "failed"]
    assert {event.value for event in EventType} == {event for _, _, event in CONTRACT}


def test_every_event_has_exactly_one_transition() -> None:
    assert set(TRANSITIONS) == set(EventType)


def test_every_status_can_be_reached_and_only_success_is_for_ever() -> None:
    assert {transition.target for transition in TRANSITIONS.values()} == set(Status)
    left = {transition.source for transition in TRANSITIONS.values()}
    assert set(Status) - left == {Status.SUCCEEDED}


def test_every_transition_says_its_cause() -> None:
    assert all(transition.cause for transition in TRANSITIONS.values())


def test_a_transition_cannot_be_changed_at_run_time() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TRANSITIONS[EventType.CREATED].target = Status.FAILED  # type: ignore[misc]


def test_the_shapes_are_exactly_those_of_the_contract() -> None:
    assert SHAPE_COLUMNS == ("locked_by", "locked_until", "finished_at")
    assert {status.value: set(filled) for status, filled in SHAPES.items()} == {
        "queued": set(),
        "running": {"locked_by", "locked_until"},
        "succeeded": {"finished_at"},
        "failed": {"finished_at"},
    }


def test_only_succeeded_and_failed_are_terminal() -> None:
    assert {Status.SUCCEEDED, Status.FAILED} == TERMINAL


def test_the_diagram_draws_every_transition_and_both_ends() -> None:
    lines = mermaid().splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert {line.strip() for line in lines[1:]} == {
        *(f"{source or '[*]'} --> {target}: {event}" for source, target, event in CONTRACT),
        "succeeded --> [*]",
        "failed --> [*]",
    }
    assert mermaid().endswith("\n")
