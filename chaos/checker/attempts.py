"""What handlers did, beside the attempts that the events tell of."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import pairwise

from chaos.checker.history import Call, History, was_lost
from chaos.checker.tables import QUEUED_AGAIN, Attempt, Tables
from chaos.checker.verdict import Verdict
from chaos.ledger import Entry
from jobs.lifecycle import EventType


def check_attempts(history: History, tables: Tables, verdict: Verdict) -> None:
    """The rules about attempts.

    `start` and `end` are facts, `renew`, `progress`, `complete`, `fail_attempt` and `stale`
    calls; each names `job`, `attempt`, `fencing_token` and `worker`.
    """
    starts = history.facts("start")
    _check_starts(starts, tables, verdict)
    _check_writes(history, tables, verdict)
    _check_successes(history, tables, verdict)
    _check_lost(history, tables, verdict)
    for call in history.calls["stale"]:
        if call.is_ok:
            token = call.get("fencing_token")
            verdict.hold(
                "earlier-attempt-refused",
                call.get("refused"),
                f"{call.get('worker')} had claimed it again, and wrote under token {token}",
                call.get("job"),
            )


def _check_starts(starts: list[Entry], tables: Tables, verdict: Verdict) -> None:
    started: dict[int, int] = defaultdict(int)
    tokens_of: dict[str, list[int]] = defaultdict(list)
    for start in starts:
        fields = start.fields
        token, job = fields["fencing_token"], fields["job"]
        attempt = tables.attempts.get(token)
        verdict.hold(
            "claim-kept",
            attempt is not None
            and (attempt.claimed.job, attempt.claimed.attempt, attempt.claimed.worker)
            == (job, fields["attempt"], fields["worker"]),
            f"{fields['worker']} started attempt {fields['attempt']} under token {token}, "
            f"which is {_told(attempt)}",
            job,
        )
        if started[token] == 0:
            tokens_of[job].append(token)
        started[token] += 1
    for token, count in started.items():
        claim = tables.attempts.get(token)
        verdict.hold(
            "token-started-once",
            count == 1,
            f"token {token} started {count} handlers",
            "" if claim is None else claim.claimed.job,
        )
    for job, tokens in tokens_of.items():
        tokens.sort()
        queued_again = [event.id for event in tables.events_of[job] if event.type in QUEUED_AGAIN]
        for earlier, later in pairwise(tokens):
            verdict.hold(
                "starts-explained",
                bisect_left(queued_again, later) > bisect_left(queued_again, earlier),
                f"nothing queued it again between the starts under {earlier} and {later}",
                job,
            )


def _told(attempt: Attempt | None) -> str:
    if attempt is None:
        return "no claim's"
    claimed = attempt.claimed
    return f"the claim of attempt {claimed.attempt} of job {claimed.job} by {claimed.worker}"


def _check_writes(history: History, tables: Tables, verdict: Verdict) -> None:
    _check_repeatable(history.calls["renew"], EventType.LEASE_RENEWED, tables, verdict)
    _check_repeatable(history.calls["progress"], EventType.PROGRESS, tables, verdict)
    for op, types in (
        ("complete", {EventType.SUCCEEDED}),
        ("fail_attempt", {EventType.RETRY_SCHEDULED, EventType.FAILED}),
    ):
        for call in history.calls[op]:
            if not call.is_ok:
                continue
            attempt = tables.attempts.get(call.get("fencing_token"))
            verdict.hold(
                "completion-kept",
                attempt is not None
                and any(event.is_own_outcome and event.type in types for event in attempt.events),
                f"{op} was acknowledged under token {call.get('fencing_token')} and is not there",
                call.get("job"),
            )


def _check_repeatable(
    calls: list[Call], event_type: EventType, tables: Tables, verdict: Verdict
) -> None:
    """As many events as acknowledgements at least: one that was sent twice may be there twice."""
    rule = "renewal-kept" if event_type == EventType.LEASE_RENEWED else "progress-kept"
    sure: dict[int, list[Call]] = defaultdict(list)
    for call in calls:
        if call.is_ok:
            sure[call.get("fencing_token")].append(call)
    for token, acknowledged in sure.items():
        attempt = tables.attempts.get(token)
        events = [] if attempt is None else attempt.events
        found = [event for event in events if event.type == event_type]
        said = {event.message for event in found}
        missing = [
            message
            for call in acknowledged
            if event_type == EventType.PROGRESS
            and (message := call.get("message")) is not None
            and message not in said
        ]
        verdict.hold(
            rule,
            len(found) >= len(acknowledged) and not missing,
            f"{len(acknowledged)} were acknowledged under token {token}, {len(found)} are there"
            + (f", and not {missing[0]!r}" if missing else ""),
            acknowledged[0].get("job"),
        )


def _check_successes(history: History, tables: Tables, verdict: Verdict) -> None:
    ends = {end.fields["fencing_token"] for end in history.facts("end")}
    for attempt in tables.attempts.values():
        if not any(event.type == EventType.SUCCEEDED for event in attempt.events):
            continue
        job = attempt.claimed.job
        verdict.hold(
            "success-ended",
            attempt.token in ends,
            f"it succeeded under token {attempt.token}, whose handler came to no end",
            job,
        )
        named = tables.jobs[job].result_token if job in tables.jobs else None
        if named is not None:
            verdict.hold(
                "result-of-the-success",
                named == str(attempt.token),
                f"it succeeded under token {attempt.token}, and its result is of {named}",
                job,
            )


def _check_lost(history: History, tables: Tables, verdict: Verdict) -> None:
    """Neither an outcome of its own nor another acknowledgement comes after the word."""
    lost_at: dict[int, float] = {}
    writes = ("renew", "progress", "complete", "fail_attempt")
    calls = [call for op in writes for call in history.calls[op]]
    for call in calls:
        if was_lost(call) and call.answer is not None:
            token = call.get("fencing_token")
            lost_at[token] = min(call.answer.at, lost_at.get(token, call.answer.at))
    later = {
        call.get("fencing_token"): call
        for call in calls
        if call.is_ok and call.invoke.at > lost_at.get(call.get("fencing_token"), float("inf"))
    }
    for token in lost_at:
        attempt = tables.attempts.get(token)
        if attempt is None:
            continue
        claimed = attempt.claimed
        outcome = _own_outcome(attempt, tables)
        verdict.hold(
            "nothing-after-lease-lost",
            outcome is None and token not in later,
            f"{claimed.worker} heard that attempt {claimed.attempt} under token {token} was lost, "
            + (f"and {later[token].invoke.op} was acknowledged" if token in later else "")
            + (f"and recorded {outcome}" if outcome is not None else ""),
            claimed.job,
        )


def _own_outcome(attempt: Attempt, tables: Tables) -> str | None:
    """The outcome that this attempt's worker recorded, however late; `None` for none."""
    claimed = attempt.claimed
    events = tables.events_of[claimed.job]
    for event in events[bisect_left(events, claimed.id, key=lambda event: event.id) + 1 :]:
        if (event.worker, event.attempt) != (claimed.worker, claimed.attempt):
            continue
        if event.type == EventType.CLAIMED:
            return None
        if event.is_own_outcome:
            return event.type
    return None
