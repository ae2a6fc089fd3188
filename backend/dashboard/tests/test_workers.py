"""The workers that were seen, and what the page says about those it cannot see."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from django.test import Client

from jobs import memo, services
from jobs.selectors import workers
from jobs.tests.plans.cost import MOST_BUFFERS, measured
from jobs.tests.support import OTHER, WORKER, expire, owned_by, queued, running, sql, succeeded

WORKERS = "/workers/"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def open_to_all(settings: Any) -> None:
    """As in development, whatever the environment says."""
    settings.DASHBOARD_ACCESS = "open"


def shown(client: Client, **headers: str) -> str:
    """The page's text, or its live part's with htmx's header."""
    memo.forget_all()
    answer = client.get(WORKERS, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def test_workers_stand_under_their_host_and_process_with_what_they_run(client: Client) -> None:
    job = running("box:12:thread-3:0a0b0c0d")
    running("box:12:thread-4:0a0b0c0d")
    running("other:7:thread-1:0a0b0c0d")
    page = shown(client)
    places = ["box</bdi>", "process 12", "thread 3", "thread 4", "other</bdi>", "process 7"]
    assert [page.index(place) for place in places] == sorted(page.index(place) for place in places)
    assert page.count("process 12") == 1
    assert f'href="/jobs/{job.id}/"' in page
    assert "attempt 1, claimed" in page
    assert 'data-time="left"' in page
    assert "is-idle" not in page
    assert "<strong>3</strong> running a job" in page


def test_an_idle_worker_is_told_from_a_busy_one(client: Client) -> None:
    succeeded()
    running(OTHER)
    page = shown(client)
    assert page.count("is-idle") == 1
    assert "<strong>2</strong> seen" in page
    assert "<strong>1</strong> running a job" in page


def test_a_lease_that_is_over_is_marked(client: Client) -> None:
    job = running()
    assert "overdue" not in shown(client)
    expire(job.id)
    page = shown(client)
    assert "<strong>1</strong> overdue" in page
    assert "/jobs/?state=running&amp;overdue=1" in page


def test_a_worker_leads_to_its_jobs_and_its_events(client: Client) -> None:
    worker = "my worker & co/7%\u00e9"
    job = running(worker)
    queued()
    page = shown(client)
    addresses = [unescape(part.split('"')[0]) for part in page.split('href="')]
    (jobs,) = {address for address in addresses if address.startswith("/jobs/?worker=")}
    (events,) = [address for address in addresses if address.startswith("/events/?worker=")]
    answer = client.get(events).content.decode()
    assert answer.count("data-event=") == 1
    assert str(job.id) in client.get(jobs).content.decode()


def test_of_a_worker_with_many_jobs_the_newest_are_shown(client: Client) -> None:
    for _ in range(5):
        job = running("a script")
    page = shown(client)
    assert page.count("attempt 1, claimed") == 3
    assert f'href="/jobs/{job.id}/"' in page
    assert "and 2 more" in page


def test_where_nobody_was_seen_it_is_said_how_to_start_one(client: Client) -> None:
    queued()
    page = shown(client)
    assert "No worker was seen" in page
    assert "python manage.py run_job_workers" in page
    assert "cannot be seen" in page


def test_the_page_says_how_far_it_looked(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    succeeded()
    assert "all running jobs and all events" in shown(client)
    monkeypatch.setattr(workers, "MAX_EVENTS_READ", 2)
    page = shown(client)
    assert "the newest 2 events, since" in page
    assert "had nothing to do since then is not shown" in page


def test_the_live_part_is_the_same_until_something_happens(client: Client) -> None:
    job = running()
    poll = {"HX-Request": "true"}
    first = client.get(WORKERS, headers=poll)
    again = {**poll, "If-None-Match": first.headers["ETag"]}
    memo.forget_all()
    assert client.get(WORKERS, headers=again).status_code == 304
    services.complete_job(**owned_by(job))
    memo.forget_all()
    assert client.get(WORKERS, headers=again).status_code == 200


def test_what_anybody_wrote_is_text(client: Client) -> None:
    running("<script>alert(1)</script>\u202e")
    running('<b title="x">:12:thread-3:0a0b0c0d')
    page = shown(client)
    assert "<script>alert" not in page
    assert "<b title" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e" in page
    assert "Other workers" in page


def test_the_address_is_checked(client: Client) -> None:
    assert client.get(WORKERS + "?x=%00").status_code == 400


def test_the_page_has_its_price(client: Client) -> None:
    running(WORKER)
    sql(
        "INSERT INTO jobs_job (id, type, status, attempts, max_attempts, locked_by, locked_until)"
        " SELECT gen_random_uuid(), 'demo.slow', 'running', 1, 3, 'host:1:thread-' || g ||"
        " ':0a0b0c0d', statement_timestamp() FROM generate_series(1, %s) AS g",
        1_200,
    )
    sql(
        "INSERT INTO jobs_jobevent (job_id, type, attempt, worker_id, message)"
        " SELECT id, 'lease_renewed', 1, locked_by, repeat('m', 1500)"
        " FROM jobs_job, generate_series(1, 4)"
    )
    sql("ANALYZE jobs_job, jobs_jobevent")
    client.get(WORKERS)
    with measured() as cost:
        page = client.get(WORKERS).content.decode()
    assert "There are more workers or running jobs than fit on this page." in page
    assert 0 < cost.buffers <= MOST_BUFFERS
