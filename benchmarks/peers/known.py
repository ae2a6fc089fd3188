"""The peers: what each is, how its jobs are counted, and what its rate leaves out.

What is said of one was read in the source of the version that is installed, at the place
named beside it. A peer without a `because` in `settings` runs with the setting's name.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Concurrency of 4 and of 16; as its documentation starts it; the best that was found.
SETTINGS = ("4", "16", "documented", "best")


@dataclass(frozen=True, slots=True)
class Peer:
    """One queue as the benchmark sees it."""

    key: str
    title: str
    # The distribution whose version is told.
    package: str
    adapter: str
    # How many of its jobs are not done, as SQL; Celery's are counted in Redis.
    remaining: str
    # What empties it between two rounds.
    empty: str
    # A table, and what differs in the copies of its first row: those due, those due later.
    table: str
    due: dict[str, str]
    later: dict[str, str]
    leaves_out: str
    settings: dict[str, str]
    # Jobs a round at each setting, so that it lasts some seconds.
    jobs: dict[str, int]
    environment: dict[str, str] = field(default_factory=dict)
    python: tuple[int, int] = (3, 11)
    # Statements run after the copies were made, for a second table.
    after_copies: tuple[str, ...] = ()


def _jobs(*numbers: int) -> dict[str, int]:
    return dict(zip(SETTINGS, numbers, strict=False))


_SOON = "now() + interval '1 day'"
_KEPT = "connections are kept (CONN_MAX_AGE)"

PEERS = (
    Peer(
        key="rowlease",
        title="Rowlease",
        package="",
        adapter="on_rowlease",
        remaining="SELECT count(*) FROM jobs_job WHERE status IN ('queued', 'running')",
        empty="TRUNCATE jobs_jobevent, jobs_job",
        table="jobs_job",
        due={"id": "gen_random_uuid()", "priority": "n % 40"},
        later={"id": "gen_random_uuid()", "priority": "51 + n % 40", "available_at": _SOON},
        leaves_out="nothing: fence, lease, retries and two events a job, kept",
        settings={
            "4": "4 threads",
            "16": "16 threads",
            "documented": "`run_job_workers` as shipped",
            "best": "2 processes of 64 threads",
        },
        jobs=_jobs(20_000, 40_000, 20_000, 60_000),
    ),
    Peer(
        key="pgqueuer",
        title="pgqueuer",
        package="pgqueuer",
        adapter="on_pgqueuer",
        remaining="SELECT count(*) FROM pgqueuer",
        empty="TRUNCATE pgqueuer, pgqueuer_log, pgqueuer_statistics",
        table="pgqueuer",
        due={"id": "", "priority": "n % 40"},
        later={"id": "", "priority": "51 + n % 40", "execute_after": _SOON},
        leaves_out="no fence: an outcome is written by the job's id alone, whoever holds it now; "
        "the row is deleted, a log row of each outcome stays; outcomes wait in memory for a batch "
        "or 0.1 s (adapters/persistence/qb.py, core/buffers.py)",
        settings={
            "4": "batches of 2, at most 4 tasks: it wants twice the batch",
            "16": "batches of 8, at most 16 tasks",
            "documented": "as `pgq run`: batches of 10, any number of tasks",
            "best": "batches of 100, any number of tasks",
        },
        jobs=_jobs(8_000, 15_000, 25_000, 60_000),
    ),
    Peer(
        key="procrastinate",
        title="procrastinate",
        package="procrastinate",
        adapter="on_procrastinate",
        remaining="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
        empty="TRUNCATE procrastinate_jobs CASCADE",
        table="procrastinate_jobs",
        due={"id": "", "priority": "n % 40"},
        later={"id": "", "priority": "51 + n % 40", "scheduled_at": _SOON},
        leaves_out="no fence: an outcome is written by the job's id while anybody runs it; no "
        "retry unless asked for (sql/schema.sql, procrastinate_finish_job_v1). It keeps jobs and "
        "events",
        settings={
            "4": "`--concurrency 4`",
            "16": "`--concurrency 16`",
            "documented": "`worker`: one at a time",
            "best": "2 processes, `--concurrency 16`",
        },
        jobs=_jobs(4_000, 4_000, 4_000, 5_000),
    ),
    Peer(
        key="oban",
        title="oban",
        package="oban",
        adapter="on_oban",
        remaining="SELECT count(*) FROM oban_jobs WHERE state IN ('available', 'executing')",
        empty="TRUNCATE oban_jobs",
        table="oban_jobs",
        due={"id": "", "priority": "n % 9"},
        later={"id": "", "priority": "n % 9", "state": "'scheduled'", "scheduled_at": _SOON},
        leaves_out="no events beside the row's times; no lease: a job of a worker that died waits "
        "for a rescue by age; outcomes are written one statement each, fenced by the time of the "
        "attempt (queries/ack_job.sql, rescue_jobs.sql)",
        settings={
            "4": "`--queues default:4`",
            "16": "`--queues default:16`",
            "documented": "`--queues default:10`",
            "best": "`--queues default:100`, a line a job not logged",
        },
        jobs=_jobs(8_000, 10_000, 10_000, 15_000),
        python=(3, 12),
    ),
    Peer(
        key="tasks_db",
        title="django-tasks-db",
        package="django-tasks-db",
        adapter="on_django",
        remaining="SELECT count(*) FROM django_tasks_database_dbtaskresult "
        "WHERE status IN ('READY', 'RUNNING')",
        empty="TRUNCATE django_tasks_database_dbtaskresult",
        table="django_tasks_database_dbtaskresult",
        due={"id": "gen_random_uuid()", "priority": "n % 40 - 50"},
        later={"id": "gen_random_uuid()", "priority": "1 + n % 40", "run_after": _SOON},
        leaves_out="no lease, no retry, no fence, no events: a worker that dies leaves its task "
        "running for ever; one task at a time in a process; no bulk enqueue (models.py, "
        "management/commands/db_worker.py)",
        settings={
            "4": f"4 processes; {_KEPT}",
            "16": f"16 processes; {_KEPT}",
            "documented": "`db_worker`, one process, a connection for each task",
        },
        jobs=_jobs(4_000, 4_000, 2_000),
        environment={"PEER": "tasks_db"},
        python=(3, 12),
    ),
    Peer(
        key="ox",
        title="django-ox",
        package="django-ox",
        adapter="on_django",
        remaining="SELECT count(*) FROM django_ox_oxtask WHERE status IN ('READY', 'RUNNING')",
        empty="TRUNCATE django_ox_oxtask CASCADE",
        table="django_ox_oxtask",
        due={"id": "gen_random_uuid()", "priority": "n % 40 - 50"},
        later={"id": "gen_random_uuid()", "priority": "1 + n % 40", "run_after": _SOON},
        leaves_out="no events; claims one task a statement. It has leases, retries and a fence by "
        "epoch (worker.py, _write_outcome)",
        settings={
            "4": f"`--concurrency 4`; {_KEPT}",
            "16": f"`--concurrency 16`; {_KEPT}",
            "documented": "`ox_worker`: one at a time, a connection for each task",
            "best": f"`--concurrency 4 --processes 2`; {_KEPT}",
        },
        jobs=_jobs(4_000, 4_000, 3_000, 5_000),
        environment={"PEER": "ox"},
        python=(3, 12),
    ),
    Peer(
        key="dj_queue",
        title="dj-queue",
        package="dj-queue",
        adapter="on_django",
        remaining="SELECT (SELECT count(*) FROM dj_queue_ready_executions) + "
        "(SELECT count(*) FROM dj_queue_claimed_executions)",
        empty="TRUNCATE dj_queue_jobs CASCADE",
        table="dj_queue_jobs",
        due={"id": "gen_random_uuid()", "priority": "n % 40 - 50", "scheduled_at": "NULL"},
        later={"id": "gen_random_uuid()", "priority": "1 + n % 40", "scheduled_at": _SOON},
        after_copies=(
            "INSERT INTO dj_queue_ready_executions "
            "(job_id, backend_alias, queue_name, priority, created_at) "
            "SELECT id, backend_alias, queue_name, priority, now() FROM dj_queue_jobs AS j "
            "WHERE scheduled_at IS NULL AND NOT EXISTS "
            "(SELECT FROM dj_queue_ready_executions AS r WHERE r.job_id = j.id)",
            "INSERT INTO dj_queue_scheduled_executions "
            "(job_id, backend_alias, queue_name, priority, scheduled_at, created_at) "
            "SELECT id, backend_alias, queue_name, priority, scheduled_at, now() "
            "FROM dj_queue_jobs WHERE scheduled_at > now()",
        ),
        leaves_out="no fence: an outcome goes to whatever claim the job has now "
        "(sql/postgres.py, delete_claimed_and_finish_job_if_no_execution_state); no retry by "
        "itself, no lease of a job but the heartbeat of its process, no events; twice as many "
        "jobs are claimed as there are threads",
        settings={
            "4": f"4 threads; {_KEPT}",
            "16": f"16 threads; {_KEPT}",
            "documented": "`dj_queue`: 3 threads, twice as many jobs claimed",
            "best": f"2 processes of 8 threads; {_KEPT}",
        },
        jobs=_jobs(4_000, 4_000, 4_000, 5_000),
        environment={"PEER": "dj_queue"},
        python=(3, 12),
    ),
    Peer(
        key="celery",
        title="Celery on Redis",
        package="celery",
        adapter="on_celery",
        remaining="",
        empty="",
        table="",
        due={},
        later={},
        leaves_out="not durable: Redis ran with its append-only file, flushed once a second; a "
        "task is acknowledged before it runs, so that one whose worker dies is lost; no history, "
        "no fence, no enqueue within a transaction; results ignored",
        settings={
            "4": "`--concurrency 4`, processes",
            "16": "`--concurrency 16`, processes",
            "documented": "`worker`: a process for each core",
            "best": "16 threads, 64 tasks fetched ahead for each, gossip off",
        },
        jobs=_jobs(6_000, 6_000, 6_000, 6_000),
    ),
    Peer(
        key="graphile",
        title="graphile-worker",
        package="graphile-worker",
        adapter="on_graphile",
        remaining="SELECT count(*) FROM graphile_worker._private_jobs",
        empty="TRUNCATE graphile_worker._private_jobs",
        table="graphile_worker._private_jobs",
        due={"id": "", "priority": "n % 40"},
        later={"id": "", "priority": "-(1 + n % 40)", "run_at": _SOON},
        leaves_out="no fence: a job is deleted by its id alone, whoever holds it now; no history; "
        "at best up to 500 jobs are locked in memory before they run, and wait four hours "
        "where that process dies (sql/completeJobs, its page on performance)",
        settings={
            "4": "`-j 4`",
            "16": "`-j 16`",
            "documented": "its starting point for batching: 10 at once, 11 fetched ahead",
            "best": "24 at once, 500 fetched ahead",
        },
        jobs=_jobs(10_000, 15_000, 15_000, 60_000),
    ),
)
