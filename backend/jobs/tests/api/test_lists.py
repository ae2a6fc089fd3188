"""The list of jobs and the feed of events: filters, pages, links."""

from __future__ import annotations

import base64
import uuid
from itertools import chain
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from jobs.lifecycle import EventType, Status
from jobs.models import Job, JobEvent, new_job_id
from jobs.tests.api.conftest import Post

pytestmark = pytest.mark.django_db

NOT_UTF_8 = "Must be UTF-8 text without NUL characters."
NOT_A_CURSOR = {"cursor": ["Not a cursor of this feed."]}


def make_jobs(count: int, **fields: Any) -> list[Job]:
    return Job.objects.bulk_create(
        [Job(**{"type": "a", "max_attempts": 3, **fields}) for _ in range(count)]
    )


def make_events(job: Job, count: int, event: EventType = EventType.CREATED) -> list[JobEvent]:
    return JobEvent.objects.bulk_create([JobEvent(job=job, type=event.value) for _ in range(count)])


def get(api: Client, address: str) -> Any:
    response = api.get(address)
    assert response.status_code == 200, response.content
    return response.json()


def walk(api: Client, address: str | None) -> list[dict[str, Any]]:
    """What all pages from `address` on show."""
    shown: list[dict[str, Any]] = []
    while address:
        page = get(api, address)
        shown.extend(page["results"])
        address = page["next"]
    return shown


def cursor(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return quote(base64.b64encode(raw).decode())


def test_an_empty_queue_is_an_empty_page(api: Client) -> None:
    assert get(api, "/api/jobs/") == {
        "count": 0,
        "count_is_estimate": False,
        "next": None,
        "previous": None,
        "results": [],
    }
    assert get(api, "/api/job-events/") == {"next": None, "previous": None, "results": []}


def test_jobs_come_newest_first(api: Client, post: Post) -> None:
    made = [post(type="a").json()["id"] for _ in range(3)]
    assert [job["id"] for job in walk(api, "/api/jobs/")] == made[::-1]


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        ("", 25),
        ("1", 1),
        ("007", 7),
        ("100", 100),
        ("101", 100),
        ("9" * 5000, 100),
        ("0", 25),
        ("000", 25),
        ("-1", 25),
        ("1.5", 25),
        ("abc", 25),
        ("%20 5", 25),
        ("%2B5", 25),
        ("1_0", 25),
        ("%D9%A3", 25),
    ],
)
def test_a_limit_that_is_no_positive_number_is_the_default(
    limit: str, shown: int, api: Client
) -> None:
    make_jobs(101)
    page = get(api, f"/api/jobs/?limit={limit}")
    assert len(page["results"]) == shown
    assert page["count"] == 101


@pytest.mark.parametrize(
    ("limit", "shown"), [("", 50), ("0", 50), ("x", 50), ("3", 3), ("999", 200)]
)
def test_the_feeds_limit_has_its_own_default_and_maximum(
    limit: str, shown: int, api: Client
) -> None:
    make_events(make_jobs(1)[0], 201)
    assert len(get(api, f"/api/job-events/?limit={limit}")["results"]) == shown


@pytest.mark.parametrize(
    "offset", ["-1", "abc", "1.5", "2147483648", "9" * 5000, "%00", "1e3", "%D9%A3", "+1"]
)
def test_an_offset_that_is_no_whole_number_in_range_is_refused(offset: str, api: Client) -> None:
    response = api.get(f"/api/jobs/?offset={offset}")
    assert response.status_code == 400
    assert list(response.json()) == ["offset"]


def test_an_offset_beyond_the_last_job_is_an_empty_page(api: Client) -> None:
    make_jobs(2)
    page = get(api, "/api/jobs/?offset=2147483647")
    assert (page["count"], page["results"], page["next"]) == (2, [], None)


