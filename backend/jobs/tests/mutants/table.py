"""All mutants."""

from __future__ import annotations

from jobs.tests.mutants.readers import READERS
from jobs.tests.mutants.statements import STATEMENTS
from jobs.tests.mutants.workers import WORKERS

MUTANTS = (*STATEMENTS, *WORKERS, *READERS)
