"""The list of jobs: its filters, its stillness, and what can be retried from it."""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from dashboard.views import retry_many
from jobs import bulk_retry, memo, services
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.tests.plans.cost import MOST_BUFFERS, measured
from jobs.tests.support import (
    WORKER,
    event_types,
    expire,
    failed,
    load,
    queued,
    row,
    running,
    sql,
    succeeded,
    unchanged,
)

POLL = {"HX-Request": "true"}
HOSTILE = "<script>alert('x')</script>\u202e\x01"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def open_to_all(settings: Any) -> None:
    """As in development, whatever the environment says."""
    settings.DASHBOARD_ACCESS = "open"


@pytest.fixture
def reader(client: Client, settings: Any) -> Client:
    """Somebody who may look and not retry."""
    settings.DASHBOARD_ACCESS = "login"
    user = User.objects.create_user("ada", password="secret")
    user.user_permissions.set(Permission.objects.filter(codename="view_job"))
    client.force_login(user)
    return client


def page(client: Client, query: str = "", **arguments: Any) -> str:
    """The list at this query."""
    answer = client.get(f"{reverse('dashboard:jobs')}{query}", **arguments)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def rows(text: str) -> list[UUID]:
    """The jobs that a page shows, in order."""
    return [UUID(job_id) for job_id in re.findall(r'<tr[^>]* data-job-id="([^"]+)"', text)]


def live_url(text: str) -> str:
    """Where the page's live part comes from."""
    found = re.search(r'data-live hx-get="([^"]+)"', text)
    assert found is not None
    return html.unescape(found[1])


def link(text: str, pattern: str) -> str:
    """Where the link goes whose tag matches `pattern`."""
    found = re.search(rf"<a [^>]*{pattern}[^>]*>", text)
    assert found is not None, pattern
    address = re.search(r'href="([^"]*)"', found[0])
    assert address is not None
    return html.unescape(address[1])


def test_each_state_has_a_tab_that_shows_its_jobs_alone(client: Client) -> None:
    made = {
        "succeeded": succeeded(),
        "failed": failed(),
        "running": running("w"),
        "ready": queued(),
    }
    text = page(client)
    assert set(rows(text)) == {job.id for job in made.values()}
    for state, job in made.items():
        narrowed = page(client, link(text, f'id="tab-{state}"'))
        assert rows(narrowed) == [job.id]
        assert re.search(rf'id="tab-{state}"[^>]* aria-current="page"', narrowed)


def test_counts_stand_on_the_tabs_and_not_beside_a_filter_they_are_not_of(client: Client) -> None:
    failed()
    failed()
    assert re.search(r'id="tab-failed".*?<span class="count">2</span>', page(client))
    assert 'class="count"' not in page(client, "?type=nosuch")


def test_every_filter_is_a_chip_that_takes_itself_away_and_nothing_else(client: Client) -> None:
    query = (
        "?state=running&type=a&type_is=b&priority=-3&worker=c&created_after=2026-01-01T00:00:00Z"
        "&created_before=2026-02-01T00:00:00Z&overdue=1&error=d&error_group=e&size=50"
    )
    text = page(client, query)
    chips = dict(
        re.findall(
            r'<span class="chip"><span>([^<]+)</span><bdi>[^<]*</bdi><a href="([^"]+)"', text
        )
    )
    names = {
        "type contains": "type=a",
        "type is": "type_is=b",
        "priority": "priority=-3",
        "worker contains": "worker=c",
        "created from": "created_after=2026-01-01T00%3A00%3A00%2B00%3A00",
        "created before": "created_before=2026-02-01T00%3A00%3A00%2B00%3A00",
        "lease": "overdue=1",
        "error contains": "error=d",
        "error like": "error_group=e",
    }
    assert set(chips) == set(names)
    for name, parameter in names.items():
        kept = set(html.unescape(chips[name]).removeprefix("?").split("&"))
        assert kept == {"state=running", "size=50", *names.values()} - {parameter}
    assert 'href="?state=running">Clear filters' in text


