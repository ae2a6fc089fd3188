"""The API beyond the contract: figures, types, groups of failures, the retry of many."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from jobs import bulk_retry, memo, selectors, services
from jobs.insight import views
from jobs.models import Job, JobEvent
from jobs.registry import job_types
from jobs.selectors import job_cursor
from jobs.selectors.job_filter import Cursor
from jobs.tests.support import event_types, failed, queued, running, succeeded

pytestmark = pytest.mark.django_db

WINDOWED = ("timeseries", "types")
NOBODY = {"queued": 0, "running": 0, "succeeded": 0, "failed": 0, "missing": 0}


def get(api: Client, address: str) -> Any:
    response = api.get(f"/api/{address}")
    assert response.status_code == 200, response.content
    return response.json()


def retry(api: Client, expected: int = 200, /, **body: Any) -> Any:
    """POST /api/jobs/retry/, and what it answers."""
    text = json.dumps(body, default=str)
    response = api.post("/api/jobs/retry/", text, content_type="application/json")
    assert response.status_code == expected, response.content
    return response.json()


@pytest.mark.parametrize(("window", "buckets", "seconds"), [("1h", 60, 60), ("24h", 72, 1200)])
def test_a_timeseries_has_what_happened_in_equal_buckets(
    window: str, buckets: int, seconds: int, api: Client
) -> None:
    succeeded()
    failed()
    series = get(api, f"jobs/timeseries/?window={window}")
    assert (series["window"], series["bucket_seconds"]) == (window, seconds)
    assert len(series["buckets"]) == buckets
    assert (series["succeeded"], series["failed"], series["retried"]) == (1, 1, 0)
    assert sum(bucket["succeeded"] for bucket in series["buckets"][-2:]) == 1
    assert series["run_p95"] >= series["run_p50"] >= 0
    assert (series["is_estimate"], series["attempts_are_all"]) == (False, True)
    assert series["buckets"][0]["start"] == series["since"]
    assert series["buckets"][0]["wait_p50"] is None
    assert "types" not in series


def test_an_hour_is_the_window_where_none_is_named(api: Client) -> None:
    for name in WINDOWED:
        assert get(api, f"jobs/{name}/?window=")["window"] == "1h"


@pytest.mark.parametrize("name", WINDOWED)
@pytest.mark.parametrize(
    "query", ["window=2h", "window=1H", "window=%00", "window=1h&window=1h", "window=1h%20"]
)
def test_a_window_there_is_not_is_refused(name: str, query: str, api: Client) -> None:
    response = api.get(f"/api/jobs/{name}/?{query}")
    assert response.status_code == 400
    assert list(response.json()) == ["window"]


def test_types_are_those_registered_and_those_seen(api: Client) -> None:
    succeeded(type="elsewhere.made")
    failed(type="demo.fail")
    answer = get(api, "jobs/types/?window=6h")
    types = {each["type"]: each for each in answer["types"]}
    assert list(types) == sorted([*job_types(), "elsewhere.made"])
    idle = types["demo.success"]
    assert (idle["finished"], idle["failed_share"], idle["per_minute"]) == (0, None, 0)
    assert idle["description"].startswith("Sleeps `sleep_seconds`")
    assert idle["spark"] == [0] * 24
    other = types["elsewhere.made"]
    assert (other["is_registered"], other["description"]) == (False, "")
    assert (other["finished"], other["failed_share"]) == (1, 0)
    assert sum(other["spark"][-2:]) == 1
    assert (types["demo.fail"]["is_registered"], types["demo.fail"]["failed_share"]) == (True, 1)
    assert "buckets" not in answer


def test_failures_come_in_groups_with_a_sample_of_each(api: Client) -> None:
    jobs = [failed(type="demo.fail"), failed(type="demo.fail"), failed(type="mail")]
    answer = get(api, "jobs/failures/")
    assert (answer["read"], answer["is_cut"], answer["groups_left_out"]) == (3, False, 0)
    assert [(group["type"], group["count"]) for group in answer["groups"]] == [
        ("demo.fail", 2),
        ("mail", 1),
    ]
    assert answer["groups"][0]["sample_id"] == str(jobs[1].pk)
    assert answer["groups"][0]["sample_error"] == "it broke"
    assert sum(answer["groups"][0]["per_bucket"]) == 2


def test_failures_are_narrowed_by_type_and_time(api: Client) -> None:
    failed(type="demo.fail")
    failed(type="mail")
    soon = (timezone.now() + timedelta(hours=1)).isoformat()
    assert [group["type"] for group in get(api, "jobs/failures/?type=MA")["groups"]] == ["mail"]
    assert get(api, f"jobs/failures/?since={quote(soon)}")["groups"] == []
    assert get(api, "jobs/failures/?since=2026-01-01T00:00:00Z")["read"] == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("type", "x" * 501),
        ("type", "%00"),
        ("since", "yesterday"),
        ("since", "0001-01-01T00:00:00%2B14:00"),
        ("since", "1969-12-31T00:00:00Z"),
        ("since", "2026-01-01T00:00:00+03:30"),
    ],
)
def test_failures_refuse_what_cannot_be_looked_for(name: str, value: str, api: Client) -> None:
    response = api.get(f"/api/jobs/failures/?{name}={value}")
    assert response.status_code == 400
    assert list(response.json()) == [name]


def test_some_jobs_are_retried_and_the_others_are_named(api: Client) -> None:
    good, other, waits, unknown = failed(), failed(), queued(), uuid4()
    answer = retry(api, ids=[good.pk, other.pk.hex.upper(), waits.pk, unknown, good.pk])
    assert answer == {
        "dry_run": False,
        "as_of": None,
        "matched": 4,
        "retried": 2,
        "skipped": {**NOBODY, "queued": 1, "missing": 1},
        "further": None,
        "not_retried": [str(waits.pk), str(unknown)],
    }
    assert event_types(good.pk)[-1] == event_types(other.pk)[-1] == "manual_retry"
    assert event_types(waits.pk) == ["created"]


def test_a_job_that_failed_after_the_cut_off_is_left_alone(api: Client) -> None:
    before = timezone.now() - timedelta(hours=1)
    job = failed()
    assert retry(api, ids=[job.pk], as_of=before.isoformat())["skipped"]["failed"] == 1
    assert retry(api, filter={}, as_of=before.isoformat())["matched"] == 0
    job.refresh_from_db()
    assert job.status == "failed"


@pytest.mark.django_db(transaction=True)
def test_all_that_match_are_counted_first_and_then_retried(api: Client) -> None:
    mails = [failed(type="mail.send"), failed(type="mail.digest")]
    other, runs = failed(type="report"), running(type="mail.send")
    ask = retry(api, filter={"type": "MAIL."}, dry_run=True)
    assert (ask["dry_run"], ask["matched"], ask["retried"], ask["further"]) == (True, 2, 0, None)
    assert Job.objects.filter(status="failed").count() == 3
    late = failed(type="mail.late")
    done = retry(api, filter={"type": "MAIL."}, as_of=ask["as_of"])
    assert (done["matched"], done["retried"], done["skipped"]) == (2, 2, NOBODY)
    assert done["as_of"] == ask["as_of"]
    assert {job.status for job in Job.objects.filter(pk__in=[job.pk for job in mails])} == {
        "queued"
    }
    left = Job.objects.exclude(pk__in=[job.pk for job in mails])
    assert {job.pk: job.status for job in left} == {
        other.pk: "failed",
        runs.pk: "running",
        late.pk: "failed",
    }


@pytest.mark.django_db(transaction=True)
def test_a_step_says_where_the_next_one_goes_on(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        failed()
    monkeypatch.setattr(views, "MAX_SECONDS", 0)
    monkeypatch.setattr(views, "COUNTED_AT_ONCE", 2)
    monkeypatch.setattr(services, "MAX_RETRIES_AT_ONCE", 2)
    for options, name in (({"dry_run": True}, "matched"), ({}, "retried")):
        answer = retry(api, filter={}, **options)
        counts = [answer[name]]
        while answer["further"]:
            answer = retry(
                api, filter={}, as_of=answer["as_of"], after=answer["further"], **options
            )
            counts.append(answer[name])
        assert counts == [2, 2, 1]
    assert not Job.objects.filter(status="failed").exists()


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({}, 2),
        ({"type_is": "mail"}, 1),
        ({"type_is": "mai"}, 0),
        ({"priority": 32_767}, 2),
        ({"priority": 1}, 0),
        ({"error": "BROKE"}, 2),
        ({"error_group": "it broke"}, 2),
        ({"error_group": "it"}, 0),
        ({"created_after": "2026-01-01T00:00:00Z"}, 2),
        ({"created_before": "2026-01-01T00:00:00Z"}, 0),
    ],
)
def test_each_part_of_a_filter_narrows_it(wanted: dict[str, Any], count: int, api: Client) -> None:
    failed(type="mail")
    failed(type="mail.x")
    assert retry(api, filter=wanted, dry_run=True)["matched"] == count


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "non_field_errors"),
        ({"ids": [], "filter": {}}, "ids"),
        ({"ids": [uuid4()], "filter": {}}, "non_field_errors"),
        ({"ids": []}, "ids"),
        ({"ids": "abc"}, "ids"),
        ({"ids": None}, "ids"),
        ({"ids": [uuid4()] * 501}, "ids"),
        ({"ids": [str(uuid4()), "abc"]}, "ids"),
        ({"ids": [1]}, "ids"),
        ({"ids": [[]]}, "ids"),
        ({"ids": [uuid4()], "dry_run": True}, "dry_run"),
        ({"ids": [uuid4()], "after": "eA=="}, "after"),
        ({"ids": [uuid4()], "as_of": "soon"}, "as_of"),
        ({"filter": None}, "filter"),
        ({"filter": []}, "filter"),
        ({"filter": {"tpye": "mail"}}, "filter"),
        ({"filter": {"status": "queued"}}, "filter"),
        ({"filter": {"type": 1}}, "filter"),
        ({"filter": {"type": "x" * 501}}, "filter"),
        ({"filter": {"priority": True}}, "filter"),
        ({"filter": {"priority": 32_768}}, "filter"),
        ({"filter": {"created_after": "9999-12-31T23:59:59Z"}}, "filter"),
        ({"filter": {"error": "a\x00"}}, "filter"),
        ({"filter": {}, "as_of": "1066-10-14T00:00:00Z"}, "as_of"),
        ({"filter": {}, "dry_run": 1}, "dry_run"),
        ({"filter": {}, "dry_run": "true"}, "dry_run"),
        ({"filter": {}, "after": "eA=="}, "after"),
        ({"filter": {}, "after": "\u0663"}, "after"),
        ({"filter": {}, "dryrun": True}, "non_field_errors"),
    ],
)
def test_a_bulk_retry_that_is_not_clear_retries_nothing(
    body: dict[str, Any], field: str, api: Client
) -> None:
    job = failed()
    answer = retry(api, 400, **body)
    assert list(answer) == [field]
    assert all(isinstance(reason, str) for reason in answer[field])
    job.refresh_from_db()
    assert job.status == "failed"


def test_going_on_needs_the_cut_off_of_the_first_call(api: Client) -> None:
    after = job_cursor.written(Cursor(timezone.now(), uuid4()))
    assert list(retry(api, 400, filter={}, after=after)) == ["as_of"]
    assert retry(api, filter={}, after=after, as_of=timezone.now().isoformat())["matched"] == 0


def test_a_place_is_read_as_it_was_written() -> None:
    place = Cursor(timezone.now(), uuid4())
    text = job_cursor.written(place)
    assert text is not None
    assert job_cursor.read(text) == place
    assert job_cursor.written(None) is None
    for wrong in ("", "x", text[:-4], text + text, "9" * 5_000, text.replace(text[5], "!", 1)):
        assert job_cursor.read(wrong) is None


def test_a_bulk_retry_is_only_posted(api: Client) -> None:
    response = api.get("/api/jobs/retry/")
    assert response.status_code == 405


def follow(api: Client, **query: Any) -> list[int]:
    page = get(api, f"job-events/?{urlencode(query)}")
    assert page["previous"] is None
    found = [event["id"] for event in page["results"]]
    while page["next"]:
        page = api.get(page["next"]).json()
        found += [event["id"] for event in page["results"]]
    return found


def test_the_feed_is_followed_from_an_event_on(api: Client) -> None:
    job = succeeded()
    failed()
    ids = list(JobEvent.objects.order_by("pk").values_list("pk", flat=True))
    assert follow(api, after_id=0, limit=2) == ids
    assert follow(api, after_id=ids[1], limit=2) == ids[2:]
    assert follow(api, after_id=ids[-1]) == follow(api, after_id=2**63 - 1) == []
    assert follow(api, after_id=0, type="claimed", limit=1) == [ids[1], ids[4]]
    assert follow(api, after_id=0, job_id=job.pk, limit=1) == ids[:3]
    (event,) = get(api, f"job-events/?after_id={ids[-2]}")["results"]
    newest = get(api, "job-events/?limit=1")["results"]
    assert [event] == newest


@pytest.mark.parametrize(
    "value", ["-1", "1.0", "abc", "9223372036854775808", "%D9%A3", "9" * 5_000]
)
def test_an_event_id_that_is_no_number_is_refused(value: str, api: Client) -> None:
    response = api.get(f"/api/job-events/?after_id={value}")
    assert response.status_code == 400
    assert list(response.json()) == ["after_id"]


def test_an_event_id_goes_with_no_cursor_and_comes_once(api: Client) -> None:
    for query in ("after_id=1&cursor=cD0x", "after_id=1&after_id=2"):
        response = api.get(f"/api/job-events/?{query}")
        assert response.status_code == 400
        assert list(response.json()) == ["after_id"]


def test_many_who_ask_cost_what_one_does(api: Client, django_assert_num_queries: Any) -> None:
    addresses = ("jobs/timeseries/", "jobs/types/", "jobs/failures/")
    before = [get(api, address) for address in addresses]
    succeeded()
    with django_assert_num_queries(0):
        assert [get(api, address) for address in addresses] == before
    memo.forget_all()
    assert get(api, addresses[0]) != before[0]


def test_a_step_ends_within_the_time_of_a_call() -> None:
    assert views.MAX_SECONDS < bulk_retry.MAX_SECONDS
    assert selectors.COUNT_LIMIT % views.COUNTED_AT_ONCE == 0
