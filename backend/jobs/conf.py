"""The queue's settings, declared once: names, defaults, ranges and meaning.

Pure at import. `config/settings.py` fills the Django settings of the same names
from the environment; a foreign project may set them in its own settings. The
settings page of the documentation is generated from this table.
"""

from __future__ import annotations

from dataclasses import dataclass

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
POLL, NOTIFY = "poll", "notify"
WAKEUPS = (POLL, NOTIFY)

MAX_TYPE_LENGTH = 120
MAX_KEY_LENGTH = 255
MAX_WORKER_ID_LENGTH = 255
# What one row may hold of an error or of a message; longer text is cut, never refused.
MAX_ERROR_LENGTH = 8192
MAX_TRACEBACK_LENGTH = 16384
# Deeper JSON than this is refused: a recursive reader somewhere would fail on it.
MAX_JSON_DEPTH = 100
SMALLINT_MIN, SMALLINT_MAX = -32768, 32767
BIGINT_MAX = 2**63 - 1
DEFAULT_PRIORITY = 50


@dataclass(frozen=True, slots=True)
class IntSetting:
    """One whole-number setting: `minimum` and `maximum` are both allowed."""

    name: str
    default: int
    minimum: int
    maximum: int
    unit: str
    description: str


SETTINGS: tuple[IntSetting, ...] = (
    IntSetting(
        "JOB_WORKER_THREADS",
        4,
        1,
        1024,
        "threads",
        "Handlers that one worker process runs at once.",
    ),
    IntSetting(
        "JOB_WORKER_POLL_INTERVAL_MS",
        500,
        1,
        3_600_000,
        "milliseconds",
        "How long a worker waits before it looks again when nothing was claimable.",
    ),
    IntSetting(
        "JOB_WORKER_LEASE_SECONDS",
        30,
        1,
        86_400,
        "seconds",
        "How long a claimed attempt is owned before it may be taken back, unless renewed.",
    ),
    IntSetting(
        "JOB_WORKER_CLEANUP_INTERVAL_SECONDS",
        5,
        1,
        3_600,
        "seconds",
        "How often a worker process looks for attempts whose lease ran out.",
    ),
    IntSetting(
        "JOB_WORKER_CLEANUP_BATCH_SIZE",
        100,
        1,
        10_000,
        "rows",
        "How many attempts whose lease ran out one pass takes back at most.",
    ),
    IntSetting(
        "JOB_WORKER_BACKOFF_BASE_SECONDS",
        5,
        1,
        86_400,
        "seconds",
        "The delay after the first failed attempt; each further one doubles it.",
    ),
    IntSetting(
        "JOB_WORKER_BACKOFF_MAX_SECONDS",
        300,
        1,
        2_592_000,
        "seconds",
        "The longest delay between attempts; it wins over a larger base.",
    ),
    IntSetting(
        "JOB_WORKER_MAX_ATTEMPTS_DEFAULT",
        3,
        1,
        SMALLINT_MAX,
        "attempts",
        "The attempts of a job that does not say how many it may have.",
    ),
    IntSetting(
        "JOB_PAYLOAD_MAX_BYTES",
        1_048_576,
        1_024,
        67_108_864,
        "bytes",
        "The largest request body, payload, result and progress data.",
    ),
    IntSetting(
        "JOB_WORKER_SHUTDOWN_GRACE_SECONDS",
        30,
        0,
        86_400,
        "seconds",
        "How long running handlers may take after the first stop signal.",
    ),
    # The numbers of the system checks are places in this table: new ones go to its end.
    IntSetting(
        "JOB_WORKER_PROCESSES",
        1,
        1,
        64,
        "processes",
        "Worker processes that `run_job_workers` runs; each has `JOB_WORKER_THREADS` threads.",
    ),
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}


def get(name: str) -> int:
    """The value in force of the setting `name`, in the setting's own unit.

    Reads the Django setting of that name, or the default where the project sets
    none. Raises `ValueError` where a project's value is no whole number in range.
    """
    from django.conf import settings

    return checked(name, getattr(settings, name, _BY_NAME[name].default), called=name)


def checked(name: str, value: object, *, called: str) -> int:
    """`value` where the setting `name` could have it; raises `ValueError` naming `called`."""
    declared = _BY_NAME[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{called} must be a whole number, not {value!r}")
    if not declared.minimum <= value <= declared.maximum:
        raise ValueError(
            f"{called} must be from {declared.minimum} to {declared.maximum}, not {value}"
        )
    return value


def default_max_attempts() -> int:
    """The attempts a job gets that does not say (`JOB_WORKER_MAX_ATTEMPTS_DEFAULT`)."""
    return get("JOB_WORKER_MAX_ATTEMPTS_DEFAULT")


def wakeup() -> str:
    """How idle workers learn of a job (`JOB_WORKER_WAKEUP`): one of `WAKEUPS`.

    Raises `ValueError` where a project's value is none of them.
    """
    from django.conf import settings

    value: object = getattr(settings, "JOB_WORKER_WAKEUP", POLL)
    if value not in WAKEUPS:
        raise ValueError(f"JOB_WORKER_WAKEUP must be {' or '.join(WAKEUPS)}, not {value!r}")
    return str(value)
