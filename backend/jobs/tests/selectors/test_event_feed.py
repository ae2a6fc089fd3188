"""The feed in both directions: what is found, how far was looked, what that costs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from jobs import selectors, services
from jobs.lifecycle import EventType
from jobs.models import Job, JobEvent
from jobs.selectors import EventPage, event_feed
from jobs.tests.plans.cost import measured
from jobs.tests.support import OTHER, Elsewhere, owned_by, queued, running, sql, succeeded

pytestmark = pytest.mark.django_db

READERS: list[Callable[..., EventPage]] = [selectors.events_before, selectors.events_after]


def ids(page: EventPage) -> list[int]:
    """The events' ids in the page's order."""
    return [event.pk for event in page.events]


def all_ids() -> list[int]:
    """Every event's id, oldest first."""
    return list(JobEvent.objects.order_by("id").values_list("id", flat=True))


def walked(reader: Callable[..., EventPage], start: int | None, **wanted: object) -> list[int]:
    """All that is found by going on from page to page."""
    found: list[int] = []
    cursor = start
    while True:
        page = reader(cursor, **wanted)
        found += ids(page)
        if not page.has_more:
            return found
        assert page.next_id is not None
        assert page.next_id != cursor
        cursor = page.next_id


@pytest.mark.parametrize("wanted", [{}, {"type": EventType.CLAIMED}, {"worker_contains": "HOST:2"}])
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_going_on_from_page_to_page_meets_each_event_once(
    wanted: dict[str, object], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "_STRETCHES_OF_NEIGHBOURS", (2, 1))
    for worker in ("host:1:thread-0:0a0b0c0d", OTHER, OTHER):
        running(worker)
    succeeded()
    matching = JobEvent.objects.order_by("id")
    if "type" in wanted:
        matching = matching.filter(type="claimed")
    if "worker_contains" in wanted:
        matching = matching.filter(worker_id=OTHER)
    expected = list(matching.values_list("id", flat=True))
    assert expected
    assert walked(selectors.events_after, 0, limit=limit, **wanted) == expected
    assert walked(selectors.events_before, None, limit=limit, **wanted) == expected[::-1]


def test_the_newest_come_first_or_what_is_newer_oldest_first() -> None:
    for _ in range(3):
        queued()
    first, second, third = all_ids()
    assert ids(selectors.events_before(limit=2)) == [third, second]
    assert ids(selectors.events_before(third, limit=2)) == [second, first]
    assert ids(selectors.events_after(first, limit=1)) == [second]
    assert ids(selectors.events_after(third)) == []


@pytest.mark.parametrize("reader", READERS)
def test_filters_are_taken_together(reader: Callable[..., EventPage]) -> None:
    job = running()
    services.renew_lease(**owned_by(job))
    running(OTHER)
    (claimed,) = JobEvent.objects.filter(job_id=job.id, type="claimed")
    found = reader(type=EventType.CLAIMED, job_id=job.id, worker_contains="thread-0")
    assert ids(found) == [claimed.pk]
    assert ids(reader(type=EventType.CLAIMED, job_id=job.id, worker_contains="%")) == []
    assert [event.type for event in reader(type=EventType.LEASE_RENEWED).events] == [
        "lease_renewed"
    ]
    assert ids(reader(job_id=uuid4())) == []


def test_looking_ends_after_so_many_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "_STRETCHES_OF_NEIGHBOURS", (2, 3))
    for _ in range(7):
        queued()
    known = all_ids()
    page = selectors.events_before(type=EventType.SUCCEEDED)
    assert (page.events, page.is_cut, page.has_more, page.events_read) == ((), True, True, 5)
    assert page.next_id == known[2]
    assert page.looked_to == JobEvent.objects.get(pk=known[2]).created_at
    further = selectors.events_before(page.next_id, type=EventType.SUCCEEDED)
    assert (further.is_cut, further.has_more, further.events_read) == (False, False, 2)


def test_a_page_of_the_feed_has_short_messages_and_leaves_the_data_where_it_is() -> None:
    job = running()
    services.report_progress(**owned_by(job), message="m" * 5_000, data={"n": 1})
    (newest,) = selectors.events_before(limit=1).events
    assert len(newest.message) == 300
    assert "data" in newest.get_deferred_fields()
    (whole,) = selectors.events_after(newest.pk - 1, limit=1).events
    assert (len(whole.message), whole.data) == (5_000, {"n": 1})
    assert whole.get_deferred_fields() == set()


