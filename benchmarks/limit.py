"""What PostgreSQL itself could do: pgbench with the very statement that a worker sends.

The statement, its parameters' names and the settings of the session are taken from a
call of the service, so that a changed service is measured against its own new text.
pgbench sends the same number of jobs in a batch, prepared, on one connection, to the
same server; what a worker does beside (threads, Python, handlers) is what the ratio
between the two shows.

pgbench cannot carry what one round claimed into the records of the next. It needs not:
`ground.load` makes jobs whose ids count upwards in the order of their claim, so that a
round knows the ids of the one before. The jobs and events are counted afterwards.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any
from unittest import mock
from uuid import UUID

from benchmarks import ground

# What stands for a number in a text, until pgbench puts it in.
_ID = UUID("00000000-0000-7000-8000-abcabcabcabc")


@dataclass(frozen=True, slots=True)
class Sent:
    """One statement on its way to the database."""

    settings: dict[str, str]
    statement: str
    parameters: dict[str, Any]


def drained_by_pgbench(batch: int, jobs: int) -> float:
    """Jobs per second of pgbench, `batch` jobs a round, over what `ground.load` loaded."""
    sent = what_a_worker_sends(batch)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(pgbench_script(sent, batch))
        script.flush()
        run_pgbench(
            script.name,
            *("--client=1", "--protocol=prepared", f"--define=base={1 - batch}"),
            f"--transactions={jobs // batch + 1}",
            settings=sent.settings,
        )
    (done,) = ground.query("SELECT count(*) FROM jobs_job WHERE status = 'succeeded'")
    (events,) = ground.query("SELECT count(*) FROM jobs_jobevent")
    expected = jobs // batch * batch
    if not expected <= done <= expected + batch or events < 2 * done:
        raise SystemExit(f"pgbench did {done} of {expected} jobs, so it is no limit of anything.")
    return ground.rate()


def what_a_worker_sends(batch: int) -> Sent:
    """The statement of a full round: `batch` outcomes, and as many threads free again."""
    from jobs import services
    from jobs.records import Owner, Record

    workers = [f"bench-{number}" for number in range(batch)]
    records = [Record.succeeded(Owner(_ID, worker, 1)) for worker in workers]
    with mock.patch("jobs.services.run_in_own_session", return_value=[]) as run:
        services.record_and_claim(records=records, worker_ids=workers, is_own_session=True)
    _alias, settings, (statement, parameters) = run.call_args.args
    return Sent(dict(settings), statement, dict(parameters))


def pgbench_script(sent: Sent, batch: int) -> str:
    """The statement with its parameters spelled out, the ids counted on from `:base`."""
    values = {name: _literal(name, value, batch) for name, value in sent.parameters.items()}
    one_line = " ".join(sent.statement.split())
    filled = re.sub(r"%\((\w+)\)s", lambda match: values[match[1]], one_line).replace("%%", "%")
    return f"{filled};\n\\set base :base + {batch}\n"


def _literal(name: str, value: Any, batch: int) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "ARRAY[" + ", ".join(_quoted(item) for item in value) + "]"
    if not isinstance(value, str):
        raise SystemExit(f"A worker sends a {type(value).__name__} as {name}; teach limit.py that.")
    if len(json.loads(value)) != batch:
        raise SystemExit(f"A worker sends something else than one record a job as {name}.")
    # A record names its job by the last digits of the id; every record is another job's.
    parts = value.split(_ID.hex[-12:])
    pieces = [_quoted(parts[0])]
    for number, part in enumerate(parts[1:]):
        pieces += [f"lpad(to_hex(:base::int + {number}), 12, '0')", _quoted(part)]
    return "(" + " || ".join(pieces) + ")"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def run_pgbench(
    script: str, *arguments: str, settings: dict[str, str] | None = None, seconds: float = 600
) -> str:
    """Run pgbench on `script` in the benchmark's database and return what it printed."""
    from devdb.binaries import find_binaries

    options = " ".join(f"-c {name}={value}" for name, value in (settings or {}).items())
    command = [find_binaries().program("pgbench"), "--no-vacuum", f"--file={script}", *arguments]
    done = subprocess.run(
        [*command, ground.conninfo(ground.DATABASE)],
        env={**os.environ, "PGOPTIONS": options},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    if done.returncode:
        raise SystemExit(f"pgbench failed:\n{done.stderr.strip()}")
    return done.stdout


def transactions_a_second(output: str) -> float:
    """What pgbench printed as its rate, without the time of connecting."""
    found = re.search(r"tps = ([\d.]+) \(without", output)
    assert found is not None, output
    return float(found[1])
