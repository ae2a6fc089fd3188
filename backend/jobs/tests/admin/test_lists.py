from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.utils import timezone

from jobs.models import Job, JobEvent
from jobs.tests.admin.conftest import (
    EVENTS,
    JOBS,
    WORKER,
    Page,
    job_url,
    make_failed_job,
    make_job,
    make_running_job,
    make_succeeded_job,
    messages_of,
    page_of,
)

pytestmark = pytest.mark.django_db

HOSTILE = [
    "\x00",
    "demo\x00",
    "'; DROP TABLE jobs_job; --",
    "%",
    "_",
    "\\",
    '"',
    "<script>alert(1)</script>",
    "{{ 7|add:7 }}",
    "\u202eevil",
    "()[]*+?",
    "a" * 8000,
    "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
]


def jobs_on(page: Page) -> set[str]:
    links = [link.split("?")[0] for link in page.links()]
    found = [link for link in links if link.startswith(JOBS) and link.endswith("/change/")]
    return {link[len(JOBS) : -len("/change/")] for link in found}


def ids(*jobs: Job) -> set[str]:
    return {str(job.pk) for job in jobs}


def events_on(page: Page) -> set[int]:
    links = [link.split("?")[0] for link in page.links()]
    found = [link for link in links if link.startswith(EVENTS) and link.endswith("/change/")]
    return {int(link[len(EVENTS) : -len("/change/")]) for link in found}


def test_a_row_tells_what_a_person_on_call_asks(boss: Client) -> None:
    job = make_failed_job(error="ValueError: no such invoice", type="invoice.render")
    page = page_of(boss.get(JOBS))
    for text in ("invoice.render", "failed", "32767", "1/1", "ValueError: no such invoice"):
        assert text in page.text
    assert jobs_on(page) == ids(job)
    assert page.all("span", title=str(job.pk))


def test_empty_values_are_a_dash(boss: Client) -> None:
    make_job()
    page = page_of(boss.get(JOBS))
    assert "None" not in page.text
    assert page.texts.count("\N{EN DASH}") == 2  # worker and error


def test_each_status_has_its_colour(boss: Client) -> None:
    make_job(), make_running_job(), make_succeeded_job(), make_failed_job()
    page = page_of(boss.get(JOBS))
    tones = {badge["data-tone"] for badge in page.all("span") if "data-tone" in badge}
    assert tones == {"neutral", "info", "success", "danger"}


def test_newest_jobs_come_first(boss: Client) -> None:
    jobs = [make_job() for _ in range(3)]
    links = [link for link in page_of(boss.get(JOBS)).links() if link.endswith("/change/")]
    assert links == [job_url(job) for job in reversed(jobs)]


@pytest.mark.parametrize("order", ["1", "-3", "5.2", "x", "99"])
def test_no_column_can_be_sorted_by(boss: Client, order: str) -> None:
    jobs = [make_job(priority=n) for n in (5, 9, 1)]
    page = page_of(boss.get(JOBS, {"o": order}))
    links = [link.split("?")[0] for link in page.links() if "/change/" in link]
    assert links == [job_url(job) for job in reversed(jobs)]
    assert "sortable" not in {
        name for th in page.all("th") for name in (th.get("class") or "").split()
    }


@pytest.mark.parametrize(
    "spell",
    [
        str,
        lambda job_id: str(job_id).upper(),
        lambda job_id: job_id.hex,
        lambda job_id: f"{{{job_id}}}",
        lambda job_id: job_id.urn,
        lambda job_id: f"  {job_id}\t",
    ],
    ids=["plain", "upper", "bare", "braces", "urn", "spaces"],
)
def test_searching_an_id_goes_straight_to_the_job(boss: Client, spell: type[str]) -> None:
    wanted, _ = make_job(), make_job()
    answer = boss.get(JOBS, {"q": spell(wanted.pk)})
    assert (answer.status_code, answer["Location"]) == (302, job_url(wanted))


def test_searching_an_unknown_id_finds_nothing(boss: Client) -> None:
    make_job()
    page = page_of(boss.get(JOBS, {"q": str(uuid4())}))
    assert jobs_on(page) == set()
    assert "No jobs match." in page.text


def test_searching_a_key_that_is_a_uuid_finds_its_job(boss: Client) -> None:
    key = str(uuid4())
    wanted, _ = make_job(idempotency_key=key), make_job()
    assert jobs_on(page_of(boss.get(JOBS, {"q": key}))) == ids(wanted)


@pytest.mark.parametrize("text", ["invoice", "VOICE.ren", "blue-box", "order-17", "  order-17 "])
def test_searching_finds_part_of_a_type_a_worker_or_a_key(boss: Client, text: str) -> None:
    wanted = make_running_job(
        type="invoice.render", worker_id="blue-box:1:thread-1:0", idempotency_key="order-17"
    )
    make_job(type="other")
    assert jobs_on(page_of(boss.get(JOBS, {"q": text}))) == ids(wanted)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("url", [JOBS, EVENTS])
def test_hostile_search_text_is_no_error(boss: Client, url: str, text: str) -> None:
    make_failed_job()
    page = page_of(boss.get(url, {"q": text}))
    assert not any("alert(1)" in script for script in page.scripts)


@pytest.mark.parametrize("text", ["\x00", "demo\x00", "\x00demo"])
@pytest.mark.parametrize("url", [JOBS, EVENTS])
def test_searching_what_no_column_can_hold_finds_nothing_and_says_why(
    boss: Client, url: str, text: str
) -> None:
    make_failed_job()
    answer = boss.get(url, {"q": text})
    page = page_of(answer)
    assert (jobs_on(page), events_on(page)) == (set(), set())
    assert " match." in page.text
    assert messages_of(answer) == [("error", "Null characters are not allowed.")]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_filters_are_no_error(boss: Client, text: str) -> None:
    make_failed_job()
    for url, names in ((JOBS, ("type", "status", "attention")), (EVENTS, ("type", "job"))):
        for name in names:
            page = page_of(boss.get(url, {name: text}))
            assert not any("alert(1)" in script for script in page.scripts)