def test_an_empty_value_counts_as_not_given(api: Client) -> None:
    make_events(make_jobs(1)[0], 1)
    assert get(api, "/api/jobs/?status=&type=&limit=&offset=")["count"] == 1
    assert len(get(api, "/api/job-events/?type=&job_id=&limit=&cursor=")["results"]) == 1


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("jobs/?status=failed&status=queued", "status"),
        ("jobs/?status=&status=queued", "status"),
        ("jobs/?type=a&type=a", "type"),
        ("jobs/?limit=1&limit=2", "limit"),
        ("jobs/?offset=1&offset=2", "offset"),
        ("jobs/?cursor=1&cursor=2", "cursor"),
        ("job-events/?type=failed&type=created", "type"),
        ("job-events/?job_id=1&job_id=2", "job_id"),
        ("job-events/?cursor=1&cursor=2", "cursor"),
    ],
)
def test_f99_a_parameter_given_twice_is_refused(address: str, name: str, api: Client) -> None:
    response = api.get(f"/api/{address}")
    assert response.status_code == 400
    assert response.json() == {name: ["Given more than once."]}


@pytest.mark.parametrize("path", ["jobs", "job-events"])
@pytest.mark.parametrize("text", ["%00", "demo%00", "%FF", "%ED%A0%80", "a%C3"])
@pytest.mark.parametrize("name", ["type", "status", "job_id", "limit", "anything"])
def test_f7_a_query_that_is_no_storable_text_is_refused(
    name: str, text: str, path: str, api: Client
) -> None:
    response = api.get(f"/api/{path}/?{name}={text}")
    assert response.status_code == 400
    assert response.json() == {name: [NOT_UTF_8]}


def test_f7_so_is_such_a_name(api: Client) -> None:
    response = api.get("/api/jobs/?a%00=1")
    assert response.status_code == 400
    assert "detail" in response.json()


@pytest.mark.parametrize("status", ["bogus", "Queued", "queued%20", "1"])
def test_f99_an_unknown_status_is_refused(status: str, api: Client) -> None:
    response = api.get(f"/api/jobs/?status={status}")
    assert response.status_code == 400
    assert list(response.json()) == ["status"]


@pytest.mark.parametrize("event", ["bogus", "Created", "running"])
def test_f99_an_unknown_event_type_is_refused(event: str, api: Client) -> None:
    response = api.get(f"/api/job-events/?type={event}")
    assert response.status_code == 400
    assert list(response.json()) == ["type"]


@pytest.mark.parametrize("status", list(Status))
def test_a_status_shows_the_jobs_in_it(status: Status, api: Client) -> None:
    now = timezone.now()
    make_jobs(1)
    make_jobs(1, status="running", locked_by="w", locked_until=now)
    make_jobs(1, status="succeeded", finished_at=now)
    make_jobs(1, status="failed", finished_at=now)
    shown = get(api, f"/api/jobs/?status={status}")
    assert shown["count"] == 1
    assert [job["status"] for job in shown["results"]] == [status]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("demo", {"demo.a_b", "Demo-x"}),
        ("DEMO", {"demo.a_b", "Demo-x"}),
        ("mo.a", {"demo.a_b"}),
        ("%", set()),
        ("_", {"demo.a_b"}),
        ("o_a", set()),
        (".", {"demo.a_b"}),
        ("\\", set()),
        ("'", set()),
        ('"; DROP TABLE jobs_job; --', set()),
        ("d" * 10_000, set()),
        ("é", set()),
        (" demo", set()),
    ],
)
def test_f99_a_type_is_searched_for_as_literal_text(
    text: str, shown: set[str], api: Client
) -> None:
    for job_type in ("demo.a_b", "Demo-x", "mail"):
        make_jobs(1, type=job_type)
    page = get(api, f"/api/jobs/?type={quote(text)}")
    assert {job["type"] for job in page["results"]} == shown
    assert page["count"] == len(shown)


def test_f95_pages_of_jobs_made_at_once_show_each_job_once(api: Client) -> None:
    made = {str(job.pk) for job in make_jobs(300, created_at=timezone.now())}
    shown = [job["id"] for job in walk(api, "/api/jobs/?limit=25")]
    assert len(shown) == 300
    assert set(shown) == made


def test_links_keep_the_filters_and_the_host(api: Client) -> None:
    make_jobs(3)
    address = "/api/jobs/?limit=1&offset=1&status=queued&type=a"
    page = api.get(address, headers={"host": "localhost:8123"}).json()
    for link, offset in ((page["next"], ["2"]), (page["previous"], None)):
        parts = urlsplit(link)
        assert (parts.scheme, parts.netloc, parts.path) == ("http", "localhost:8123", "/api/jobs/")
        query = parse_qs(parts.query)
        assert query.get("offset") == offset
        assert (query["limit"], query["status"], query["type"]) == (["1"], ["queued"], ["a"])


