"""Typed readers for the environment: text in, a value or a refusal in one line out."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar
from zoneinfo import ZoneInfo

T = TypeVar("T")

# Gunicorn stops when one of its workers exits with 3 before it served anything; after
# any other code it starts the worker again, for ever.
EXIT_CODE = 3

MAX_SHOWN_LENGTH = 100

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})

# The zone files beside the real zones ("right/UTC", "posixrules") begin in lower case.
_ZONE = re.compile(r"[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
_HOST = r"(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\])"
_ALLOWED_HOST = re.compile(rf"\*|\.?{_HOST}")
_ORIGIN = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]*://{_HOST}(?::(?P<port>[0-9]{{1,5}}))?")
_ADDRESS = re.compile(r"[A-Za-z0-9.:_-]+")


class InvalidValue(ValueError):
    """A variable's value that is not allowed; as text, the one line that says so.

    `shown` is the value as a person may see it: quoted, shortened, and hidden for secrets.
    """

    def __init__(self, name: str, shown: str, allowed: str) -> None:
        super().__init__(name, shown, allowed)
        self.name = name
        self.shown = shown
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.name}={self.shown} is not allowed: {self.allowed}"


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """What a value may look like: `allowed` for people, `parse` for the machine.

    `parse` raises `ValueError` for text that is not allowed.
    """

    allowed: str
    parse: Callable[[str], T]


@dataclass(frozen=True, slots=True)
class Variable(Generic[T]):
    """One environment variable; `default` is written as it would be in the environment."""

    name: str
    kind: Kind[T]
    default: str
    description: str
    unit: str = ""
    secret: bool = False

    def read(self, environ: Mapping[str, str]) -> T:
        """The value in `environ`, or the default where it is not set.

        An empty value is set: it counts as what it says and never as the default.
        Raises `InvalidValue`.
        """
        text = environ.get(self.name, self.default)
        try:
            return self.kind.parse(text)
        except ValueError:
            shown = _shown(text)
            if self.secret:
                shown = "(not shown)" if self.name in environ else "(not set)"
            raise InvalidValue(self.name, shown, self.kind.allowed) from None


def value_of(variable: Variable[T]) -> T:
    """The variable's value in this process; a refused one ends it with one line on stderr."""
    try:
        return variable.read(os.environ)
    except InvalidValue as refusal:
        print(refusal, file=sys.stderr)
        raise SystemExit(EXIT_CODE) from None


def whole_number(minimum: int, maximum: int) -> Kind[int]:
    """A number in ASCII digits alone; both ends of the range are allowed."""

    def parse(text: str) -> int:
        # int() would also take " 4 ", "4_0", "+4" and the digits of every script.
        if not re.fullmatch(r"[0-9]{1,20}", text):
            raise ValueError
        number = int(text)
        if not minimum <= number <= maximum:
            raise ValueError
        return number

    return Kind(f"a whole number from {minimum} to {maximum}", parse)


def whole_number_or_none(minimum: int, maximum: int) -> Kind[int | None]:
    """As `whole_number`, and the word `none`."""
    number = whole_number(minimum, maximum)

    def parse(text: str) -> int | None:
        return None if text.lower() == "none" else number.parse(text)

    return Kind(f"{number.allowed}, or none", parse)


def choice(*names: str) -> Kind[str]:
    """One of `names` in any case; the value is the name as it is written here."""
    by_folded = {name.lower(): name for name in names}

    def parse(text: str) -> str:
        try:
            return by_folded[text.lower()]
        except KeyError:
            raise ValueError from None

    return Kind(", ".join(names[:-1]) + f" or {names[-1]}", parse)


def list_of(allowed: str, parse_item: Callable[[str], str]) -> Kind[list[str]]:
    """Items between commas; the space around them and empty ones do not count."""

    def parse(text: str) -> list[str]:
        trimmed = (item.strip() for item in text.split(","))
        return [parse_item(item) for item in trimmed if item]

    return Kind(f"{allowed}, separated by commas", parse)


def matching(pattern: re.Pattern[str]) -> Callable[[str], str]:
    """A reader that takes what `pattern` matches as a whole."""

    def parse(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError
        return text

    return parse


def _boolean(text: str) -> bool:
    folded = text.lower()
    if folded in _TRUE:
        return True
    if folded in _FALSE:
        return False
    raise ValueError


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError
    return text


def _printable_and_not_empty(text: str) -> str:
    if not text:
        raise ValueError
    return _printable(text)


def _utf8(text: str) -> str:
    # Bytes that are no UTF-8 arrive as lone surrogates, and would fail at the first use.
    text.encode()
    return text


def _origin(text: str) -> str:
    match = _ORIGIN.fullmatch(text)
    if not match or (match["port"] and not 1 <= int(match["port"]) <= 65535):
        raise ValueError
    # Browsers send the Origin header in lower case, and it is compared exactly.
    return text.lower()


def _time_zone(text: str) -> str:
    if not _ZONE.fullmatch(text):
        raise ValueError
    try:
        ZoneInfo(text)
    except (KeyError, OSError):
        raise ValueError from None
    # Django insists on the system's own file where the system has any zones at all.
    system_zones = Path("/usr/share/zoneinfo")
    if system_zones.exists() and not (system_zones / text).exists():
        raise ValueError
    return text


BOOLEAN = Kind("true, false, 1, 0, yes, no, on or off", _boolean)
TEXT = Kind("text without control characters", _printable)
NAME = Kind("text without control characters, not empty", _printable_and_not_empty)
SECRET_TEXT = Kind("text in UTF-8", _utf8)
TIME_ZONE_NAME = Kind("the name of a time zone, such as Asia/Tehran or UTC", _time_zone)
HOSTS = list_of(
    "host names without scheme or port, .example.com for a domain with its subdomains, or *",
    matching(_ALLOWED_HOST),
)
ADDRESSES = list_of("addresses or host names", matching(_ADDRESS))
ORIGINS = list_of("origins as scheme://host or scheme://host:port", _origin)


def _shown(text: str) -> str:
    # repr() keeps line breaks and control characters from breaking the single line.
    if len(text) <= MAX_SHOWN_LENGTH:
        return repr(text)
    return f"{text[:MAX_SHOWN_LENGTH]!r}… ({len(text)} characters)"
