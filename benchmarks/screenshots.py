"""Pictures of every screen of the dashboard, on a queue that real workers made.

    python3 run.py setup --dev
    python3 run.py db --start          # in another terminal
    eval "$(python3 run.py db)"
    .venv/bin/python -m benchmarks.screenshots shots

Each screen in light and dark, at 1440 and at 360 pixels, as
`shots/<screen>-<theme>-<width>.png`, and the README's picture as `shots/overview.png`.
It needs the system's Chromium. The database is its own, `rowlease_screenshots`, and is
made anew each time.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from benchmarks import stage

DATABASE = "rowlease_screenshots"
THEMES = ("light", "dark")
WIDTHS = {"wide": 1440, "narrow": 360}
README_SIZE = {"width": 1280, "height": 900}


def main() -> None:
    """Make them all."""
    parser = argparse.ArgumentParser(description="Make pictures of every screen.")
    parser.add_argument("folder", type=Path, help="where they go; made where it is missing")
    folder = parser.parse_args().folder
    path = next(filter(None, map(shutil.which, stage.CHROMIUM_NAMES)), None)
    if path is None:
        raise SystemExit(f"None of {', '.join(stage.CHROMIUM_NAMES)} is on PATH.")
    folder.mkdir(parents=True, exist_ok=True)
    stage.set_up(DATABASE)
    with stage.filled_queue() as jobs, stage.server() as address:
        take(folder, path, address, jobs)


def take(folder: Path, chromium: str, address: str, jobs: dict[str, Any]) -> None:
    """Look at every screen and keep what is seen."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        page = browser.new_page(viewport=README_SIZE, color_scheme="light")  # type: ignore[arg-type]
        page.goto(address)
        page.wait_for_function("() => document.getElementById('updated').textContent !== 'live'")
        page.screenshot(path=folder / "overview.png")
        page.close()
        for theme in THEMES:
            for name, width in WIDTHS.items():
                page = browser.new_page(
                    viewport={"width": width, "height": 900},
                    color_scheme=theme,  # type: ignore[arg-type]
                    reduced_motion="reduce",
                )
                for screen, place in screens(jobs).items():
                    page.goto(f"{address}{place}")
                    if screen == "help":
                        page.keyboard.press("?")
                    page.screenshot(
                        path=folder / f"{screen}-{theme}-{name}.png", full_page=screen != "help"
                    )
                page.close()
        browser.close()


def screens(jobs: dict[str, Any]) -> dict[str, str]:
    """Where each screen is."""
    return {
        "overview": "/",
        "jobs": "/jobs/",
        "jobs-failed": "/jobs/?state=failed&type=billing",
        "jobs-none": "/jobs/?type=nothing.like.this",
        "retry-all": "/jobs/retry/?state=failed",
        "job-running": f"/jobs/{jobs['running']}/",
        "job-retried": f"/jobs/{jobs['retried']}/",
        "job-overdue": f"/jobs/{jobs['overdue']}/",
        "failures": "/failures/",
        "events": "/events/",
        "workers": "/workers/",
        "new-job": f"/jobs/new/?copy_of={jobs['retried']}",
        "not-found": "/jobs/no-such-job/",
        "bad-filter": "/jobs/?state=lost",
        "help": "/workers/",
    }


if __name__ == "__main__":
    main()
