"""Lists that are longer than anybody counts, with the bounds moved down to a few rows."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from jobs.lifecycle import EventType
from jobs.models import Job
from jobs.selectors import counting, event_feed, job_pages, job_walk, queue_stats
from jobs.tests.api.test_lists import get, make_events, make_jobs, walk
from jobs.tests.support import sql

pytestmark = pytest.mark.django_db


def jobs_of_every_kind() -> list[Job]:
    """Twelve of each status, mixed in the list, a third of another type, half at one time."""
    now = timezone.now()
    ended: dict[str, Any] = {"finished_at": now}
    running = {"locked_by": "w", "locked_until": now}
    kinds: list[dict[str, Any]] = [
        {"status": "queued"},
        {"status": "running", **running},
        {"status": "succeeded", **ended},
        {"status": "failed", **ended},
    ]
    made = []
    for number in range(12):
        for kind in kinds:
            at = {} if number < 6 else {"created_at": now}
            made += make_jobs(1, type="rare" if number % 3 == 0 else "a", **kind, **at)
    return made


@pytest.fixture
def low_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows are more than is counted, passed over or looked at."""
    monkeypatch.setattr(counting, "EXACT_COUNT", 7)
    monkeypatch.setattr(job_pages, "MOST_PASSED_OVER", 7)
    monkeypatch.setattr(job_walk, "MOST_LOOKED_AT", 11)
    monkeypatch.setattr(job_walk, "_FIRST_PART", 4)
    monkeypatch.setattr(job_walk, "_LARGEST_PART_OF_SCATTERED", 4)


QUERIES = [
    "",
    *(f"status={status}" for status in ("queued", "running", "succeeded", "failed")),
    "type=RAR",
    *(f"type=rar&status={status}" for status in ("queued", "running", "succeeded", "failed")),
]


@pytest.mark.parametrize("query", QUERIES)
def test_following_next_shows_every_job_once_however_little_is_read_at_once(
    query: str, api: Client, low_bounds: None
) -> None:
    jobs_of_every_kind()
    expected = Job.objects.order_by("-created_at", "-id")
    for part in filter(None, query.split("&")):
        name, value = part.split("=")
        expected = expected.filter(**{"type": "rare"} if name == "type" else {name: value})
    shown = walk(api, f"/api/jobs/?limit=3&{query}")
    assert [job["id"] for job in shown] == [str(job.pk) for job in expected]


