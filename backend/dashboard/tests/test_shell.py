"""What all pages share: who may look, what they may load, what a poll costs, and how a
page says that something is wrong."""

from __future__ import annotations

import logging
import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.core import checks as django_checks
from django.core.checks import run_checks
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.urls import get_script_prefix, include, path, reverse, set_script_prefix

from dashboard import access, checks, reading
from dashboard.pages import CONTENT_SECURITY_POLICY, Page
from jobs.display import short_id
from jobs.errors import JobNotFound
from jobs.tests.support import queued, sql

SCREENS = ("overview", "jobs", "failures", "events", "workers", "new_job")
POLL = {"HX-Request": "true"}

# A project that mounts the pages and not the API.
urlpatterns = [path("queue/", include("dashboard.urls"))]

pytestmark = pytest.mark.django_db


@pytest.fixture
def behind_login(settings: Any) -> None:
    """As in production."""
    settings.DASHBOARD_ACCESS = "login"


@pytest.fixture(autouse=True)
def open_to_all(settings: Any) -> None:
    """As in development, whatever the environment says."""
    settings.DASHBOARD_ACCESS = "open"


def user_with(*codenames: str) -> User:
    """A user who has these permissions and no others."""
    user = User.objects.create_user("ada", password="secret")
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


class AnyPage(Page):
    """A page that shows nothing."""

    template = "dashboard/problems/forbidden.html"
    live_template = "dashboard/problems/forbidden.html"

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """What the test wants to happen."""
        kwargs["happens"]()
        return {"reason": ""}


def page_on(rf: RequestFactory, happens: Any, **headers: str) -> Any:
    """The answer of a page on whose way this happens."""
    return AnyPage.as_view()(rf.get("/any/?state=failed", headers=headers), happens=happens)


def raising(error: Exception) -> Any:
    """Something that raises `error`."""

    def raise_it() -> None:
        raise error

    return raise_it


@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_forbids_what_it_does_not_need(screen: str, client: Client) -> None:
    response = client.get(reverse(f"dashboard:{screen}"))
    assert response.status_code == 200
    assert response.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "same-origin"
    assert response.headers["Cache-Control"] == "no-store"
    assert {"HX-Request", "Cookie"} <= set(response.headers["Vary"].split(", "))


@pytest.mark.parametrize("screen", SCREENS)
def test_no_screen_has_a_script_a_style_or_a_handler_in_its_markup(
    screen: str, client: Client
) -> None:
    page = client.get(reverse(f"dashboard:{screen}")).content.decode()
    assert not re.findall(r"<script(?![^>]* src=)[^>]*>|<style|\sstyle=|\son\w+=|hx-on", page)
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)


