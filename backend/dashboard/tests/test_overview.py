"""The overview: what needs attention, tiles, charts, types, newest events."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone, translation

from dashboard import attention, figures
from dashboard.questions import Question
from dashboard.views import overview
from jobs import memo
from jobs.selectors import WorkersSeen, failure_groups, metrics
from jobs.selectors.metrics import Activity, Bucket, TypeActivity
from jobs.tests.support import (
    WORKER,
    events,
    expire,
    failed,
    last_event,
    owned_by,
    queued,
    running,
    sql,
    succeeded,
    write,
)

OVERVIEW = "/"
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script>\u202e<b>"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def open_to_all(settings: Any) -> None:
    """As in development, whatever the environment says."""
    settings.DASHBOARD_ACCESS = "open"


@pytest.fixture
def now() -> datetime:
    """The database's clock."""
    moment: datetime = sql("SELECT statement_timestamp()")[0][0]
    return moment


class Seen(HTMLParser):
    """The page's elements, and the text of those that have an id, all their children's too."""

    _VOID = frozenset({"meta", "link", "img", "input", "br", "path", "line", "rect", "circle"})

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open: list[tuple[str, str | None]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self._VOID:
            self._open.append((tag, dict(attrs).get("id")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        for _, element_id in self._open:
            if element_id:
                self.texts[element_id] = self.texts.get(element_id, "") + data

    def text(self, element_id: str) -> str:
        return " ".join(self.texts.get(element_id, "").split())

    def has(self, element_id: str) -> bool:
        return any(attrs.get("id") == element_id for _, attrs in self.elements)

    def href(self, element_id: str) -> str:
        (found,) = [attrs for _, attrs in self.elements if attrs.get("id") == element_id]
        return found["href"] or ""

    def asked(self, element_id: str) -> dict[str, str]:
        """What the element's link asks the list of jobs for."""
        address = urlsplit(self.href(element_id))
        assert address.path == reverse("dashboard:jobs")
        return {name: values[0] for name, values in parse_qs(address.query).items()}

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        wanted = attributes.items()
        return [attrs for name, attrs in self.elements if name == tag and wanted <= attrs.items()]


def seen(client: Client, **asked: str) -> Seen:
    """The page as a browser gets it, read anew."""
    memo.forget_all()
    response = client.get(OVERVIEW, asked)
    assert response.status_code == 200
    return Seen(response.content.decode())


def poll(client: Client, etag: str = "") -> Any:
    """The answer to a poll, read anew."""
    memo.forget_all()
    return client.get(OVERVIEW, headers={"HX-Request": "true", "If-None-Match": etag})


def bucket(number: int, **figures: float) -> Bucket:
    """A bucket of a minute after noon in which nothing happened but this."""
    nothing: dict[str, Any] = {"succeeded": 0.0, "failed": 0.0, "retried": 0.0}
    times = dict.fromkeys(("wait_p50", "wait_p95", "run_p50", "run_p95"))
    start = NOON + number * timedelta(minutes=1)
    return Bucket(**{"start": start, **nothing, **times, **figures})


def activity(**changes: Any) -> Activity:
    """An hour of which this is known."""
    known = Activity(
        window="1h",
        since=NOON,
        until=NOON + timedelta(hours=1),
        bucket_seconds=60,
        buckets=tuple(bucket(number) for number in range(60)),
        types=(),
        succeeded=0.0,
        failed=0.0,
        retried=0.0,
        wait_p50=None,
        wait_p95=None,
        run_p50=None,
        run_p95=None,
        is_estimate=False,
        events_read=0,
    )
    return dataclasses.replace(known, **changes)


def drawn(**changes: Any) -> Seen:
    """The charts and types of such an hour."""
    html = overview.activity_html(
        activity(**changes), reverse("dashboard:jobs"), timezone.get_current_timezone_name()
    )
    return Seen(html)


def type_id(job_type: str) -> str:
    """The id of the type's row."""
    return f"type-{overview.type_key(job_type)}"


def make_due(seconds: int) -> None:
    """Let every queued job have been due for so long."""
    sql(
        "UPDATE jobs_job SET available_at = statement_timestamp() - make_interval(secs => %s)"
        " WHERE status = 'queued'",
        seconds,
    )


def test_a_new_queue_says_what_to_do_next(client: Client) -> None:
    page = seen(client)
    assert "python manage.py run_job_workers" in page.text("start-worker")
    assert "curl http://testserver/api/jobs/" in page.text("create-job")
    assert '{"type": "demo.success"}' in page.text("create-job")
    assert page.href("first-job") == reverse("dashboard:new_job")
    assert not page.has("tile-ready")
    queued()
    page = seen(client)
    assert not page.has("start-worker")
    assert page.has("tile-ready")


def test_a_new_queue_offers_a_new_job_to_whoever_may_make_one(
    client: Client, django_user_model: Any, settings: Any
) -> None:
    settings.DASHBOARD_ACCESS = "login"
    user = django_user_model.objects.create_user("ada")
    user.user_permissions.set(Permission.objects.filter(codename="view_job"))
    client.force_login(user)
    page = seen(client)
    assert page.has("start-worker")
    assert not page.has("first-job")


def test_tiles_count_and_lead_to_what_they_count(client: Client) -> None:
    succeeded()
    failed()
    running()
    for _ in range(2):
        queued()
    later = queued(available_at=timezone.now() + timedelta(hours=1))
    sql("UPDATE jobs_job SET attempts = 1 WHERE id = %s", later.id)
    page = seen(client)
    tiles = {
        key: (
            re.sub(r"^\D*([\d,]+).*$", r"\1", page.text(f"tile-{key}")),
            page.asked(f"tile-{key}"),
        )
        for key in ("ready", "scheduled", "running", "succeeded", "failed", "retries")
    }
    assert tiles == {
        "ready": ("2", {"state": "ready"}),
        "scheduled": ("1", {"state": "scheduled"}),
        "running": ("1", {"state": "running"}),
        "succeeded": ("1", {"state": "succeeded"}),
        "failed": ("1", {"state": "failed"}),
        "retries": ("1", {"retrying": "1"}),
    }


def test_counts_that_stopped_say_so(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    queued()
    real = metrics.counts()
    counts = dataclasses.replace(
        real, ready=10_001, failed=4_321, at_least=frozenset({"failed"}), scheduled=10_000
    )
    monkeypatch.setattr(metrics, "counts", lambda: counts)
    page = seen(client)
    assert "10k+" in page.text("tile-ready")
    assert "4,321+" in page.text("tile-failed")
    assert re.search(r"10,000(?!\+)", page.text("tile-scheduled"))


def test_all_is_quiet_while_nothing_needs_attention(client: Client) -> None:
    succeeded()
    page = seen(client)
    assert "All quiet." in page.html
    assert not [attrs for attrs in page.all("a") if attrs.get("class") == "notice"]


def test_an_overdue_job_needs_attention_until_it_is_taken_back(client: Client) -> None:
    job = running()
    assert not seen(client).has("notice-overdue")
    expire(job.id)
    page = seen(client)
    assert "1 running job is overdue" in page.text("notice-overdue")
    assert page.asked("notice-overdue") == {"overdue": "1"}
    assert "All quiet." not in page.html
    sql("UPDATE jobs_job SET locked_until = statement_timestamp() + interval '1 hour'")
    assert not seen(client).has("notice-overdue")


def test_failures_of_the_last_hour_need_attention_by_group(client: Client) -> None:
    for kind in ("mail.send", "mail.send", "mail.send", "mail.send", "a", "b", "b", "c", "c"):
        failed(type=kind)
    page = seen(client)
    assert page.text("notice-failed-0").startswith("4 failed mail.send last ")
    assert page.text("notice-failed-0").endswith("it broke")
    asked = page.asked("notice-failed-0")
    assert asked == {"state": "failed", "type_is": "mail.send", "error_group": "it broke"}
    assert page.has("notice-failed-2")
    assert not page.has("notice-failed-3")
    sql("UPDATE jobs_job SET finished_at = finished_at - interval '61 minutes'")
    assert not seen(client).has("notice-failed-0")


def test_a_ready_job_that_waits_for_long_needs_attention(client: Client) -> None:
    running()
    queued()
    make_due(50)
    assert not seen(client).has("notice-waiting")
    make_due(70)
    page = seen(client)
    assert "1 ready job" in page.text("notice-waiting")
    assert page.asked("notice-waiting") == {"state": "ready"}
    assert not page.has("notice-no-worker")


def test_ready_jobs_without_a_worker_need_attention(client: Client) -> None:
    queued()
    assert not seen(client).has("notice-no-worker")
    make_due(70)
    page = seen(client)
    assert "No worker seen" in page.text("notice-no-worker")
    assert page.href("notice-no-worker") == reverse("dashboard:workers")
    assert not page.has("notice-waiting"), "one cause is told once"


def test_a_worker_that_was_heard_of_lately_is_there(client: Client) -> None:
    succeeded()
    queued()
    make_due(70)
    assert not seen(client).has("notice-no-worker")
    sql("UPDATE jobs_jobevent SET created_at = created_at - interval '6 minutes'")
    assert seen(client).has("notice-no-worker")


def test_counts_of_failures_say_where_more_were_not_looked_at(now: datetime) -> None:
    for _ in range(3):
        failed()
    nobody = WorkersSeen((), now, False, 0, None, False)
    counts = metrics.counts()
    cut = failure_groups(span=attention.FAILURES_SPAN, most_jobs=2)
    (notice,) = attention.notices(counts, cut, nobody)
    assert notice.title == "2+ failed"
    (notice,) = attention.notices(counts, failure_groups(span=attention.FAILURES_SPAN), nobody)
    assert notice.title == "3 failed"


def test_a_poll_of_the_same_data_is_not_answered_again(client: Client) -> None:
    succeeded()
    failed()
    running()
    queued()
    make_due(90)
    first = poll(client)
    assert first.status_code == 200
    assert b"csrf" not in first.content
    assert b"<html" not in first.content
    again = poll(client, first.headers["ETag"])
    if again.status_code == 200:
        # A new minute began in between, and with it a new column.
        first, again = again, poll(client, again.headers["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    queued()
    changed = poll(client, first.headers["ETag"])
    assert changed.status_code == 200
    assert changed.headers["ETag"] != first.headers["ETag"]


def test_what_others_wrote_is_text(client: Client) -> None:
    failed()
    sql("UPDATE jobs_job SET type = %s, last_error = %s", HOSTILE, HOSTILE)
    sql(
        "UPDATE jobs_jobevent SET message = %s, data = jsonb_build_object('type', %s::text)",
        HOSTILE,
        HOSTILE,
    )
    page = seen(client)
    assert "alert(" not in "".join(attrs.get("src") or "" for _, attrs in page.elements)
    assert page.html.count("<script") == len(page.all("script"))
    assert all("src" in attrs for attrs in page.all("script"))
    assert "\u202e" not in page.html
    assert HOSTILE.replace("\u202e", "\\u202e") in page.text("notice-failed-0")
    assert page.asked("notice-failed-0")["type_is"] == HOSTILE
    assert not page.all("b")
    assert not [attrs for _, attrs in page.elements if "style" in attrs]


def test_the_number_of_queries_does_not_depend_on_the_number_of_jobs(client: Client) -> None:
    def queries() -> int:
        memo.forget_all()
        with CaptureQueriesContext(connection) as captured:
            assert client.get(OVERVIEW).status_code == 200
        return len(captured)

    succeeded()
    failed(type="first")
    few = queries()
    for number in range(12):
        succeeded(type=f"type-{number}")
        failed(type=f"type-{number}")
        queued(priority=number)
    assert queries() == few


def test_the_window_is_in_the_address(client: Client) -> None:
    succeeded()
    page = seen(client)
    assert page.all("a", **{"aria-current": "true"})[0]["id"] == "window-1h"
    assert page.href("window-24h") == "?window=24h"
    page = seen(client, window="24h")
    assert page.all("a", **{"aria-current": "true"})[0]["id"] == "window-24h"
    assert "in the last 24 hours" in page.html
    (live,) = [attrs for _, attrs in page.elements if "data-live" in attrs]
    assert live["hx-get"] == "/?window=24h"
    assert client.get(OVERVIEW, {"window": "1y"}).status_code == 400


def test_what_really_happened_is_in_the_charts_and_their_tables(client: Client) -> None:
    succeeded()
    succeeded(type="other")
    failed()
    page = seen(client)
    (throughput,) = page.all("svg", **{"class": "chart tall"})
    assert throughput["role"] == "img"
    assert "2 succeeded, 0 retried, 1 failed" in (throughput["aria-label"] or "")
    kinds = {attrs.get("data-kind") for attrs in page.all("rect") if "y" in attrs}
    assert kinds == {"succeeded", "failed"}
    assert page.text("throughput-table").startswith("Show as table")
    assert page.text(type_id("demo.success")).startswith("demo.success")
    assert page.text(type_id("demo.success")).endswith("50 %")
    assert page.text(type_id("other")).endswith("none")


def test_a_column_leads_to_the_jobs_that_were_made_in_it(rf: RequestFactory) -> None:
    page = drawn(buckets=(bucket(0, succeeded=7.0), bucket(1, failed=1.0)))
    hrefs = [attrs["href"] or "" for attrs in page.all("a") if attrs.get("tabindex") == "-1"]
    assert hrefs[0] == (
        "/jobs/?created_after=2026-03-04T12:00:00Z&created_before=2026-03-04T12:01:00Z"
    )
    assert len(hrefs) == 2
    asked = Question(rf.get(hrefs[0]))
    assert asked.moment("created_after") == NOON
    assert asked.moment("created_before") == NOON + timedelta(minutes=1)
    in_tables = [attrs["href"] for attrs in page.all("a") if "tabindex" not in attrs]
    assert in_tables == [*reversed(hrefs)] * 2, "the keyboard gets there by the tables"
    assert "15:30\N{EN DASH}15:31: 7 succeeded, 0 retried, 0 failed" in page.html


def test_estimates_are_told_as_such() -> None:
    page = drawn(
        is_estimate=True,
        attempts_are_all=False,
        events_read=12_000,
        attempts_read=600,
        succeeded=12_345.0,
        buckets=(bucket(0, succeeded=12_345.0),),
        types=(TypeActivity("mail.send", 12_345.0, 0.0004, 205.75, (1.0,) * 24),),
    )
    assert "estimated from 12,000 events read" in page.html
    assert page.html.count("estimated from 600 attempts read") == 2
    assert "\N{ALMOST EQUAL TO} 12,300" in page.text("throughput-table")
    assert page.text(type_id("mail.send")) == "mail.send ≈ 206 ≈ 12,300 <0.1 %"


def test_exact_figures_are_not_told_as_estimates() -> None:
    page = drawn(succeeded=12_345.0, buckets=(bucket(0, succeeded=12_345.0),))
    assert "estimated" not in page.html
    assert "\N{ALMOST EQUAL TO}" not in page.html
    assert "12,345" in page.text("throughput-table")


def test_an_hour_in_which_nothing_happened_says_so() -> None:
    html = drawn().html
    assert html.count("No attempt ended in the last hour.") == 2
    assert html.count("No sample in the last hour.") == 2
    assert "NaN" not in html
    assert "inf" not in html


def test_types_beyond_the_first_are_counted() -> None:
    types = tuple(TypeActivity(f"t{n}", 1.0, 0.0, 0.1, (0.0,) * 24) for n in range(23))
    page = drawn(types=types)
    assert page.has(type_id("t19"))
    assert not page.has(type_id("t20"))
    assert "and 3 more" in page.html


def test_figures_do_not_depend_on_the_projects_language(settings: Any) -> None:
    settings.USE_THOUSAND_SEPARATOR = True
    settings.LANGUAGE_CODE = "de"
    with translation.override("de"):
        page = drawn(
            buckets=tuple(bucket(n, succeeded=1234.5, run_p50=1.5, run_p95=2.5) for n in range(7)),
            types=(TypeActivity("t", 1.0, 0.055, 0.1, (1.0, 2.0)),),
        )
    numbers = [
        attrs[name] or ""
        for tag in ("rect", "line", "text")
        for attrs in page.all(tag)
        for name in ("x", "y", "y1", "width", "height")
        if name in attrs
    ]
    assert numbers
    assert all(re.fullmatch(r"-?\d+(\.\d+)?%?", number) for number in numbers)


def test_the_newest_events_are_listed_with_their_jobs(client: Client) -> None:
    for _ in range(4):
        succeeded()
    job = running(type="mail.send")
    page = seen(client)
    rows = [attrs for attrs in page.all("li") if (attrs.get("id") or "").startswith("event-")]
    assert len(rows) == overview.NEWEST_EVENTS
    newest = rows[0]
    assert newest["data-href"] == reverse("dashboard:job", args=[job.id])
    assert "claimed mail.send" in page.text(newest["id"] or "")
    assert WORKER in page.text(newest["id"] or "")
    assert page.href("all-events") == reverse("dashboard:events")


def test_renewals_do_not_crowd_the_newest_events_out(client: Client) -> None:
    job = running()
    for _ in range(overview.NEWEST_EVENTS):
        write("renew_lease", owned_by(job))
    rows = [attrs["id"] or "" for attrs in seen(client).all("li") if "data-row" in attrs]
    told = [row.removeprefix("event-") for row in rows if row.startswith("event-")]
    assert told == [str(event.pk) for event in events(job.id)[1::-1]]


def test_renewals_are_listed_where_there_is_nothing_else(client: Client) -> None:
    job = running()
    for _ in range(overview.NEWEST_EVENTS_READ):
        write("renew_lease", owned_by(job))
    assert "lease renewed" in seen(client).text(f"event-{last_event(job.id).pk}")


@pytest.mark.parametrize(
    ("value", "exactly", "roughly"),
    [
        (0, "0", "0"),
        (0.3, "0", "≈ <1"),
        (999.4, "999", "≈ 999"),
        (12_345, "12,345", "≈ 12,300"),
        (9_996, "9,996", "≈ 10,000"),
    ],
)
def test_estimates_have_no_more_digits_than_they_are_good_for(
    value: float, exactly: str, roughly: str
) -> None:
    assert figures.about(value, False) == exactly
    assert figures.about(value, True) == roughly


def test_rates_are_short() -> None:
    rates = (0, 0.01, 0.06, 12.345, 1234.5)
    assert [figures.rate(value) for value in rates] == ["0.0", "<0.1", "0.1", "12.3", "1,230"]
    assert figures.rate(12.345, True) == "≈ 12.3"
