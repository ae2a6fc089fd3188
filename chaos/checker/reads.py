"""What clients were shown, beside the events there are."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import pairwise

from chaos.checker.history import Call, History
from chaos.checker.tables import EventRow, Tables
from chaos.checker.verdict import Verdict
from jobs.lifecycle import TRANSITIONS, EventType


def check_reads(history: History, tables: Tables, verdict: Verdict) -> None:
    """The rules about reads of one job with its events.

    A `read` call names `job`; its answer `found`, and then `status`, `attempts`, the number
    of `events` and the `last` one's id.
    """
    known = _Known(history, tables)
    seen: dict[tuple[str, str], int] = {}
    for call in history.calls["read"]:
        if not call.is_ok:
            continue
        job = call.get("job")
        last = call.get("last") if call.get("found") else 0
        if call.get("found"):
            _check_prefix(call, tables.events_of[job], verdict)
        # Of one client each read is after the one before; of others, after what was known.
        reader = (call.invoke.file, job)
        at_least = max(seen.get(reader, 0), known.before(job, call.invoke.at))
        if at_least:
            verdict.hold(
                "reads-go-forward",
                last >= at_least,
                f"a read by {call.invoke.who} shows it "
                + (f"to event {last}" if last else "not at all")
                + f", and event {at_least} was known before",
                job,
            )
        seen[reader] = max(last, seen.get(reader, 0))


def _check_prefix(call: Call, events: list[EventRow], verdict: Verdict) -> None:
    count = bisect_right(events, call.get("last"), key=lambda event: event.id)
    made = (
        (TRANSITIONS[EventType(events[count - 1].type)].target.value, events[count - 1].attempt)
        if count
        else None
    )
    shown = (call.get("status"), call.get("attempts"))
    verdict.hold(
        "reads-are-prefixes",
        (count, made) == (call.get("events"), shown),
        f"a read by {call.invoke.who} shows {shown} and {call.get('events')} events to "
        f"{call.get('last')}; there are {count}, which make {made}",
        call.get("job"),
    )


class _Known:
    """Which event of a job somebody knew of, and since when by the ledger's clock."""

    def __init__(self, history: History, tables: Tables) -> None:
        facts: dict[str, list[tuple[float, int]]] = defaultdict(list)
        for call in history.calls["create"]:
            if call.is_ok and call.answer is not None and not call.get("rolled_back"):
                for job in call.get("jobs"):
                    if tables.events_of.get(job):
                        facts[job].append((call.answer.at, tables.events_of[job][0].id))
        for start in history.facts("start"):
            facts[start.fields["job"]].append((start.at, start.fields["fencing_token"]))
        self._at: dict[str, list[float]] = {}
        self._events: dict[str, list[int]] = {}
        for job, known in facts.items():
            known.sort()
            self._at[job] = [at for at, _ in known]
            highest = 0
            self._events[job] = [highest := max(highest, event) for _, event in known]

    def before(self, job: str, at: float) -> int:
        """The newest event of `job` that was known before `at`; 0 for none."""
        place = bisect_left(self._at.get(job, []), at)
        return self._events[job][place - 1] if place else 0


def check_feed(history: History, tables: Tables, verdict: Verdict) -> None:
    """The rules about readers of the feed.

    The answer of a `feed` call has the `ids` it was told, and `to`: the reader will ask for
    nothing up to there again.
    """
    pages: dict[str, list[Call]] = defaultdict(list)
    for call in history.calls["feed"]:
        if call.is_ok:
            pages[call.invoke.file].append(call)
    all_ids = [event.id for event in tables.events]
    for calls in pages.values():
        who = calls[0].invoke.who
        ids = [event_id for call in calls for event_id in call.get("ids")]
        backwards = [(earlier, later) for earlier, later in pairwise(ids) if later <= earlier]
        verdict.hold(
            "feed-in-order",
            not backwards,
            f"{who} was told of event {backwards[0][1]} after {backwards[0][0]}"
            if backwards
            else "",
        )
        due = set(all_ids[: bisect_right(all_ids, max(call.get("to") for call in calls))])
        skipped, extra = sorted(due.difference(ids)), sorted(set(ids).difference(due))
        verdict.hold(
            "feed-complete",
            not (skipped or extra),
            f"{who} was not told of {len(skipped)} events ({skipped[:3]}), "
            f"and of {len(extra)} that are not there ({extra[:3]})",
        )
        verdict.counts["events that readers of the feed were told"] += len(ids)
