"""Checks that what the database holds is a history the queue could have written.

    from jobs import history

    report = history.check()
    assert report.verdict == "clean", report.violations

`replay` and `rows` know the rules and no database, `reading` and `schema` know the database
and no rule, `checking` brings them together.
"""

from __future__ import annotations

from jobs.history.checking import check
from jobs.history.report import Report, Violation
from jobs.history.rules import RULES

__all__ = ["RULES", "Report", "Violation", "check"]
