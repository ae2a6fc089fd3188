from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from jobs import services
from jobs.admin import limits
from jobs.display import short_id
from jobs.errors import JobNotFound
from jobs.models import Job, JobEvent
from jobs.tests.admin.conftest import (
    JOBS,
    client_with,
    job_url,
    make_failed_job,
    make_job,
    make_running_job,
    make_succeeded_job,
    messages_of,
    page_of,
)

pytestmark = pytest.mark.django_db


def run_retry(client: Client, *jobs: object, **extra: str) -> object:
    selected = [str(getattr(job, "pk", job)) for job in jobs]
    data = {"action": "retry", "index": "0", "_selected_action": selected, **extra}
    return client.post(extra.pop("url", JOBS), data, follow=True)


def test_the_button_on_a_failed_job_retries_it(operator: Client) -> None:
    job = make_failed_job()
    page = page_of(operator.get(job_url(job)))
    assert page.all("form", action=job_url(job, "retry"), method="post")
    assert "Retry this job" in page.text

    answer = operator.post(job_url(job, "retry"), follow=True)

    job.refresh_from_db()
    assert (job.status, job.attempts, job.last_error) == ("queued", 0, "")
    assert messages_of(answer) == [("success", "Retried: the job is queued with all its attempts.")]
    assert answer.redirect_chain == [(job_url(job), 302)]
    assert JobEvent.objects.filter(job=job).latest("id").type == "manual_retry"


def test_the_log_says_who_retried(operator: Client) -> None:
    one, two, three = make_failed_job(), make_failed_job(), make_failed_job()
    operator.post(job_url(one, "retry"))
    run_retry(operator, two, three)
    logged = LogEntry.objects.filter(user__username="view_job-view_jobevent-change_job")
    assert {entry.object_id for entry in logged} == {str(job.pk) for job in (one, two, three)}
    assert "Retried." in page_of(operator.get(job_url(one, "history"))).text


@pytest.mark.parametrize("make", [make_job, make_running_job, make_succeeded_job])
def test_a_job_that_is_not_failed_has_no_button_and_is_left_alone(
    operator: Client, make: type[Job]
) -> None:
    job = make()
    events = JobEvent.objects.count()
    assert "Retry this job" not in page_of(operator.get(job_url(job))).text

    answer = operator.post(job_url(job, "retry"), follow=True)

    (level, text), *_ = messages_of(answer)
    assert level == "warning"
    assert text == f"Not retried: only a failed job can be, and this one is {job.status}."
    assert Job.objects.get(pk=job.pk).updated_at == job.updated_at
    assert JobEvent.objects.count() == events


def test_retrying_a_job_that_is_gone_says_so(operator: Client) -> None:
    answer = operator.post(job_url(uuid4(), "retry"), follow=True)
    assert messages_of(answer) == [("error", "There is no job with this id.")]


def test_a_retry_is_posted_with_a_token_or_not_at_all(operator: Client) -> None:
    job = make_failed_job()
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = operator.cookies
    assert strict.post(job_url(job, "retry")).status_code == 403
    assert operator.get(job_url(job, "retry")).status_code == 405
    assert Job.objects.get(pk=job.pk).status == "failed"

    token = strict.get(job_url(job)).context["csrf_token"]
    strict.post(job_url(job, "retry"), {"csrfmiddlewaretoken": str(token)})
    assert Job.objects.get(pk=job.pk).status == "queued"


def test_a_viewer_neither_sees_nor_posts_a_retry(viewer: Client) -> None:
    job = make_failed_job()
    assert "Retry" not in page_of(viewer.get(job_url(job))).text
    page = page_of(viewer.get(JOBS))
    assert not page.all("option")
    assert not page.all("input", name="_selected_action")

    assert viewer.post(job_url(job, "retry")).status_code == 403
    answer = viewer.post(JOBS, {"action": "retry", "index": "0", "_selected_action": [str(job.pk)]})
    assert answer.status_code == 403
    assert Job.objects.get(pk=job.pk).status == "failed"


