"""What ten open tabs of the dashboard cost the web process while nothing happens.

    eval "$(python3 run.py db)"        # beside `python3 run.py db --start`
    .venv/bin/python -m benchmarks.ten_tabs [--seconds 30]

Ten pages in one Chromium, each brought up to date every two seconds as it is by
default, on a queue in which nobody works. The requests are counted by the web
process, from its access log. It exits with 1 where they are more than 15 a second,
or where fewer than 80 % of them were answered with 304. The database is its own,
`rowlease_ten_tabs`, and is made anew each time.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks import stage

DATABASE = "rowlease_ten_tabs"
MOST_PER_SECOND, LEAST_UNCHANGED = 15.0, 0.8


def main() -> None:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description="Count the requests of ten open tabs.")
    parser.add_argument("--seconds", type=float, default=30)
    seconds = parser.parse_args().seconds
    path = next(filter(None, map(shutil.which, stage.CHROMIUM_NAMES)), None)
    if path is None:
        raise SystemExit(f"None of {', '.join(stage.CHROMIUM_NAMES)} is on PATH.")
    stage.set_up(DATABASE)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "access.log"
        with stage.filled_queue() as jobs, stage.server(str(log)) as address:
            running = f"/jobs/{jobs['running']}/"
            screens = ["/", "/", "/jobs/", "/jobs/?state=failed", "/jobs/?type=mail", running]
            screens += ["/failures/", "/events/", "/events/?type=failed", "/workers/"]
            counted = count(path, [f"{address}{screen}" for screen in screens], log, seconds)
    total = sum(counted.values())
    rate, unchanged = total / seconds, counted["304"] / max(total, 1)
    print(f"{len(screens)} tabs for {seconds:g} s: {total} requests, {rate:.1f} a second")
    print(", ".join(f"{status}: {number}" for status, number in sorted(counted.items())))
    print(f"answered with 304: {unchanged:.0%}")
    if rate > MOST_PER_SECOND or unchanged < LEAST_UNCHANGED:
        raise SystemExit(f"More than {MOST_PER_SECOND:g}/s, or less than {LEAST_UNCHANGED:.0%}.")


def count(chromium: str, addresses: list[str], log: Path, seconds: float) -> Counter[str]:
    """How often each status was answered within the time, once all tabs are open."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        context = browser.new_context()
        for address in addresses:
            context.new_page().goto(address)
        before = len(log.read_text().splitlines())
        ends_at = time.monotonic() + seconds
        while (left := ends_at - time.monotonic()) > 0:
            context.pages[0].wait_for_timeout(min(left, 1) * 1000)
        lines = log.read_text().splitlines()[before:]
        browser.close()
    return Counter(line.split()[0] for line in lines)


if __name__ == "__main__":
    main()
