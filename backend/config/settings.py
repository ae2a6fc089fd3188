"""Django's settings, read from the environment as `config.variables` declares it."""

import sys
import tomllib
from pathlib import Path
from typing import Any

from config import variables
from config.env import value_of

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = tomllib.loads((BASE_DIR / "pyproject.toml").read_text("utf-8"))["project"]["version"]

COMMAND = "".join(sys.argv[1:2])
TESTING = "pytest" in sys.modules
SERVES_PAGES = COMMAND == "runserver" or "config.wsgi" in sys.modules

DEBUG = value_of(variables.DEBUG)
SECRET_KEY = value_of(variables.django_secret_key(debug=DEBUG))
ALLOWED_HOSTS = value_of(variables.DJANGO_ALLOWED_HOSTS)
INTERNAL_IPS = value_of(variables.DJANGO_INTERNAL_IPS)

# The toolbar records every query: in a worker that would grow for as long as it runs.
DEBUG_TOOLBAR = value_of(variables.ENABLE_DJANGO_DEBUG_TOOLBAR) and DEBUG
DEBUG_TOOLBAR = DEBUG_TOOLBAR and SERVES_PAGES and not TESTING

INSTALLED_APPS = [
    "unfold",  # Before the admin, whose templates it replaces.
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "corsheaders",
    "django_htmx",  # Its static files.
    "jobs.apps.JobsConfig",
    "dashboard.apps.DashboardConfig",
    "config",  # After the accounts, whose pages its admin replaces.
]
if DEBUG_TOOLBAR:
    INSTALLED_APPS.append("debug_toolbar")
# Its one table serves a store that is not used here.
MIGRATION_MODULES = {"debug_toolbar": None}

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    *(["debug_toolbar.middleware.DebugToolbarMiddleware"] if DEBUG_TOOLBAR else []),
    "config.middleware.OutageMiddleware",  # Django's SessionMiddleware, and more.
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

POSTGRESQL: dict[str, Any] = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": value_of(variables.POSTGRES_DB),
    "USER": value_of(variables.POSTGRES_USER),
    "PASSWORD": value_of(variables.POSTGRES_PASSWORD),
    "HOST": value_of(variables.POSTGRES_HOST),
    "PORT": value_of(variables.POSTGRES_PORT),
    "CONN_MAX_AGE": value_of(variables.POSTGRES_CONN_MAX_AGE),
    "CONN_HEALTH_CHECKS": True,
    # A pooler in transaction mode hands each transaction another session.
    "DISABLE_SERVER_SIDE_CURSORS": True,
    # The health answer is due within three seconds, from a server that hangs too.
    "OPTIONS": {"connect_timeout": 2, "application_name": "rowlease"},
}
SQLITE: dict[str, Any] = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
TEST_DATABASE_ENGINE = value_of(variables.TEST_DATABASE_ENGINE)
DATABASES = {"default": SQLITE if TESTING and TEST_DATABASE_ENGINE == "sqlite" else POSTGRESQL}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{validator}"}
    for validator in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "admin:login"
# Whoever reaches a development server may use its API as well.
DASHBOARD_ACCESS = "open" if DEBUG else "login"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEBUG

LANGUAGE_CODE = "en-us"
TIME_ZONE = value_of(variables.TIME_ZONE)
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
# Hashed names need `collectstatic`; until it has run, files come from the packages.
COLLECTED = COMMAND == "collectstatic" or (STATIC_ROOT / "staticfiles.json").is_file()
HASHED_STATIC_FILES = COLLECTED and not DEBUG and not TESTING
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if HASHED_STATIC_FILES
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = not HASHED_STATIC_FILES
WHITENOISE_AUTOREFRESH = DEBUG or TESTING

# The API has no cookies and no sessions, so no origin is ever given credentials.
CORS_URLS_REGEX = r"^/api/"
CORS_ALLOW_ALL_ORIGINS = DEBUG
CORS_ALLOWED_ORIGINS = value_of(variables.DJANGO_CORS_ALLOWED_ORIGINS)
CORS_ALLOW_CREDENTIALS = False
CORS_ALLOW_METHODS = ["GET", "HEAD", "OPTIONS", "POST"]
CORS_EXPOSE_HEADERS = [
    "Idempotent-Replay",
    "Idempotent-Mismatch",
    "Link",
    "Location",
    "Retry-After",
]

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Rowlease",
    "DESCRIPTION": "A job queue that lives in PostgreSQL.",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "JobStatus": "jobs.lifecycle.Status",
        "JobEventType": "jobs.lifecycle.EventType",
    },
    # The pages' scripts come from the package, so they work offline.
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

UNFOLD = {
    "SITE_TITLE": "Rowlease",
    "SITE_HEADER": "Rowlease",
    "SITE_SUBHEADER": "A job queue in PostgreSQL",
    "SITE_SYMBOL": "stacks",
    "SITE_URL": "/",
}

job_numbers = {number.name: value_of(number) for number in variables.JOB_NUMBERS}
globals().update(job_numbers)

# Several worker processes write to one log.
SEVERAL = COMMAND == "run_job_workers" and job_numbers["JOB_WORKER_PROCESSES"] > 1
LINE = f"{{asctime}} {{levelname}} {'{process} ' if SEVERAL else ''}{{name}}: {{message}}"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": LINE, "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    # Django's own handlers would print with DEBUG what the root handler prints.
    "loggers": {"django": {"handlers": [], "level": "INFO" if DEBUG else "WARNING"}},
}

JOB_WORKER_LOG_LEVEL = value_of(variables.JOB_WORKER_LOG_LEVEL)
JOB_WORKER_WAKEUP = value_of(variables.JOB_WORKER_WAKEUP)

# The API's parser measures bodies itself and answers 413, so Django's limit, which
# still guards forms, must not be the smaller one.
DATA_UPLOAD_MAX_MEMORY_SIZE = max(2_621_440, job_numbers["JOB_PAYLOAD_MAX_BYTES"] + 1)