@pytest.mark.parametrize("text", ["%", "_", "\\"])
def test_search_text_is_literal(boss: Client, text: str) -> None:
    make_job()
    assert jobs_on(page_of(boss.get(JOBS, {"q": text}))) == set()


@pytest.mark.parametrize(
    "parameter",
    ["last_error__regex", "payload__contains", "id__in", "locked_by__iregex", "events__type"],
)
def test_lookups_that_no_filter_offers_are_refused(boss: Client, parameter: str) -> None:
    assert boss.get(JOBS, {parameter: "("}).status_code == 400


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 30, "\x00"])
def test_a_page_that_is_none_is_no_error(boss: Client, page: str) -> None:
    make_job()
    assert boss.get(JOBS, {"p": page}, follow=True).status_code == 200


def test_jobs_are_filtered_by_status(boss: Client) -> None:
    made = {
        "queued": make_job(),
        "running": make_running_job(),
        "succeeded": make_succeeded_job(),
        "failed": make_failed_job(),
    }
    for status, job in made.items():
        assert jobs_on(page_of(boss.get(JOBS, {"status": status}))) == ids(job)
    assert jobs_on(page_of(boss.get(JOBS, {"status": "paused"}))) == set()


def test_jobs_are_filtered_by_part_of_their_type(boss: Client) -> None:
    wanted, _ = make_job(type="mail.send"), make_job(type="report")
    assert jobs_on(page_of(boss.get(JOBS, {"type": "MAIL"}))) == ids(wanted)
    both = boss.get(JOBS, {"type": "mail", "status": "failed"})
    assert jobs_on(page_of(both)) == set()


def test_the_type_filter_is_typed_into_and_keeps_the_other_filters(boss: Client) -> None:
    for number in range(60):
        make_job(type=f"kind.{number}")
    page = page_of(boss.get(JOBS, {"status": "queued", "type": "kind.7"}))
    assert page.all("input", name="type", value="kind.7")
    assert page.all("input", name="status", value="queued", type="hidden")
    assert "kind.59" not in page.text


def test_overdue_jobs_are_found_and_marked(boss: Client) -> None:
    overdue, fresh = make_running_job(), make_running_job()
    Job.objects.filter(pk=overdue.pk).update(locked_until=timezone.now() - timedelta(hours=1))
    page = page_of(boss.get(JOBS, {"attention": "overdue"}))
    assert jobs_on(page) == ids(overdue)
    assert "running, overdue" in page.text
    assert "overdue" not in page_of(boss.get(job_url(fresh))).text


def test_jobs_waiting_for_a_retry_are_found(boss: Client) -> None:
    wanted, _ = make_job(), make_job()
    Job.objects.filter(pk=wanted.pk).update(attempts=1)
    assert jobs_on(page_of(boss.get(JOBS, {"attention": "retrying"}))) == ids(wanted)


def test_events_are_listed_newest_first_with_a_link_to_their_job(boss: Client) -> None:
    job = make_failed_job(error="ValueError: no", type="mail.send")
    page = page_of(boss.get(EVENTS))
    links = [link for link in page.links() if link.startswith(EVENTS) and "/change/" in link]
    newest_first = JobEvent.objects.order_by("-id").values_list("id", flat=True)
    assert links == [f"{EVENTS}{number}/change/" for number in newest_first]
    assert jobs_on(page) == ids(job)
    for text in ("mail.send", "failed", "ValueError: no", WORKER):
        assert text in page.text
    assert not page.all("select")


def test_events_are_filtered_by_job_and_type(boss: Client) -> None:
    one, two = make_failed_job(), make_job()
    page = page_of(boss.get(EVENTS, {"job": one.pk.hex.upper()}))
    assert events_on(page) == set(one.events.values_list("id", flat=True))
    page = page_of(boss.get(EVENTS, {"type": "created"}))
    assert events_on(page) == set(
        JobEvent.objects.filter(type="created").values_list("id", flat=True)
    )
    assert jobs_on(page) == ids(one, two)
    assert events_on(page_of(boss.get(EVENTS, {"job": "no-id"}))) == set()


def test_events_are_searched_by_job_worker_and_message(boss: Client) -> None:
    wanted = make_failed_job(error="KeyError: zebra", worker_id="blue:1:thread-1:0")
    make_failed_job(error="ValueError: no")
    for text in (str(wanted.pk), f"{{{wanted.pk}}}", "BLUE", "zebra"):
        assert jobs_on(page_of(boss.get(EVENTS, {"q": text}))) == ids(wanted), text


def test_an_empty_list_says_so(boss: Client) -> None:
    assert "No jobs yet." in page_of(boss.get(JOBS)).text
    assert "No job events yet." in page_of(boss.get(EVENTS)).text
    make_job()
    page = page_of(boss.get(JOBS, {"type": "nothing"}))
    assert "No jobs match." in page.text


@pytest.mark.parametrize("text", ["nonsense", "\x00", str(UUID(int=0)), "9" * 40, "-1", "%00"])
def test_a_page_of_nothing_leads_back_with_a_message(boss: Client, text: str) -> None:
    from urllib.parse import quote

    for url in (JOBS, EVENTS):
        answer = boss.get(f"{url}{quote(text, safe='')}/change/", follow=True)
        assert answer.status_code == 200
        assert [level for level, _ in messages_of(answer)] == ["warning"]