@pytest.mark.parametrize("query", QUERIES)
def test_a_count_is_exact_up_to_the_bound_and_flagged_beyond(
    query: str, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs_of_every_kind()
    jobs = 48 // (4 if "status" in query else 1) // (3 if "type" in query else 1)
    for bound in (jobs, jobs - 1):
        monkeypatch.setattr(counting, "EXACT_COUNT", bound)
        page = get(api, f"/api/jobs/?limit=2&{query}")
        assert page["count_is_estimate"] == (bound < jobs)
        assert page["count"] >= jobs
        assert page["count"] == jobs or page["count_is_estimate"]
        assert len(page["results"]) == 2


def test_an_estimate_is_near_once_the_table_was_analysed(api: Client, low_bounds: None) -> None:
    make_jobs(400)
    make_jobs(100, type="other")
    sql("ANALYZE jobs_job")
    page = get(api, "/api/jobs/")
    assert (page["count"], page["count_is_estimate"]) == (500, True)
    page = get(api, "/api/jobs/?type=oth")
    assert 80 <= page["count"] <= 120
    assert page["count_is_estimate"]


@pytest.mark.parametrize("query", ["", "&status=failed", "&status=queued", "&type=a"])
def test_an_offset_that_passes_over_too_many_jobs_is_refused_with_a_way_out(
    query: str, api: Client, low_bounds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_walk, "MOST_LOOKED_AT", 100)
    make_jobs(20)
    make_jobs(20, status="failed", finished_at=timezone.now())
    assert len(get(api, f"/api/jobs/?offset=7&limit=2{query}")["results"]) == 2
    for offset in (8, 2_147_483_647):
        response = api.get(f"/api/jobs/?offset={offset}{query}")
        assert response.status_code == 400
        (reason,) = response.json()["offset"]
        assert "follow `next`" in reason


@pytest.mark.parametrize("query", ["", "&status=failed", "&status=running", "&type=a"])
def test_an_offset_past_the_end_of_a_list_that_was_counted_is_an_empty_page(
    query: str, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "MOST_PASSED_OVER", 1)
    make_jobs(3)
    page = get(api, f"/api/jobs/?offset=2147483647{query}")
    assert (page["results"], page["next"], page["count_is_estimate"]) == ([], None, False)


def test_a_search_that_ends_early_says_so_and_leads_on(api: Client, low_bounds: None) -> None:
    make_jobs(30)
    page = get(api, "/api/jobs/?type=nothing")
    assert (page["results"], page["count_is_estimate"]) == ([], True)
    addresses = 1
    while page["next"]:
        addresses += 1
        page = get(api, page["next"])
        assert page["results"] == []
    # Eleven of thirty each time.
    assert addresses == 3


def test_a_search_ends_when_its_time_is_up(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_walk, "_FIRST_PART", 4)
    monkeypatch.setattr(job_walk, "MOST_SECONDS", 0.0)
    make_jobs(30)
    page = get(api, "/api/jobs/?type=nothing")
    assert page["count_is_estimate"]
    assert page["next"]
    assert get(api, "/api/jobs/?limit=3&type=A")["results"]


# A place with an offset that Python reads and PostgreSQL does not.
FAR_EAST = urlsafe_b64encode(f"2031-01-02T03:04:05+23:59 {UUID(int=1)}".encode()).decode()


@pytest.mark.parametrize("text", ["x", "%00", "AAAA", quote("é"), "A" * 300, FAR_EAST])
def test_a_place_in_the_list_that_we_never_named_is_refused(text: str, api: Client) -> None:
    response = api.get(f"/api/jobs/?cursor={text}")
    assert response.status_code == 400
    assert list(response.json()) == ["cursor"]


def test_successes_are_counted_up_to_a_bound_and_the_other_statuses_always(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs_of_every_kind()
    each = {"queued": 12, "running": 12, "succeeded": 12, "failed": 12}
    monkeypatch.setattr(queue_stats, "MOST_SUCCEEDED", 12)
    stats = get(api, "/api/jobs/stats/")
    assert (stats["total"], stats["by_status"]) == (48, each)
    assert not stats["total_is_estimate"]
    assert not stats["succeeded_is_estimate"]

    monkeypatch.setattr(queue_stats, "MOST_SUCCEEDED", 11)
    sql("ANALYZE jobs_job")
    stats = get(api, "/api/jobs/stats/")
    assert stats["by_status"] == each
    assert stats["total_is_estimate"]
    assert stats["succeeded_is_estimate"]

    # The statistics know of none of these, and are no reason to tell of fewer than were counted.
    make_jobs(200, status="succeeded", finished_at=timezone.now())
    monkeypatch.setattr(queue_stats, "MOST_SUCCEEDED", 199)
    stats = get(api, "/api/jobs/stats/")
    assert stats["total"] == sum(stats["by_status"].values())
    assert stats["by_status"]["succeeded"] >= 200
    assert (stats["by_status"]["queued"], stats["succeeded_is_estimate"]) == (12, True)


@pytest.mark.parametrize("of_job", [False, True])
def test_a_type_far_down_the_feed_is_found_by_following_the_links(
    of_job: bool, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "_STRETCHES_OF_NEIGHBOURS", (5,))
    monkeypatch.setattr(event_feed, "_STRETCHES_OF_SCATTERED", (5,))
    job = make_jobs(1)[0]
    old = make_events(job, 2, EventType.SUCCEEDED)
    make_events(job, 20)
    new = make_events(job, 1, EventType.SUCCEEDED)
    address = f"/api/job-events/?type=succeeded&{f'job_id={job.pk}' if of_job else ''}"
    page = get(api, address)
    assert [event["id"] for event in page["results"]] == [new[0].pk]
    shown = [event["id"] for event in walk(api, address)]
    assert shown == [new[0].pk, old[1].pk, old[0].pk]
    while page["next"]:
        page = get(api, page["next"])
    back = [event["id"] for event in page["results"]]
    while page["previous"]:
        page = get(api, page["previous"])
        back = [event["id"] for event in page["results"]] + back
    assert back == shown
