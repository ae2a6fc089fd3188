"""Pages of a list whose end nobody counts to."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator
from django.db.models import QuerySet

from jobs.admin import limits

if TYPE_CHECKING:
    AnyPaginator = Paginator[Any]
else:
    AnyPaginator = Paginator


class AtLeast(int):
    """A count that stopped: prints as `10,000+`, counts as 10,000."""

    def __str__(self) -> str:
        return f"{int(self):,}+"


class CappedPaginator(AnyPaginator):
    """Counts no further than `MAX_COUNT`."""

    @cached_property
    def count(self) -> int:
        """How many rows there are, as far as it was counted."""
        assert isinstance(self.object_list, QuerySet)
        rows = self.object_list.order_by().values("pk")
        seen: int = rows[: limits.MAX_COUNT + 1].count()
        return AtLeast(limits.MAX_COUNT) if seen > limits.MAX_COUNT else seen