@pytest.mark.parametrize(
    "query",
    [
        "state=queued",
        "priority=high",
        "priority=40000",
        "created_after=yesterday",
        "sort=claim&state=failed",
        "sort=size",
        "size=26",
        "after=1",
        "before=99999999999999999.00000000000000000000000000000000",
        "rows=abc",
        "rows=" + "!" * 22,
        "type=" + "x" * 501,
    ],
)
def test_an_address_that_asks_for_what_cannot_be_is_told_so(client: Client, query: str) -> None:
    for headers in ({}, POLL):
        answer = client.get(f"{reverse('dashboard:jobs')}?{query}", headers=headers)
        assert answer.status_code == 400
        assert query.split("=")[0] in answer.content.decode()


def test_the_pages_lead_to_each_other_and_back(client: Client) -> None:
    made = [queued().id for _ in range(60)][::-1]
    first = page(client)
    assert rows(first) == made[:25]
    assert 'rel="prev"' not in first
    second = page(client, link(first, 'rel="next"'))
    assert rows(second) == made[25:50]
    third = page(client, link(second, 'rel="next"'))
    assert rows(third) == made[50:]
    assert 'rel="next"' not in third
    assert rows(page(client, link(third, 'rel="prev"'))) == made[25:50]
    newest = [queued().id for _ in range(3)][::-1]
    # Fewer than a page stand before it now: that is the first page, and a full one.
    assert rows(page(client, link(second, 'rel="prev"'))) == made[:25]
    before = link(page(client, link(page(client), 'rel="next"')), 'rel="prev"')
    assert rows(page(client, before)) == [*newest, *made[:22]]


def test_new_jobs_do_not_move_the_list_they_are_counted(client: Client) -> None:
    made = [queued().id for _ in range(3)][::-1]
    url = live_url(page(client))
    assert 'id="come"' not in client.get(url, headers=POLL).content.decode()
    for _ in range(12):
        queued()
    polled = client.get(url, headers=POLL).content.decode()
    assert rows(polled) == made
    assert "12 new" in polled
    for _ in range(20):
        queued()
    polled = client.get(url, headers=POLL).content.decode()
    assert "25+ new" in polled
    assert len(rows(page(client, link(polled, 'id="come"')))) == 25


def test_a_later_page_is_not_told_of_new_jobs(client: Client) -> None:
    for _ in range(26):
        queued()
    later = page(client, link(page(client), 'rel="next"'))
    queued()
    polled = client.get(live_url(later), headers=POLL).content.decode()
    assert (len(rows(polled)), " new</a>" in polled) == (1, False)


def test_a_poll_brings_the_rows_up_to_date_where_they_stand(client: Client) -> None:
    job, other = queued(priority=99), queued()
    url = live_url(page(client, "?state=ready"))
    services.claim_next_job(worker_id=WORKER)
    memo.forget_all()
    polled = client.get(url, headers=POLL).content.decode()
    assert rows(polled) == [job.id, other.id]
    dimmed = re.findall(r'<tr[^>]*data-job-id="([^"]+)"[^>]*class="is-past"', polled)
    assert dimmed == [str(job.id)]
    assert polled.count("not in this list any more") == 1
    assert "</svg>running</span>" in polled
    assert re.search(r'id="tab-ready".*?<span class="count">1</span>', polled)


def test_a_poll_of_what_has_not_changed_is_answered_with_nothing(client: Client) -> None:
    running()
    failed()
    for _ in range(30):
        queued()
    for query in ("", "?state=failed", "?state=running&size=100", "?type=demo&sort=oldest"):
        url = live_url(page(client, query))
        first = client.get(url, headers=POLL)
        again = client.get(url, headers={**POLL, "If-None-Match": first.headers["ETag"]})
        assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


def test_the_first_page_and_its_first_poll_are_the_same(client: Client) -> None:
    for make in (queued, failed, running, succeeded):
        make()
    text = page(client)
    polled = client.get(live_url(text), headers=POLL).content.decode()
    assert polled.strip() in text
    assert "csrf" not in polled


def test_a_page_of_100_jobs_has_an_address_that_every_server_takes(client: Client) -> None:
    load(100)
    text = page(client, f"?size=100&type_is=demo.success&type={'demo.success'}")
    assert len(rows(text)) == 100
    assert len(live_url(text)) < 2_500


