"""All mutants."""

from __future__ import annotations

from jobs.tests.mutants.creates import CREATES
from jobs.tests.mutants.histories import HISTORIES
from jobs.tests.mutants.processes import PROCESSES
from jobs.tests.mutants.readers import READERS
from jobs.tests.mutants.statements import STATEMENTS
from jobs.tests.mutants.waking import WAKING
from jobs.tests.mutants.workers import WORKERS

MUTANTS = (*STATEMENTS, *CREATES, *WORKERS, *WAKING, *PROCESSES, *READERS, *HISTORIES)
