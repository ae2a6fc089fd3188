"""A project fresh from `startproject` has the queue and its pages in under ten lines.

The lines are those of the how-to, word for word; only the database's name is ours.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPResponse
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.db import connection

BACKEND = Path(__file__).resolve().parents[2]
PAGE = BACKEND.parent / "docs" / "how-to" / "mount-the-dashboard.md"
LINES: dict[str, str] = dict(
    re.findall(r"^```python (\S+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
)
OURS = ("/ops/queue/", "/ops/api/", "/static/", "#", "?")
PATIENCE_SECONDS = 60
PASSWORD = "a long enough password"
ADDRESS = re.compile(
    r'(?<![-\w])(?:href|src|action|formaction|hx-get|hx-post|data-href|data-api-url)="([^"]*)"'
)
SCREENS = ("", "jobs/", "failures/", "events/", "workers/")

MAKE_READY = f"""
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("check", fail_level="WARNING")
from jobs.services import create_job
for name in ("stranger", "reader"):
    User.objects.create_user(name, password={PASSWORD!r}, is_staff=True)
for codename in ("view_job", "add_job"):
    permission = Permission.objects.get(codename=codename)
    User.objects.get(username="reader").user_permissions.add(permission)
print(create_job(type="demo.success", payload={{"sleep_seconds": 0}})[0].pk)
"""


class Browser(urllib.request.HTTPRedirectHandler):
    """Keeps cookies, follows no redirect, and answers every status."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.cookies = CookieJar()
        self._opener = urllib.request.build_opener(
            self, urllib.request.HTTPCookieProcessor(self.cookies)
        )

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Let it be an answer like any other."""

    def ask(
        self, path: str, data: bytes | None = None, headers: dict[str, str] | None = None
    ) -> HTTPResponse | urllib.error.HTTPError:
        """The answer to a GET, or to a POST of `data`."""
        request = urllib.request.Request(f"{self.address}{path}", data, headers or {})
        try:
            answer: HTTPResponse = self._opener.open(request, timeout=PATIENCE_SECONDS)
        except urllib.error.HTTPError as error:
            return error
        return answer

    def text(self, path: str) -> str:
        """The body of a page that is there."""
        with self.ask(path) as answer:
            assert answer.status == 200, (path, answer.status)
            return answer.read().decode()

    def cookie(self, name: str) -> str:
        """The cookie's value."""
        (value,) = (cookie.value for cookie in self.cookies if cookie.name == name)
        assert value is not None
        return value

    def log_in(self, name: str) -> None:
        """By the project's own login page."""
        self.text("/admin/login/")
        form = {
            "username": name,
            "password": PASSWORD,
            "csrfmiddlewaretoken": self.cookie("csrftoken"),
            "next": "/ops/queue/",
        }
        with self.ask("/admin/login/", urlencode(form).encode()) as answer:
            assert (answer.status, answer.headers["Location"]) == (302, "/ops/queue/")


class Site:
    """The running project and the job it has."""

    def __init__(self, address: str, job_id: str) -> None:
        self.address = address
        self.job_id = job_id

    def browser(self, user: str = "") -> Browser:
        """A new browser, logged in as `user` where one is named."""
        browser = Browser(self.address)
        if user:
            browser.log_in(user)
        return browser


