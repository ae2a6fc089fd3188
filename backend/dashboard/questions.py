"""What an address asks for, read with care: anybody may have typed it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar
from urllib.parse import parse_qsl

from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from jobs.errors import InvalidJob
from jobs.storable import is_storable_text
from jobs.validation import clean_available_at

MAX_TEXT_LENGTH = 500

Default = TypeVar("Default")
Value = TypeVar("Value")


class BadQuestion(Exception):
    """The address asks for what cannot be; `reasons` has a reason for each name."""

    def __init__(self, reasons: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
        self.reasons = reasons


class Question:
    """The query of a request: each method reads one name, and all faults are told at once.

    `check` raises `BadQuestion` where any was met. A name in `longer` may have a value of so
    many characters; the others have `MAX_TEXT_LENGTH`.
    """

    def __init__(self, request: HttpRequest, longer: Mapping[str, int] | None = None) -> None:
        self._reasons: dict[str, str] = {}
        self._given: dict[str, str] = {}
        query = request.META.get("QUERY_STRING", "")
        # Django replaces bytes that are not UTF-8; only the raw text still shows them.
        pairs = parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
        for name, value in pairs:
            if not is_storable_text(name):
                self._reasons["query"] = "Must be UTF-8 text without NUL characters."
            elif not is_storable_text(value):
                self._reasons[name] = "Must be UTF-8 text without NUL characters."
            elif len(value) > (most := (longer or {}).get(name, MAX_TEXT_LENGTH)):
                self._reasons[name] = f"At most {most} characters."
            else:
                self._given[name] = value.strip()

    def check(self) -> None:
        """Raise `BadQuestion` where anything was wrong."""
        if self._reasons:
            raise BadQuestion(self._reasons)

    def text(self, name: str) -> str:
        """The text, trimmed; empty where there is none."""
        return self._given.get(name, "")

    def flag(self, name: str) -> bool:
        """Whether it is given and not `0`."""
        return self._given.get(name, "") not in ("", "0", "false")

    def choice(self, name: str, allowed: tuple[str, ...], default: str = "") -> str:
        """One of `allowed`; `default` where none is given."""
        value = self._given.get(name, "")
        if not value:
            return default
        if value not in allowed:
            return self._fault(name, f"Must be one of {', '.join(allowed)}.", default)
        return value

    def number(self, name: str, minimum: int, maximum: int) -> int | None:
        """A whole number in range; `None` where none is given."""
        value = self._given.get(name, "")
        if not value:
            return None
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
            return self._fault(name, "Must be a whole number.", None)
        if not minimum <= int(value) <= maximum:
            return self._fault(name, f"Must be from {minimum} to {maximum}.", None)
        return int(value)

    def moment(self, name: str) -> datetime | None:
        """A date and time, in the project's zone where it names none; `None`: not given."""
        value = self._given.get(name, "")
        if not value:
            return None
        try:
            # A plus that was not escaped in an address arrives as a space.
            parsed = parse_datetime(value.replace(" ", "+") if "T" in value else value)
            if parsed is None:
                raise ValueError
            if timezone.is_naive(parsed):
                parsed = timezone.make_aware(parsed)
            return clean_available_at(parsed)
        except InvalidJob as error:
            return self._fault(name, error.reason, None)
        except (ValueError, OverflowError):
            return self._fault(name, "Must be a date and time like 2026-01-31T12:00.", None)

    def read(self, name: str, reader: Callable[[str], Value], reason: str) -> Value | None:
        """What `reader` makes of the text; `None` where none is given.

        A `ValueError` of the reader's is a fault, told as `reason`.
        """
        value = self._given.get(name, "")
        if not value:
            return None
        try:
            return reader(value)
        except ValueError:
            return self._fault(name, reason, None)

    def _fault(self, name: str, reason: str, default: Default) -> Default:
        self._reasons[name] = reason
        return default
