"""Whether there was enough of everything to say anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from chaos.checker.history import Call, History
from chaos.checker.tables import Tables
from chaos.checker.verdict import RULES, Verdict
from chaos.ledger import FAIL, TORN, UNKNOWN
from jobs.lifecycle import EventType

# What clients do, as the counts name it.
ACKNOWLEDGED = (
    "single creates",
    "creates with a key",
    "answers that name another's job",
    "creates rolled back",
    "bulk creates",
    "single retries",
    "bulk retries",
    "reads",
    "pages of the feed",
)
# Of each, this much must have been seen, and each rule applied so often.
AT_LEAST: Mapping[str, int] = {
    **dict.fromkeys(ACKNOWLEDGED, 1),
    **dict.fromkeys(("handler starts", "failed attempts", "attempts taken back"), 1),
    **dict.fromkeys(RULES, 1),
}


def count_history(history: History, tables: Tables, verdict: Verdict) -> None:
    """Count what the history holds, each thing by its name in `AT_LEAST` and more."""
    counts = verdict.counts
    for name in AT_LEAST:
        counts.setdefault(name, 0)
    for op, calls in history.calls.items():
        if op == "fault":
            continue
        outcomes = Counter(call.outcome for call in calls)
        counts[f"{op} calls without an answer"] = sum(call.answer is None for call in calls)
        counts[f"{op} calls that failed"] = outcomes[FAIL]
        counts[f"{op} calls unknown"] = outcomes[UNKNOWN]
        for call in calls:
            if call.is_ok:
                counts["acknowledged operations"] += 1
                for name in _names(op, call):
                    counts[name] += 1
    counts["handler starts"] = len(history.facts("start"))
    counts["torn lines"] = len(history.notes[TORN])
    for fault in history.faults:
        counts[f"fault {fault.kind}"] += 1
    for event in tables.events:
        if event.type in (EventType.RETRY_SCHEDULED, EventType.FAILED) and event.is_own_outcome:
            counts["failed attempts"] += 1
        elif event.type == EventType.TIMEOUT_REQUEUED or event.cause == "lease_expired":
            counts["attempts taken back"] += 1
    counts["jobs"] = len(tables.jobs)
    counts["events"] = len(tables.events)


def _names(op: str, call: Call) -> list[str]:
    if op == "create":
        if call.get("rolled_back"):
            return ["creates rolled back"]
        if len(call.get("marks")) > 1:
            return ["bulk creates"]
        if call.get("keys") == [None]:
            return ["single creates"]
        others = [] if call.get("created") == [True] else ["answers that name another's job"]
        return ["creates with a key", *others]
    if op == "retry":
        return ["bulk retries" if len(call.get("jobs")) > 1 else "single retries"]
    return {"read": ["reads"], "feed": ["pages of the feed"]}.get(op, [])


def check_enough(
    history: History,
    verdict: Verdict,
    at_least: Mapping[str, int],
    planned_faults: Mapping[str, int],
) -> None:
    """Say in `unknown` what there was too little of."""
    if not history.clock.is_known:
        verdict.unknown.append("The database's clock is not known: no `clock` notes that agree.")
    for name, wanted in at_least.items():
        found = verdict.counts[name]
        if found < wanted:
            what = f"The rule {name} was applied" if name in RULES else f"There were {name}"
            verdict.unknown.append(f"{what}: {found}, and at least {wanted} are wanted.")
    for kind, wanted in planned_faults.items():
        found = verdict.counts[f"fault {kind}"]
        if found < wanted:
            verdict.unknown.append(f"The fault {kind} fired {found} times of {wanted}.")
