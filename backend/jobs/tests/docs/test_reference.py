"""The reference pages say what the code says."""

from __future__ import annotations

import json
import re
import runpy
import sys
import tomllib
from pathlib import Path
from uuid import uuid4

import pytest

from config.variables import VARIABLES
from jobs import reference, sql
from jobs.errors import HandlerFailed
from jobs.failures import describe
from jobs.lifecycle import EventType, mermaid
from jobs.records import Owner, Record
from jobs.tests.docs.support import DOCS, REFERENCE, ROOT, blocks

EVENTS = (REFERENCE / "events.md").read_text(encoding="utf-8")
OWNER = Owner(uuid4(), "host:1:thread-1:0a0b0c0d", 1)

_MESSAGE = re.compile(r"Message: `([^`]+)`")
_KEYS = re.compile(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|", re.MULTILINE)


def section(event: EventType) -> str:
    """What the events page says about one event, on one line each paragraph."""
    (text,) = re.findall(rf"^## `{event}`\n(.*?)(?=^## |\Z)", EVENTS, re.MULTILINE | re.DOTALL)
    return str(text)


def keys(event: EventType) -> set[str]:
    """The data keys that the event's table names."""
    rows = _KEYS.findall(section(event))
    return {key for row in rows for key in re.findall(r"`([a-z_]+)`", row)}


def message(event: EventType) -> str:
    """The message that the page gives for the event."""
    (text,) = _MESSAGE.findall(section(event).replace("\n", " "))
    return str(text)


def test_the_state_machine_page_is_the_one_the_lifecycle_makes() -> None:
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), (
        "run `python -m jobs.reference --write` in backend/"
    )


def test_the_state_machine_page_shows_the_diagram_and_every_event() -> None:
    (diagram,) = [block for block in blocks(reference.PAGE) if block.language == "mermaid"]
    assert diagram.text == mermaid()
    for event in EventType:
        assert f"| `{event}` |\n" in reference.page()


@pytest.mark.filterwarnings("ignore:'jobs.reference' found in sys.modules")
def test_the_command_prints_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["reference"])
    runpy.run_module("jobs.reference", run_name="__main__")
    assert capsys.readouterr().out == reference.page()


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.name)
def test_every_setting_has_a_row(variable: object) -> None:
    name = getattr(variable, "name", "")
    page = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    assert page.count(f"\n| `{name}` |") == 1


def test_the_events_page_has_an_entry_for_each_event_and_no_other() -> None:
    assert re.findall(r"^## `(\w+)`$", EVENTS, re.MULTILINE) == [event.value for event in EventType]


def built_objects(statement: str) -> list[set[str]]:
    """The keys of each `jsonb_build_object` of a statement; an inner one comes by itself."""
    calls = sql.load(statement).split("jsonb_build_object(")[1:]
    return [set(re.findall(r"'(\w+)',", call.partition(")")[0])) for call in calls]


def test_the_keys_that_the_statements_write_are_those_on_the_page() -> None:
    assert built_objects("create") == [keys(EventType.CREATED)]
    assert built_objects("claim") == [keys(EventType.CLAIMED)]
    requeued, renewed = built_objects("record")
    assert requeued == {"delay_seconds", "available_at"}
    assert renewed == keys(EventType.LEASE_RENEWED)
    outer, inner = built_objects("retry")
    assert outer == keys(EventType.MANUAL_RETRY) == {"cleared"}
    assert all(f"`{key}`" in section(EventType.MANUAL_RETRY) for key in inner)


def test_a_claim_and_a_creation_say_what_the_page_says() -> None:
    assert f"'{message(EventType.CREATED)}'" in sql.load("create")
    assert f"'{message(EventType.MANUAL_RETRY)}'" in sql.load("retry")
    said = message(EventType.CLAIMED).removesuffix("<worker id>")
    assert f"'{said}' || locked_by" in sql.load("claim")


def test_the_records_say_what_the_page_says() -> None:
    assert Record.succeeded(OWNER).message == message(EventType.SUCCEEDED)
    assert Record.lease_renewed(OWNER).message == message(EventType.LEASE_RENEWED)
    lost = message(EventType.TIMEOUT_REQUEUED)
    assert (
        lost.replace("<n>", "1").replace("<worker id>", OWNER.worker_id)
        == Record.lease_expired(OWNER).message
    )


def test_the_keys_of_a_failure_are_those_on_the_page() -> None:
    on_purpose = Record.failed(OWNER, *describe(HandlerFailed("no")))
    by_accident = Record.failed(OWNER, *describe(ValueError("no")))
    requeued = {"delay_seconds", "available_at"}
    for record, cause in ((on_purpose, "handler"), (by_accident, "handler")):
        assert f'"cause":"{cause}"' in record.data
        assert data_keys(record) <= keys(EventType.FAILED)
    assert data_keys(on_purpose) == {"cause", "error"}
    assert data_keys(by_accident) == keys(EventType.FAILED)
    assert data_keys(by_accident) | requeued == keys(EventType.RETRY_SCHEDULED)
    lost = Record.lease_expired(OWNER)
    assert data_keys(lost) | requeued == keys(EventType.TIMEOUT_REQUEUED)
    assert not keys(EventType.SUCCEEDED)
    assert not keys(EventType.PROGRESS)


def data_keys(record: Record) -> set[str]:
    """The keys of a record's data, before the statement adds its own."""
    return set(json.loads(record.data))


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "backend" / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    lines = [
        *project["project"]["dependencies"],
        *(line for group in groups.values() for line in group if isinstance(line, str)),
    ]
    wanted = {str(re.split(r"[<>=;\s]", line)[0]) for line in lines}
    (page,) = (DOCS / "decisions").glob("*-dependencies.md")
    rows = re.findall(r"^\| (`.+?`) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == wanted


def test_the_changelog_begins_with_this_version_and_names_every_migration() -> None:
    project = tomllib.loads((ROOT / "backend" / "pyproject.toml").read_text(encoding="utf-8"))
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", text, re.MULTILINE)[0] == project["project"]["version"]
    migrations = Path(ROOT / "backend" / "jobs" / "migrations").glob("[0-9]*.py")
    for migration in migrations:
        assert f"`{migration.stem}`" in text


def test_the_architecture_page_has_the_layers_that_the_linter_holds() -> None:
    project = tomllib.loads((ROOT / "backend" / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["id"] == "house"]
    page = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    rows = page.split("| what it is | modules |\n|---|---|\n")[1].split("\n\n")[0].splitlines()
    shown = [re.findall(r"`(\w+)`", row) for row in rows]
    assert shown == [layer.split(" | ") for layer in layers]
