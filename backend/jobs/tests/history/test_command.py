"""`check_history` says in words, in JSON and by its exit code what a check found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.db import OperationalError

from jobs.history import RULES
from jobs.management.commands import check_history
from jobs.tests.history.support import gallery
from jobs.tests.support import events, sql

in_the_database = pytest.mark.django_db(transaction=True)


class Terminal(StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        """Progress is shown to people."""
        return True


def run(*arguments: str, stderr: StringIO | None = None) -> tuple[int, str]:
    """The exit code and what was printed."""
    out = StringIO()
    try:
        call_command("check_history", *arguments, stdout=out, stderr=stderr or StringIO())
    except SystemExit as stop:
        return int(str(stop.code)), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


def break_one() -> tuple[str, int]:
    """A job whose renewal is gone, and an event that shows it."""
    job_id = gallery()["at_work"]
    sql("UPDATE jobs_job SET locked_by = 'thief' WHERE id = %s", job_id)
    return str(job_id), events(job_id)[-1].pk


@in_the_database
def test_a_clean_queue_is_0_and_says_what_was_looked_at() -> None:
    gallery()
    code, text = run()
    assert code == 0
    assert text.startswith("Clean: 5 jobs and 25 events, as they were at ")
    assert "base 5 s, at most 300 s" in text
    assert "nothing to look at" not in text


@in_the_database
def test_a_violation_is_1_with_its_rule_its_job_and_its_events() -> None:
    job_id, event_id = break_one()
    code, text = run()
    assert code == 1
    assert text.startswith(f"row_lease: job {job_id}: locked by thief until ")
    assert f"(events {event_id})" in text
    assert f"row_lease: 1 found. {RULES['row_lease']}" in text
    assert "Not clean: 5 jobs" in text


@in_the_database
def test_no_job_at_all_is_3() -> None:
    code, text = run()
    assert code == 3
    assert text.startswith("Too little was seen: 0 jobs and 0 events")
    code, text = run("--job", str(uuid4()))
    assert code == 3
    assert text.endswith("Of the jobs asked for (1), 0 are there.\n")


@in_the_database
def test_a_job_that_was_asked_for_and_is_not_there_is_3() -> None:
    job_id = str(gallery()["at_work"])
    code, text = run("--job", job_id, "--job", str(uuid4()))
    assert code == 3
    assert text.startswith("Too little was seen: 1 jobs and 4 events")
    assert "Of the jobs asked for (2), 1 are there." in text
    assert run("--job", job_id, "--job", job_id)[0] == 0


@in_the_database
def test_json_is_one_document_with_everything() -> None:
    job_id, event_id = break_one()
    code, text = run("--json", "--bound-seconds", "7", "--backoff-base-seconds", "5")
    report = json.loads(text)
    assert code == 1
    assert (report["verdict"], report["jobs"], report["violations_found"]) == ("violated", 5, 1)
    assert report["backoff"] == {"base_seconds": 5, "max_seconds": 300}
    assert report["bound_seconds"] == 7
    (violation,) = report["violations"]
    assert violation.items() >= {"rule": "row_lease", "job_id": job_id}.items()
    assert event_id in violation["event_ids"]
    assert {rule["rule"]: rule["sentence"] for rule in report["rules"]} == RULES
    assert all(rule["applied"] > 0 for rule in report["rules"])
    assert json.loads(run("--json", "--skip-backoff")[1])["backoff"] is None


@in_the_database
def test_another_backoff_is_told_with_the_way_out() -> None:
    gallery()
    code, text = run("--backoff-base-seconds", "7")
    assert code == 1
    assert "--skip-backoff" in text
    code, text = run("--skip-backoff", "--backoff-base-seconds", "7")
    assert code == 0
    assert "Rules with nothing to look at: backoff_exact." in text


@in_the_database
def test_only_some_jobs_and_only_some_violations_are_shown() -> None:
    jobs = gallery()
    sql("UPDATE jobs_job SET priority = priority - 1")
    one, two = str(jobs["waiting"]), str(jobs["at_work"])
    code, text = run("--job", one, "--job", two, "--max-violations", "1")
    assert code == 1
    assert text.count("row_as_created: job ") == 1
    assert "row_as_created: 2 found" in text


@in_the_database
def test_progress_is_told_to_a_terminal_or_where_it_is_asked_for() -> None:
    gallery()
    for stderr, arguments, expected in (
        (StringIO(), (), ""),
        (StringIO(), ("--progress",), "25 events\n"),
        (Terminal(), (), "25 events\r\n"),
    ):
        assert run(*arguments, stderr=stderr)[0] == 0
        assert stderr.getvalue() == expected


@in_the_database
@pytest.mark.parametrize("table", ["jobs_job", "jobs_jobevent"])
def test_rows_that_a_policy_hides_are_2_and_not_left_out(table: str) -> None:
    gallery()
    sql("CREATE ROLE looks_only")
    try:
        sql("GRANT SELECT ON jobs_job, jobs_jobevent TO looks_only")
        sql("SET ROLE looks_only")
        assert run()[0] == 0
        sql("RESET ROLE")
        sql(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        sql("SET ROLE looks_only")
        code, text = run()
        assert code == 2
        assert "row-level security" in text
    finally:
        sql("RESET ROLE")
        sql(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
        sql("DROP OWNED BY looks_only")
        sql("DROP ROLE looks_only")


def test_what_could_not_be_checked_is_2(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("the server is gone")

    monkeypatch.setattr(check_history, "check", fail)
    assert run() == (
        2,
        "Could not check: the server is gone\n"
        "The server is the one that the POSTGRES_ variables name.",
    )


@in_the_database
def test_where_there_are_no_tables_the_way_to_them_is_told() -> None:
    sql("ALTER TABLE jobs_job RENAME TO elsewhere")
    try:
        code, text = run()
    finally:
        sql("ALTER TABLE elsewhere RENAME TO jobs_job")
    assert code == 2
    assert text.endswith("Run `manage.py migrate` first, or name another database.")


def test_a_server_that_is_not_there_is_2() -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", "check_history"],
        cwd=settings.BASE_DIR,
        env={**os.environ, "POSTGRES_PORT": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("CommandError: Could not check: ")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--job", "17"), "'17' is no job's id"),
        (("--database", "nowhere"), "invalid choice: 'nowhere'"),
        (("--bound-seconds", "-1"), "must be from 0 to 1000000000, not -1"),
        (("--max-violations", "many"), "must be a whole number, not 'many'"),
        (
            ("--backoff-base-seconds", "0"),
            "it must be from 1 to 86400, not 0",
        ),
        (("--backoff-max-seconds", "1e3"), "must be a whole number, not '1e3'"),
        (("--frobnicate",), "unrecognized arguments: --frobnicate"),
    ],
)
def test_misuse_is_2_and_says_what_is_wrong(
    arguments: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = load_command_class(get_commands()["check_history"], "check_history")
    with pytest.raises(SystemExit) as stop:
        command.run_from_argv(["manage.py", "check_history", *arguments])
    assert stop.value.code == 2
    told = capsys.readouterr().err
    assert "usage:" in told
    assert why in told
    assert "_" not in told.rpartition("error:")[2].replace("check_history", "")
