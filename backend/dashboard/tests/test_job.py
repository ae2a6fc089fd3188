"""One job's page."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard import json_view
from dashboard.views import job as job_view
from jobs import selectors, services
from jobs.errors import JobNotFound
from jobs.models import Job
from jobs.selectors import one_job
from jobs.tests.support import (
    OTHER,
    WORKER,
    expire,
    failed,
    make_due,
    owned_by,
    queued,
    running,
    sql,
    succeeded,
)

HOSTILE = "<script>alert('x')</script>\u202e</pre>"
END = "data-live-end"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def open_to_all(settings: Any) -> None:
    """As in development, whatever the environment says."""
    settings.DASHBOARD_ACCESS = "open"


def url_of(job_id: UUID) -> str:
    return f"/jobs/{job_id}/"


def page(client: Client, job_id: UUID, **query: str) -> str:
    answer = client.get(url_of(job_id), query)
    assert answer.status_code == 200
    return answer.content.decode()


def poll(client: Client, job_id: UUID, etag: str = "") -> Any:
    return client.get(url_of(job_id), headers={"HX-Request": "true", "If-None-Match": etag})


def words(html: str) -> str:
    """What a reader sees, with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def part(html: str, start: str, end: str = "</section>") -> str:
    """What lies between two texts of the page."""
    assert start in html, start
    return html.split(start, 1)[1].split(end, 1)[0]


def flaky() -> Job:
    """A job that failed once with a traceback and then succeeded, with a report each."""
    job = running(payload={"big": 9007199254740993, "f": 1.0})
    services.report_progress(**owned_by(job), message="Half way", data={"percent": 50})
    services.fail_job(**owned_by(job), error="ValueError: first")
    sql(
        "UPDATE jobs_jobevent SET data = data || %s WHERE job_id = %s AND type = 'retry_scheduled'",
        json.dumps({"class": "builtins.ValueError", "traceback": 'File "a.py", line 1\n'}),
        job.id,
    )
    make_due(job.id)
    again = services.claim_next_job(worker_id=OTHER)
    assert again is not None
    assert again.id == job.id
    services.renew_lease(**owned_by(again))
    services.complete_job(**owned_by(again), result=None)
    return again


def test_a_page_tells_every_attempt_with_its_error_and_its_reports(client: Client) -> None:
    job = flaky()
    html = page(client, job.id)
    text = words(part(html, 'id="attempts-title"'))
    assert text.index("Attempt 2 succeeded") < text.index("Attempt 1 failed, retried")
    for told in (WORKER, OTHER, "ValueError: first", "builtins.ValueError", "a.py", "Half way"):
        assert told in text
    assert '{"percent": 50}' in text
    opened = re.findall(r'<details class="attempt" id="(attempt-\d+)"( open)?>', html)
    assert [bool(is_open) for _, is_open in opened] == [True, False]
    assert len({name for name, _ in opened}) == 2
    assert "Attempt 1, failed, retried: waited" in html


def test_payload_and_result_are_shown_digit_for_digit(client: Client) -> None:
    html = page(client, flaky().id)
    payload = part(html, 'id="payload-title"')
    assert "9007199254740993" in words(payload)
    assert '<bdi class="json-number">1.0</bdi>' in payload
    assert "The handler returned nothing" in part(html, 'id="result-title"')


@pytest.mark.parametrize(
    ("result", "wanted"), [("null", "json-word"), ('{"a": 1e3}', "json-number"), ('""', '""')]
)
def test_a_result_that_is_null_is_not_one_that_is_missing(
    client: Client, result: str, wanted: str
) -> None:
    job = succeeded()
    sql("UPDATE jobs_job SET result = %s WHERE id = %s", result, job.id)
    told = part(page(client, job.id), 'id="result-title"')
    assert wanted in unescape(told)
    assert "no result" not in told
    assert "The job failed, so there is no result." in page(client, failed().id)
    assert "There is a result once" in page(client, queued().id)


def test_hostile_text_is_shown_and_does_nothing(client: Client) -> None:
    job = running(
        type="a." + "b" * 118,
        worker=HOSTILE,
        payload={HOSTILE: [HOSTILE, "x" * 1_000 + HOSTILE]},
        idempotency_key=HOSTILE,
        max_attempts=1,
    )
    services.report_progress(**owned_by(job), message=HOSTILE, data={HOSTILE: HOSTILE})
    services.fail_job(**owned_by(job), error=HOSTILE)
    sql(
        "UPDATE jobs_jobevent SET data = data || %s WHERE job_id = %s AND type = 'failed'",
        json.dumps({"class": HOSTILE, "traceback": HOSTILE}),
        job.id,
    )
    html = page(client, job.id, notice=HOSTILE)
    assert "<script>alert" not in html
    assert "\u202e" not in html
    # Payload key and value and long value, curl, key, error, attempt, events and more.
    assert html.count("&lt;script&gt;alert") >= 14
    assert " style=" not in html


