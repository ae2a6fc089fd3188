"""The form that creates a job."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from dashboard import drafts, json_view
from dashboard.drafts import Draft
from jobs.models import Job, JobEvent
from jobs.tests.support import queued, sql

URL = "/jobs/new/"
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
FORM = {
    "type": "demo.success",
    "payload": '{"n": 9007199254740993}',
    "priority": "50",
    "when": "now",
    "delay": "10",
    "delay_unit": "minutes",
    "at": "",
    "max_attempts": "",
    "idempotency_key": "",
}
HOSTILE = "</textarea><script>alert('x')</script>"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def open_to_all(settings: Any) -> None:
    """As in development, whatever the environment says."""
    settings.DASHBOARD_ACCESS = "open"


def errors(html: str) -> dict[str, str]:
    """The reasons at the fields, by the id they have."""
    found = re.findall(r'<p class="error" id="([a-z]+)-error">(.*?)</p>', html)
    return {name: unescape(reason) for name, reason in found}


def typed(html: str, name: str) -> str:
    """What a field holds."""
    area = re.search(rf'<textarea id="{name}".*?>\n(.*?)</textarea>', html, re.DOTALL)
    field = area or re.search(rf'<input id="{name}".*? value="(.*?)"', html, re.DOTALL)
    assert field is not None
    return unescape(field[1])


def refused(client: Client, **changes: str) -> str:
    """The form that comes back."""
    answer = client.post(URL, {**FORM, **changes})
    assert answer.status_code == 422
    assert not Job.objects.exists()
    return answer.content.decode()


def test_a_form_becomes_a_job_and_leads_to_it(client: Client) -> None:
    changes = {
        "type": " demo.flaky ",
        "priority": "-7",
        "max_attempts": "9",
        "idempotency_key": " order 1 ",
    }
    answer = client.post(URL, {**FORM, **changes})
    job = Job.objects.get()
    assert (answer.status_code, answer["Location"]) == (303, f"/jobs/{job.id}/?notice=created")
    assert (job.type, job.payload, job.priority, job.max_attempts, job.idempotency_key) == (
        "demo.flaky",
        {"n": 9007199254740993},
        -7,
        9,
        "order 1",
    )
    assert job.available_at == job.created_at
    assert JobEvent.objects.get().type == "created"


def test_a_field_that_is_left_out_is_as_in_the_empty_form(client: Client) -> None:
    assert client.post(URL, {"type": "a"}).status_code == 303
    job = Job.objects.get()
    assert (job.payload, job.priority, job.max_attempts, job.idempotency_key) == ({}, 50, 3, None)


@pytest.mark.parametrize(
    ("changes", "notice"),
    [
        ({}, "existing"),
        ({"payload": '{"n": 1.0, "m": 2}'}, "existing"),
        ({"payload": '{"n": 2, "m": 2}'}, "mismatch"),
        ({"type": "other"}, "mismatch"),
    ],
)
def test_a_known_key_leads_to_its_job_which_is_unchanged(
    client: Client, changes: dict[str, str], notice: str
) -> None:
    form = {**FORM, "payload": '{"m": 2, "n": 1}', "idempotency_key": "once", "priority": "1"}
    client.post(URL, form)
    before = Job.objects.values().get()
    answer = client.post(URL, {**form, "priority": "2", **changes})
    assert answer["Location"] == f"/jobs/{before['id']}/?notice={notice}"
    assert Job.objects.values().get() == before


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"type": ""}, "type", "May not be empty."),
        ({"type": "a b"}, "type", "Only letters, digits"),
        ({"type": "a\0b"}, "type", "Only letters, digits"),
        ({"type": "a" * 121}, "type", "At most 120 characters."),
        ({"payload": ""}, "payload", "write {} for an empty one"),
        ({"payload": "[1]"}, "payload", "Must be a JSON object."),
        ({"payload": '{"a": }'}, "payload", "Expecting value at line 1 column 7"),
        ({"payload": '{"a": NaN}'}, "payload", "NaN, Infinity"),
        ({"payload": '{"a": 1e999}'}, "payload", "too large for a float"),
        ({"payload": '{"a": "\\u0000"}'}, "payload", "NUL characters"),
        ({"payload": '{"\\ud800": 1}'}, "payload", "lone surrogates"),
        ({"payload": '{"a": "\0"}'}, "payload", "Invalid control character"),
        ({"payload": '{"a": ' + "9" * 5_000 + "}"}, "payload", "more digits than can be read"),
        ({"payload": '{"a":' * 101 + "1" + "}" * 101}, "payload", "nested deeper than 100"),
        ({"payload": "[" * 200_000}, "payload", "nested deeper than 100"),
        ({"payload": '{"a": "' + "x" * 1_048_576 + '"}'}, "payload", "more than the 1048576"),
        ({"priority": "1.5"}, "priority", "Must be a whole number."),
        ({"priority": "true"}, "priority", "Must be a whole number."),
        ({"priority": "\u0663"}, "priority", "Must be a whole number."),
        ({"priority": "40000"}, "priority", "Must be from -32768 to 32767."),
        ({"priority": "9" * 6_000}, "priority", "Must be a whole number."),
        ({"max_attempts": "0"}, "attempts", "Must be from 1 to 32767."),
        ({"when": "never"}, "when", "Must be now, in or at."),
        ({"when": "in", "delay": "-1"}, "delay", "Must not be negative."),
        ({"when": "in", "delay": ""}, "delay", "Must be a whole number."),
        ({"when": "in", "delay": "9" * 18}, "delay", "years 1970 to 9998"),
        ({"when": "in", "delay_unit": "fortnights"}, "delay", "seconds, minutes, hours or days"),
        ({"when": "at", "at": "soon"}, "at", "Must be a date and time like"),
        ({"when": "at", "at": "2026-02-30T12:00"}, "at", "There is no such date and time."),
        ({"when": "at", "at": "1950-01-01T00:00"}, "at", "years 1970 to 9998"),
        ({"idempotency_key": "  "}, "key", "May not be empty or blank"),
        ({"idempotency_key": "a\0"}, "key", "NUL characters"),
        ({"idempotency_key": "k" * 256}, "key", "At most 255 characters."),
    ],
)
def test_what_cannot_be_a_job_is_told_at_its_field(
    client: Client, changes: dict[str, str], field: str, reason: str
) -> None:
    html = refused(client, **changes)
    assert list(errors(html)) == [field]
    assert reason in errors(html)[field]
    assert "Nothing was created." in html
    # Whoever reads by ear is told, and begins there.
    assert f"{field}-error" in "".join(re.findall(r'aria-describedby="(.*?)"', html))
    assert html.count("autofocus") == 1
    assert 'aria-invalid="true"' in html or field == "when"


def test_all_faults_are_told_at_once_and_everything_typed_is_kept(client: Client) -> None:
    changes = {
        "type": HOSTILE,
        "payload": "\n{" + HOSTILE,
        "priority": "x'\"",
        "when": "at",
        "at": 'x">',
        "max_attempts": "many",
        "idempotency_key": "k\0" + HOSTILE,
    }
    html = refused(client, **changes)
    assert list(errors(html)) == ["type", "payload", "at", "priority", "attempts", "key"]
    assert "<script>alert" not in html
    for name in ("type", "payload", "priority", "at", "max_attempts"):
        assert typed(html, name) == changes[name]
    assert 'name="when" value="at" checked' in html
    assert re.search(r'<input id="type"[^>]* autofocus>', html)


def test_a_delay_counts_from_the_databases_clock(client: Client) -> None:
    client.post(URL, {**FORM, "when": "in", "delay": "90", "delay_unit": "minutes"})
    job = Job.objects.get()
    late = job.available_at - job.created_at - timedelta(minutes=90)
    assert timedelta(seconds=-5) < late <= timedelta()


@pytest.mark.parametrize(
    ("text", "zone", "moment"),
    [
        ("2026-01-31T12:00", "Asia/Tehran", "2026-01-31T08:30:00+00:00"),
        ("2026-01-31 12:00:05", "UTC", "2026-01-31T12:00:05+00:00"),
        ("2026-01-31T12:00:00+02:00", "Asia/Tehran", "2026-01-31T10:00:00+00:00"),
        # Twice on that day: the first is meant.
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00+00:00"),
    ],
)
def test_a_time_is_of_the_projects_zone(text: str, zone: str, moment: str) -> None:
    with timezone.override(zone):
        reading = drafts.read(Draft(type="a", when="at", at=text), NOW)
    assert reading.errors == {}
    assert reading.arguments["available_at"].isoformat() == moment


def test_a_time_that_the_clocks_skip_is_refused() -> None:
    with timezone.override("Europe/Berlin"):
        reading = drafts.read(Draft(type="a", when="at", at="2026-03-29T02:30"), NOW)
    assert reading.errors == {"at": "The clocks of Europe/Berlin skip this time."}


def test_the_form_offers_the_registered_types_and_shows_which_zone(client: Client) -> None:
    html = client.get(URL).content.decode()
    assert '<option value="demo.flaky">' in html
    assert "<code>fail_until_attempt</code>" in html
    assert 'href="?type=demo.flaky"' in html
    assert timezone.get_current_timezone_name() + " time" in html
    assert 'data-api-url="http://testserver/api/jobs/"' in html
    assert " style=" not in html


def test_a_type_in_the_address_brings_its_example(client: Client) -> None:
    html = client.get(URL, {"type": "demo.flaky"}).content.decode()
    assert json.loads(typed(html, "payload")) == {"fail_until_attempt": 2}
    assert "Fails on every attempt before" in html
    html = client.get(URL, {"type": "nobody.knows"}).content.decode()
    assert (typed(html, "type"), typed(html, "payload")) == ("nobody.knows", "{}")
    assert "No handler of this name is registered here." in html


def test_a_copy_has_everything_but_the_key(client: Client) -> None:
    original = queued(
        type="a.b", payload={"z": HOSTILE}, priority=7, max_attempts=4, idempotency_key="once"
    )
    sql("UPDATE jobs_job SET payload = payload || '{\"f\": 1.0}' WHERE id = %s", original.id)
    html = client.get(URL, {"copy_of": str(original.id)}).content.decode()
    assert "<script>alert" not in html
    assert typed(html, "payload") == ('{\n  "f": 1.0,\n  "z": ' + json.dumps(HOSTILE) + "\n}")
    fields = [typed(html, name) for name in ("type", "priority", "max_attempts", "idempotency_key")]
    assert fields == ["a.b", "7", "4", ""]
    assert f'href="/jobs/{original.id}/"' in html


def test_a_copy_of_what_is_too_long_says_so_and_makes_nothing_up(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_view, "MAX_CHARS", 100)
    original = queued(payload={"a": "x" * 200})
    html = client.get(URL, {"copy_of": str(original.id)}).content.decode()
    assert "too long to be edited here (209 characters)" in html
    assert typed(html, "payload") == ""


@pytest.mark.parametrize("copy_of", ["nonsense", "0" * 32])
def test_a_copy_of_no_job_is_not_found(client: Client, copy_of: str) -> None:
    assert client.get(URL, {"copy_of": copy_of}).status_code == 404
    assert client.get(URL, {"copy_of": "a\0"}).status_code == 400


def test_a_form_from_elsewhere_creates_nothing() -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post(URL, FORM).status_code == 403
    assert not Job.objects.exists()
    html = client.get(URL).content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', html)
    assert token is not None
    assert client.post(URL, {**FORM, "csrfmiddlewaretoken": token[1]}).status_code == 303


def test_a_form_too_large_for_the_project_is_answered_with_the_form(
    client: Client, settings: Any
) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2_000
    answer = client.post(URL, {**FORM, "payload": '{"a": "' + "x" * 3_000 + '"}'})
    assert answer.status_code == 413
    assert "too large to be read" in errors(answer.content.decode())["payload"]
    assert not Job.objects.exists()


def test_who_may_not_create_sees_no_form_and_who_may_not_look_gets_no_copy(
    client: Client, settings: Any
) -> None:
    settings.DASHBOARD_ACCESS = "login"
    assert client.get(URL).status_code == 302
    assert client.post(URL, FORM).status_code == 302
    user = User.objects.create_user("somebody")
    client.force_login(user)
    assert client.post(URL, FORM).status_code == 403
    assert not Job.objects.exists()
    user.user_permissions.add(Permission.objects.get(codename="add_job"))
    assert client.get(URL).status_code == 200
    assert client.get(URL, {"copy_of": str(queued().id)}).status_code == 403