@pytest.mark.django_db(transaction=True)
def test_an_event_that_becomes_visible_late_is_in_the_newest_part_read_again() -> None:
    """Its transaction drew its id before others did, and ended after them."""
    drawn, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            queued()
            drawn.set()
            assert go_on.wait(30)

    late = Elsewhere(slow)
    assert drawn.wait(30)
    queued()
    shown = ids(selectors.events_before(limit=10))
    go_on.set()
    late.result()
    again = ids(selectors.events_before(limit=10))
    (missed,) = set(again) - set(shown)
    assert missed < shown[0]
    # Whoever asks for what is newer alone never sees it; from a little before, it does.
    assert missed not in ids(selectors.events_after(shown[0]))
    assert missed in ids(selectors.events_after(shown[0] - 10))


FILTERS: list[dict[str, Any]] = [
    {},
    *({"type": event} for event in EventType),
    {"worker_contains": "nobody"},
    {"worker_contains": "nobody", "type": EventType.FAILED},
    {"worker_contains": "nobody", "type": EventType.SUCCEEDED},
]


def test_whatever_is_asked_for_so_many_pages_are_read() -> None:
    sql(
        "INSERT INTO jobs_job (id, type, max_attempts, created_at) SELECT gen_random_uuid(),"
        " 'demo.success', 3, statement_timestamp() + g * interval '1 ms'"
        " FROM generate_series(1, 7000) AS g"
    )
    sql(
        "INSERT INTO jobs_jobevent (job_id, type, worker_id, message)"
        " SELECT id, (ARRAY['created', 'claimed', 'progress', 'lease_renewed', 'failed'])[n],"
        " 'host:1:thread-0:0a0b0c0d', repeat('m', 100) FROM generate_series(1, 5) AS n, jobs_job"
    )
    sql("ANALYZE jobs_job, jobs_jobevent")
    (job_id,) = sql("SELECT id FROM jobs_job LIMIT 1")[0]
    of_the_job: list[dict[str, Any]] = [
        {"job_id": job_id},
        {"job_id": job_id, "worker_contains": "nobody"},
    ]
    for reader in READERS:
        for wanted in [*FILTERS, *of_the_job]:
            with measured() as cost:
                page = reader(limit=200, **wanted)
            assert 0 < cost.buffers <= 1_500
            assert page.events_read <= event_feed.MAX_EVENTS_LOOKED_AT


def test_a_jobs_events_are_found_by_the_job_whatever_the_statistics_say() -> None:
    # Without the pages that other tests left: an empty table is read as fast as an index.
    sql("TRUNCATE jobs_job, jobs_jobevent")
    old, busy = running(), running()

    def renew(job: Job, times: int) -> None:
        sql(
            "INSERT INTO jobs_jobevent (job_id, type) SELECT %s, 'lease_renewed'"
            " FROM generate_series(1, %s)",
            job.pk,
            times,
        )

    renew(old, 1_500)
    sql("ANALYZE jobs_jobevent")
    renew(busy, 20_000)
    middle = JobEvent.objects.filter(job_id=old.pk).order_by("id")[750].pk
    for read in (
        lambda: selectors.timeline(old.pk),
        lambda: selectors.events_before(job_id=old.pk),
        lambda: selectors.events_before(middle, job_id=old.pk),
        lambda: selectors.events_after(job_id=old.pk),
        lambda: selectors.events_after(middle, job_id=old.pk),
    ):
        with measured() as cost:
            read()
        assert cost.buffers < 60


def test_a_jobs_events_are_found_in_both_directions() -> None:
    job, other = queued(), queued()
    for moved in (job, other):
        sql("INSERT INTO jobs_jobevent (job_id, type) SELECT %s, 'progress'", moved.pk)
    own = [event.pk for event in JobEvent.objects.filter(job_id=job.pk).order_by("id")]
    assert walked(selectors.events_after, 0, job_id=job.pk, limit=1) == own
    assert walked(selectors.events_before, None, job_id=job.pk, limit=1) == own[::-1]
