"""The database goes and comes back under an open page."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from chaos.proxy import Proxy
from django.db import connections

from dashboard.tests.browser.visitor import Visit, expect


@pytest.fixture
def database(server: str) -> Iterator[Proxy]:
    """What stands between the server's new connections and the database."""
    way = connections.settings["default"]
    before = way["HOST"], way["PORT"]
    with Proxy(before[0] or "localhost", int(before[1] or 5432)) as proxy:
        way["HOST"], way["PORT"] = "127.0.0.1", str(proxy.port)
        try:
            yield proxy
        finally:
            way["HOST"], way["PORT"] = before


@pytest.mark.parametrize("path", ["/", "/jobs/"])
def test_an_open_page_outlives_the_database(path: str, visit: Visit, database: Proxy) -> None:
    visitor = visit(interval_seconds=1)
    visitor.expect_answer(503)
    page = visitor.go(path)
    database.go_down()
    outage, live = page.locator("#outage"), page.locator("main [data-live]")
    expect(outage).to_be_visible()
    expect(outage).to_contain_text("The server does not answer")
    stale = re.compile(r"\bis-stale\b")
    expect(live).to_have_class(stale)
    expect(live).not_to_be_empty()
    visitor.assert_accessible()

    other = visitor.context.new_page()
    other.goto(f"{visitor.server}{path}")
    expect(other.get_by_role("heading", level=1)).to_have_text("The database is not available")
    expect(other.get_by_role("navigation", name="Screens")).to_be_visible()

    database.come_back()
    expect(outage).to_be_hidden()
    expect(live).not_to_have_class(stale)
    other.get_by_role("link", name="Try again").click()
    expect(other.locator("main [data-live]")).not_to_be_empty()


def test_the_page_that_says_so_is_in_order(visit: Visit, database: Proxy) -> None:
    visitor = visit()
    visitor.expect_answer(503)
    database.go_down()
    visitor.go("/events/")
    visitor.assert_in_order()