def test_only_a_failed_job_has_a_retry_and_the_others_say_why(client: Client) -> None:
    html = page(client, failed().id)
    assert 'form="retry-form" data-key-action="retry">' in html
    assert "why-no-retry" not in html
    assert 'id="retry-form" method="post" action="/jobs/' in html
    for job, reason in (
        (queued(), "this one waits for a worker"),
        (queued(available_at=datetime(2099, 1, 1, tzinfo=UTC)), "scheduled"),
        (running(), "this one is running"),
        (succeeded(), "run a copy of this one"),
    ):
        html = page(client, job.id)
        assert 'data-key-action="retry" disabled aria-describedby="why-no-retry"' in html
        assert reason in part(html, 'id="why-no-retry"', "</p>")


def test_who_may_only_look_is_told_so(client: Client, settings: Any) -> None:
    settings.DASHBOARD_ACCESS = "login"
    user = User.objects.create_user("reader")
    user.user_permissions.add(Permission.objects.get(codename="view_job"))
    client.force_login(user)
    html = page(client, failed().id)
    assert "Your account may not retry jobs." in html
    assert 'id="retry-form"' not in html
    assert "Run a copy" not in html


def test_a_poll_brings_the_live_part_and_no_payload_until_the_job_has_ended(
    client: Client,
) -> None:
    job = running(payload={"secret": "sesame"})
    assert "sesame" in page(client, job.id)
    with CaptureQueriesContext(connection) as queries:
        first = poll(client, job.id)
    assert not [query for query in queries if "payload" in query["sql"]]
    assert "sesame" not in first.content.decode()
    assert END not in first.content.decode()
    again = poll(client, job.id, first["ETag"])
    assert (again.status_code, again.content) == (304, b"")

    services.renew_lease(**owned_by(job), lease_seconds=3_600)
    renewed = poll(client, job.id, first["ETag"])
    assert renewed.status_code == 200
    assert "renewed" in words(part(renewed.content.decode(), "<dt>Lease</dt>", "</dd>"))

    services.complete_job(**owned_by(job), result={"answer": 42})
    ended = poll(client, job.id, renewed["ETag"])
    assert END in ended.content.decode()
    assert "42" in part(ended.content.decode(), 'id="result-title"')
    assert END in page(client, job.id)
    assert END not in page(client, queued().id)


def test_a_manual_retry_begins_a_round_of_its_own(client: Client) -> None:
    job = failed()
    services.retry_job(job_id=job.id)
    text = words(part(page(client, job.id), 'id="timeline-title"'))
    assert text.index("Round 1") < text.index("Round 2")
    assert "It waits for a worker since" in text
    assert "retried by hand" in text


def test_an_attempt_whose_lease_ran_out_is_told_as_such(client: Client) -> None:
    job = running()
    expire(job.id)
    assert "overdue" in page(client, job.id)
    services.cleanup_expired_jobs()
    text = words(page(client, job.id))
    assert "lease ran out" in text
    assert "No worker has claimed it" not in text


def test_a_notice_is_told_by_its_name_alone(client: Client) -> None:
    job = queued()
    assert "The job was created." in page(client, job.id, notice="created")
    assert "differs from what was sent" in page(client, job.id, notice="mismatch")
    assert "data-notice" not in page(client, job.id, notice="You have been hacked")
    assert "data-notice" not in poll(client, job.id).content.decode()


@pytest.mark.parametrize("job_id", ["nonsense", "0" * 32, "0-----1a"])
def test_an_unknown_id_has_a_page_that_says_so(client: Client, job_id: str) -> None:
    answer = client.get(f"/jobs/{job_id}/")
    assert answer.status_code == 404
    assert "There is no job with this id" in answer.content.decode()


def test_a_payload_that_is_too_long_is_cut_by_the_database(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_view, "MAX_CHARS", 1_000)
    job = queued(payload={"a": "x" * 5_000, "z": "the end"})
    html = page(client, job.id)
    told = part(html, 'id="payload-title"')
    assert "1,000 of 5,0" in words(told)
    assert "json-in" not in told
    assert "the end" not in html
    assert "has-no-curl" in html
    assert f'href="/api/jobs/{job.id}/"' in told

    monkeypatch.setattr(one_job, "MAX_STORED_BYTES", 50)
    told = part(page(client, job.id), 'id="payload-title"')
    assert "more than this page reads" in told
    assert "xxx" not in told


