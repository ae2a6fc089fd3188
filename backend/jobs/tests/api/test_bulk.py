"""POST /api/jobs/bulk/."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from jobs import services
from jobs.errors import CreateContended
from jobs.models import Job, JobEvent
from jobs.tests.support import event_types, queued, unchanged

pytestmark = pytest.mark.django_db

Bulk = Callable[..., Any]


@pytest.fixture
def bulk(api: Client) -> Bulk:
    """POST some jobs, or a body as it is."""

    def send(*jobs: Any, body: bytes | str | None = None) -> Any:
        content = json.dumps({"jobs": jobs}) if body is None else body
        return api.post("/api/jobs/bulk/", content, content_type="application/json")

    return send


def test_new_jobs_are_answered_in_their_order_without_what_may_be_large(
    bulk: Bulk, api: Client
) -> None:
    later = "2030-01-02T06:34:05.678901+03:30"
    response = bulk(
        {"type": "b", "payload": {"n": 1}, "priority": 7, "available_at": later},
        {"type": "a", "idempotency_key": "k", "max_attempts": 9, "status": "running"},
    )
    assert response.status_code == 201
    answer = response.json()
    assert list(answer) == ["created", "jobs"]
    assert answer["created"] == 2
    assert [(each["created"], each["mismatch"]) for each in answer["jobs"]] == [(True, False)] * 2
    first, second = (each["job"] for each in answer["jobs"])
    assert (first["type"], first["priority"]) == ("b", 7)
    assert (second["type"], second["max_attempts"], second["status"]) == ("a", 9, "queued")
    for job in (first, second):
        whole = api.get(f"/api/jobs/{job['id']}/").json()
        large = {name: whole.pop(name) for name in ("payload", "result", "last_error")}
        assert whole == job
        assert large["payload"] == ({"n": 1} if job is first else {})


def test_a_large_job_is_neither_read_nor_answered_however_often_its_key_is_given(
    bulk: Bulk,
) -> None:
    old = queued(type="a", payload={"text": "x" * 500_000}, idempotency_key="k")
    wanted = [{"type": "a", "idempotency_key": "k"}] * 1_000
    with CaptureQueriesContext(connection) as queries:
        response = bulk(*wanted)
    assert response.status_code == 200
    assert len(response.content) < 1_000_000
    assert {each["job"]["id"] for each in response.json()["jobs"]} == {str(old.id)}
    (found,) = [query["sql"] for query in queries if '"idempotency_key" IN' in query["sql"]]
    assert '"payload"' not in found


def test_known_keys_answer_their_jobs_and_say_where_they_differ(bulk: Bulk) -> None:
    old = queued(type="a", payload={"n": 1, "m": 2}, idempotency_key="k")
    with unchanged(old.id):
        response = bulk(
            {"type": "a", "payload": {"m": 2.0, "n": 1}, "idempotency_key": " k "},
            {"type": "a", "payload": {"m": 2, "n": True}, "idempotency_key": "k"},
            {"type": "b", "payload": {"m": 2, "n": 1}, "idempotency_key": "k"},
            {"type": "a", "idempotency_key": "k"},
            {"type": "c", "idempotency_key": "new"},
            {"type": "c", "idempotency_key": "new"},
            {"type": "d", "idempotency_key": "new"},
        )
    assert response.status_code == 201
    answer = response.json()
    assert answer["created"] == 1
    assert [(each["created"], each["mismatch"]) for each in answer["jobs"]] == [
        (False, False),
        (False, True),
        (False, True),
        (False, True),
        (True, False),
        (False, False),
        (False, True),
    ]
    assert [each["job"]["id"] for each in answer["jobs"][:4]] == [str(old.id)] * 4
    assert len({each["job"]["id"] for each in answer["jobs"][4:]}) == 1


def test_the_same_request_again_makes_nothing_and_answers_the_same_jobs(bulk: Bulk) -> None:
    wanted = [{"type": "a", "payload": {"n": n}, "idempotency_key": f"k{n}"} for n in range(3)]
    first, second = bulk(*wanted), bulk(*wanted)
    assert [first.status_code, second.status_code] == [201, 200]
    assert second.json() == {
        "created": 0,
        "jobs": [{**each, "created": False} for each in first.json()["jobs"]],
    }
    assert Job.objects.count() == JobEvent.objects.count() == 3


@pytest.mark.usefixtures("nothing_stored")
def test_every_job_that_is_wrong_is_named_by_its_place_and_its_fields(bulk: Bulk) -> None:
    good = {"type": "a", "idempotency_key": "k"}
    # What has the wrong type, in all of them at once.
    response = bulk(good, {"payload": [], "priority": "7"}, 5, good, None, [], {"type": None})
    assert response.status_code == 400
    assert response.json() == {
        "jobs": {
            "1": {
                "type": ["This field is required."],
                "payload": ["Must be a JSON object."],
                "priority": ["Must be a whole number."],
            },
            "2": ["Must be a JSON object."],
            "4": ["Must be a JSON object."],
            "5": ["Must be a JSON object."],
            "6": {"type": ["This field may not be null."]},
        }
    }
    # Then what no job can have.
    response = bulk(good, {"type": ""}, {"type": "a", "priority": 32_768}, {**good, "type": "a\n"})
    assert response.status_code == 400
    assert response.json() == {
        "jobs": {
            "1": {"type": ["May not be empty."]},
            "2": {"priority": ["Must be from -32768 to 32767."]},
            "3": {"type": ["Only letters, digits and the characters . _ : - are allowed."]},
        }
    }


@pytest.mark.parametrize(
    ("jobs", "reason"),
    [
        ("[]", "May not be empty."),
        ("{}", "Must be a list of jobs."),
        ('"abc"', "Must be a list of jobs."),
        ("null", "This field may not be null."),
        ("7", "Must be a list of jobs."),
        ("[" + ",".join(['{"type": "a"}'] * 1_001) + "]", "At most 1000 jobs at once."),
        ("[" + "{}," * 300_000 + "{}]", "At most 1000 jobs at once."),
    ],
    ids=["empty", "object", "text", "null", "number", "1,001", "300,001"],
)
@pytest.mark.usefixtures("nothing_stored")
def test_what_is_no_list_of_some_jobs_is_refused(jobs: str, reason: str, bulk: Bulk) -> None:
    response = bulk(body=f'{{"jobs": {jobs}}}')
    assert response.status_code == 400
    assert response.json() == {"jobs": [reason]}


@pytest.mark.parametrize("body", ["", "{}", '{"job": []}'])
def test_a_body_without_jobs_is_refused(body: str, bulk: Bulk) -> None:
    response = bulk(body=body)
    assert response.status_code == 400
    assert response.json() == {"jobs": ["This field is required."]}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (
            r'{"type": "a", "payload": {"a": ["\ud800"]}}',
            {"payload": ["NUL characters and lone surrogates are not allowed."]},
        ),
        (
            r'{"type": "a", "idempotency_key": "\u0000"}',
            {"idempotency_key": ["NUL characters and lone surrogates are not allowed."]},
        ),
        (
            '{"type": "a", "payload": {"a": 1e400}}',
            {"payload": ["NaN, Infinity and numbers too large for a float are not allowed."]},
        ),
        (
            '{"type": "a", "payload": {"n": 1%s}}' % ("0" * 5_000),
            {"payload": ["An integer has more digits than can be read."]},
        ),
        (r'{"\ud800": 1}', ["NUL characters and lone surrogates are not allowed."]),
        ('"\\u0000"', ["NUL characters and lone surrogates are not allowed."]),
    ],
)
@pytest.mark.usefixtures("nothing_stored")
def test_what_cannot_be_stored_is_told_by_the_place_of_its_job(
    job: str, expected: Any, bulk: Bulk
) -> None:
    response = bulk(body=f'{{"jobs": [{{"type": "a"}}, {job}]}}')
    assert response.status_code == 400
    assert response.json() == {"jobs": {"1": expected}}


def test_a_payload_may_be_as_deep_as_that_of_a_single_job_and_no_deeper(bulk: Bulk) -> None:
    def nested(depth: int) -> str:
        return '{"a": ' + "[" * (depth - 1) + "]" * (depth - 1) + "}"

    def body(depth: int) -> str:
        return f'{{"jobs": [{{"type": "a", "payload": {nested(depth)}}}]}}'

    response = bulk(body=body(100))
    assert response.status_code == 201
    made = Job.objects.get(pk=response.json()["jobs"][0]["job"]["id"])
    assert made.payload == json.loads(nested(100))
    for depth in (101, 100_000):
        response = bulk(body=body(depth))
        assert response.status_code == 400
        assert "nested deeper than 100" in response.content.decode()
    assert bulk(body="[" * 100_000).status_code == 400
    assert Job.objects.count() == 1


@pytest.mark.usefixtures("nothing_stored")
def test_the_whole_body_has_the_limit_of_a_single_job(bulk: Bulk, settings: Settings) -> None:
    settings.JOB_PAYLOAD_MAX_BYTES = 1_024
    response = bulk(*[{"type": "a", "payload": {"a": "x" * 300}}] * 4)
    assert response.status_code == 413
    assert response.json() == {"detail": "The request body is larger than 1024 bytes."}


def test_a_thousand_jobs_are_one_request(bulk: Bulk) -> None:
    response = bulk(*[{"type": "a", "idempotency_key": f"k{n}"} for n in range(1_000)])
    assert response.status_code == 201
    assert response.json()["created"] == Job.objects.count() == JobEvent.objects.count() == 1_000


def test_a_key_that_keeps_vanishing_is_for_later(
    bulk: Bulk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contended(**arguments: Any) -> Any:
        raise CreateContended

    monkeypatch.setattr(services, "create_jobs", contended)
    response = bulk({"type": "a"})
    assert response.status_code == 503
    assert response["Retry-After"] == "1"


def test_a_chunked_body_and_one_of_another_kind_are_refused(api: Client) -> None:
    address = "/api/jobs/bulk/"
    chunked = {"transfer-encoding": "chunked"}
    kind = "application/json"
    assert api.generic("POST", address, b"", kind, headers=chunked).status_code == 411
    assert api.generic("POST", address, b"{}", "text/plain").status_code == 415
    assert api.get(address).status_code == 405


@pytest.mark.django_db(transaction=True)
def test_with_atomic_requests_too_the_jobs_are_made_with_their_events(
    bulk: Bulk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    wanted = [{"type": "a", "idempotency_key": "k"}, {"type": "b"}]
    assert [bulk(*wanted).status_code, bulk(*wanted[:1]).status_code] == [201, 200]
    assert bulk(*wanted, {"type": ""}).status_code == 400
    assert [event_types(job.id) for job in Job.objects.all()] == [["created"]] * 2
