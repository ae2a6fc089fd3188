"""One browser, one server and one queue for all tests of a process that look at pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test.utils import override_settings
from playwright.sync_api import Browser, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from dashboard.tests.browser.queue import Queue, queue_of_everything
from dashboard.tests.browser.visitor import PATIENCE_MS, WIDE, Visit, Visitor

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
HERE = Path(__file__).parent
# A software GPU draws no better, and takes half of the processors for it.
WITHOUT_GPU = [
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--disable-gpu-rasterization",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a browser, so that it can be left out."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """The system's Chromium, without a window."""
    if "postgresql" not in django_settings.DATABASES["default"]["ENGINE"]:
        pytest.skip("needs PostgreSQL (TEST_DATABASE_ENGINE=sqlite)")
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        pytest.skip(f"needs one of {', '.join(CHROMIUM_NAMES)} on PATH")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=WITHOUT_GPU)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def queue(chromium: Browser, django_db_setup: None, django_db_blocker: Any) -> Iterator[Queue]:
    """The jobs that the pages show."""
    with django_db_blocker.unblock(), queue_of_everything() as queue:
        yield queue


@pytest.fixture(scope="package")
def server(queue: Queue) -> Iterator[str]:
    """The address of the project, served from this process."""
    with ExitStack() as stack:
        stack.enter_context(override_settings(DASHBOARD_ACCESS="open"))
        live = LiveServer("127.0.0.1", start=False)
        stack.enter_context(live._live_server_modified_settings)
        live.start()
        stack.callback(live.stop)
        yield live.url


@pytest.fixture(scope="package")
def windows(server: str) -> Iterator[list[Visitor]]:
    """Windows that are open and free: another costs as much as five pages."""
    windows: list[Visitor] = []
    yield windows
    for visitor in windows:
        visitor.context.close()


@pytest.fixture
def visit(chromium: Browser, server: str, windows: list[Visitor]) -> Iterator[Visit]:
    """How a test gets its readers; each is asked at the end whether all was well."""
    visitors: list[Visitor] = []

    def visit(interval_seconds: int = 0, **options: Any) -> Visitor:
        if windows and not options:
            visitor = windows.pop()
        else:
            options = {"viewport": WIDE, "reduced_motion": "reduce", **options}
            visitor = Visitor(chromium.new_context(**options), server)
            visitor.is_spoiled = bool(options.keys() - {"viewport", "reduced_motion"})
        visitors.append(visitor)
        visitor.begin(interval_seconds)
        return visitor

    yield visit
    complaints = [visitor.complaints for visitor in visitors if visitor.complaints]
    for visitor in visitors:
        visitor.page.unroute_all()
        if visitor.is_spoiled:
            visitor.context.close()
        else:
            visitor.page.goto("about:blank")
            windows.append(visitor)
    assert not complaints


@pytest.fixture
def visitor(visit: Visit) -> Visitor:
    """A reader who has paused the polls."""
    return visit()
