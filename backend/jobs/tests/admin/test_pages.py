from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from jobs import services
from jobs.admin import limits
from jobs.models import Job, JobEvent
from jobs.records import Owner, Record
from jobs.tests.admin.conftest import (
    EVENTS,
    JOBS,
    WORKER,
    job_url,
    make_failed_job,
    make_job,
    make_running_job,
    make_succeeded_job,
    messages_of,
    page_of,
)

pytestmark = pytest.mark.django_db

NASTY = "<script>alert(1)</script>\"'{{ 7|add:7 }}{% now 'Y' %}&lt;\u200f\u202egnp.exe</pre><b>"
# The override is spelled out; everything else is the text itself.
NASTY_SHOWN = NASTY.replace("\u202e", "\\u202e")


def assert_harmless(page: Any) -> None:
    assert not any("alert(1)" in script for script in page.scripts)
    assert not page.all("b")
    assert "\u202e" not in page.raw_text
    for _, attributes in page.elements:
        assert not any(name.startswith(("{{", "alert", "'")) for name in attributes)


def test_a_job_page_shows_every_field(boss: Client) -> None:
    job = make_succeeded_job(
        payload={"to": ["a", "b"], "n": 12345678901234567890123},
        result={"sent": True},
        idempotency_key="order-17",
    )
    page = page_of(boss.get(job_url(job)))
    for text in (str(job.pk), "demo.success", "succeeded", "1 of 3", "32767", "order-17"):
        assert text in page.text
    for label in (
        "Id", "Type", "Status", "Attempts", "Priority", "Available at", "Locked by",
        "Locked until", "Idempotency key", "Created", "Updated", "Finished", "Payload", "Result",
    ):  # fmt: skip
        assert label in page.texts
    assert '    "to": [\n        "a",\n        "b"\n    ]' in page.raw_text
    assert "12345678901234567890123" in page.raw_text
    assert '{\n    "sent": true\n}' in page.raw_text


def test_a_running_job_tells_its_worker_and_its_lease(boss: Client) -> None:
    job = make_running_job()
    page = page_of(boss.get(job_url(job)))
    assert WORKER in page.text
    assert job.locked_until is not None
    assert any(t["datetime"] and "T" in t["datetime"] for t in page.all("time"))
    assert "(in " in page.raw_text


def test_a_result_that_is_null_is_none_and_a_false_one_is_shown(boss: Client) -> None:
    assert "Result None" in page_of(boss.get(job_url(make_succeeded_job()))).text
    assert "Result false" in page_of(boss.get(job_url(make_succeeded_job(result=False)))).text


def test_any_spelling_of_the_id_opens_the_page(boss: Client) -> None:
    job = make_job()
    for spelling in (str(job.pk).upper(), job.pk.hex):
        assert str(job.pk) in page_of(boss.get(f"{JOBS}{spelling}/change/")).text


def test_the_timeline_tells_what_happened_in_order(boss: Client) -> None:
    job = make_running_job(max_attempts=1)
    services.report_progress(
        job_id=job.pk, worker_id=WORKER, attempt=1, message="half way", data={"done": 5}
    )
    details = {"class": "KeyError", "traceback": "Traceback:\n  line 1\nKeyError: zebra"}
    services.record_and_claim(
        records=[Record.failed(Owner(job.pk, WORKER, 1), "KeyError: zebra", details)]
    )
    page = page_of(boss.get(job_url(job)))
    timeline = page.text[page.text.index("Timeline") :]
    places = [
        timeline.index(text)
        for text in ("Job created", "claimed", "half way", '"done": 5', "KeyError: zebra")
    ]
    assert places == sorted(places)
    assert "attempt 1" in timeline
    assert WORKER in timeline
    assert "Traceback:\n  line 1\nKeyError: zebra" in page.raw_text
    assert '"cause": "handler"' in timeline
    assert f"{EVENTS}?job={job.pk}" in page.links()


