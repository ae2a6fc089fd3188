"""What clients asked for and what they were told, beside what is there."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from chaos.checker.history import Call, History
from chaos.checker.tables import Tables
from chaos.checker.verdict import Verdict
from chaos.ledger import FAIL
from jobs.lifecycle import EventType


def check_creates(history: History, tables: Tables, verdict: Verdict) -> None:
    """The rules about jobs: a `create` call names `marks` and `keys`, one for each job.

    Its answer has `jobs` (ids) and `created`; `rolled_back` says that its transaction was.
    """
    jobs_of: dict[str, list[str]] = defaultdict(list)
    for job in tables.jobs.values():
        if job.mark is not None:
            jobs_of[job.mark].append(job.id)
    asked_for = {mark for call in history.calls["create"] for mark in call.get("marks")}
    for job in tables.jobs.values():
        verdict.hold(
            "no-phantom-job",
            job.mark in asked_for,
            f"nobody asked for the job with the mark {job.mark!r}",
            job.id,
        )
    for mark, ids in jobs_of.items():
        verdict.hold("one-job-a-create", len(ids) == 1, f"{mark} made {len(ids)} jobs", ids[0])
    for call in history.calls["create"]:
        _check_create(call, jobs_of, tables, verdict)
    _check_keys(history, tables, verdict)


def _check_create(
    call: Call, jobs_of: dict[str, list[str]], tables: Tables, verdict: Verdict
) -> None:
    marks = call.get("marks")
    if call.get("rolled_back"):
        _hold_absent("rolled-back-create-absent", marks, jobs_of, verdict)
        return
    if call.outcome == FAIL:
        _hold_absent("failed-create-absent", marks, jobs_of, verdict)
        return
    # A job with a key may be somebody else's.
    own = [mark for mark, key in zip(marks, call.get("keys"), strict=True) if key is None]
    if len(own) > 1:
        there = sum(mark in jobs_of for mark in own)
        verdict.hold(
            "bulk-create-whole",
            there in (0, len(own)),
            f"{there} of the {len(own)} jobs without a key are there, the first is {own[0]}",
        )
    if not call.is_ok:
        return
    for mark, job, is_new in zip(marks, call.get("jobs"), call.get("created"), strict=True):
        verdict.hold(
            "acknowledged-create-kept",
            job in tables.jobs,
            f"{mark} was acknowledged and is gone",
            job,
        )
        if is_new and job in tables.jobs:
            verdict.hold(
                "one-job-a-create",
                jobs_of.get(mark) == [job],
                f"{mark} was told of this job and made {jobs_of.get(mark)}",
                job,
            )


def _hold_absent(
    rule: str, marks: list[str], jobs_of: dict[str, list[str]], verdict: Verdict
) -> None:
    for mark in marks:
        there = jobs_of.get(mark, [])
        verdict.hold(rule, not there, f"{mark} is there", "".join(there[:1]))


def _check_keys(history: History, tables: Tables, verdict: Verdict) -> None:
    holders: dict[str, set[str]] = defaultdict(set)
    for job in tables.jobs.values():
        if job.key is not None:
            holders[job.key].add(job.id)
    told: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for call in history.calls["create"]:
        if call.is_ok and not call.get("rolled_back"):
            answers: Any = zip(call.get("keys"), call.get("jobs"), call.get("created"), strict=True)
            for key, job, is_new in answers:
                if key is not None:
                    told[key].append((job, is_new))
    for key in holders.keys() | told.keys():
        ids = holders[key] | {job for job, _ in told[key]}
        news = sum(is_new for _, is_new in told[key])
        verdict.hold(
            "one-job-a-key",
            len(ids) == 1
            and news <= 1
            and all(tables.jobs[job].key == key for job in ids if job in tables.jobs),
            f"key {key!r}: jobs {sorted(holders[key])}, answers {sorted(told[key])}",
            min(ids),
        )


def check_retries(history: History, tables: Tables, verdict: Verdict) -> None:
    """The rules about retries: a `retry` call names `jobs`, its answer those `retried`."""
    sure: dict[str, int] = defaultdict(int)
    possible: dict[str, int] = defaultdict(int)
    for call in history.calls["retry"]:
        if call.outcome == FAIL:
            continue
        for job in call.get("retried", ()) if call.is_ok else ():
            sure[job] += 1
        for job in call.get("retried") if call.is_ok else call.get("jobs"):
            possible[job] += 1
    found = {
        job: sum(event.type == EventType.MANUAL_RETRY for event in events)
        for job, events in tables.events_of.items()
    }
    for job, count in sure.items():
        verdict.hold(
            "acknowledged-retry-kept",
            found.get(job, 0) >= count,
            f"{count} retries were acknowledged, {found.get(job, 0)} are there",
            job,
        )
    for job, count in found.items():
        if count or job in possible:
            verdict.hold(
                "no-phantom-retry",
                count <= possible[job],
                f"{count} retries are there, {possible[job]} were asked for",
                job,
            )
