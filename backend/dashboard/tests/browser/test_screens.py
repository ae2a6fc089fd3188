"""Every screen, in both themes and both widths, with text in it that means harm."""

from __future__ import annotations

from uuid import UUID

import pytest

from dashboard.tests.browser.queue import SEEN, Queue
from dashboard.tests.browser.visitor import Visitor, expect

SCREENS = ("/", "/jobs/", "/failures/", "/events/", "/workers/", "/jobs/new/")
JOBS = ("succeeded", "raised", "flaky", "retried", "timed out", "running", "overdue", "scheduled")


@pytest.mark.parametrize("path", SCREENS)
def test_a_screen_is_in_order(path: str, visitor: Visitor, queue: Queue) -> None:
    visitor.go(path)
    visitor.assert_in_order()


@pytest.mark.parametrize("name", JOBS)
def test_the_page_of_a_job_is_in_order(name: str, visitor: Visitor, queue: Queue) -> None:
    visitor.go(f"/jobs/{queue.jobs[name]}/")
    visitor.assert_in_order()


@pytest.mark.parametrize("path", ["/jobs/", "/failures/", "/events/", "/workers/"])
def test_a_text_that_means_harm_is_shown_as_it_is(
    path: str, visitor: Visitor, queue: Queue
) -> None:
    page = visitor.go(path)
    expect(page.locator("main")).to_contain_text(SEEN)
    visitor.assert_unhurt()


@pytest.mark.parametrize(
    ("path", "status", "heading"),
    [
        ("/jobs/no-id/", 404, "There is no job with this id"),
        (f"/jobs/{UUID(int=1)}/", 404, "There is no job with this id"),
        ("/jobs/?state=%3Cscript%3E&type=%00", 400, "cannot be"),
    ],
)
def test_a_page_that_says_what_is_wrong_is_in_order(
    path: str, status: int, heading: str, visitor: Visitor
) -> None:
    visitor.expect_answer(status)
    page = visitor.go(path)
    expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
    visitor.assert_in_order()


def test_the_help_is_in_order(visitor: Visitor) -> None:
    page = visitor.go("/workers/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    visitor.assert_in_order()
