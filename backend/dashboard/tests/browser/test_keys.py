"""All of it without a mouse."""

from __future__ import annotations

import re

import pytest

from dashboard.tests.browser.queue import Queue
from dashboard.tests.browser.visitor import Visit, Visitor, expect


@pytest.mark.parametrize(
    ("letter", "path"),
    [("o", "/"), ("j", "/jobs/"), ("f", "/failures/"), ("e", "/events/"), ("w", "/workers/")],
)
def test_g_and_a_letter_go_to_a_screen(letter: str, path: str, visitor: Visitor) -> None:
    page = visitor.go("/workers/" if path == "/" else "/")
    page.keyboard.press("g")
    page.keyboard.press(letter)
    page.wait_for_url(f"{visitor.server}{path}")
    expect(page.locator("[aria-current=page]").first).to_have_attribute("data-go", letter)


def test_g_is_forgotten_after_a_while(visitor: Visitor) -> None:
    page = visitor.page
    visitor.stop_time()
    visitor.go("/workers/")
    page.keyboard.press("g")
    visitor.pass_time(2)
    page.keyboard.press("e")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.url.endswith("/workers/")


def test_a_slash_searches_and_an_id_goes_to_its_job(visitor: Visitor, queue: Queue) -> None:
    page = visitor.go("/events/")
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    expect(page.locator("#search")).to_have_value("")
    page.keyboard.type(str(queue.jobs["flaky"]))
    page.keyboard.press("Enter")
    page.wait_for_url(f"{visitor.server}/jobs/{queue.jobs['flaky']}/")


def test_a_part_of_a_type_goes_to_the_list(visitor: Visitor) -> None:
    page = visitor.go("/events/")
    page.keyboard.press("/")
    page.keyboard.type("flaky")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{visitor.server}/jobs/?type=flaky")
    expect(page.locator("[data-row]")).to_have_count(1)


def test_rows_are_walked_and_opened(visitor: Visitor) -> None:
    page = visitor.go("/jobs/")
    rows = page.locator("[data-row]")
    current = re.compile(r"\bis-current\b")
    page.keyboard.press("j")
    expect(rows.nth(0)).to_have_class(current)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(rows.nth(1)).to_have_class(current)
    expect(page.locator(".is-current")).to_have_count(1)
    address = rows.nth(1).get_attribute("data-href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{visitor.server}{address}")


def test_the_row_stays_the_current_one_and_the_page_where_it_is_over_a_poll(
    visitor: Visitor, queue: Queue
) -> None:
    visitor.page.set_viewport_size({"width": 360, "height": 400})
    page = visitor.go("/jobs/")
    page.keyboard.press("j")
    expect(page.locator(".is-current")).to_be_in_viewport()
    page.evaluate("() => window.scrollTo(0, document.body.scrollHeight)")
    at = page.evaluate("() => window.scrollY")
    assert visitor.poll() == 200
    expect(page.locator(".is-current")).to_have_count(1)
    assert page.evaluate("() => window.scrollY") == at


def test_a_letter_in_a_field_is_a_letter(visitor: Visitor) -> None:
    page = visitor.go("/jobs/")
    page.locator("#search").focus()
    page.keyboard.type("gj?tpxr/")
    expect(page.locator("#search")).to_have_value("gj?tpxr/")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_with_a_modifier_a_key_is_the_browsers(visitor: Visitor) -> None:
    page = visitor.go("/workers/")
    page.keyboard.press("Alt+t")
    page.keyboard.press("Control+p")
    expect(page.locator("html")).to_have_attribute("data-theme", "system")
    expect(page.locator(".toast")).to_have_count(0)


def test_keys_can_be_switched_off_and_stay_so(visitor: Visitor) -> None:
    page = visitor.go("/workers/")
    page.keyboard.press("?")
    page.get_by_label("Single keys are shortcuts").uncheck()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    visitor.go("/events/")
    page.keyboard.press("t")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("html")).to_have_attribute("data-theme", "system")
    page.locator("#help").press("Enter")
    page.get_by_label("Single keys are shortcuts").check()
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_p_pauses_and_goes_on_at_the_same_pace(visit: Visit) -> None:
    visitor = visit(interval_seconds=30)
    page = visitor.go("/workers/")
    page.keyboard.press("p")
    expect(page.locator("#interval")).to_have_value("0")
    expect(page.locator("#updated")).to_have_text("paused")
    page.keyboard.press("p")
    expect(page.locator("#interval")).to_have_value("30")


def test_t_goes_through_the_themes_and_the_choice_is_kept(visitor: Visitor) -> None:
    page = visitor.go("/workers/")
    html, colour = (
        page.locator("html"),
        "() => getComputedStyle(document.querySelector('h1')).color",
    )
    light = page.evaluate(colour)
    page.keyboard.press("t")
    expect(html).to_have_attribute("data-theme", "light")
    page.keyboard.press("t")
    expect(html).to_have_attribute("data-theme", "dark")
    dark = page.evaluate(colour)
    assert dark != light
    visitor.go("/events/")
    expect(html).to_have_attribute("data-theme", "dark")
    assert page.evaluate(colour) == dark
    page.locator("#theme").click()
    expect(html).to_have_attribute("data-theme", "system")


def test_the_first_tab_skips_to_the_content(visitor: Visitor) -> None:
    page = visitor.go("/jobs/")
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to the content")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()


FOCUS_IS_SEEN = """() => {
    let element = document.activeElement;
    // The search box shows it around the whole of itself.
    if (element.closest(".search")) element = element.closest(".search");
    const style = getComputedStyle(element);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
        && style.outlineColor !== "rgba(0, 0, 0, 0)";
}"""


@pytest.mark.parametrize("path", ["/", "/jobs/", "/failures/", "/events/"])
def test_the_focus_is_seen_wherever_it_goes(path: str, visitor: Visitor) -> None:
    page = visitor.go(path)
    unseen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement === document.body"):
            break
        if not page.evaluate(FOCUS_IS_SEEN):
            unseen.append(page.evaluate("() => document.activeElement.outerHTML.slice(0, 120)"))
    assert not unseen


def test_what_has_the_focus_keeps_it_over_a_poll(visitor: Visitor, queue: Queue) -> None:
    page = visitor.go("/jobs/?state=failed")
    link = page.locator(f"#open-{queue.jobs['failed']}")
    link.focus()
    assert visitor.poll() == 200
    expect(link).to_be_focused()


def test_a_dialog_gives_the_focus_back(visitor: Visitor) -> None:
    page = visitor.go("/workers/")
    page.locator("#help").press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_focused()