def test_a_long_timeline_shows_the_newest_events_and_a_way_to_the_rest(boss: Client) -> None:
    job = make_running_job()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_jobevent (job_id, type, attempt, message)"
            " SELECT %s, 'progress', 1, 'step ' || n || '.' FROM generate_series(1, 250) n",
            [job.pk],
        )
    page = page_of(boss.get(job_url(job)))
    assert page.text.count("progress attempt 1") == limits.MAX_TIMELINE_EVENTS
    assert "step 51." in page.text
    assert "step 50." not in page.text
    assert page.text.index("step 51.") < page.text.index("step 250.")
    assert "The newest 200 events." in page.text
    assert f"{EVENTS}?job={job.pk}" in page.links()


def test_hostile_text_is_only_ever_text(boss: Client) -> None:
    error = NASTY + "e" * 8000
    job = make_failed_job(
        error=error,
        payload={NASTY: [NASTY, {"k": NASTY}]},
        worker_id=NASTY,
        idempotency_key=NASTY,
    )
    # A type's letters are limited by the service alone; the page does not rely on it.
    Job.objects.filter(pk=job.pk).update(type=NASTY.replace("\u202e", ""))
    JobEvent.objects.filter(job=job).update(data={NASTY: NASTY, "traceback": NASTY})
    event = JobEvent.objects.filter(job=job).latest("id")

    page = page_of(boss.get(job_url(job)))
    assert_harmless(page)
    assert NASTY_SHOWN in page.raw_text
    assert NASTY_SHOWN.replace('"', '\\"') in page.raw_text
    assert "e" * 8000 in page.raw_text

    for url in (JOBS, EVENTS, f"{EVENTS}{event.pk}/change/", job_url(job, "history")):
        listed = page_of(boss.get(url))
        assert_harmless(listed)
        assert "<script>alert(1)</script>" in listed.raw_text
        assert "7|add:7" in listed.raw_text
    assert len(boss.get(JOBS).content) < 100_000


def test_hostile_text_in_messages_is_only_ever_text(boss: Client) -> None:
    job = make_job()
    Job.objects.filter(pk=job.pk).update(type=NASTY.replace("\u202e", ""))
    answer = boss.post(
        JOBS, {"action": "retry", "index": "0", "_selected_action": [str(job.pk)]}, follow=True
    )
    assert "<script>" in messages_of(answer)[0][1]
    assert_harmless(page_of(answer))


def test_texts_too_long_for_a_page_are_shortened_with_a_note(boss: Client) -> None:
    job = make_succeeded_job(payload={"x": "y" * 900_000}, result=["z" * 30_000])
    answer = boss.get(job_url(job))
    page = page_of(answer)
    assert re.search(r"Shortened: 20,000 of 900,0\d\d characters\.", page.text)
    assert re.search(r"Shortened: 20,000 of 30,0\d\d characters\.", page.text)
    assert len(answer.content) < 150_000


def test_a_page_of_the_worst_events_is_bounded(boss: Client) -> None:
    job = make_running_job()
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO jobs_jobevent (job_id, type, attempt, worker_id, message, data)
            SELECT %s, 'progress', 1, repeat('"', 255), repeat('"', 8192),
                jsonb_build_object('traceback', repeat('"', 16384), 'x', repeat('"', 100000))
            FROM generate_series(1, 250)""",
            [job.pk],
        )
    answer = boss.get(job_url(job))
    assert len(answer.content) < 8_000_000
    assert len(boss.get(EVENTS, {"job": str(job.pk)}).content) < 1_000_000


def test_an_event_page_shows_all_of_it(boss: Client) -> None:
    job = make_failed_job(error="KeyError: zebra")
    event = JobEvent.objects.filter(job=job).latest("id")
    page = page_of(boss.get(f"{EVENTS}{event.pk}/change/"))
    for text in (str(event.pk), "failed", str(job.pk), WORKER, "KeyError: zebra", '"cause"'):
        assert text in page.text
    assert job_url(job) in page.links()
    assert not page.all("select")


def test_an_event_whose_data_is_no_object_is_no_error(boss: Client) -> None:
    job = make_job()
    for data in ([1], "text", 5):
        JobEvent.objects.filter(job=job).update(data=data)
        assert boss.get(job_url(job)).status_code == 200
        event = JobEvent.objects.get(job=job)
        assert boss.get(f"{EVENTS}{event.pk}/change/").status_code == 200
