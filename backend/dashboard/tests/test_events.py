"""The feed: live at its newest part, still further back, bounded in what it looks at."""

from __future__ import annotations

import re
import threading
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.test import Client

from jobs import services
from jobs.models import JobEvent
from jobs.selectors import event_feed
from jobs.tests.plans.cost import MOST_BUFFERS, measured
from jobs.tests.support import OTHER, Elsewhere, failed, owned_by, queued, running, sql, succeeded

EVENTS = "/events/"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def open_to_all(settings: Any) -> None:
    """As in development, whatever the environment says."""
    settings.DASHBOARD_ACCESS = "open"


def shown(client: Client, query: str = "", **headers: str) -> str:
    """The page's text, or its live part's with htmx's header."""
    answer = client.get(EVENTS + query, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def ids(page: str) -> list[int]:
    """The events of a page, in its order."""
    return [int(text) for text in re.findall(r'data-event="(\d+)"', page)]


def link(page: str, text: str) -> str:
    """Where the link with this text leads."""
    (address,) = re.findall(rf'href="([^"]*)"[^>]*>(?:<svg.*?</svg>)?\s*{text}', page)
    return unescape(address)


def test_the_newest_event_is_on_top_and_each_leads_to_its_job(client: Client) -> None:
    job = failed()
    page = shown(client)
    assert ids(page) == list(JobEvent.objects.order_by("-id").values_list("id", flat=True))
    assert page.count(f'data-href="/jobs/{job.id}/"') == 3
    assert "it broke" in page
    assert "demo.success" in page
    assert "attempt 1" in page


def test_renewals_that_follow_each_other_are_one_line(client: Client) -> None:
    first, second = running(), running(OTHER)
    for job in (first, second, first):
        services.renew_lease(**owned_by(job))
    page = shown(client)
    newest, *_, oldest = ids(page)[:3]
    assert "3 times, of 2 jobs" in page
    assert f'id="renewals-{oldest}"' in page
    # What was opened stays open while more are added: the line keeps its name.
    services.renew_lease(**owned_by(first))
    again = shown(client)
    assert "4 times" in again
    assert f'id="renewals-{oldest}"' in again
    assert newest in ids(again)
    services.report_progress(**owned_by(first), message="halfway")
    services.renew_lease(**owned_by(second))
    assert "5 times" not in shown(client)
    alone = shown(client, "?type=lease_renewed")
    assert len(ids(alone)) == 5
    assert "times" not in alone.split("<main")[1]


@pytest.mark.parametrize(
    ("query", "types"),
    [
        ("?type=failed", {"failed"}),
        ("?type=claimed", {"claimed"}),
        ("?type=created&worker=host", set()),
        ("?worker=HOST:2", {"claimed"}),
        ("?type=claimed&worker=host:1", {"claimed"}),
    ],
)
def test_filters_are_taken_together_and_stand_on_the_page(
    client: Client, query: str, types: set[str]
) -> None:
    failed()
    running(OTHER)
    page = shown(client, query)
    found = JobEvent.objects.filter(id__in=ids(page))
    assert set(found.values_list("type", flat=True)) == types
    assert page.count('class="chip"') == query.count("=")


def test_one_jobs_events_can_be_looked_at_alone(client: Client) -> None:
    job = failed()
    succeeded()
    page = shown(client, f"?job={job.id}")
    assert len(ids(page)) == 3
    assert page.count(f'data-href="/jobs/{job.id}/"') == 3
    assert "No event matches" in shown(client, f"?job={uuid4()}")


@pytest.mark.parametrize(
    "query",
    ["?type=x", "?job=x", "?size=51", "?before=x", "?before=99999999999999999999", "?worker=%00"],
)
def test_an_address_that_cannot_be_is_refused(client: Client, query: str) -> None:
    assert client.get(EVENTS + query).status_code == 400


def test_older_events_are_pages_that_stand_still(client: Client) -> None:
    for _ in range(120):
        queued()
    known = list(JobEvent.objects.order_by("-id").values_list("id", flat=True))
    newest = shown(client)
    assert "data-live" in newest
    assert ids(newest) == known[:50]
    older = shown(client, link(newest, "Older events"))
    assert ids(older) == known[50:100]
    assert "data-live" not in older
    assert "events.js" not in older
    queued()
    assert ids(shown(client, link(newest, "Older events"))) == known[50:100]
    oldest = shown(client, link(older, "Older events"))
    assert ids(oldest) == known[100:]
    assert 'rel="next"' not in oldest
    assert "data-live" in shown(client, link(oldest, "Back to the newest"))
    assert "This is where it began" in shown(client, f"?before={known[-1]}")
    assert len(ids(shown(client, "?size=100"))) == 100


def test_a_filter_without_an_index_looks_so_far_and_offers_to_look_further(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "_STRETCHES_OF_NEIGHBOURS", (4, 6))
    succeeded()
    for _ in range(15):
        queued()
    (wanted,) = JobEvent.objects.filter(type="succeeded").values_list("id", flat=True)
    page = shown(client, "?type=succeeded")
    assert "None among 10 events" in page
    further = shown(client, link(page, "Look further back"))
    assert ids(further) == [wanted]
    some = shown(client, "?worker=nobody")
    assert "Look further back" in some
    assert "Clear filters" in some


def test_the_feed_is_empty_before_anything_happened(client: Client) -> None:
    assert "Nothing has happened yet" in shown(client)
    assert "No event matches" in shown(client, "?type=failed")


def test_the_live_part_is_the_same_until_something_happens(client: Client) -> None:
    queued()
    poll = {"HX-Request": "true"}
    first = client.get(EVENTS, headers=poll)
    assert first.status_code == 200
    again = {**poll, "If-None-Match": first.headers["ETag"]}
    assert client.get(EVENTS, headers=again).status_code == 304
    queued()
    assert client.get(EVENTS, headers=again).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_poll_shows_an_event_whose_transaction_ended_late(client: Client) -> None:
    """It has a lower id than one that was shown before it became visible."""
    drawn, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            queued()
            drawn.set()
            assert go_on.wait(30)

    late = Elsewhere(slow)
    assert drawn.wait(30)
    queued()
    poll = {"HX-Request": "true"}
    before = client.get(EVENTS, headers=poll)
    go_on.set()
    late.result()
    after = client.get(EVENTS, headers={**poll, "If-None-Match": before.headers["ETag"]})
    known, found = ids(before.content.decode()), ids(after.content.decode())
    (missed,) = set(found) - set(known)
    assert missed < max(known)
    assert found == sorted(found, reverse=True)


def test_what_anybody_wrote_is_text(client: Client) -> None:
    job = running("<script>alert(1)</script>\u202e")
    services.report_progress(**owned_by(job), message="<img src=x onerror=alert(2)>\u202e")
    sql("UPDATE jobs_job SET type = %s", "<b>" + "t" * 117)
    page = shown(client, "?worker=%3Cscript")
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "<b>t" not in page
    assert "\u202e" not in page
    assert "&lt;img src=x onerror=alert(2)&gt;\\u202e" in page


def test_the_page_has_its_price(client: Client) -> None:
    sql(
        "INSERT INTO jobs_job (id, type, max_attempts) SELECT gen_random_uuid(), 'demo.success', 3"
        " FROM generate_series(1, %s)",
        7_000,
    )
    sql(
        "INSERT INTO jobs_jobevent (job_id, type, worker_id, message)"
        " SELECT id, (ARRAY['created', 'claimed', 'failed'])[n], 'host', repeat('m', 3000)"
        " FROM generate_series(1, 3) AS n, jobs_job"
    )
    sql("ANALYZE jobs_job, jobs_jobevent")
    for query in ("", "?type=created", "?worker=nobody", "?type=failed&worker=nobody"):
        client.get(EVENTS + query)
        with measured() as cost:
            assert client.get(f"{EVENTS}{query}{'&' if query else '?'}size=200").status_code == 200
        assert 0 < cost.buffers <= MOST_BUFFERS