def test_hostile_text_is_shown_and_does_nothing(client: Client) -> None:
    job = failed()
    sql("UPDATE jobs_job SET type = %s, last_error = %s WHERE id = %s", "<b>&", HOSTILE, job.id)
    held = running(worker=HOSTILE)
    for query in ("", "?state=failed", "?state=running", f"?type_is={HOSTILE.replace(chr(1), '')}"):
        text = page(client, query)
        assert "<script>alert" not in text
        assert "\u202e" not in text
        assert "\x01" not in text
    text = page(client)
    assert "&lt;b&gt;&amp;" in text
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;\\u202e\\u0001" in text
    assert str(held.id) in text


def test_payloads_and_results_stay_in_the_database(client: Client) -> None:
    job = running(payload={"n": "a payload nobody asked for"})
    services.complete_job(job_id=job.id, worker_id=WORKER, attempt=1, result="a secret result")
    text = page(client)
    assert "nobody asked for" not in text
    assert "secret result" not in text


def test_nothing_there_says_what_to_do_next(client: Client) -> None:
    text = page(client)
    assert "No jobs yet" in text
    assert "curl" in text
    assert reverse("dashboard:new_job") in text
    assert "Clear filters" not in text


def test_nothing_that_matches_offers_to_clear_the_filters(client: Client) -> None:
    queued()
    text = page(client, "?type=nosuch")
    assert "No job matches" in re.sub(r" +", " ", text)
    assert 'href="?">Clear filters' in text
    assert "No scheduled jobs" in page(client, "?state=scheduled")


