"""The failures: groups, a sample, retrying one and then the rest."""

from __future__ import annotations

import dataclasses
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils.html import escape

from jobs import memo, selectors, services
from jobs.lifecycle import EventType
from jobs.models import Job
from jobs.records import Owner, Record
from jobs.tests.plans.cost import MOST_BUFFERS, measured
from jobs.tests.support import OTHER, WORKER, event_types, owned_by, running, sql, succeeded

FAILURES = "/failures/"
HOSTILE = "<script>alert(1)</script>\u202e 'x' 7"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def open_to_all(settings: Any) -> None:
    """As in development, whatever the environment says."""
    settings.DASHBOARD_ACCESS = "open"


def failing(error: str, **arguments: Any) -> Job:
    """A job that failed for good with this error."""
    job = running(**{"max_attempts": 1, **arguments})
    ended = services.fail_job(**owned_by(job), error=error)
    assert ended is not None
    return ended


def shown(client: Client, query: str = "", **headers: str) -> str:
    """The page's text, or its live part's with htmx's header."""
    memo.forget_all()
    answer = client.get(FAILURES + query, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def query_of(address: str) -> dict[str, str]:
    """The parameters of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def test_jobs_that_failed_alike_are_one_group_that_leads_to_its_jobs(client: Client) -> None:
    for number in range(3):
        failing(f"KeyError: '{number}'")
    failing("ValueError: no")
    page = shown(client)
    assert "4 failed jobs in 2 groups" in page
    assert page.count("data-row") == 2
    assert escape("KeyError: '<n>'") in page
    links = [unescape(part.split('"')[0]) for part in page.split('data-href="')[1:]]
    assert query_of(links[0]) == {
        "state": "failed",
        "type_is": "demo.success",
        "error_group": "KeyError: '<n>'",
    }


def test_the_jobs_list_shows_the_group_that_a_link_names(client: Client) -> None:
    inside, outside = failing("KeyError: '1'"), failing("ValueError: 1")
    (link, *_) = [
        unescape(part.split('"')[0])
        for part in shown(client).split('data-href="')[1:]
        if "KeyError" in part.split('"')[0]
    ]
    jobs = client.get(link).content.decode()
    assert str(inside.id) in jobs
    assert str(outside.id) not in jobs


def test_a_group_shows_its_last_job_with_its_traceback_and_its_failures_as_a_table(
    client: Client,
) -> None:
    job = running(max_attempts=1)
    details = {"class": "builtins.KeyError", "traceback": "File tasks.py, line 7"}
    record = Record.failed(Owner(job.id, WORKER, 1), "KeyError: 1\nmore of it", details)
    services.record_and_claim(records=[record])
    page = shown(client)
    assert f'href="/jobs/{job.id}/"' in page
    assert "more of it" in page
    assert "File tasks.py, line 7" in page
    assert "<caption>Failures over time</caption>" in page
    assert 'role="img" aria-label="Failures over time: the most, 1, from' in page


def test_what_anybody_wrote_is_text(client: Client) -> None:
    job = failing(HOSTILE)
    sql("UPDATE jobs_job SET type = %s WHERE id = %s", "<b onload=x>" + "y" * 108, job.id)
    page = shown(client, "?type=%3Cb")
    assert "<script>alert" not in page
    assert "<b onload" not in page
    assert "&lt;script&gt;alert(&lt;n&gt;)" in page
    assert "\u202e" not in page


def test_nothing_failed(client: Client) -> None:
    succeeded()
    page = shown(client)
    assert "No failed jobs" in page
    assert "Clear filters" not in page


@pytest.mark.parametrize("query", ["?type=nothing", "?span=1h"])
def test_a_filter_that_nothing_matches_can_be_cleared(client: Client, query: str) -> None:
    failing("it broke")
    sql("UPDATE jobs_job SET finished_at = finished_at - interval '2 days'")
    page = shown(client, query)
    assert "No failed job matches" in page
    assert f'href="{FAILURES}">Clear filters' in page
    assert "data-row" in shown(client)


def test_it_is_said_where_not_all_were_looked_at(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing("it broke")
    found = selectors.failure_groups()
    cut = dataclasses.replace(found, read=2_000, is_cut=True)
    monkeypatch.setattr(selectors, "failure_groups", lambda **_: cut)
    assert "only the newest 2,000 failed jobs were looked at" in shown(client)


@pytest.mark.parametrize("query", ["?span=2h", "?trial=x", "?type=%00", "?span=%ff"])
def test_an_address_that_cannot_be_is_refused(client: Client, query: str) -> None:
    assert client.get(FAILURES + query).status_code == 400


def test_the_live_part_is_the_same_until_something_fails(client: Client) -> None:
    failing("it broke")
    poll = {"HX-Request": "true"}
    first = client.get(FAILURES, headers=poll)
    assert "csrfmiddlewaretoken" not in first.content.decode()
    memo.forget_all()
    again = {**poll, "If-None-Match": first.headers["ETag"]}
    assert client.get(FAILURES, headers=again).status_code == 304
    failing("it broke")
    memo.forget_all()
    assert client.get(FAILURES, headers=again).status_code == 200


def retried_one(client: Client, job: Job, query: str = "") -> str:
    """Where the retry of one job of a group leads."""
    answer = client.post(FAILURES + query, {"job": str(job.id)})
    assert answer.status_code == 302
    return answer.headers["Location"]


def test_one_is_retried_and_watched_and_then_the_rest_is_offered(client: Client) -> None:
    jobs = [failing(f"KeyError: '{number}'", max_attempts=1) for number in range(3)]
    location = retried_one(client, jobs[2], "?type=demo")
    assert query_of(location) == {
        "type": "demo",
        "trial": str(jobs[2].id),
        "trial_type": "demo.success",
        "trial_error": "KeyError: '<n>'",
    }
    assert event_types(jobs[2].id)[-1] == EventType.MANUAL_RETRY
    query = "?" + urlsplit(location).query
    waiting = shown(client, query)
    assert "Retrying one first" in waiting
    assert "Retry the rest" not in waiting
    taken = services.claim_next_job(worker_id=OTHER)
    assert taken is not None
    assert "attempt 1 of 1" in shown(client, query)
    services.complete_job(**owned_by(taken))
    done = shown(client, query)
    assert "It went through this time. 2 more failed jobs like it wait for you." in done
    (rest,) = [
        unescape(part.split('"')[0])
        for part in done.split('href="')[1:]
        if "Retry the rest" in part.split("</a>")[0]
    ]
    assert query_of(rest)["error_group"] == "KeyError: '<n>'"
    asked = client.get(rest)
    assert asked.status_code == 200
    assert ">2<" in asked.content.decode().replace("</strong>", "<").replace("<strong>", ">")


@pytest.mark.parametrize("error", ["it broke 2", "it is still broken"])
def test_one_that_fails_again_shows_why_before_the_rest_is_tried(
    client: Client, error: str
) -> None:
    jobs = [failing("it broke 1") for _ in range(3)]
    location = retried_one(client, jobs[0])
    taken = services.claim_next_job(worker_id=OTHER)
    assert taken is not None
    services.fail_job(**owned_by(taken), error=error)
    page = shown(client, "?" + urlsplit(location).query)
    assert "It failed again" in page
    assert error in page
    assert "2 more failed jobs like it are left alone" in page
    assert "Retry the rest all the same" in page


def test_one_that_is_no_longer_failed_is_left_alone(client: Client) -> None:
    job = failing("it broke")
    services.retry_job(job_id=job.id)
    assert retried_one(client, job) == f"{FAILURES}?notice=not_failed"
    assert event_types(job.id).count(EventType.MANUAL_RETRY) == 1


@pytest.mark.parametrize(
    ("job", "status"), [("x", 400), ("", 400), ("00000000-0000-0000-0000-000000000000", 404)]
)
def test_only_a_job_can_be_retried(client: Client, job: str, status: int) -> None:
    assert client.post(FAILURES, {"job": job}).status_code == status


def test_whoever_may_only_look_is_offered_no_retry(client: Client, settings: Any) -> None:
    settings.DASHBOARD_ACCESS = "login"
    reader = User.objects.create_user("reader")
    reader.user_permissions.add(Permission.objects.get(codename="view_job"))
    client.force_login(reader)
    job = failing("it broke")
    failing("it broke")
    page = shown(client)
    assert "data-row" in page
    assert "Retry one" not in page
    assert "Retry all" not in page
    assert client.post(FAILURES, {"job": str(job.id)}).status_code == 403
    assert event_types(job.id)[-1] == EventType.FAILED


def test_a_retry_without_its_token_is_refused() -> None:
    job = failing("it broke")
    answer = Client(enforce_csrf_checks=True).post(FAILURES, {"job": str(job.id)})
    assert answer.status_code == 403
    assert event_types(job.id)[-1] == EventType.FAILED


def test_the_page_has_its_price(client: Client) -> None:
    sql(
        "INSERT INTO jobs_job (id, type, status, attempts, max_attempts, finished_at, last_error)"
        " SELECT gen_random_uuid(), 'demo.' || g %% 40, 'failed', 1, 1, statement_timestamp(),"
        " 'it broke ' || g || repeat('x', 2000) FROM generate_series(1, %s) AS g",
        5_000,
    )
    sql("ANALYZE jobs_job")
    trial = sql("SELECT id FROM jobs_job LIMIT 1")[0][0]
    query = f"?all=1&span=7d&type=demo&trial={trial}"
    client.get(FAILURES + query)
    with measured() as cost:
        assert client.get(FAILURES + query).status_code == 200
    assert 0 < cost.buffers <= MOST_BUFFERS
