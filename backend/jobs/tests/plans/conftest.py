"""Each test of a plan begins with a table that has never held a row."""

from __future__ import annotations

import pytest

from jobs.tests.support import sql


@pytest.fixture(autouse=True)
def new_tables(db: None) -> None:
    """New files for both tables, so that no dead row of another test is walked past."""
    sql("TRUNCATE jobs_job, jobs_jobevent")