def test_who_may_change_events_only_may_not_retry(db: None) -> None:
    job = make_failed_job()
    client = client_with("view_job", "change_jobevent", "delete_job", "add_job")
    assert client.post(job_url(job, "retry")).status_code == 403
    assert Job.objects.get(pk=job.pk).status == "failed"


def test_the_action_retries_what_failed_and_says_why_it_skipped_the_rest(
    operator: Client,
) -> None:
    failed = [make_failed_job(), make_failed_job()]
    running, done = make_running_job(), make_succeeded_job(type="mail.send")

    answer = run_retry(operator, *failed, running, done)

    (first_level, first), (second_level, second) = messages_of(answer)
    assert (first_level, first) == ("success", "2 jobs retried.")
    assert second_level == "warning"
    assert second.startswith("2 jobs skipped, as only a failed job can be retried: ")
    assert f"{short_id(running.pk)} (demo.success) is running" in second
    assert f"{short_id(done.pk)} (mail.send) is succeeded" in second
    statuses = {job.pk: job.status for job in Job.objects.all()}
    assert [statuses[job.pk] for job in failed] == ["queued", "queued"]
    assert (statuses[running.pk], statuses[done.pk]) == ("running", "succeeded")


def test_the_action_goes_through_the_service_one_job_at_a_time(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [make_failed_job(), make_failed_job()]
    asked: list[UUID] = []

    def retry_job(*, job_id: UUID) -> Job:
        asked.append(job_id)
        return Job.objects.get(pk=job_id)

    monkeypatch.setattr(services, "retry_job", retry_job)
    run_retry(operator, *jobs)
    assert set(asked) == {job.pk for job in jobs}
    assert set(Job.objects.values_list("status", flat=True)) == {"failed"}


def test_a_job_that_vanishes_under_the_action_is_named(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_failed_job()

    def vanished(*, job_id: object) -> Job:
        raise JobNotFound(str(job_id))

    monkeypatch.setattr(services, "retry_job", vanished)
    ((level, text),) = messages_of(run_retry(operator, job))
    assert level == "warning"
    assert f"{short_id(job.pk)} (demo.success) is gone" in text


def test_one_run_of_the_action_is_bounded_and_says_so(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_RETRIES_AT_ONCE", 3)
    for _ in range(5):
        make_failed_job()

    answer = run_retry(operator, Job.objects.latest("created_at"), select_across="1")

    assert Job.objects.filter(status="queued").count() == 3
    levels = [level for level, _ in messages_of(answer)]
    assert levels == ["success", "warning"]
    assert "Only the newest 3" in messages_of(answer)[1][1]


def test_many_skipped_jobs_make_a_short_message(operator: Client) -> None:
    for _ in range(14):
        make_job()
    answer = run_retry(operator, *Job.objects.all())
    ((_, text),) = messages_of(answer)
    assert text.startswith("14 jobs skipped")
    assert text.endswith("; and 4 more.")


def test_the_action_keeps_to_the_filter_it_was_run_under(operator: Client) -> None:
    wanted, other = make_failed_job(type="mail.send"), make_failed_job(type="report.make")
    operator.post(
        f"{JOBS}?type=mail",
        {"action": "retry", "index": "0", "select_across": "1", "_selected_action": [wanted.pk]},
    )
    assert Job.objects.get(pk=wanted.pk).status == "queued"
    assert Job.objects.get(pk=other.pk).status == "failed"


@pytest.mark.parametrize(
    "selected",
    [
        "",
        "nonsense",
        "1; DROP TABLE",
        "\x00",
        "9" * 500,
        f" {UUID(int=1)}",
        UUID(int=1).urn.upper(),
    ],
)
def test_a_forged_selection_is_no_error(operator: Client, selected: str) -> None:
    job = make_failed_job()
    answer = run_retry(operator, selected, job)
    assert messages_of(answer) == [("warning", "What was selected is no job.")]
    assert Job.objects.get(pk=job.pk).status == "failed"
