"""`manage.py check_history`: hold every job's row and events to the rules."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.utils import Error as DatabaseError
from django.db.utils import OperationalError

from jobs import conf
from jobs.history import RULES, Report, Violation, check
from jobs.history.checking import MAX_VIOLATIONS
from jobs.history.rules import BACKOFF_EXACT
from jobs.validation import parse_uuid

VIOLATED, MISUSED, UNKNOWN = 1, 2, 3
_PROGRESS_SECONDS = 2.0
_NO_TABLE_OR_COLUMN = ("42P01", "42703")
_VERDICTS = {
    "clean": "Clean:",
    "violated": "Not clean:",
    "unknown": "Too little was seen:",
}


class Command(BaseCommand):
    """Parse, check, print."""

    help = (
        "Check that every job's row and events are a history the queue could have written. "
        "Reads one snapshot and changes nothing, so it is safe on a live database. Exits 0 when "
        "clean, 1 with violations, 2 when it could not check, 3 when there was too little to check."
    )
    # A setting that a check complains of must not end in the exit code for a violation.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Which jobs, what they are held to, and how it is shown."""
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS, choices=tuple(connections))
        parser.add_argument(
            "--job", action="append", type=_job_id, metavar="ID", help="only this job; repeatable"
        )
        parser.add_argument(
            "--bound-seconds",
            type=_number(0, 10**9),
            help="how long a job may run past the end of its lease (default: the configured "
            "lease, two cleanup intervals and 60)",
        )
        parser.add_argument(
            "--backoff-base-seconds",
            type=_setting("JOB_WORKER_BACKOFF_BASE_SECONDS"),
            help="the base that was configured when the jobs ran (default: the one now)",
        )
        parser.add_argument(
            "--backoff-max-seconds",
            type=_setting("JOB_WORKER_BACKOFF_MAX_SECONDS"),
            help="the same of the maximum",
        )
        parser.add_argument(
            "--skip-backoff",
            action="store_true",
            help="do not hold delays to the formula, where base or maximum were changed",
        )
        parser.add_argument(
            "--max-violations",
            type=_number(0, 10**6),
            default=MAX_VIOLATIONS,
            help="how many of each rule are shown (default: %(default)s); all are counted",
        )
        parser.add_argument("--json", action="store_true", help="one JSON document")
        parser.add_argument(
            "--progress",
            action="store_true",
            help="tell on stderr how far it is, also where that is no terminal",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Check once; the exit code is the verdict."""
        shows_progress = options["progress"] or self.stderr.isatty()
        progress = _Progress(self.stderr) if shows_progress else None
        try:
            report = check(
                options["database"],
                job_ids=options["job"],
                backoff_base_seconds=options["backoff_base_seconds"],
                backoff_max_seconds=options["backoff_max_seconds"],
                with_backoff=not options["skip_backoff"],
                bound_seconds=options["bound_seconds"],
                max_violations=options["max_violations"],
                progress=progress,
            )
        except (DatabaseError, ValueError) as error:
            message = f"Could not check: {str(error).strip()}{_hint(error)}"
            raise CommandError(message, returncode=MISUSED) from error
        finally:
            if progress is not None:
                progress.end()
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(), indent=2))
        else:
            self.stdout.write(_as_text(report))
        if report.verdict == "violated":
            sys.exit(VIOLATED)
        if report.verdict == "unknown":
            sys.exit(UNKNOWN)


class _Progress:
    """How many events were read, on one line of a terminal or now and then on a new one."""

    def __init__(self, stderr: Any) -> None:
        self._stderr = stderr
        self._is_terminal = stderr.isatty()
        self._next_at = 0.0
        self._is_shown = False

    def __call__(self, events: int) -> None:
        now = time.monotonic()
        if now >= self._next_at:
            self._next_at = now + _PROGRESS_SECONDS
            ending = "\r" if self._is_terminal else "\n"
            self._stderr.write(f"{events:,} events", ending=ending)
            self._stderr.flush()
            self._is_shown = True

    def end(self) -> None:
        """Leave the line."""
        if self._is_shown and self._is_terminal:
            self._stderr.write("")


def _as_text(report: Report) -> str:
    lines = [_line(violation) for violation in report.violations]
    for rule, count in report.found.items():
        if count:
            lines += ["", f"{rule}: {count:,} found. {RULES[rule]}"]
    if report.found[BACKOFF_EXACT]:
        lines += [
            "Were base or maximum others when these jobs ran? Then give them "
            "(--backoff-base-seconds, --backoff-max-seconds) or leave this out (--skip-backoff)."
        ]
    if lines:
        lines.append("")
    backoff = "not checked"
    if report.backoff is not None:
        backoff = "base {} s, at most {} s".format(*report.backoff)
    lines += [
        f"{_VERDICTS[report.verdict]} {report.jobs:,} jobs and {report.events:,} events, as they "
        f"were at {report.snapshot_at.isoformat(timespec='seconds')}, in {report.seconds:.1f} s.",
        f"Backoff: {backoff}. A job may run {report.bound_seconds} s past its lease.",
    ]
    if report.asked_for is not None and report.jobs < report.asked_for:
        lines.append(f"Of the jobs asked for ({report.asked_for:,}), {report.jobs:,} are there.")
    idle = [rule for rule, count in report.applied.items() if report.jobs and not count]
    if idle:
        lines.append(f"Rules with nothing to look at: {', '.join(idle)}.")
    if report.events_out_of_time_order:
        lines.append(
            f"{report.events_out_of_time_order:,} events have an earlier time than the one before "
            "them, as they do where a statement waited for the job's row: no violation."
        )
    return "\n".join(lines)


def _hint(error: Exception) -> str:
    if isinstance(error, OperationalError):
        return "\nThe server is the one that the POSTGRES_ variables name."
    if getattr(error.__cause__, "sqlstate", None) in _NO_TABLE_OR_COLUMN:
        return "\nRun `manage.py migrate` first, or name another database."
    return ""


def _line(violation: Violation) -> str:
    of_job = "" if violation.job_id is None else f"job {violation.job_id}: "
    ids = ", ".join(map(str, violation.event_ids))
    return f"{violation.rule}: {of_job}{violation.message}" + (f" (events {ids})" if ids else "")


def _job_id(text: str) -> UUID:
    job_id = parse_uuid(text)
    if job_id is None:
        raise ArgumentTypeError(f"{text!r} is no job's id")
    return job_id


def _number(minimum: int, maximum: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        number = _int(text)
        if not minimum <= number <= maximum:
            raise ArgumentTypeError(f"it must be from {minimum} to {maximum}, not {number}")
        return number

    return whole_number


def _setting(name: str) -> Callable[[str], int]:
    def value(text: str) -> int:
        number = _int(text)
        try:
            return conf.checked(name, number, called="it")
        except ValueError as error:
            raise ArgumentTypeError(str(error)) from error

    return value


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"it must be a whole number, not {text!r}") from None
