"""What the address of a list of jobs asks for, and how that is said in words.

The list, the counts beside it and a bulk retry read the same address, so that "all that
match" means the same to each of them.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode
from uuid import UUID

from django.utils import timezone

from dashboard.questions import Question
from jobs import conf
from jobs.selectors.job_filter import STATES, Cursor, JobFilter

SIZES = (25, 50, 100)
SORT_NAMES = {
    "newest": "Newest first",
    "oldest": "Oldest first",
    "claim": "Next to be claimed first",
    "lease": "Lease ends first",
}

# An id is so many characters in an address; a page's worth of them has to fit in.
_ID_CHARS, _ID_BYTES = 22, 16
LONGEST_ROWS = SIZES[-1] * _ID_CHARS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CURSOR = re.compile(r"([0-9]{1,16})\.([0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Chip:
    """One active filter: its name in the address, and what it says."""

    name: str
    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What an address asks for; at most one of `after` and `before`."""

    filter: JobFilter
    sort: str
    size: int
    after: Cursor | None
    before: Cursor | None

    @property
    def is_first_page(self) -> bool:
        """Whether nothing stands before the page."""
        return self.after is None and self.before is None


def asked(question: Question) -> Asked:
    """What the address asks for; `question` is told of every fault."""
    wanted = filter_of(question)
    sorts = wanted.sorts
    size = question.choice("size", tuple(str(size) for size in SIZES), str(SIZES[0]))
    after, before = cursor_of(question, "after"), cursor_of(question, "before")
    return Asked(
        filter=wanted,
        sort=question.choice("sort", sorts, sorts[0]),
        size=int(size),
        after=after,
        before=before if after is None else None,
    )


def filter_of(question: Question) -> JobFilter:
    """The filter that the address names."""
    return JobFilter(
        state=question.choice("state", STATES),
        type=question.text("type"),
        type_is=question.text("type_is"),
        priority=question.number("priority", conf.SMALLINT_MIN, conf.SMALLINT_MAX),
        worker=question.text("worker"),
        created_after=question.moment("created_after"),
        created_before=question.moment("created_before"),
        is_overdue=question.flag("overdue"),
        is_retrying=question.flag("retrying"),
        error=question.text("error"),
        error_group=question.text("error_group"),
    )


def parameters(wanted: JobFilter) -> dict[str, str]:
    """The filter as an address names it."""
    given = {
        "state": wanted.state,
        "type": wanted.type,
        "type_is": wanted.type_is,
        "priority": "" if wanted.priority is None else str(wanted.priority),
        "worker": wanted.worker,
        "created_after": wanted.created_after.isoformat() if wanted.created_after else "",
        "created_before": wanted.created_before.isoformat() if wanted.created_before else "",
        "overdue": "1" if wanted.is_overdue else "",
        "retrying": "1" if wanted.is_retrying else "",
        "error": wanted.error,
        "error_group": wanted.error_group,
    }
    return {name: value for name, value in given.items() if value}


def query(wanted: JobFilter, **more: str) -> str:
    """The query of an address with this filter and `more`, without its question mark."""
    return urlencode({**parameters(wanted), **{k: v for k, v in more.items() if v}})


def chips(wanted: JobFilter) -> list[Chip]:
    """Every filter in words but the state."""
    given = (
        ("type_is", "type is", wanted.type_is),
        ("type", "type contains", wanted.type),
        ("priority", "priority", "" if wanted.priority is None else str(wanted.priority)),
        ("worker", "worker contains", wanted.worker),
        ("created_after", "created from", _in_words(wanted.created_after)),
        ("created_before", "created before", _in_words(wanted.created_before)),
        ("overdue", "lease", "ran out" if wanted.is_overdue else ""),
        ("retrying", "waits for", "another attempt" if wanted.is_retrying else ""),
        ("error_group", "error like", wanted.error_group),
        ("error", "error contains", wanted.error),
    )
    return [Chip(name, label, value) for name, label, value in given if value]


def in_state(wanted: JobFilter, state: str) -> JobFilter:
    """The filter in another state, without what no job of that state has."""
    moved = replace(wanted, state=state)
    if not moved.statuses:
        moved = replace(moved, worker="", is_overdue=False, is_retrying=False)
    return moved


def _in_words(moment: datetime | None) -> str:
    return f"{timezone.localtime(moment):%Y-%m-%d %H:%M:%S}" if moment else ""


def cursor_text(cursor: Cursor | None) -> str:
    """A cursor as an address carries it; empty for none."""
    if cursor is None:
        return ""
    return f"{(cursor.moment - _EPOCH) // timedelta(microseconds=1)}.{cursor.id.hex}"


def cursor_of(question: Question, name: str) -> Cursor | None:
    """The cursor of that name; `None` where none is given."""
    return question.read(name, _cursor, "Not a place in this list.")


def _cursor(text: str) -> Cursor:
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise ValueError(text)
    try:
        moment = _EPOCH + timedelta(microseconds=int(found[1]))
    except OverflowError as error:
        raise ValueError(text) from error
    return Cursor(moment, UUID(found[2]))


def rows_text(job_ids: Sequence[UUID]) -> str:
    """The ids of a page, short enough for an address."""
    return "".join(urlsafe_b64encode(job_id.bytes).decode().rstrip("=") for job_id in job_ids)


def rows_of(question: Question) -> list[UUID]:
    """The ids that `rows_text` wrote; none where none are given."""
    return question.read("rows", _rows, "Not the rows of a list.") or []


def _rows(text: str) -> list[UUID]:
    if len(text) % _ID_CHARS or not text.isascii():
        raise ValueError(text)
    parts = (text[at : at + _ID_CHARS] for at in range(0, len(text), _ID_CHARS))
    return [UUID(bytes=urlsafe_b64decode(part + "==")[:_ID_BYTES]) for part in parts]