def test_a_search_that_was_cut_short_says_so_and_leads_on(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.selectors.job_search.WINDOW", 10)
    rare = queued(type="rare")
    for _ in range(15):
        queued()
    text = page(client, "?type=rare")
    assert "Only 10 jobs were looked at" in text
    further = re.search(r'<a href="([^"]+)">Look further back', text)
    assert further is not None
    assert rows(page(client, html.unescape(further[1]))) == [rare.id]


def test_a_job_that_is_gone_leaves_the_page(client: Client) -> None:
    gone, kept = queued(), queued()
    url = live_url(page(client))
    sql("DELETE FROM jobs_jobevent WHERE job_id = %s", gone.id)
    sql("DELETE FROM jobs_job WHERE id = %s", gone.id)
    assert rows(client.get(url, headers=POLL).content.decode()) == [kept.id]


def test_an_overdue_job_says_so(client: Client) -> None:
    job = running()
    expire(job.id)
    text = page(client, "?overdue=1")
    assert rows(text) == [job.id]
    assert "</svg>overdue</span>" in text


def test_who_may_not_retry_is_offered_nothing_to_retry_with(reader: Client) -> None:
    job = failed()
    text = page(reader)
    assert rows(text) == [job.id]
    assert 'name="job"' not in text
    assert reverse("dashboard:retry_many") not in text
    with unchanged(job.id):
        for url in (reverse("dashboard:retry", args=[job.id]), reverse("dashboard:retry_many")):
            assert reader.post(url, {"job": str(job.id)}).status_code == 403
        assert reader.get(reverse("dashboard:retry_many")).status_code == 403


def test_states_without_a_failed_job_have_nothing_to_select(client: Client) -> None:
    running()
    assert 'name="job"' not in page(client, "?state=running")
    failed()
    assert 'name="job"' in page(client, "?state=failed")


def test_one_job_is_retried_and_its_page_says_so(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    job = failed()
    with caplog.at_level(logging.INFO, "dashboard"):
        answer = client.post(reverse("dashboard:retry", args=[job.id]))
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"{reverse('dashboard:job', args=[job.id])}?notice=retried"
    assert row(job.id)["status"] == "queued"
    assert f"retried job {job.id}" in caplog.text


def test_a_job_that_is_not_failed_is_not_retried_and_its_page_says_why(client: Client) -> None:
    job = running()
    with unchanged(job.id):
        answer = client.post(reverse("dashboard:retry", args=[job.id]))
    assert answer.headers["Location"].endswith("?notice=not_failed")


@pytest.mark.parametrize("job_id", [str(UUID(int=1)), "no-id"])
def test_an_unknown_job_is_not_found(client: Client, job_id: str) -> None:
    assert client.post(reverse("dashboard:retry", args=[job_id])).status_code == 404


def test_a_link_retries_nothing(client: Client) -> None:
    job = failed()
    with unchanged(job.id):
        assert client.get(reverse("dashboard:retry", args=[job.id])).status_code == 405
        assert client.get(reverse("dashboard:retry_many")).status_code == 200


def test_a_foreign_form_retries_nothing() -> None:
    client = Client(enforce_csrf_checks=True)
    job = failed()
    with unchanged(job.id):
        for url in (reverse("dashboard:retry", args=[job.id]), reverse("dashboard:retry_many")):
            assert client.post(url, {"job": str(job.id)}).status_code == 403


def figures(answer: Any) -> dict[str, str]:
    """What a bulk retry says it did."""
    assert answer.status_code == 200, answer.content
    text = answer.content.decode()
    return {
        name: re.sub(r"<[^>]+>", " ", said).split()[0]
        for name, said in re.findall(r"<dt>(Matched|Retried|Skipped)</dt><dd>(.*?)</dd>", text)
    }


def test_what_was_ticked_is_retried_and_what_is_not_failed_is_skipped_with_its_reason(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    broken, done, unknown = failed(), succeeded(), uuid4()
    with caplog.at_level(logging.INFO, "dashboard"):
        answer = client.post(
            reverse("dashboard:retry_many"),
            {"job": [broken.id, done.id, unknown], "back": "state=failed&type=demo"},
        )
    assert figures(answer) == {"Matched": "3", "Retried": "1", "Skipped": "2"}
    text = answer.content.decode()
    assert "1 succeeded" in text
    assert "1 no longer there" in text
    assert f'{reverse("dashboard:jobs")}?state=failed&amp;type=demo"' in text
    assert event_types(broken.id)[-1] == "manual_retry"
    assert "retried selected: 3 matched, 1 retried, 2 skipped" in caplog.text


@pytest.mark.parametrize(
    "job_ids", [["no-id"], [str(UUID(int=n)) for n in range(services.MAX_RETRIES_AT_ONCE + 1)]]
)
def test_a_selection_that_cannot_be_is_refused_whole(client: Client, job_ids: list[str]) -> None:
    job = failed()
    with unchanged(job.id):
        answer = client.post(reverse("dashboard:retry_many"), {"job": [str(job.id), *job_ids]})
        assert answer.status_code == 400


@pytest.fixture
def ask(client: Client) -> Callable[[str], tuple[str, str]]:
    """The page that asks before all that match are retried, and where its button posts to."""

    def ask(query: str) -> tuple[str, str]:
        answer = client.get(reverse("dashboard:retry_many") + query)
        assert answer.status_code == 200, answer.content
        text = answer.content.decode()
        found = re.search(r'formaction="([^"]+)"', text)
        return text, reverse("dashboard:retry_many") + html.unescape(found[1] if found else "")

    return ask


Ask = Callable[[str], tuple[str, str]]


def test_all_that_match_are_counted_first_and_only_those_are_retried(
    client: Client, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    matching = [failed(type="a.mail"), failed(type="b.mail")]
    other = failed(type="c.file")
    text, do = ask("?state=failed&type=mail")
    assert "2" in re.findall(r"<strong>(.*?)</strong>", text)
    assert "type contains" in text
    late = failed(type="late.mail")
    with unchanged(other.id), unchanged(late.id), caplog.at_level(logging.INFO, "dashboard"):
        answer = client.post(do)
    assert figures(answer) == {"Matched": "2", "Retried": "2", "Skipped": "0"}
    assert all(row(job.id)["status"] == "queued" for job in matching)
    assert "all that match (state=failed&type=mail): 2 matched, 2 retried" in caplog.text


def test_it_is_cut_off_at_the_count_though_a_job_fails_again(client: Client, ask: Ask) -> None:
    job = failed()
    _, do = ask("?state=failed")
    services.retry_job(job_id=job.id)
    again = services.claim_next_job(worker_id=WORKER)
    assert again is not None
    services.fail_job(job_id=job.id, worker_id=WORKER, attempt=1, error="again")
    with unchanged(job.id):
        assert figures(client.post(do))["Retried"] == "0"


def test_the_count_goes_on_in_steps_until_there_are_too_many_to_tell(
    client: Client, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry_many, "COUNTED_AT_ONCE", 2)
    monkeypatch.setattr(retry_many, "COUNT_LIMIT", 5)
    load(5, status=Status.FAILED)
    counts = []
    query = "?state=failed"
    while True:
        text, _ = ask(query)
        counts.append(re.findall(r"<strong>(.*?)</strong>", text)[0])
        more = re.search(r'hx-get="([^"]+counted[^"]+)"', text)
        if more is None:
            break
        query = html.unescape(more[1])
    assert counts == ["2+", "4+", "5"]
    load(2, status=Status.FAILED)
    text, _ = ask("?state=failed&counted=4")
    assert re.findall(r"<strong>(.*?)</strong>", text) == ["10k+"]
    assert "hx-get" not in text.partition('id="count"')[2].partition(">")[0]


def test_many_are_retried_in_steps_that_add_up(
    client: Client, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def two_at_a_time(*args: Any, **kwargs: Any) -> bulk_retry.BulkRetry:
        return bulk_retry.retry_matching(*args, **kwargs, max_jobs=2)

    monkeypatch.setattr(retry_many, "retry_matching", two_at_a_time)
    load(5, status=Status.FAILED)
    _, url = ask("?state=failed")
    seen: list[str] = []
    while True:
        answer = client.post(url, headers=POLL if seen else {})
        seen.append(figures(answer)["Retried"])
        more = re.search(r'hx-post="([^"]+)"', answer.content.decode())
        if more is None:
            break
        assert "csrfmiddlewaretoken" in answer.content.decode()
        url = reverse("dashboard:retry_many") + html.unescape(more[1])
    assert seen == ["2", "4", "5"]
    assert Job.objects.in_status(Status.FAILED).count() == 0


def test_nothing_that_matches_has_no_button(ask: Ask) -> None:
    queued()
    text, _ = ask("?state=ready")
    assert "formaction" not in text
    assert "Back to the list" in text


def test_all_that_match_needs_its_cut_off(client: Client) -> None:
    job = failed()
    with unchanged(job.id):
        answer = client.post(reverse("dashboard:retry_many") + "?state=failed&as_of=")
        assert answer.status_code == 400


def test_the_dearest_lists_stay_within_a_pages_budget(client: Client) -> None:
    """Counted beside the list; the search alone is held by the selectors' own tests."""
    sql("TRUNCATE jobs_job, jobs_jobevent")
    load(3_000, status=Status.FAILED)
    load(3_000, priority="g % 40")
    load(3_000, priority="g % 40", available_at="statement_timestamp() + interval '1 h'")
    for query in ("", "?state=ready", "?state=scheduled", "?state=failed", "?state=succeeded"):
        query += f"{'&' if query else '?'}size=100"
        with measured() as cost:
            text = page(client, query)
        assert cost.buffers <= MOST_BUFFERS
        with measured() as cost:
            client.get(live_url(text), headers=POLL)
        assert cost.buffers <= MOST_BUFFERS


def test_who_may_not_look_cannot_learn_by_retrying_what_there_is(
    client: Client, settings: Any
) -> None:
    settings.DASHBOARD_ACCESS = "login"
    job = failed()
    user = User.objects.create_user("somebody")
    user.user_permissions.set(Permission.objects.filter(codename="change_job"))
    client.force_login(user)
    many = reverse("dashboard:retry_many")
    with unchanged(job.id):
        assert client.get(many, {"state": "failed"}).status_code == 403
        assert client.post(many, {"job": [str(job.id)]}).status_code == 403
        assert client.post(reverse("dashboard:retry", args=[job.id])).status_code == 403