def test_a_host_that_is_not_ours_is_refused(api: Client) -> None:
    response = api.get("/api/jobs/", headers={"host": "evil.test"})
    assert response.status_code == 400


def test_the_feed_is_walked_both_ways(api: Client) -> None:
    made = [event.pk for event in make_events(make_jobs(1)[0], 23)][::-1]
    forwards, address = [], "/api/job-events/?limit=5"
    while address:
        page = get(api, address)
        forwards.append([event["id"] for event in page["results"]])
        last, address = page, page["next"]
    assert list(chain.from_iterable(forwards)) == made
    backwards, address = [forwards[-1]], last["previous"]
    while address:
        page = get(api, address)
        backwards.append([event["id"] for event in page["results"]])
        address = page["previous"]
    assert backwards[::-1] == forwards


def test_events_that_arrive_while_paging_shift_nothing(api: Client) -> None:
    job = make_jobs(1)[0]
    made = [event.pk for event in make_events(job, 10)][::-1]
    first = get(api, "/api/job-events/?limit=5")
    make_events(job, 7)
    assert [event["id"] for event in walk(api, first["next"])] == made[5:]


def test_the_feeds_filters_narrow_it(api: Client) -> None:
    one, other = make_jobs(2)
    make_events(one, 2)
    make_events(one, 1, EventType.FAILED)
    make_events(other, 3, EventType.FAILED)
    assert len(get(api, "/api/job-events/?type=failed")["results"]) == 4
    assert len(get(api, f"/api/job-events/?job_id={one.pk}")["results"]) == 3
    assert len(get(api, f"/api/job-events/?job_id={one.pk}&type=failed")["results"]) == 1


def test_an_event_has_its_shape(api: Client, post: Post) -> None:
    job = post(type="a").json()
    (event,) = get(api, "/api/job-events/")["results"]
    assert list(event) == [
        "id",
        "job",
        "type",
        "attempt",
        "worker_id",
        "message",
        "data",
        "created_at",
    ]
    assert (event["job"], event["type"], event["attempt"]) == (job["id"], "created", 0)
    assert (event["worker_id"], event["message"]) == (None, "Job created")
    assert event["data"]["type"] == "a"
    assert event["created_at"] == job["created_at"]


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        "%00",
        "=",
        "%F0%9F%98%80",
        cursor("p=abc"),
        cursor("p=-1"),
        cursor("p=1.0"),
        cursor("p="),
        cursor("p=9223372036854775808"),
        cursor("p=" + "9" * 5000),
        cursor("p=1&p=2"),
        cursor("p=%00"),
        cursor("p=\u0663"),
        cursor("r=2"),
        cursor("r=x"),
        cursor("o=-1"),
        cursor("o=x"),
        cursor("o=" + "9" * 5000),
        cursor("x=1"),
        cursor("nonsense"),
        cursor(b"\xff\xfe"),
        cursor("p=1") + "!",
    ],
)
def test_f91_a_cursor_we_never_issued_is_refused(text: str, api: Client) -> None:
    make_events(make_jobs(1)[0], 3)
    response = api.get(f"/api/job-events/?cursor={text}")
    assert response.status_code == 400
    assert list(response.json()) == ["cursor"]


@pytest.mark.parametrize(
    "text", ["o=99999999&p=3", "o=99999999&p=3&r=1", "o=1000", "r=1&o=1000", "o=" + "9" * 30]
)
def test_f91_a_cursor_to_where_nothing_is_shows_an_empty_page(text: str, api: Client) -> None:
    make_events(make_jobs(1)[0], 5)
    page = get(api, f"/api/job-events/?cursor={cursor(text)}")
    assert page["results"] == []


