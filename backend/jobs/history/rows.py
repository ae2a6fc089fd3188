"""Compares a job's row with what its events make of it. It knows no database."""

from __future__ import annotations

from jobs.history import rules
from jobs.history.moments import MICROSECONDS, spelled
from jobs.history.replay import NO_TEXT, QUEUED, RUNNING, SUCCEEDED, Replay
from jobs.history.report import Findings, Terms

# id, status, attempts, max_attempts, available_at, locked_by, locked_until, created_at,
# updated_at, finished_at, a digest of type and priority, one of last_error, and whether
# there is a result.
JobRow = tuple[
    bytes, str, int, int, int, str | None, int | None, int, int, int | None, int, int, bool
]


def compare(row: JobRow, replay: Replay | None, terms: Terms, findings: Findings) -> None:
    """Tell where the row breaks a rule; `replay` is `None` for a job without events."""
    findings.applied[rules.HISTORY_PRESENT] += 1
    if replay is None:
        findings.add(rules.HISTORY_PRESENT, row[0], f"{row[1]}, but without any event")
    else:
        _compare_with_replay(row, replay, findings)
    _look_for_stranded(row, replay, terms, findings)


def _compare_with_replay(row: JobRow, replay: Replay, findings: Findings) -> None:
    job_id, status, attempts, _, available_at, locked_by, locked_until = row[:7]
    created_at, updated_at, finished_at, created_digest, error_digest, has_result = row[7:]
    applied = findings.applied

    def wrong(rule: str, message: str, *event_ids: int | None) -> None:
        findings.add(rule, job_id, message, *event_ids)

    applied[rules.ROW_STATUS] += 1
    if status != replay.status:
        wrong(rules.ROW_STATUS, f"{status}, but its events end {replay.status}", replay.last_id)
    applied[rules.ROW_ATTEMPTS] += 1
    if attempts != replay.attempts:
        wrong(
            rules.ROW_ATTEMPTS,
            f"attempts is {attempts}, but its events tell of {replay.attempts}",
            replay.claim_id,
            replay.last_id,
        )
    applied[rules.ROW_LEASE] += 1
    runs = replay.status == RUNNING
    worker = replay.worker if runs else None
    # Of a lease whose end is not told, only that there is one.
    lease_end = None
    if runs:
        lease_end = locked_until if replay.lease_end is None else replay.lease_end
    if locked_by != worker or locked_until != lease_end:
        wrong(
            rules.ROW_LEASE,
            f"locked by {locked_by} until {spelled(locked_until)}, but its events say "
            f"{worker} until {spelled(lease_end)}",
            replay.granted_id,
            replay.last_id,
        )
    applied[rules.ROW_FINISHED_AT] += 1
    if finished_at != replay.finished_at:
        wrong(
            rules.ROW_FINISHED_AT,
            f"finished_at is {spelled(finished_at)}, but its events say "
            f"{spelled(replay.finished_at)}",
            replay.last_id,
        )
    if replay.available_at is not None:
        applied[rules.ROW_AVAILABLE_AT] += 1
        if available_at != replay.available_at:
            wrong(
                rules.ROW_AVAILABLE_AT,
                f"available_at is {spelled(available_at)}, but its events say "
                f"{spelled(replay.available_at)}",
                replay.told_id,
            )
    applied[rules.ROW_OUTCOME] += 1
    if has_result and replay.status != SUCCEEDED:
        wrong(rules.ROW_OUTCOME, f"{status} with a result", replay.last_id)
    if replay.error_digest is not None and error_digest != replay.error_digest:
        should = "be empty" if replay.error_digest == NO_TEXT else "be the last failed attempt's"
        wrong(rules.ROW_OUTCOME, f"last_error should {should}, and is not", replay.last_id)
    applied[rules.ROW_TIMES] += 1
    if replay.created_at is not None and created_at != replay.created_at:
        wrong(
            rules.ROW_TIMES,
            f"created_at is {spelled(created_at)}, its event's time {spelled(replay.created_at)}",
            replay.first_id,
        )
    if updated_at != replay.last_at:
        wrong(
            rules.ROW_TIMES,
            f"updated_at is {spelled(updated_at)}, the last event's time {spelled(replay.last_at)}",
            replay.last_id,
        )
    if replay.created_digest is not None:
        applied[rules.ROW_AS_CREATED] += 1
        if created_digest != replay.created_digest:
            wrong(
                rules.ROW_AS_CREATED,
                "type and priority are not those of its `created` event",
                replay.first_id,
            )


def _look_for_stranded(
    row: JobRow, replay: Replay | None, terms: Terms, findings: Findings
) -> None:
    job_id, status, attempts, max_attempts, locked_until = *row[:4], row[6]
    last_id = None if replay is None else replay.last_id
    if status == QUEUED:
        findings.applied[rules.QUEUED_HAS_ATTEMPTS] += 1
        if attempts >= max_attempts:
            findings.add(
                rules.QUEUED_HAS_ATTEMPTS,
                job_id,
                f"queued with {attempts} of {max_attempts} attempts used up",
                last_id,
            )
    elif status == RUNNING and locked_until is not None:
        findings.applied[rules.RUNNING_WITHIN_BOUND] += 1
        over_seconds = (terms.now - locked_until) / MICROSECONDS
        if over_seconds > terms.bound_seconds:
            findings.add(
                rules.RUNNING_WITHIN_BOUND,
                job_id,
                f"running {over_seconds:.0f} s past the end of its lease "
                f"(bound: {terms.bound_seconds} s)",
                None if replay is None else replay.granted_id,
                last_id,
            )
