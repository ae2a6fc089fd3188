"""What a reader can do, from the first key to what the database then holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import Page

from dashboard.tests.browser.queue import HOSTILE, Queue
from dashboard.tests.browser.visitor import Visit, Visitor, expect
from jobs import services
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.tests.support import sql
from jobs.tests.worker.support import create

WORKER = "host:1:thread-1:0a0b0c0d"


def fail(job_type: str, count: int) -> list[UUID]:
    """So many jobs of a type of their own whose only attempt failed."""
    jobs = [create(job_type, priority=32_767, max_attempts=1) for _ in range(count)]
    for _ in jobs:
        claimed = services.claim_next_job(worker_id=WORKER)
        assert claimed is not None
        services.fail_job(job_id=claimed.pk, worker_id=WORKER, attempt=1, error=HOSTILE)
    return [job.pk for job in jobs]


def forget(job_type: str) -> None:
    """Take them away, or the next test would claim what this one has queued again."""
    ids = list(Job.objects.filter(type=job_type).values_list("pk", flat=True))
    sql("DELETE FROM jobs_jobevent WHERE job_id = ANY (%s)", ids)
    sql("DELETE FROM jobs_job WHERE id = ANY (%s)", ids)


def statuses(job_ids: list[UUID]) -> list[str]:
    """How the jobs stand."""
    by_id = Job.objects.in_bulk(job_ids)
    return [by_id[job_id].status for job_id in job_ids]


@pytest.fixture
def failed(queue: Queue) -> Iterator[tuple[str, list[UUID]]]:
    """Three failed jobs, and the type that only they have."""
    job_type = f"browser.{uuid4().hex[:8]}"
    yield job_type, queue.run(fail, job_type, 3)
    queue.run(forget, job_type)


def test_the_selected_are_retried_by_keys_alone(
    visitor: Visitor, queue: Queue, failed: tuple[str, list[UUID]]
) -> None:
    job_type, jobs = failed
    page = visitor.go(f"/jobs/?state=failed&type_is={job_type}")
    expect(page.locator("[data-row]")).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("#selected")).to_contain_text("2 jobs selected")
    page.keyboard.press("r")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Retry 2 jobs?")
    visitor.assert_in_order()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert queue.run(statuses, jobs) == [Status.FAILED] * 3
    page.keyboard.press("r")
    dialog.get_by_role("button", name="Retry 2 jobs").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Retry of many jobs")
    # The newest are the first in the list.
    assert queue.run(statuses, jobs) == [Status.FAILED, Status.QUEUED, Status.QUEUED]
    visitor.assert_in_order()


def test_all_that_match_are_counted_first_and_then_retried(
    visitor: Visitor, queue: Queue, failed: tuple[str, list[UUID]]
) -> None:
    job_type, jobs = failed
    page = visitor.go(f"/jobs/?state=failed&type_is={job_type}")
    page.get_by_role("link", name="Retry all that match").first.click()
    expect(page.locator("#count")).to_contain_text("3 failed jobs match")
    visitor.assert_in_order()
    queue.run(fail, job_type, 1)  # Too late to be meant.
    page.get_by_role("button", name="Retry 3 jobs").click()
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Retry all that match?")
    expect(page.locator("main")).to_contain_text("3")
    assert queue.run(statuses, jobs) == [Status.QUEUED] * 3
    left = queue.run(Job.objects.filter(type=job_type, status=Status.FAILED).count)
    assert left == 1
    visitor.assert_in_order()


def test_one_job_is_retried_on_its_page(
    visitor: Visitor, queue: Queue, failed: tuple[str, list[UUID]]
) -> None:
    job = failed[1][0]
    page = visitor.go(f"/jobs/{job}/")
    page.keyboard.press("r")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Retry this job?")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert queue.run(statuses, [job]) == [Status.FAILED]
    page.keyboard.press("r")
    dialog.get_by_role("button", name="Retry").press("Enter")
    expect(page.locator("main .badge").first).to_have_text("ready")
    expect(page.locator("#retry")).to_be_disabled()
    expect(page.locator("#why-no-retry")).not_to_be_empty()
    assert queue.run(statuses, [job]) == [Status.QUEUED]
    visitor.assert_in_order()


def test_a_job_that_somebody_else_retried_is_not_retried_twice(
    visitor: Visitor, queue: Queue, failed: tuple[str, list[UUID]]
) -> None:
    job = failed[1][0]
    page = visitor.go(f"/jobs/{job}/")
    queue.run(services.retry_job, job_id=job)
    page.locator("#retry").click()
    expect(page.locator("main")).to_contain_text("only a failed job")
    assert queue.run(statuses, [job]) == [Status.QUEUED]


def test_an_id_is_copied(visit: Visit, queue: Queue) -> None:
    visitor = visit(permissions=["clipboard-read", "clipboard-write"])
    page = visitor.go(f"/jobs/{queue.jobs['flaky']}/")
    page.locator("#copy-id").click()
    expect(page.locator("#toasts")).to_contain_text("Copied.")
    copied: Any = page.evaluate("() => navigator.clipboard.readText()")
    assert copied == str(queue.jobs["flaky"])


def write(page: Page, job_type: str, payload: str, key: str) -> None:
    """Fill in the form of a new job and send it."""
    page.get_by_label("Type", exact=True).fill(job_type)
    page.get_by_label("Payload", exact=True).fill(payload)
    page.get_by_label("Idempotency key", exact=True).fill(key)
    page.get_by_role("button", name="Create job").press("Enter")


def test_a_new_job_is_made_and_the_same_key_makes_no_other(visitor: Visitor, queue: Queue) -> None:
    job_type, key = f"browser.{uuid4().hex[:8]}", f"{uuid4()} {HOSTILE}"[:200]
    page = visitor.go("/jobs/new/")
    payload = f'{{"big": {2**70}, "text": {json.dumps(HOSTILE)}}}'
    write(page, job_type, payload, key)
    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}/"))
    job = queue.run(Job.objects.get, type=job_type)
    assert str(job.pk) in page.url
    assert job.payload == {"big": 2**70, "text": HOSTILE}
    assert job.idempotency_key == key
    visitor.assert_unhurt()

    visitor.go("/jobs/new/")
    write(page, job_type, "{}", key)
    page.wait_for_url(f"**/jobs/{job.pk}/**")
    expect(page.locator("main .note").first).to_contain_text("exist")
    assert queue.run(Job.objects.filter(type=job_type).count) == 1
    visitor.assert_in_order()
    queue.run(forget, job_type)


def test_a_mistake_in_a_new_job_is_told_as_it_is_typed_and_when_it_is_sent(
    visitor: Visitor, queue: Queue
) -> None:
    visitor.expect_answer(422)
    before = queue.run(Job.objects.count)
    page = visitor.go("/jobs/new/")
    page.get_by_label("Payload", exact=True).fill('{"a": \n tru}')
    expect(page.locator("#payload-check")).to_contain_text("line 2")
    write(page, "<b>", '{"a": NaN}', "")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was created")
    expect(page.get_by_label("Type", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Type", exact=True)).to_have_value("<b>")
    visitor.assert_in_order()
    assert queue.run(Job.objects.count) == before


def test_a_copy_is_made_of_what_the_original_was_made_of(visitor: Visitor, queue: Queue) -> None:
    original = queue.job("succeeded")
    page = visitor.go(f"/jobs/{original.pk}/")
    page.get_by_role("link", name="Run a copy").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("New job")
    visitor.assert_in_order()
    page.get_by_role("button", name="Create job").press("Enter")
    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}/"))
    assert str(original.pk) not in page.url
    copy = queue.run(Job.objects.latest, "created_at")
    assert (copy.type, copy.payload) == (original.type, original.payload)
    assert copy.idempotency_key is None
