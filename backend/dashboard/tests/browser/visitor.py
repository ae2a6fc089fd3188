"""A reader at a browser, who notices everything that goes wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import axe_playwright_python  # type: ignore[import-untyped]
from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    Request,
    Response,
    expect,
)

PATIENCE_MS = 20_000
WIDE = {"width": 1440, "height": 900}
NARROW = {"width": 360, "height": 740}

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
# The rules of WCAG 2.2 AA and what its makers hold to be good practice.
RUN_AXE = """async (rules) => {
    const options = { resultTypes: ["violations"], ...(rules && { runOnly: rules }) };
    const found = await axe.run(document, options);
    return found.violations.map((rule) => ({
        rule: rule.id, help: rule.help,
        where: rule.nodes.slice(0, 4).map((node) => node.target.join(" ") + ": " +
            (node.any[0] || node.all[0] || node.none[0] || {}).message),
    }));
}"""
COLOURS = ["color-contrast", "link-in-text-block"]

# The page's own word for "ask now", whatever became of it.
COUNT_POLLS = """window.asked = 0;
document.addEventListener("rowlease:poll", () => { window.asked += 1; }, true);"""

# A tab cannot be hidden in a browser without windows; what the page can see of it, can.
LET_BE_HIDDEN = """window.isHidden = false;
Object.defineProperty(document, "hidden", { get: () => window.isHidden });
window.hide = (isHidden) => {
    window.isHidden = isHidden;
    document.dispatchEvent(new Event("visibilitychange"));
};"""

BEGIN = """(interval) => {
    localStorage.clear();
    localStorage.setItem("rowlease.interval", interval);
}"""

NOTE_VIOLATIONS = """addEventListener("securitypolicyviolation", (event) =>
    noteViolation(event.violatedDirective + " " + event.blockedURI + " " + event.sample));"""


class Visitor:
    """One reader: a context of the browser and its first page."""

    def __init__(self, context: BrowserContext, server: str) -> None:
        self.context = context
        self.server = server
        # Whether nobody else may follow in the same window.
        self.is_spoiled = False
        self.complaints: list[str] = []
        self.answers: list[tuple[str, int]] = []
        self.expected: tuple[str, ...] = ()
        context.set_default_timeout(PATIENCE_MS)
        context.expose_function("noteViolation", lambda what: self._complain("CSP", what))
        for script in (NOTE_VIOLATIONS, COUNT_POLLS, LET_BE_HIDDEN):
            context.add_init_script(script)
        context.on("page", self._watch)
        self.page = context.new_page()

    def begin(self, interval_seconds: int) -> None:
        """As somebody who was never here before and has chosen this pace."""
        self.complaints, self.answers, self.expected = [], [], ()
        for page in self.context.pages:
            if page is not self.page:
                page.close()
        self.context.clear_cookies()
        self.page.set_viewport_size(WIDE)  # type: ignore[arg-type]
        self.page.emulate_media(color_scheme="light")
        # A page of the server's without scripts, to reach what the browser keeps for it.
        self.page.goto(f"{self.server}/static/dashboard/icon.svg")
        self.page.evaluate(BEGIN, str(interval_seconds))

    def _watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", self._page_error)
        page.on("dialog", self._dialog)
        page.on("request", self._request)
        page.on("requestfailed", self._failed)
        page.on("response", self._response)

    def _complain(self, kind: str, what: str) -> None:
        text = f"{kind}: {what}"
        if not any(part in text for part in self.expected):
            self.complaints.append(text)

    def _console(self, message: ConsoleMessage) -> None:
        # What has no icon of its own is asked for one that is not there.
        is_about_icon = message.location["url"].endswith("/favicon.ico")
        if message.type in ("error", "warning") and not is_about_icon:
            self._complain("console", message.text)

    def _page_error(self, error: Error) -> None:
        self._complain("page error", str(error))

    def _dialog(self, dialog: Dialog) -> None:
        self._complain("dialog", dialog.message)
        dialog.accept()

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme != "data" and f"{address.scheme}://{address.netloc}" != self.server:
            self._complain("elsewhere", request.url)

    def _failed(self, request: Request) -> None:
        # Whoever leaves a page while it polls breaks that poll off.
        if request.failure != "net::ERR_ABORTED":
            self._complain("request failed", f"{request.url} {request.failure}")

    def _response(self, response: Response) -> None:
        path = response.url.removeprefix(self.server)
        self.answers.append((path, response.status))
        if response.status >= 400:
            self._complain("answer", f"{response.status} {path}")

    def expect_answer(self, *statuses: int) -> None:
        """Let answers of these statuses be what the test is about, and what is said of them."""
        for status in statuses:
            said = (f"answer: {status}", f"status of {status}", f"Error Code {status}")
            self.expected = (*self.expected, *said)

    def expect_no_answer(self) -> None:
        """Let requests that fail be what the test is about."""
        self.expected = (*self.expected, "ERR_FAILED", "htmx:sendError", "htmx:afterRequest")

    def go(self, path: str) -> Page:
        """Open an address of the server, and wait until its scripts have run."""
        self.page.goto(f"{self.server}{path}")
        self.page.wait_for_function("() => window.rowlease && window.rowlease.ask")
        return self.page

    def asked(self) -> int:
        """How often the page has asked to be brought up to date."""
        count: int = self.page.evaluate("() => window.asked")
        return count

    def hide(self, is_hidden: bool) -> None:
        """Put the tab behind another, or before it."""
        self.page.evaluate("(isHidden) => window.hide(isHidden)", is_hidden)

    def stop_time(self) -> None:
        """Let no time go by on the pages that are opened from now on, but by `pass_time`."""
        self.is_spoiled = True  # Time that was stopped never goes on by itself.
        now = time.time()
        self.page.clock.install(time=now)
        self.page.clock.pause_at(now + 1)

    def pass_time(self, seconds: float) -> None:
        """Let so many seconds go by on the page."""
        self.page.clock.run_for(round(seconds * 1000))

    def poll(self) -> int:
        """Have the page brought up to date now; the status it was answered with."""
        with self.page.expect_response(lambda answer: is_poll(answer.request)) as answer:
            self.page.evaluate("() => window.rowlease.ask()")
        answer.value.finished()
        return answer.value.status

    def has_the_focus(self) -> str:
        """The id of the element that has the focus, else its text."""
        found: str = self.page.evaluate(
            "() => document.activeElement.id || document.activeElement.textContent.trim()"
        )
        return found

    def assert_fits(self) -> None:
        """The page does not scroll sideways."""
        wide, room = self.page.evaluate(
            "() => [document.documentElement.scrollWidth, window.innerWidth]"
        )
        assert wide <= room, f"{self.page.url} is {wide} px wide in {room} px"

    def assert_accessible(self, rules: list[str] | None = None) -> None:
        """Axe finds nothing, by all its rules or by these."""
        if not self.page.evaluate("() => 'axe' in window"):
            # By the debugger's way in: the page's own policy lets no script through.
            self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate(RUN_AXE, rules)
        assert not found, f"{self.page.url}\n{json.dumps(found, indent=1)}"

    def assert_unhurt(self) -> None:
        """No text was run, and nobody complained since the last look."""
        assert self.page.evaluate("() => window.hurt") is None
        complaints, self.complaints = self.complaints, []
        assert not complaints, complaints

    def assert_in_order(self) -> None:
        """In both themes and both widths, accessible and not wider than the window."""
        for size, theme, rules in (
            (WIDE, "light", None),
            (WIDE, "dark", COLOURS),
            (NARROW, "dark", None),
        ):
            self.page.set_viewport_size(size)  # type: ignore[arg-type]
            self.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            self.assert_fits()
            self.assert_accessible(rules)
        # Nothing moves from one theme to the other.
        self.page.emulate_media(color_scheme="light")
        self.assert_fits()
        self.assert_unhurt()


Visit = Callable[..., Visitor]


def is_poll(request: Any) -> bool:
    """Whether htmx sent the request."""
    return bool(request.headers.get("hx-request") == "true")


__all__ = ["NARROW", "PATIENCE_MS", "WIDE", "Visit", "Visitor", "expect", "is_poll"]
