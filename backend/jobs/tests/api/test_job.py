"""One job, its timeline, its second chance, and the queue in numbers."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from jobs import selectors, services
from jobs.lifecycle import EventType, Status
from jobs.models import Job, JobEvent
from jobs.serializers import JOB, JobSerializer
from jobs.tests.api.conftest import UNKNOWN_ID, Post
from jobs.tests.support import failed, queued, running, succeeded

pytestmark = pytest.mark.django_db

UNKNOWN = {"detail": "There is no job with this id."}
WORKER = "host:1:thread-1:00000000"


def failed_job(post: Post) -> dict[str, Any]:
    """A job that used up its one attempt."""
    made: dict[str, Any] = post(
        type="a", payload={"n": 1}, priority=9, max_attempts=1, idempotency_key="k"
    ).json()
    services.claim_next_job(worker_id=WORKER)
    job = services.fail_job(job_id=UUID(made["id"]), worker_id=WORKER, attempt=1, error="no")
    assert job is not None
    return made


def rows() -> tuple[list[Any], list[Any]]:
    return list(Job.objects.values().order_by("pk")), list(JobEvent.objects.values().order_by("pk"))


@pytest.mark.parametrize("zone", ["Asia/Tehran", "UTC", "America/St_Johns"])
def test_a_job_is_spelled_as_the_fields_of_rest_framework_spell_it(zone: str) -> None:
    moments = [datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)]
    made = [queued(payload={"a": [1.5, None]}, available_at=moment) for moment in moments]
    jobs = [*made, running(idempotency_key="k"), succeeded(), failed()]
    with timezone.override(zone):
        for job in jobs:
            by_its_fields = super(JobSerializer, JOB).to_representation(job)
            assert JOB.to_representation(job) == by_its_fields
            assert [*JOB.to_representation(job)] == [*by_its_fields]


@pytest.mark.parametrize(
    ("accept", "status"), [("application/json", 200), ("text/html, */*;q=0.1", 200), ("a/b", 406)]
)
def test_json_is_what_there_is(accept: str, status: int, api: Client) -> None:
    response = api.get("/api/jobs/stats/", headers={"accept": accept})
    assert response.status_code == status
    assert response["Content-Type"] == "application/json"


@pytest.mark.parametrize("call", ["", "events/", "retry/"])
@pytest.mark.parametrize(
    "job_id", [str(UNKNOWN_ID), "abc", "%00", "1", "x" * 500, "%F0%9F%98%80", "%FF", "stats2"]
)
def test_an_unknown_or_malformed_id_is_no_job(job_id: str, call: str, api: Client) -> None:
    address = f"/api/jobs/{job_id}/{call}"
    response = api.post(address) if call == "retry/" else api.get(address)
    assert response.status_code == 404
    assert response.json() == UNKNOWN


def test_a_job_shows_what_its_worker_did(api: Client, post: Post) -> None:
    job_id = post(type="a").json()["id"]
    services.claim_next_job(worker_id=WORKER)
    running = api.get(f"/api/jobs/{job_id}/").json()
    assert (running["status"], running["locked_by"], running["attempts"]) == ("running", WORKER, 1)
    assert running["locked_until"].endswith("+03:30")
    result = {"n": 10**4000, "text": "é😀", "list": [1, 2.5, None, True]}
    services.complete_job(job_id=UUID(job_id), worker_id=WORKER, attempt=1, result=result)
    done = api.get(f"/api/jobs/{job_id}/").json()
    assert (done["status"], done["result"], done["locked_by"]) == ("succeeded", result, None)
    assert done["finished_at"] is not None


def test_a_timeline_is_a_plain_list_in_the_order_of_events(api: Client, post: Post) -> None:
    job = failed_job(post)
    response = api.get(f"/api/jobs/{job['id']}/events/")
    events = response.json()
    assert [event["type"] for event in events] == ["created", "claimed", "failed"]
    assert [event["id"] for event in events] == sorted(event["id"] for event in events)
    assert {event["job"] for event in events} == {job["id"]}
    assert events[2]["worker_id"] == WORKER
    assert "Link" not in response


def test_a_job_without_events_has_an_empty_timeline(api: Client) -> None:
    job = Job.objects.create(type="a")
    assert api.get(f"/api/jobs/{job.pk}/events/").json() == []


@pytest.mark.parametrize(("count", "is_cut"), [(1000, False), (1001, True)])
def test_a_long_timeline_is_its_newest_thousand_and_a_link_to_all(
    count: int, is_cut: bool, api: Client
) -> None:
    job = Job.objects.create(type="a")
    event = EventType.LEASE_RENEWED.value
    made = JobEvent.objects.bulk_create([JobEvent(job=job, type=event) for _ in range(count)])
    response = api.get(f"/api/jobs/{job.pk}/events/", headers={"host": "localhost:8123"})
    assert [event["id"] for event in response.json()] == [event.pk for event in made[-1000:]]
    if not is_cut:
        assert "Link" not in response
        return
    address = f"http://localhost:8123/api/job-events/?job_id={job.pk}"
    assert response["Link"] == f'<{address}>; rel="collection"'
    assert api.get(f"{address}&limit=1").json()["results"][0]["id"] == made[-1].pk


def test_f109_a_retry_queues_a_failed_job_with_all_its_attempts(api: Client, post: Post) -> None:
    before = failed_job(post)
    response = api.post(f"/api/jobs/{before['id']}/retry/")
    assert response.status_code == 200
    after = response.json()
    assert (after["status"], after["attempts"], after["last_error"]) == ("queued", 0, "")
    assert (after["result"], after["finished_at"]) == (None, None)
    assert (after["locked_by"], after["locked_until"]) == (None, None)
    assert after["available_at"] == after["updated_at"] > before["available_at"]
    kept = ("id", "type", "payload", "priority", "max_attempts", "idempotency_key", "created_at")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert JobEvent.objects.filter(type="manual_retry").count() == 1
    assert api.get(f"/api/jobs/{before['id']}/").json() == after


@pytest.mark.parametrize("status", [Status.QUEUED, Status.RUNNING, Status.SUCCEEDED])
def test_f109_a_retry_of_any_other_job_changes_nothing(
    status: Status, api: Client, post: Post
) -> None:
    job_id = post(type="a").json()["id"]
    if status is not Status.QUEUED:
        services.claim_next_job(worker_id=WORKER)
    if status is Status.SUCCEEDED:
        services.complete_job(job_id=UUID(job_id), worker_id=WORKER, attempt=1, result={"n": 1})
    before = rows()
    response = api.post(f"/api/jobs/{job_id}/retry/")
    assert response.status_code == 409
    assert status.value in response.json()["detail"]
    assert rows() == before


def test_a_retry_needs_no_body_and_reads_none(api: Client, post: Post) -> None:
    job = failed_job(post)
    address = f"/api/jobs/{job['id']}/retry/"
    assert api.post(address, b"{{{", content_type="text/plain").status_code == 200


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("PUT", "jobs/"),
        ("DELETE", "jobs/"),
        ("PATCH", f"jobs/{UNKNOWN_ID}/"),
        ("DELETE", f"jobs/{UNKNOWN_ID}/"),
        ("POST", f"jobs/{UNKNOWN_ID}/"),
        ("GET", f"jobs/{UNKNOWN_ID}/retry/"),
        ("POST", "job-events/"),
        ("POST", "health/"),
        ("TRACE", "jobs/"),
    ],
)
def test_a_method_that_a_call_does_not_have_is_refused_as_json(
    method: str, address: str, api: Client
) -> None:
    response = api.generic(method, f"/api/{address}", b"{}", "application/json")
    assert response.status_code == 405
    assert response["Allow"]
    assert "detail" in response.json()


def test_an_answer_that_is_not_json_is_not_to_be_had(api: Client) -> None:
    response = api.get("/api/jobs/", headers={"accept": "text/html"})
    assert response.status_code == 406
    assert response["Content-Type"] == "application/json"


def test_stats_of_an_empty_queue_have_every_status(api: Client) -> None:
    assert api.get("/api/jobs/stats/").json() == {
        "total": 0,
        "total_is_estimate": False,
        "succeeded_is_estimate": False,
        "by_status": {"queued": 0, "running": 0, "succeeded": 0, "failed": 0},
        "overdue_running": 0,
        "retries_pending": 0,
        "oldest_queued_at": None,
        "ready": 0,
        "scheduled": 0,
        "oldest_ready_at": None,
    }


def test_stats_count_what_they_say(api: Client) -> None:
    now = timezone.now()
    hour = timedelta(hours=1)
    common: dict[str, Any] = {"type": "a", "max_attempts": 3}
    running: dict[str, Any] = {**common, "status": "running", "locked_by": "w"}
    Job.objects.bulk_create(
        [
            Job(**common, created_at=now - hour),
            Job(**common, created_at=now - 3 * hour, attempts=1, available_at=now + hour),
            Job(**common, created_at=now, available_at=now - 2 * hour),
            Job(**running, attempts=1, locked_until=now - hour, created_at=now - 9 * hour),
            Job(**running, attempts=1, locked_until=now + hour),
            Job(**common, status="succeeded", attempts=1, finished_at=now),
            *[Job(**common, status="failed", attempts=1, finished_at=now) for _ in range(4)],
        ]
    )
    stats = api.get("/api/jobs/stats/").json()
    oldest = timezone.localtime(now - 3 * hour).isoformat()
    assert stats == {
        "total": 10,
        "total_is_estimate": False,
        "succeeded_is_estimate": False,
        "by_status": {"queued": 3, "running": 2, "succeeded": 1, "failed": 4},
        "overdue_running": 1,
        "retries_pending": 1,
        "oldest_queued_at": oldest,
        "ready": 2,
        "scheduled": 1,
        "oldest_ready_at": timezone.localtime(now - 2 * hour).isoformat(),
    }


def test_f101_stats_are_one_statement(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        selectors.stats()


@pytest.mark.django_db(transaction=True)
def test_f101_stats_add_up_while_jobs_move(api: Client, post: Post) -> None:
    for _ in range(20):
        post(type="a")
    stopped = threading.Event()

    def work() -> None:
        try:
            while not stopped.is_set():
                job = services.claim_next_job(worker_id=WORKER)
                if job is None:
                    services.create_job(type="a")
                    continue
                services.complete_job(job_id=job.pk, worker_id=WORKER, attempt=job.attempts)
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(50):
            stats = api.get("/api/jobs/stats/").json()
            assert stats["total"] == sum(stats["by_status"].values())
            assert min(stats["by_status"].values()) >= 0
    finally:
        stopped.set()
        worker.join()