@pytest.mark.parametrize("screen", SCREENS)
def test_the_same_data_are_the_same_live_part(screen: str, client: Client) -> None:
    queued()
    address = reverse(f"dashboard:{screen}")
    first, second = (client.get(address, headers=POLL) for _ in range(2))
    if "ETag" not in first.headers:  # A page that is never polled.
        assert "hx-get" not in first.content.decode()
        return
    assert first.content == second.content
    assert b"csrfmiddlewaretoken" not in first.content
    again = client.get(address, headers={**POLL, "If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY


def test_a_poll_is_answered_anew_once_something_changed(client: Client) -> None:
    address = reverse("dashboard:job", args=[queued().pk])
    etag = client.get(address, headers=POLL).headers["ETag"]
    sql("UPDATE jobs_job SET priority = 99")
    answer = client.get(address, headers={**POLL, "If-None-Match": etag})
    assert answer.status_code == 200
    assert answer.headers["ETag"] != etag


def test_a_stranger_is_sent_to_the_login_and_back(client: Client, behind_login: None) -> None:
    response = client.get("/jobs/?state=failed")
    assert response.status_code == 302
    assert response.headers["Location"] == "/admin/login/?next=/jobs/%3Fstate%3Dfailed"


def test_a_poll_is_not_sent_to_the_login(client: Client, behind_login: None) -> None:
    response = client.get("/jobs/", headers=POLL)
    assert (response.status_code, response.content) == (401, b"")


@pytest.mark.parametrize("screen", SCREENS)
def test_a_user_without_the_permission_is_told_which(
    screen: str, client: Client, behind_login: None
) -> None:
    is_new_job = screen == "new_job"
    client.force_login(user_with(*(["view_job"] if is_new_job else [])))
    response = client.get(reverse(f"dashboard:{screen}"))
    assert response.status_code == 403
    assert response.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    wanted = access.CREATE if is_new_job else access.SEE
    assert wanted in response.content.decode()


def test_a_user_who_may_look_is_not_offered_to_create(client: Client, behind_login: None) -> None:
    client.force_login(user_with("view_job"))
    page = client.get("/workers/").content.decode()
    assert "ada" in page
    assert 'data-go="n"' not in page
    assert client.get("/jobs/new/").status_code == 403


def test_a_user_who_may_create_is_offered_it(client: Client, behind_login: None) -> None:
    client.force_login(user_with("view_job", "add_job"))
    assert 'data-go="n"' in client.get("/workers/").content.decode()


def test_an_account_that_was_closed_may_nothing(client: Client, behind_login: None) -> None:
    user = user_with("view_job")
    client.force_login(user)
    User.objects.update(is_active=False)
    assert client.get("/workers/").status_code == 302


def test_without_a_login_everybody_may_everything(rf: RequestFactory) -> None:
    request = rf.get("/")
    assert all(access.allows(request, right) for right in (access.SEE, access.CREATE, access.RETRY))


def test_access_is_closed_where_the_project_says_nothing(rf: RequestFactory, settings: Any) -> None:
    del settings.DASHBOARD_ACCESS
    assert access.mode() == "login"
    assert not access.allows(rf.get("/"), access.SEE)


def test_an_unknown_mode_is_closed_and_an_error(rf: RequestFactory, settings: Any) -> None:
    settings.DASHBOARD_ACCESS = "opne"
    assert not access.allows(rf.get("/"), access.SEE)
    (message,) = [found for found in run_checks() if found.id == "dashboard.E001"]
    assert isinstance(message, django_checks.Error)
    assert "'opne'" in message.msg


@pytest.mark.parametrize(("mode", "count"), [("open", 1), ("login", 0)])
def test_an_open_dashboard_in_production_is_warned_of(mode: str, count: int, settings: Any) -> None:
    settings.DASHBOARD_ACCESS = mode
    found = [
        message
        for message in run_checks(include_deployment_checks=True)
        if message.id == "dashboard.W001"
    ]
    assert len(found) == count
    assert all(isinstance(message, django_checks.Warning) for message in found)
    assert "dashboard.W001" not in {message.id for message in run_checks()}
    assert not checks.access_is_known()


def test_an_unknown_job_is_a_404_that_leads_on(client: Client) -> None:
    for job_id in (uuid4(), "no-id", "%3Cscript%3E"):
        response = client.get(f"/jobs/{job_id}/")
        assert response.status_code == 404
        page = response.content.decode()
        assert "There is no job with this id" in page
        assert 'href="/jobs/"' in page
        assert "<script>" not in page
        assert response.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY


def test_a_bad_address_is_a_400_that_tells_every_fault(client: Client) -> None:
    response = client.get("/jobs/?type=%00&worker=%FF&state=%3Cb%3E")
    assert response.status_code == 400
    page = response.content.decode()
    assert "<b>" not in page
    assert {"type", "worker", "state"} <= set(re.findall(r"<dt><bdi>(\w+)</bdi></dt>", page))
    assert 'href="/jobs/"' in page
    assert response.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY


@pytest.mark.parametrize("screen", ["jobs", "overview"])
def test_an_address_of_too_many_names_is_a_400_with_the_policy(screen: str, client: Client) -> None:
    answer = client.get(f"{reverse(f'dashboard:{screen}')}?{'a&' * 1_001}")
    assert (answer.status_code, "At most 1000 names." in answer.content.decode()) == (400, True)
    assert answer["Content-Security-Policy"] == CONTENT_SECURITY_POLICY


def test_a_refusal_on_the_way_is_a_403_with_its_reason(rf: RequestFactory) -> None:
    response = page_on(rf, raising(PermissionDenied("<i>no</i>")))
    assert response.status_code == 403
    assert "&lt;i&gt;no&lt;/i&gt;" in response.content.decode()


def test_an_id_of_no_job_is_told_whatever_it_is(rf: RequestFactory) -> None:
    response = page_on(rf, raising(JobNotFound("\u202e<b>")))
    assert response.status_code == 404
    assert "\u202e" not in response.content.decode()
    assert "<b>" not in response.content.decode()


def test_a_database_that_is_away_is_a_503_that_tells_no_secret(
    rf: RequestFactory, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "dashboard.pages"):
        response = page_on(rf, raising(OperationalError('connection to "db.internal" failed')))
    assert response.status_code == 503
    page = response.content.decode()
    assert "The database is not available" in page
    assert "db.internal" not in page
    assert 'href="/any/?state=failed"' in page
    assert response.headers["Retry-After"] == "5"
    assert response.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert "db.internal" in caplog.text


def test_behind_the_login_too_a_database_that_is_away_is_a_503_page(
    client: Client, behind_login: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(user_with("view_job"))

    def refuse(*args: Any) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr("django.contrib.sessions.backends.db.SessionStore.load", refuse)
    response = client.get("/jobs/")
    assert response.status_code == 503
    assert "The database is not available" in response.content.decode()
    assert 'class="rail"' in response.content.decode()


def test_a_statement_that_takes_too_long_is_ended_and_told(
    rf: RequestFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limits = reading._LIMITS.replace(f"'{reading.STATEMENT_TIMEOUT_MS}'", "'20'")
    monkeypatch.setattr(reading, "_LIMITS", limits)
    response = page_on(rf, lambda: sql("SELECT pg_sleep(20)"))
    assert response.status_code == 503
    page = response.content.decode()
    assert "This took the database too long" in page
    assert 'href="/any/"' in page
    assert sql("SELECT 1") == [(1,)]


def test_a_poll_that_takes_too_long_is_a_503_too(
    rf: RequestFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = reading._LIMITS.replace(f"'{reading.STATEMENT_TIMEOUT_MS}'", "'20'")
    monkeypatch.setattr(reading, "_LIMITS", limits)
    assert page_on(rf, lambda: sql("SELECT pg_sleep(20)"), **POLL).status_code == 503


@pytest.mark.django_db(transaction=True)
def test_a_page_of_many_statements_ends_in_time(
    rf: RequestFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reading, "PAGE_DEADLINE_SECONDS", 0.2)

    def many() -> None:
        while True:
            sql("SELECT pg_sleep(0.01)")

    response = page_on(rf, many)
    assert response.status_code == 503
    assert "The database is not available" in response.content.decode()
    assert "could not be shown" in caplog.text


def test_the_limits_of_a_page_end_with_it(rf: RequestFactory) -> None:
    seen: list[Any] = []
    before = sql("SHOW statement_timeout")
    sql("SAVEPOINT before_the_page")

    def look() -> None:
        seen.extend(sql("SELECT current_setting('statement_timeout'), current_setting('jit')"))

    assert page_on(rf, look).status_code == 200
    assert seen == [("2s", "off")]
    # The test's own transaction is still open; what was set in it ends with it.
    sql("ROLLBACK TO SAVEPOINT before_the_page")
    assert sql("SHOW statement_timeout") == before


def test_a_read_is_no_write(client: Client) -> None:
    job = queued()
    before = sql("SELECT xmin, ctid FROM jobs_job")
    for address in ("/", "/jobs/", f"/jobs/{job.pk}/", "/failures/", "/events/", "/workers/"):
        assert client.get(address).status_code == 200
    assert sql("SELECT xmin, ctid FROM jobs_job") == before


def test_a_method_that_is_none_is_refused_with_the_policy(client: Client) -> None:
    response = client.delete("/jobs/")
    assert response.status_code == 405
    assert response.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY


@pytest.mark.urls(__name__)
@pytest.mark.parametrize("screen", SCREENS)
def test_without_the_api_the_pages_work(screen: str, client: Client) -> None:
    response = client.get(reverse(f"dashboard:{screen}"))
    assert response.status_code == 200
    assert "/api/" not in response.content.decode()


@pytest.mark.urls(__name__)
def test_without_the_api_the_page_of_a_job_works(client: Client) -> None:
    response = client.get(f"/queue/jobs/{queued().pk}/")
    assert response.status_code == 200
    assert "Copy curl" not in response.content.decode()


def test_below_another_path_every_address_is_below_it(client: Client) -> None:
    before = get_script_prefix()
    set_script_prefix("/tools/")  # As a server does that mounts the project there.
    try:
        page = client.get("/jobs/", SCRIPT_NAME="/tools").content.decode()
    finally:
        set_script_prefix(before)
    addresses = re.findall(r'(?<![-\w])(?:href|action|hx-get)="(/[^"]*)"', page)
    assert len(addresses) > 10
    # Django makes up the static files' address once, when it is first asked for it.
    ours = ("/tools/", "/static/")
    assert not [address for address in addresses if not address.startswith(ours)]


@pytest.mark.parametrize("spelled", [str, lambda job_id: job_id.hex, lambda job_id: f" {job_id} "])
def test_a_search_for_an_id_goes_straight_to_the_job(client: Client, spelled: Any) -> None:
    job_id = uuid4()
    response = client.get("/search/", {"q": spelled(job_id)})
    assert (response.status_code, response.headers["Location"]) == (302, f"/jobs/{job_id}/")


@pytest.mark.parametrize(
    ("text", "address"),
    [("mail & more", "/jobs/?type=mail+%26+more"), ("", "/jobs/"), ("  ", "/jobs/")],
)
def test_another_search_goes_to_the_list(client: Client, text: str, address: str) -> None:
    assert client.get("/search/", {"q": text}).headers["Location"] == address


def test_a_search_for_what_cannot_be_is_a_400(client: Client) -> None:
    assert client.get("/search/?q=%00").status_code == 400
    assert client.get("/search/", {"q": "x" * 501}).status_code == 400


def test_a_search_asks_the_database_nothing(client: Client) -> None:
    executed: list[str] = []

    def note(execute: Any, statement: str, *rest: Any) -> Any:
        executed.append(statement)
        return execute(statement, *rest)

    with connection.execute_wrapper(note):
        client.get("/search/", {"q": "demo"})
    assert executed == []


@pytest.mark.parametrize("dots", ["…", "..."])
def test_a_short_id_leads_to_its_job(dots: str, client: Client) -> None:
    queued()
    job = queued()
    queued()
    text = short_id(job.pk).replace("…", dots).upper()
    found = client.get("/search/", {"q": text})
    assert found.headers["Location"] == reverse("dashboard:job", args=[job.pk])


def test_a_short_id_of_no_job_leads_to_the_list(client: Client) -> None:
    queued()
    found = client.get("/search/", {"q": "01234567…89abcd"})
    assert found.headers["Location"].startswith("/jobs/?type=")
