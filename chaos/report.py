"""What a run says of itself: a page, its data, and the exit code."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from chaos import ledger
from chaos.checker import AT_LEAST, check
from chaos.conductor import Conductor
from chaos.stage import GRACE_SECONDS, SKEW_SECONDS, SKEWED_WORKER, Stage
from jobs import history
from jobs.models import JobEvent

PASSED, VIOLATED, UNKNOWN = "passed", "violated", "unknown"
CODES = {PASSED: 0, VIOLATED: 1, UNKNOWN: 3}
CLOCK = "worker-clock-wrong"
# Locks are held for so long by what is broken here, near which no order is judged.
LONGEST_TRANSACTION_SECONDS = 2.0
# No job runs when all have ended.
BOUND_SECONDS = 60
SHOWN = 20


@dataclass
class Run:
    """One run, as far as it is known."""

    seed: int
    seconds: int
    each: int
    kinds: list[str]
    conductor: Conductor
    fault_seconds: float = 0.0
    drain_seconds: float = 0.0
    drain_bound_seconds: float = 0.0
    violations: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """In a word."""
        return VIOLATED if self.violations else UNKNOWN if self.unknown else PASSED


def conclude(stage: Stage, run: Run) -> int:
    """Check everything, write the report, print its tables; the exit code."""
    entries = ledger.read(stage.directory / "ledger")
    _look_at_snapshots(entries, run)
    report = history.check(bound_seconds=BOUND_SECONDS)
    run.violations += [
        f"{found.rule}: {found.message} (job {found.job_id}, events {found.event_ids})"
        for found in report.violations
    ]
    if report.verdict == "unknown":
        run.unknown.append("There was nothing in the database to look at.")
    verdict = check(
        entries,
        at_least=AT_LEAST,
        longest_transaction_seconds=LONGEST_TRANSACTION_SECONDS,
        grace_seconds=GRACE_SECONDS,
    )
    run.violations += [str(found) for found in verdict.violations]
    run.unknown += verdict.unknown
    run.counts |= verdict.counts
    run.operations = _operations(entries)
    _look_at_clocks(entries, stage, run)
    _look_at_faults(run)
    page = _page(run)
    (stage.directory / "report.md").write_text(page)
    (stage.directory / "report.json").write_text(json.dumps(_data(run), indent=2))
    print(page, flush=True)
    return CODES[run.verdict]


def _look_at_snapshots(entries: list[ledger.Entry], run: Run) -> None:
    looks = [entry for entry in entries if entry.op == "snapshot"]
    whole = [look for look in looks if "error" not in look.fields]
    run.counts["snapshots"] = len(whole)
    for look in whole:
        run.violations += [f"in a snapshot, {text}" for text in look.fields["violations"]]
    if not whole:
        run.unknown.append("No snapshot was looked at while things were broken.")


def _operations(entries: list[ledger.Entry]) -> dict[str, int]:
    """What was acknowledged, by kind: to clients, and to workers as the events tell."""
    told: Counter[str] = Counter()
    for entry in entries:
        if entry.phase != ledger.OK or entry.op == "fault":
            continue
        fields = entry.fields
        if entry.op == "create":
            told["jobs created or found by key"] += len(fields["jobs"])
        elif entry.op == "retry":
            told["jobs retried"] += len(fields["retried"])
        elif entry.op in ("read", "feed"):
            told[f"{entry.op}s answered"] += 1
    types = JobEvent.objects.values_list("type", flat=True)
    for event_type, count in Counter(types).items():
        if event_type not in ("created", "manual_retry"):
            told[f"events `{event_type}`"] = count
    return dict(sorted(told.items()))


def _look_at_clocks(entries: list[ledger.Entry], stage: Stage, run: Run) -> None:
    """How many processes with a wrong clock ran a handler."""
    who = stage.workers[SKEWED_WORKER].who
    starts = [entry for entry in entries if entry.op == "start" and "host_time" in entry.fields]
    # All but that worker's have the right clock.
    right = next((one.fields["host_time"] - one.at for one in starts if one.who != who), None)
    if right is None:
        return
    wrong = {
        str(entry.fields["worker"]).split(":")[1]
        for entry in starts
        if abs(entry.fields["host_time"] - entry.at - right) > SKEW_SECONDS / 2
    }
    run.conductor.fired[CLOCK] = sum(
        entry.op == "fault" and entry.fields.get("kind") == CLOCK for entry in entries
    )
    run.conductor.felt[CLOCK] = len(wrong)
    if stage.faketime is None:
        run.conductor.unavailable[CLOCK] = "libfaketime is not installed"


def _look_at_faults(run: Run) -> None:
    for name in (*run.kinds, CLOCK):
        felt = run.conductor.felt[name]
        if felt < run.each and name not in run.conductor.unavailable:
            run.unknown.append(f"The fault {name} was felt {felt} times of {run.each}.")


def _page(run: Run) -> str:
    conductor = run.conductor
    total = sum(run.operations.values())
    lines = [
        f"# A chaos run: {run.verdict}",
        "",
        f"Seed {run.seed}, {run.seconds} s in all, of which {run.fault_seconds:.0f} s with faults. "
        f"All jobs had ended {run.drain_seconds:.1f} s after the last one "
        f"(bound: {run.drain_bound_seconds:.0f} s). {run.counts.get('snapshots', 0)} snapshots "
        f"meanwhile, {run.counts.get('jobs', 0)} jobs, {run.counts.get('events', 0)} events.",
        "",
        f"## Operations acknowledged: {total}",
        "",
        *_table(("operation", "count"), [*run.operations.items()]),
        "",
        f"## Faults felt: {sum(conductor.felt.values())}",
        "",
        *_table(
            ("kind", "fired", "felt"),
            [
                (name, conductor.fired[name], conductor.unavailable.get(name, conductor.felt[name]))
                for name in (*run.kinds, CLOCK)
            ],
        ),
        "",
        f"## Violations: {len(run.violations)}",
        "",
        *[f"- {text}" for text in run.violations[:SHOWN]],
        *([f"- ... and {len(run.violations) - SHOWN} more"] * (len(run.violations) > SHOWN)),
        "",
        "## What cannot be said",
        "",
        *([f"- {text}" for text in run.unknown] or ["Nothing: there was enough of everything."]),
        "",
    ]
    return "\n".join(lines)


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[str]:
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
    ]


def _data(run: Run) -> dict[str, Any]:
    conductor = run.conductor
    return {
        "verdict": run.verdict,
        "seed": run.seed,
        "seconds": run.seconds,
        "fault_seconds": round(run.fault_seconds, 1),
        "drain_seconds": round(run.drain_seconds, 1),
        "drain_bound_seconds": round(run.drain_bound_seconds, 1),
        "each": run.each,
        "acknowledged": sum(run.operations.values()),
        "operations": run.operations,
        "fired": dict(conductor.fired),
        "felt": dict(conductor.felt),
        "what_was_felt": {f"{kind}: {felt}": n for (kind, felt), n in conductor.details.items()},
        "unavailable": conductor.unavailable,
        "not_felt": dict(conductor.errors),
        "violations": run.violations,
        "unknown": run.unknown,
        "counts": run.counts,
    }
