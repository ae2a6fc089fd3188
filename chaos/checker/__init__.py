"""Joins what clients, handlers and the conductor wrote down with what the tables hold.

Rules that the tables can answer alone are not here: `jobs.history` has those.

What the ledger tells, by its `op` (a call has an `invoke` and an end, a note is one line):

    create        call  marks, keys, rolled_back; answer: jobs, created
                        A mark is the job's payload["mark"], and no other job's.
    retry         call  jobs; answer: retried
    read          call  job; answer: found, status, attempts, events (how many), last (an id)
    feed          call  answer: ids, to (an id up to which nothing will be read again)
    claim         call  worker; answer: job or None
    start, end    note  job, attempt, fencing_token, worker
    renew, progress, complete, fail_attempt
                  call  as start; progress also message. A failed one names LeaseLost in `error`
    stale         call  as start, of an attempt before the worker's own; answer: refused
    fault         call  kind; from its invoke to its end; one that failed was not fired
                  note  kind, and began_at (monotonic) where it lasted
    signal        note  pid, signum
    worker_started, worker_exited
                  note  pid
    clock         note  sent_at (monotonic), database_time
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from chaos.checker.attempts import check_attempts
from chaos.checker.creates import check_creates, check_retries
from chaos.checker.enough import AT_LEAST, check_enough, count_history
from chaos.checker.history import History
from chaos.checker.order import check_order
from chaos.checker.reads import check_feed, check_reads
from chaos.checker.stops import check_stops
from chaos.checker.tables import read_tables
from chaos.checker.verdict import RULES, Verdict, Violation
from chaos.ledger import Entry

__all__ = ["AT_LEAST", "RULES", "Verdict", "Violation", "check"]


def check(
    entries: Iterable[Entry],
    using: str = "default",
    *,
    at_least: Mapping[str, int] = AT_LEAST,
    planned_faults: Mapping[str, int] | None = None,
    worker_faults: Collection[str] = (),
    longest_transaction_seconds: float = 2.0,
    grace_seconds: float = 30.0,
    stop_tolerance_seconds: float = 5.0,
) -> Verdict:
    """What the history says of the queue in the database `using`.

    `entries` are all that was written, in the order of time, by processes that have ended:
    what is in the tables and not in them counts as nobody's. `at_least` says how often each
    rule must have been applied and each thing seen, `planned_faults` how often each kind
    must have fired; what there was too little of is told in `unknown`. `worker_faults` are
    the kinds that touch worker processes and nothing else: they delay no stop.
    """
    history = History(entries)
    tables = read_tables(using)
    verdict = Verdict()
    check_creates(history, tables, verdict)
    check_retries(history, tables, verdict)
    check_attempts(history, tables, verdict)
    check_order(history, tables, verdict, longest_transaction_seconds=longest_transaction_seconds)
    check_reads(history, tables, verdict)
    check_feed(history, tables, verdict)
    check_stops(
        history,
        tables,
        verdict,
        worker_faults=worker_faults,
        grace_seconds=grace_seconds,
        tolerance_seconds=stop_tolerance_seconds,
    )
    count_history(history, tables, verdict)
    check_enough(history, verdict, at_least, planned_faults or {})
    return verdict
