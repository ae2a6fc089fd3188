"""What errors of one kind have in common, as SQL: the same everywhere it is compared.

The rules, in their order; each was drawn from errors that differ in nothing else:

1. A lease that ran out names its worker, whatever that is called: `<worker>`.
2. The first line alone, trimmed; what follows is detail.
3. Worker ids (`hostname:pid:thread-N:xxxxxxxx`) become `<worker>`.
4. UUIDs become `<id>`.
5. `0x…`, and words of eight or more hexadecimal digits with a letter among them,
   become `<hex>`.
6. Numbers, also with points and exponents in them, become `<n>`.
7. At most 300 characters, trimmed again; nothing at all is `<none>`.

Only the first 1,000 characters are looked at: a message may be eight times as long,
and a page normalises thousands.
"""

from __future__ import annotations

MAX_LENGTH = 300
CHARS_LOOKED_AT = 1_000

NO_TEXT = "<none>"

# What Python's str.strip() removes: an error that comes back in an address is stripped.
_SPACES = "U&'" + "".join(f"\\{code:04x}" for code in range(0x3001) if chr(code).isspace()) + "'"

_LEASE = "^The lease of attempt [0-9]+ ran out; worker .* did not renew it or finish in time$"
_LEASE_NORMALISED = (
    "The lease of attempt <n> ran out; worker <worker> did not renew it or finish in time"
)

_FIRST_LINE = r"^[^\r\n]*"

_EVERYWHERE = (
    (r"[A-Za-z0-9._-]+:[0-9]+:thread-[0-9]+:[0-9a-f]{8}", "<worker>"),
    (
        r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])",
        "<id>",
    ),
    (r"0[xX][0-9A-Fa-f]+", "<hex>"),
    (
        r"(?<![0-9A-Za-z])(?=[0-9]*[A-Fa-f])(?=[A-Fa-f]*[0-9])[0-9A-Fa-f]{8,}(?![0-9A-Za-z])",
        "<hex>",
    ),
    (r"[0-9]+(\.[0-9]+)*([eE][+-]?[0-9]+(?![0-9A-Za-z]))?", "<n>"),
)


def normalised(text: str) -> str:
    """The SQL expression of what `text`, an SQL expression, has in common with its like."""
    cut = f"btrim(left({text}, {CHARS_LOOKED_AT}), {_SPACES})"
    line = f"regexp_replace({cut}, '{_LEASE}', '{_LEASE_NORMALISED}')"
    line = f"substring({line} from '{_FIRST_LINE}')"
    for pattern, replacement in _EVERYWHERE:
        line = f"regexp_replace({line}, '{pattern}', '{replacement}', 'g')"
    return f"coalesce(nullif(btrim(left({line}, {MAX_LENGTH}), {_SPACES}), ''), '{NO_TEXT}')"
