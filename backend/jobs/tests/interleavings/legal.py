"""What holds after any order of anybody's steps."""

from __future__ import annotations

from typing import Any

from jobs import history
from jobs.models import Job


def assert_legal(*, jobs: int = 1, with_backoff: bool = True) -> None:
    """Every job's row is what its events lead to, and each change of it was told once."""
    report = history.check(with_backoff=with_backoff)
    assert not report.violations, report.violations
    assert report.jobs == jobs == Job.objects.count()


def winners(*answers: Any) -> list[Any]:
    """The answers of those whose write counted; an exception is raised."""
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [answer for answer in answers if answer]


def the_winner(*answers: Any) -> Any:
    """The one answer of a write that counted; an exception is raised."""
    won = winners(*answers)
    assert len(won) == 1, f"{len(won)} of {len(answers)} counted"
    return won[0]