@pytest.mark.parametrize(
    "text", ["p=9223372036854775807", "p=0", "p=0&r=1", "r=1", "o=1", "r=1&o=1"]
)
def test_f91_every_page_that_is_shown_has_links_that_work(text: str, api: Client) -> None:
    make_events(make_jobs(1)[0], 5)
    page = get(api, f"/api/job-events/?limit=2&cursor={cursor(text)}")
    for link in (page["next"], page["previous"]):
        if link is not None:
            get(api, link)


@pytest.mark.parametrize("direction", ["next", "previous"])
def test_f91_a_cursor_whose_events_vanished_shows_an_empty_page(
    direction: str, api: Client
) -> None:
    make_events(make_jobs(1)[0], 9)
    page = get(api, "/api/job-events/?limit=3")
    middle = get(api, page["next"])
    JobEvent.objects.all().delete()
    page = get(api, middle[direction])
    assert page["results"] == []
    for link in (page["next"], page["previous"]):
        if link is not None:
            assert get(api, link)["results"] == []


@pytest.mark.django_db(transaction=True)
def test_f93_an_event_committed_late_shows_when_the_page_is_read_again(api: Client) -> None:
    job = make_jobs(1)[0]
    there = connection.get_connection_params()
    there = {key: there[key] for key in ("dbname", "host", "port", "user", "password")}
    insert = (
        "INSERT INTO jobs_jobevent (job_id, type, created_at) VALUES (%s, 'created', now())"
        " RETURNING id"
    )
    with psycopg.connect(**there) as slow, psycopg.connect(**there) as fast:
        row = slow.execute(insert, [job.pk]).fetchone()
        assert row is not None
        fast.execute(insert, [job.pk])
        fast.commit()
        newest = [event["id"] for event in get(api, "/api/job-events/")["results"]]
        slow.commit()
        again = [event["id"] for event in get(api, "/api/job-events/")["results"]]
    late = row[0]
    assert late < newest[0]
    assert again == [newest[0], late]


def spellings(job_id: uuid.UUID) -> list[str]:
    text = str(job_id)
    known = [text, job_id.hex, f"{{{text}}}", f"urn:uuid:{text}"]
    return [*known, *map(str.upper, known)]


def test_f97_every_spelling_of_an_id_finds_the_same_events(api: Client) -> None:
    job = make_jobs(1)[0]
    make_events(job, 2)
    make_events(make_jobs(1)[0], 1)
    for text in spellings(job.pk):
        assert len(get(api, f"/api/job-events/?job_id={quote(text)}")["results"]) == 2
        assert get(api, f"/api/jobs/{quote(text)}/")["id"] == str(job.pk)


@pytest.mark.parametrize("text", ["abc", "123", "g" * 32, "0123456-89ab", "x" * 36, "%20", "é"])
def test_f97_what_is_no_uuid_is_refused_in_the_query(text: str, api: Client) -> None:
    response = api.get(f"/api/job-events/?job_id={text}")
    assert response.status_code == 400
    assert response.json() == {"job_id": ["Must be a UUID."]}


def test_what_only_python_reads_as_an_id_is_none(api: Client) -> None:
    (job,) = make_jobs(1)
    digits = job.pk.hex
    for text in (f"{{{{{digits}", f"uuid:urn:{job.pk}", "-".join(digits), f"{digits}}}"):
        assert uuid.UUID(text) == job.pk
        response = api.get(f"/api/job-events/?job_id={quote(text)}")
        assert (response.status_code, response.json()) == (400, {"job_id": ["Must be a UUID."]})
        for call in ("", "events/"):
            assert api.get(f"/api/jobs/{quote(text)}/{call}").status_code == 404
        assert api.post(f"/api/jobs/{quote(text)}/retry/").status_code == 404


def test_f97_an_unknown_id_has_no_events(api: Client) -> None:
    assert get(api, f"/api/job-events/?job_id={new_job_id()}")["results"] == []


@pytest.mark.parametrize("path", ["jobs", "job-events"])
def test_a_page_costs_the_same_statements_whatever_its_size(
    path: str, api: Client, django_assert_num_queries: Any
) -> None:
    make_events(make_jobs(30)[0], 30)
    # Of the list: to count, to find, to fetch; the rest frames the settings they run with.
    with django_assert_num_queries(8 if path == "jobs" else 1):
        assert len(get(api, f"/api/{path}/?limit=30")["results"]) == 30