def run(project: Path, environment: dict[str, str], *command: str, typed: str = "") -> str:
    """What the command prints."""
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env=environment,
        input=typed,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def site(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """The project, made, migrated and served by its own `runserver`."""
    database = settings.DATABASES["default"]
    if "postgresql" not in database["ENGINE"]:
        pytest.skip("needs PostgreSQL (TEST_DATABASE_ENGINE=sqlite)")
    with django_db_blocker.unblock():
        name = f"{database['NAME']}_mysite"
        with connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            cursor.execute(f'CREATE DATABASE "{name}"')
        try:
            yield from served(tmp_path_factory.mktemp("project"), name)
        finally:
            with connection.cursor() as cursor:
                cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
            connection.close()


def served(project: Path, database_name: str) -> Iterator[Site]:
    """The site on a free port, until the test is done with it."""
    database = settings.DATABASES["default"]
    kept = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "SYSTEMROOT")
    environment = {name: os.environ[name] for name in kept if name in os.environ} | {
        "PYTHONPATH": str(BACKEND),
        "PYTHONWARNINGS": "default",
        "PGHOST": str(database["HOST"]),
        "PGPORT": str(database["PORT"]),
        "PGUSER": str(database["USER"]),
        "PGPASSWORD": str(database["PASSWORD"]),
    }
    run(project, environment, "-m", "django", "startproject", "mysite", ".")
    for file, lines in LINES.items():
        text = lines.replace('"NAME": "mysite"', f'"NAME": "{database_name}"')
        with (project / file).open("a") as out:
            out.write(text)
    printed = run(project, environment, "manage.py", "shell", "-v", "0", typed=MAKE_READY)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    log = project / "runserver.log"
    with log.open("wb") as output:
        command = ["manage.py", "runserver", "--noreload", "--skip-checks", address]
        server = subprocess.Popen(
            [sys.executable, *command],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        wait_for(address, server, log)
        yield Site(f"http://{address}", printed.split()[-1])
    finally:
        server.terminate()
        server.wait(PATIENCE_SECONDS)


def wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Return once the server takes connections."""
    host, port = address.split(":")
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        assert server.poll() is None, log.read_text()
        try:
            socket.create_connection((host, int(port)), 1).close()
        except OSError:
            assert time.monotonic() < give_up_at, log.read_text()
            time.sleep(0.02)
        else:
            return


def test_it_takes_under_ten_lines() -> None:
    assert set(LINES) == {"mysite/settings.py", "mysite/urls.py"}
    lines = [line for text in LINES.values() for line in text.splitlines() if line.strip()]
    assert 0 < len(lines) < 10


def test_a_stranger_is_sent_to_the_projects_own_login(site: Site) -> None:
    with site.browser().ask("/ops/queue/jobs/?state=failed") as answer:
        assert answer.status == 302
        assert answer.headers["Location"] == (
            "/admin/login/?next=/ops/queue/jobs/%3Fstate%3Dfailed"
        )


def test_a_user_without_the_permission_is_told_so(site: Site) -> None:
    with site.browser("stranger").ask("/ops/queue/") as answer:
        page = answer.read().decode()
        assert answer.status == 403
    assert "You may not do this" in page
    assert "jobs.view_job" in page


def test_every_page_works_and_leads_nowhere_but_to_the_sub_path(site: Site) -> None:
    browser = site.browser("reader")
    static: set[str] = set()
    for screen in (*SCREENS, "jobs/new/", f"jobs/{site.job_id}/"):
        page = browser.text(f"/ops/queue/{screen}")
        assert "reader" in page
        addresses = set(ADDRESS.findall(page))
        static |= {address for address in addresses if address.startswith("/static/")}
        elsewhere = {
            address
            for address in addresses
            if not address.removeprefix(site.address).startswith(OURS)
        }
        assert not elsewhere, screen
    assert {"/static/dashboard/shell.css", "/static/django_htmx/htmx-2.min.js"} <= static
    for address in sorted(static):
        browser.text(address)


def test_a_poll_at_the_sub_path_is_answered_with_304_when_nothing_changed(site: Site) -> None:
    browser = site.browser("reader")
    (address,) = set(re.findall(r'hx-get="([^"]+)"', browser.text("/ops/queue/jobs/")))
    poll = {"HX-Request": "true"}
    with browser.ask(address, headers=poll) as answer:
        assert answer.status == 200
        etag = str(answer.headers["ETag"])
    with browser.ask(address, headers={**poll, "If-None-Match": etag}) as answer:
        assert answer.status == 304


def test_the_search_stays_under_the_sub_path(site: Site) -> None:
    with site.browser("reader").ask(f"/ops/queue/search/?q={site.job_id}") as answer:
        assert answer.headers["Location"] == f"/ops/queue/jobs/{site.job_id}/"


def test_the_api_asks_for_the_projects_login_and_keeps_its_own_contract(site: Site) -> None:
    with site.browser().ask("/ops/api/jobs/") as answer:
        assert answer.status == 403
        assert answer.headers["Content-Type"] == "application/json"
    browser = site.browser("reader")
    assert site.job_id in browser.text("/ops/api/jobs/")
    token = {"Content-Type": "application/json", "X-CSRFToken": browser.cookie("csrftoken")}
    with browser.ask("/ops/api/jobs/", b'{"type": "demo.success"}', token) as answer:
        assert answer.status == 201
        assert answer.headers["Location"].startswith(f"{site.address}/ops/api/jobs/")
    with browser.ask("/ops/api/jobs/", b'{"type": NaN}', token) as answer:
        assert (answer.status, answer.read()) == (
            400,
            b'{"type":["NaN, Infinity and numbers too large for a float are not allowed."]}',
        )
    with browser.ask("/ops/api/jobs/none/") as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (404, "application/json")


def test_the_admin_works_without_unfold_and_without_the_jobs(site: Site) -> None:
    page = site.browser("reader").text("/admin/")
    assert "jobs_job" not in page
    with site.browser("reader").ask("/ops/api/docs/") as answer:
        assert answer.status == 404
