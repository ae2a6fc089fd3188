"""Race the peers beside Rowlease and the limit: what `python3 run.py bench peers` runs.

    .venv/bin/python -m benchmarks.peers.run [--quick] [--rounds 3] [--only rowlease,oban]
                                             [--settings 4,16,documented,best,many]

`many` is the best setting behind 200,000 jobs over many priorities, two thirds of them due
in a day. What cannot be installed or run is a line that says why.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks import ground
from benchmarks.drain import by_pgbench
from benchmarks.figures import LIMIT, OURS, Figure, Series
from benchmarks.peers.environments import PLACE, Unavailable, prepared, version_of
from benchmarks.peers.known import PEERS, SETTINGS, Peer
from benchmarks.peers.race import Racer
from benchmarks.peers.redis import Redis
from benchmarks.progress import Progress

MANY = "many"
NAMES = {
    "4": "Concurrency 4",
    "16": "Concurrency 16",
    "documented": "As documented",
    "best": "At best",
    MANY: f"At best, behind {ground.BACKLOG:,} mixed jobs",
}
LIMIT_JOBS = {"4": 8_000, "16": 24_000}
QUICK = ("4", "best")


def main() -> None:
    """Install, race, print, write."""
    options = parse()
    settings = options.settings.split(",") if options.settings else list(NAMES)
    if options.quick and not options.settings:
        settings = list(QUICK)
    rounds = options.rounds or (1 if options.quick else 3)
    seconds = 3.0 if options.quick else 4.0
    only = options.only.split(",") if options.only else [peer.key for peer in PEERS]
    started_at = time.monotonic()
    progress = Progress("peers")
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        ground.set_up()
        stack.callback(ground.drop_database, ground.DATABASE)
        racers, versions = ready([p for p in PEERS if p.key in only], stack, progress, missing)
        figures = []
        for setting in settings:
            figure = raced(setting, racers, rounds, seconds, progress, missing)
            figures.append(figure)
            progress.clear()
            print_figure(figure)
        if len(racers) and not options.quick:
            figures.append(bulk(racers, rounds, progress))
            print_figure(figures[-1])
        write(options.name, figures, racers, versions, missing, rounds)
    print(f"{time.monotonic() - started_at:.0f} s")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Race the peers beside Rowlease.")
    parser.add_argument("--quick", action="store_true", help="one short round of two settings")
    parser.add_argument("--rounds", type=int, help="how often each takes its turn (3)")
    parser.add_argument("--only", help="some of: " + ",".join(peer.key for peer in PEERS))
    parser.add_argument("--settings", help="some of: " + ",".join(NAMES))
    parser.add_argument("--name", default="peers", help="what the files are called")
    options = parser.parse_args()
    if options.rounds is not None and not 1 <= options.rounds <= 20:
        parser.error("--rounds must be 1 to 20")
    known = {"--only": [peer.key for peer in PEERS], "--settings": list(NAMES)}
    for flag, names in known.items():
        for name in (getattr(options, flag[2:]) or names[0]).split(","):
            if name not in names:
                parser.error(f"{flag}: {name!r} is none of {', '.join(names)}")
    return options


def ready(
    peers: list[Peer], stack: ExitStack, progress: Progress, missing: dict[str, str]
) -> tuple[list[Racer], dict[str, str]]:
    """Those that can run, with their versions; why the others cannot goes to `missing`."""
    racers, versions = [], {}
    for peer in peers:
        progress.say(f"preparing {peer.title}")
        try:
            python, environment = prepared(peer)
            redis = redis_for(peer, stack)
            log = Path(PLACE / f"{peer.key}.log")
            log.unlink(missing_ok=True)
            racer = Racer(peer, python, environment, log, redis)
            stack.callback(racer.close)
            versions[peer.title] = version_of(peer, python)
            if redis is not None:
                versions[peer.title] += f", Redis {redis.version()}"
            racers.append(racer)
        except Unavailable as reason:
            missing[peer.title] = str(reason)
    return racers, versions


def redis_for(peer: Peer, stack: ExitStack) -> Redis | None:
    """A Redis for the one that needs it. Raises `Unavailable` where there is none."""
    if peer.remaining:
        return None
    if shutil.which("redis-server") is None:
        raise Unavailable("no redis-server was found")
    redis = Redis()
    stack.callback(redis.stop)
    return redis


def raced(
    setting: str,
    racers: list[Racer],
    rounds: int,
    seconds: float,
    progress: Progress,
    missing: dict[str, str],
) -> Figure:
    """All of them at one setting, taking turns: ours, the limit, and each peer."""
    behind_many = setting == MANY
    turns: dict[str, Callable[[], float]] = {}
    for racer in racers:
        at = "best" if behind_many else setting
        if behind_many and "best" not in racer.peer.settings:
            at = "4"
        if at in racer.peer.settings and not (behind_many and not racer.peer.table):
            jobs = racer.peer.jobs[at]
            turns[_series_name(racer)] = partial(
                racer.raced, at, jobs, seconds, behind_many=behind_many
            )
    if setting in LIMIT_JOBS:
        turns[LIMIT] = partial(by_pgbench, int(setting), LIMIT_JOBS[setting])
    taken: dict[str, list[float]] = {}
    for number in range(1, rounds + 1):
        for name in [name for name in turns if f"{name}, {NAMES[setting]}" not in missing]:
            progress.say(f"{NAMES[setting]}, round {number} of {rounds}: {name}")
            try:
                taken.setdefault(name, []).append(turns[name]())
            except Unavailable as reason:
                missing[f"{name}, {NAMES[setting]}"] = str(reason)
    series = [Series(name, tuple(values)) for name, values in taken.items() if values]
    return Figure(name=NAMES[setting], unit="jobs/s", series=series)


def bulk(racers: list[Racer], rounds: int, progress: Progress) -> Figure:
    """How fast each takes jobs in, by the form it recommends for many."""
    taken: dict[str, list[float]] = {_series_name(racer): [] for racer in racers}
    for number in range(1, rounds + 1):
        for racer in racers:
            progress.say(f"enqueue, round {number} of {rounds}: {racer.peer.title}")
            taken[_series_name(racer)].append(racer.enqueued(racer.peer.jobs["4"]))
    series = [Series(name, tuple(values)) for name, values in taken.items()]
    return Figure(
        name="Enqueue in bulk",
        unit="jobs/s",
        series=series,
        note="A thousand at once where there is a form for it; 200 bytes of payload; one client.",
    )


def print_figure(figure: Figure) -> None:
    """Best first, for the terminal."""
    from benchmarks.report import in_one_line

    ordered = sorted(figure.series, key=lambda series: -series.median)
    print(in_one_line(Figure(figure.name, figure.unit, ordered)), flush=True)


def write(
    name: str,
    figures: list[Figure],
    racers: list[Racer],
    versions: dict[str, str],
    missing: dict[str, str],
    rounds: int,
) -> None:
    """The three files."""
    from benchmarks import machine, report

    lines = ["## Side by side", "", *report.matrix(figures), "", "## What each rate leaves out", ""]
    lines += ["| who | version | leaves out |", "|---|---|---|"]
    lines += [
        f"| {racer.peer.title} | {versions[racer.peer.title]} | {racer.peer.leaves_out} |"
        for racer in racers
    ]
    lines += ["", "## How each ran", "", "| who | " + " | ".join(NAMES[s] for s in SETTINGS) + " |"]
    lines += ["|---" * (len(SETTINGS) + 1) + "|"]
    for racer in racers:
        cells = (racer.peer.settings.get(setting, "not run") for setting in SETTINGS)
        lines.append(f"| {racer.peer.title} | {' | '.join(cells)} |")
    if missing:
        lines += ["", "## What could not be measured", ""]
        lines += [f"- {what}: {why}." for what, why in missing.items()]
        for what, why in missing.items():
            print(f"{what}: {why}", file=sys.stderr)
    title = f"Rowlease and its peers, {report.count_of(rounds, 'interleaved round')}"
    report.write(name, title, figures, machine.conditions(), lines)


def _series_name(racer: Racer) -> str:
    return OURS if not racer.peer.package else racer.peer.title


if __name__ == "__main__":
    main()