def fill_timeline(job: Job, count: int, kind: str = "lease_renewed") -> None:
    """So many more events of the running attempt, a second apart, the last one now."""
    sql(
        "INSERT INTO jobs_jobevent (job_id, type, attempt, worker_id, message, data, created_at)"
        " SELECT %s, %s, 1, %s, 'Step ' || n, %s,"
        " statement_timestamp() - make_interval(secs => %s - n)"
        " FROM generate_series(1, %s) AS n",
        job.id,
        kind,
        WORKER,
        "{}",
        count,
        count,
    )


def test_the_newest_thousand_events_are_read_and_the_page_says_so(client: Client) -> None:
    job = running()
    fill_timeline(job, 1_200)
    html = page(client, job.id)
    text = words(html)
    assert "The newest 1,000 are shown" in text
    assert "1,000 renewals" in text
    assert "that event is among those left out" in text
    assert f"/events/?job={job.id}" in html
    assert "Round 1" not in text
    assert len(html) < 100_000


def test_thousands_of_reports_and_attempts_make_no_page_of_megabytes(client: Client) -> None:
    job = running(max_attempts=30_000)
    fill_timeline(job, 500, "progress")
    sql(
        "INSERT INTO jobs_jobevent (job_id, type, attempt, worker_id, message, data)"
        " SELECT %s, kind, n, %s, repeat('e', 8000), jsonb_build_object('traceback',"
        " repeat('line ', 3000)) FROM generate_series(2, 200) AS n,"
        " unnest(ARRAY['claimed', 'retry_scheduled']) AS kind ORDER BY n, kind",
        job.id,
        WORKER,
    )
    html = page(client, job.id)
    text = words(html)
    assert html.count('class="attempt"') == job_view.MAX_ATTEMPTS
    assert "150 earlier attempts of this round are not listed." in text
    assert "All events of this job" in text
    assert len(html) < 1_000_000


def buffers(statements: list[dict[str, Any]]) -> int:
    """The database's pages that these statements read."""
    total = 0
    for statement in statements:
        if (
            not statement["sql"].startswith(("SELECT", "\nSELECT"))
            or "set_config" in (statement["sql"])
        ):
            continue
        explained = sql("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement["sql"])[0][0]
        plan = explained[0]["Plan"]
        total += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return total


def test_no_job_costs_more_than_its_bound(client: Client) -> None:
    job = running()
    # Long texts that do not compress, each moved out of its row; and the newest 20 huge.
    sql(
        "INSERT INTO jobs_jobevent (job_id, type, attempt, worker_id, message, data)"
        " SELECT %s, 'progress', 1, %s, long.text, jsonb_build_object('t', long.text)"
        " FROM generate_series(1, 1500) AS n, LATERAL (SELECT string_agg(md5(random()::text || n"
        " || m), '') AS text FROM generate_series(1, CASE WHEN n > 1480 THEN 3000 ELSE 100 END)"
        " AS m) AS long",
        job.id,
        WORKER,
    )
    sql(
        "UPDATE jobs_job SET payload = jsonb_build_object('t', (SELECT"
        " string_agg(md5(random()::text || m), '') FROM generate_series(1, 100000) AS m))"
        " WHERE id = %s",
        job.id,
    )
    with CaptureQueriesContext(connection) as queries:
        html = page(client, job.id)
    assert "A long message" not in html
    read = buffers(queries.captured_queries)
    assert 500 < read < 5_000


def test_a_timeline_is_found_by_its_job_whatever_the_statistics_say() -> None:
    # Without the pages that other tests left: an empty table is read as fast as an index.
    sql("TRUNCATE jobs_job, jobs_jobevent")
    old = running()
    fill_timeline(old, 1_500)
    sql("ANALYZE jobs_jobevent")
    fill_timeline(running(), 20_000)
    with CaptureQueriesContext(connection) as queries:
        assert len(selectors.short_timeline(old.id).events) == selectors.TIMELINE_LIMIT
    assert buffers(queries.captured_queries) < 100


def test_a_timeline_of_no_job_is_empty_and_its_texts_are_refused() -> None:
    nobody = UUID(int=1)
    assert selectors.short_timeline(nobody).events == []
    assert selectors.event_details([], message_chars=1, traceback_chars=1, data_chars=1) == {}
    with pytest.raises(JobNotFound):
        selectors.text_of(nobody, "payload", 10)


def test_data_that_is_no_object_is_shown_as_it_is(client: Client) -> None:
    job = running()
    sql("UPDATE jobs_jobevent SET data = '[1, 2]' WHERE job_id = %s AND type = 'claimed'", job.id)
    services.fail_job(**owned_by(job), error="it broke")
    sql("UPDATE jobs_jobevent SET data = '7' WHERE job_id = %s AND attempt = 1", job.id)
    assert "it broke" in page(client, job.id)
