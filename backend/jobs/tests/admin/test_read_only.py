from __future__ import annotations

import pytest
from django.test import Client

from jobs import services
from jobs.models import Job, JobEvent
from jobs.tests.admin.conftest import (
    EVENTS,
    JOBS,
    WORKER,
    client_with,
    job_url,
    make_failed_job,
    make_running_job,
    make_succeeded_job,
    page_of,
)

pytestmark = pytest.mark.django_db

FORGED = {
    "type": "evil",
    "status": "queued",
    "priority": "1",
    "attempts": "0",
    "max_attempts": "9",
    "payload": "{}",
    "locked_by": "me",
    "post": "yes",
    "_save": "Save",
}


def everything() -> tuple[object, object]:
    return (
        list(Job.objects.order_by("id").values()),
        list(JobEvent.objects.order_by("id").values()),
    )


def test_saving_a_job_that_succeeded_while_it_was_open_changes_nothing(boss: Client) -> None:
    job = make_running_job()
    opened = page_of(boss.get(job_url(job)))
    assert "running" in opened.text
    done = services.complete_job(job_id=job.pk, worker_id=WORKER, attempt=1, result={"ok": 1})
    assert done is not None

    answer = boss.post(
        job_url(job), {**FORGED, "status": "running", "locked_by": WORKER, "attempts": "1"}
    )

    assert answer.status_code == 403
    job.refresh_from_db()
    assert job.status == "succeeded"
    assert job.result == {"ok": 1}
    assert job.updated_at == done.updated_at


@pytest.mark.parametrize("button", ["_save", "_continue", "_addanother", "_saveasnew"])
def test_every_posted_form_is_refused_and_nothing_changes(boss: Client, button: str) -> None:
    job = make_failed_job()
    event = JobEvent.objects.filter(job=job).latest("id")
    before = everything()
    for url in (
        f"{JOBS}add/",
        job_url(job),
        job_url(job, "delete"),
        f"{EVENTS}add/",
        f"{EVENTS}{event.pk}/change/",
        f"{EVENTS}{event.pk}/delete/",
        EVENTS,
    ):
        answer = boss.post(url, {**FORGED, button: "1"})
        assert answer.status_code in (403, 405), url
    assert everything() == before


@pytest.mark.parametrize("url", [f"{JOBS}add/", f"{EVENTS}add/"])
def test_there_is_no_page_to_add_anything(boss: Client, url: str) -> None:
    assert boss.get(url).status_code == 403


def test_there_is_no_page_to_delete_anything(boss: Client) -> None:
    job = make_failed_job()
    event = JobEvent.objects.latest("id")
    assert boss.get(job_url(job, "delete")).status_code == 403
    assert boss.get(f"{EVENTS}{event.pk}/delete/").status_code == 403


def test_deleting_selected_jobs_is_not_offered_and_cannot_be_posted(boss: Client) -> None:
    job = make_failed_job()
    before = everything()
    page = page_of(boss.get(JOBS))
    assert [option["value"] for option in page.all("option")] == ["", "retry"]

    boss.post(
        JOBS,
        {"action": "delete_selected", "_selected_action": [str(job.pk)], "index": "0", "post": "1"},
    )
    boss.post(JOBS, {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "_save": "Save"})

    assert everything() == before


def test_the_pages_hold_nothing_to_type_into(boss: Client) -> None:
    job = make_succeeded_job(result={"a": 1})
    event = JobEvent.objects.filter(job=job).latest("id")
    for url in (job_url(job), f"{EVENTS}{event.pk}/change/"):
        page = page_of(boss.get(url))
        assert not page.all("textarea")
        assert not page.all("select")
        names = {field.get("name") for field in page.all("input")}
        assert not names & {field.name for field in Job._meta.get_fields()}
        assert not {button.get("name") for button in page.all("button")} & {"_save", "_continue"}


def test_nobody_logged_out_sees_anything(client: Client, db: None) -> None:
    job = make_failed_job()
    for url in (JOBS, job_url(job), EVENTS):
        answer = client.get(url)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/admin/login/")
    assert client.post(job_url(job, "retry")).status_code == 302
    job.refresh_from_db()
    assert job.status == "failed"


def test_viewing_needs_the_view_permission(viewer: Client) -> None:
    job = make_failed_job()
    event = JobEvent.objects.latest("id")
    stranger = client_with()
    for url in (JOBS, job_url(job), EVENTS, f"{EVENTS}{event.pk}/change/"):
        assert stranger.get(url).status_code == 403
        assert viewer.get(url).status_code == 200


def test_who_may_not_view_a_job_does_not_learn_whether_it_exists(db: None) -> None:
    job = make_failed_job()
    stranger = client_with()
    assert stranger.get(JOBS, {"q": str(job.pk)}).status_code == 403


def test_who_may_not_view_events_is_given_no_links_to_them(db: None) -> None:
    job = make_failed_job()
    page = page_of(client_with("view_job").get(job_url(job)))
    assert "Job created" in page.text
    assert not [link for link in page.links() if link.startswith(EVENTS)]
