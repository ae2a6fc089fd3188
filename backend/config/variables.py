"""Every environment variable the project reads, as one table.

The queue's whole numbers are declared in `jobs.conf`; the rest is declared here. The
settings page of the documentation is generated from this table.
"""

from __future__ import annotations

from typing import Any

from config.env import (
    ADDRESSES,
    BOOLEAN,
    HOSTS,
    NAME,
    ORIGINS,
    SECRET_TEXT,
    TEXT,
    TIME_ZONE_NAME,
    Kind,
    Variable,
    choice,
    whole_number,
    whole_number_or_none,
)
from jobs import conf

# Django's own `check --deploy` knows the prefix and warns of the key.
DEVELOPMENT_KEY = "django-insecure-rowlease-local-development-key-for-no-real-server"

DEBUG = Variable(
    "DEBUG", BOOLEAN, "true", "Development mode: error pages with details, every CORS origin."
)
ENABLE_DJANGO_DEBUG_TOOLBAR = Variable(
    "ENABLE_DJANGO_DEBUG_TOOLBAR",
    BOOLEAN,
    "true",
    "The debug toolbar on web pages. Without `DEBUG`, in workers and in tests it is always off.",
)
DJANGO_INTERNAL_IPS = Variable(
    "DJANGO_INTERNAL_IPS",
    ADDRESSES,
    "127.0.0.1,localhost,host.docker.internal",
    "The clients that are shown the debug toolbar.",
)
DJANGO_ALLOWED_HOSTS = Variable(
    "DJANGO_ALLOWED_HOSTS",
    HOSTS,
    "localhost,127.0.0.1,0.0.0.0",
    "The host names that the web process answers to.",
)
DJANGO_CORS_ALLOWED_ORIGINS = Variable(
    "DJANGO_CORS_ALLOWED_ORIGINS",
    ORIGINS,
    "http://localhost:5173,http://127.0.0.1:5173",
    "The pages of other origins that may call the API. With `DEBUG` every origin may.",
)
POSTGRES_DB = Variable("POSTGRES_DB", NAME, "job_queue", "The database's name.")
POSTGRES_USER = Variable("POSTGRES_USER", NAME, "postgres", "The database user.")
POSTGRES_PASSWORD = Variable(
    "POSTGRES_PASSWORD",
    SECRET_TEXT,
    "postgres",
    "That user's password; empty where the server asks for none.",
    secret=True,
)
POSTGRES_HOST = Variable(
    "POSTGRES_HOST",
    TEXT,
    "localhost",
    "The server's host name or socket directory; empty for the local socket.",
)
POSTGRES_PORT = Variable("POSTGRES_PORT", whole_number(1, 65_535), "5432", "The server's port.")
POSTGRES_CONN_MAX_AGE = Variable(
    "POSTGRES_CONN_MAX_AGE",
    whole_number_or_none(0, 2_147_483_647),
    "0",
    "How long a database connection is kept for the next request; `none` keeps it for good.",
    "seconds",
)
TIME_ZONE = Variable(
    "TIME_ZONE", TIME_ZONE_NAME, "Asia/Tehran", "The zone of the times in answers and on pages."
)
JOB_WORKER_LOG_LEVEL = Variable(
    "JOB_WORKER_LOG_LEVEL",
    choice(*conf.LOG_LEVELS),
    "INFO",
    "How much the worker tells on its terminal; DEBUG tells each poll.",
)
JOB_WORKER_WAKEUP = Variable(
    "JOB_WORKER_WAKEUP",
    choice(*conf.WAKEUPS),
    conf.POLL,
    "How idle workers learn of a job: by polling alone, or also by a notification, which "
    "the web process sends and workers wait for. Set it for both.",
)
TEST_DATABASE_ENGINE = Variable(
    "TEST_DATABASE_ENGINE",
    choice("postgresql", "sqlite"),
    "postgresql",
    "The test suite's database: sqlite runs the tests that need no server. Read in tests alone.",
)

JOB_NUMBERS: tuple[Variable[int], ...] = tuple(
    Variable(
        setting.name,
        whole_number(setting.minimum, setting.maximum),
        str(setting.default),
        setting.description,
        setting.unit,
    )
    for setting in conf.SETTINGS
)


def django_secret_key(*, debug: bool) -> Variable[str]:
    """The secret key's variable; without `debug` it refuses the development key."""

    def parse(text: str) -> str:
        if not text.strip() or (text == DEVELOPMENT_KEY and not debug):
            raise ValueError
        return SECRET_TEXT.parse(text)

    allowed = "text in UTF-8, not empty"
    if not debug:
        allowed = "a key of your own, since DEBUG is false"
    return Variable(
        "DJANGO_SECRET_KEY",
        Kind(allowed, parse),
        DEVELOPMENT_KEY,
        "Signs sessions and form tokens. The development key is refused when `DEBUG` is false.",
        secret=True,
    )


VARIABLES: tuple[Variable[Any], ...] = (
    DEBUG,
    ENABLE_DJANGO_DEBUG_TOOLBAR,
    DJANGO_INTERNAL_IPS,
    django_secret_key(debug=True),
    DJANGO_ALLOWED_HOSTS,
    DJANGO_CORS_ALLOWED_ORIGINS,
    POSTGRES_DB,
    POSTGRES_USER,
    POSTGRES_PASSWORD,
    POSTGRES_HOST,
    POSTGRES_PORT,
    POSTGRES_CONN_MAX_AGE,
    TIME_ZONE,
    *JOB_NUMBERS,
    JOB_WORKER_LOG_LEVEL,
    JOB_WORKER_WAKEUP,
    TEST_DATABASE_ENGINE,
)
