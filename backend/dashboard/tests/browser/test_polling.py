"""A page is brought up to date as often as its reader wants, and no more than it costs little."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Route

from dashboard.tests.browser.queue import Queue
from dashboard.tests.browser.visitor import Visit, expect, is_poll
from jobs import services
from jobs.tests.support import sql
from jobs.tests.worker.support import create


def test_the_pace_is_kept_from_page_to_page(visit: Visit) -> None:
    visitor = visit(interval_seconds=2)
    page = visitor.go("/workers/")
    page.locator("#interval").select_option("15")
    visitor.go("/events/")
    expect(page.locator("#interval")).to_have_value("15")


@pytest.mark.parametrize("stored", ["7", "never", "-1"])
def test_a_pace_that_is_none_is_the_usual_one(stored: str, visit: Visit) -> None:
    visitor = visit(interval_seconds=stored)
    expect(visitor.go("/workers/").locator("#interval")).to_have_value("2")


def test_a_page_asks_once_in_so_many_seconds(visit: Visit) -> None:
    visitor = visit(interval_seconds=5)
    visitor.stop_time()
    visitor.go("/workers/")
    visitor.pass_time(4.9)
    assert visitor.asked() == 0
    with visitor.page.expect_response(lambda answer: is_poll(answer.request)):
        visitor.pass_time(0.2)
    assert visitor.asked() == 1
    expect(visitor.page.locator("#health")).to_have_attribute("data-health", "ok")


def test_a_paused_page_asks_nothing(visit: Visit) -> None:
    visitor = visit(interval_seconds=0)
    visitor.stop_time()
    visitor.go("/workers/")
    visitor.pass_time(600)
    assert visitor.asked() == 0


def test_a_tab_that_nobody_sees_asks_nothing(visit: Visit) -> None:
    visitor = visit(interval_seconds=1)
    visitor.stop_time()
    visitor.go("/workers/")
    visitor.hide(True)
    visitor.pass_time(600)
    assert visitor.asked() == 0
    with visitor.page.expect_response(lambda answer: is_poll(answer.request)):
        visitor.hide(False)
    assert visitor.asked() == 1


def test_an_open_dialog_is_not_disturbed(visit: Visit) -> None:
    visitor = visit(interval_seconds=1)
    visitor.stop_time()
    page = visitor.go("/workers/")
    page.keyboard.press("?")
    visitor.pass_time(30)
    assert visitor.asked() == 0


@pytest.mark.parametrize("path", ["/", "/jobs/", "/failures/", "/events/", "/workers/", "running"])
def test_a_quiet_queue_is_mostly_answered_with_304(path: str, visit: Visit, queue: Queue) -> None:
    visitor = visit()
    visitor.go(f"/jobs/{queue.jobs['running']}/" if path == "running" else path)
    answers = [visitor.poll() for _ in range(6)]
    assert answers[0] == 200
    assert answers.count(304) >= 4, answers


def test_the_page_of_a_job_that_ended_asks_nothing(visit: Visit, queue: Queue) -> None:
    visitor = visit(interval_seconds=1)
    visitor.stop_time()
    page = visitor.go(f"/jobs/{queue.jobs['succeeded']}/")
    expect(page.locator("#updated")).to_have_text("no more to come")
    visitor.pass_time(600)
    assert visitor.asked() == 0


def test_the_page_of_a_job_stops_asking_when_the_job_ends(visit: Visit, queue: Queue) -> None:
    def start() -> Any:
        job = create("browser.watched", priority=32_767)
        claimed = services.claim_next_job(worker_id="host:1:thread-1:0a0b0c0d")
        assert claimed is not None
        assert claimed.pk == job.pk
        return claimed

    job = queue.run(start)
    visitor = visit()
    page = visitor.go(f"/jobs/{job.pk}/")
    expect(page.locator("#content .badge").first).to_have_text("running")
    queue.run(
        services.complete_job,
        job_id=job.pk,
        worker_id=job.locked_by,
        attempt=1,
        result={"all": "well"},
    )
    assert visitor.poll() == 200
    expect(page.locator("#content .badge").first).to_have_text("succeeded")
    page.locator("#interval").select_option("1")
    expect(page.locator("#updated")).to_have_text("no more to come")


def test_what_was_opened_and_ticked_outlives_a_poll(visit: Visit, queue: Queue) -> None:
    visitor = visit()
    page = visitor.go("/jobs/?state=failed")
    box = page.locator(f"#tick-{queue.jobs['failed']}")
    box.check()
    page = visitor.go(f"/jobs/{queue.jobs['retrying']}/")
    details = page.locator("main [data-live] details[id]").first
    was_open = details.get_attribute("open") is not None
    details.locator("summary").first.click()
    assert (details.get_attribute("open") is not None) is not was_open
    assert visitor.poll() == 200
    queue.run(sql, "UPDATE jobs_job SET priority = 51 WHERE id = %s", queue.jobs["retrying"])
    assert visitor.poll() == 200
    expect(page.locator(".job-facts")).to_contain_text("51")
    assert (details.get_attribute("open") is not None) is not was_open


def test_ticked_rows_stay_ticked_over_a_poll(visit: Visit, queue: Queue) -> None:
    visitor = visit()
    page = visitor.go("/jobs/?state=failed")
    box = page.locator(f"#tick-{queue.jobs['failed']}")
    box.check()
    expect(page.locator("#selected")).to_contain_text("1 job selected")
    assert visitor.poll() == 200
    expect(box).to_be_checked()
    expect(page.locator("#selected")).to_contain_text("1 job selected")


def test_a_new_job_is_told_and_moves_nothing(visit: Visit, queue: Queue) -> None:
    visitor = visit()
    page = visitor.go("/jobs/")
    rows = "() => [...document.querySelectorAll('[data-row]')].map((row) => row.id)"
    before = page.evaluate(rows)
    job = queue.run(create, "browser.new")
    assert visitor.poll() == 200
    expect(page.get_by_role("link", name="1 new")).to_be_visible()
    assert page.evaluate(rows) == before
    page.get_by_role("link", name="1 new").click()
    expect(page.locator(f"#job-{job.pk}")).to_be_visible()


def test_a_server_that_does_not_answer_is_told_and_asked_less_and_less(visit: Visit) -> None:
    visitor = visit(interval_seconds=2)
    visitor.expect_no_answer()
    page = visitor.page
    visitor.stop_time()
    visitor.go("/workers/")
    before = page.locator("main [data-live] *").count()

    def refuse(route: Route) -> None:
        route.abort() if is_poll(route.request) else route.continue_()

    page.route("**/*", refuse)
    with page.expect_event("requestfailed"):
        visitor.pass_time(2)
    outage = page.locator("#outage")
    expect(outage).to_be_visible()
    expect(outage).to_contain_text("Trying again in")
    expect(page.locator("#health")).to_have_attribute("data-health", "down")
    assert page.locator("main [data-live] *").count() == before
    # Twice as long, give or take a quarter, so that many tabs do not ask as one.
    for at_least, at_most in ((3, 5), (6, 10), (12, 20), (22.5, 37.5), (22.5, 37.5)):
        asked = visitor.asked()
        visitor.pass_time(at_least - 0.2)
        assert visitor.asked() == asked
        with page.expect_event("requestfailed"):
            visitor.pass_time(at_most - at_least + 0.4)
        assert visitor.asked() == asked + 1
    page.unroute("**/*")
    with page.expect_response(lambda answer: is_poll(answer.request)):
        page.get_by_role("button", name="Try now").click()
    expect(outage).to_be_hidden()
    expect(page.locator("#health")).to_have_attribute("data-health", "ok")


def test_a_reader_who_was_logged_out_is_sent_to_the_login(visit: Visit, settings: Any) -> None:
    visitor = visit()
    visitor.expect_answer(401)
    page = visitor.go("/workers/")
    settings.DASHBOARD_ACCESS = "login"
    page.evaluate("() => window.rowlease.ask()")
    page.wait_for_url("**/admin/login/?next=/workers/")
