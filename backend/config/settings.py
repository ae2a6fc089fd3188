"""Django's settings, read from the environment."""

import sys
from pathlib import Path

from config import env
from jobs import conf

BASE_DIR = Path(__file__).resolve().parent.parent
TESTING = "pytest" in sys.modules

DEBUG = env.boolean("DEBUG", True)
SECRET_KEY = env.text("DJANGO_SECRET_KEY", "local-development-key-never-use-it-on-a-real-server")
ALLOWED_HOSTS = env.items("DJANGO_ALLOWED_HOSTS", "localhost,127.0.0.1,0.0.0.0")
INTERNAL_IPS = env.items("DJANGO_INTERNAL_IPS", "127.0.0.1,localhost,host.docker.internal")

INSTALLED_APPS = [
    "unfold",
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
    "jobs.apps.JobsConfig",
    "dashboard.apps.DashboardConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
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

if TESTING and env.text("TEST_DATABASE_ENGINE", "postgresql") == "sqlite":
    DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": env.text("POSTGRES_DB", "job_queue"),
            "USER": env.text("POSTGRES_USER", "postgres"),
            "PASSWORD": env.text("POSTGRES_PASSWORD", "postgres"),
            "HOST": env.text("POSTGRES_HOST", "localhost"),
            "PORT": env.integer("POSTGRES_PORT", 5432),
            "CONN_MAX_AGE": env.integer("POSTGRES_CONN_MAX_AGE", 0),
            "CONN_HEALTH_CHECKS": True,
            "DISABLE_SERVER_SIDE_CURSORS": True,
            "OPTIONS": {"connect_timeout": 2, "application_name": "rowlease"},
        }
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en-us"
TIME_ZONE = env.text("TIME_ZONE", "Asia/Tehran")
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
WHITENOISE_USE_FINDERS = DEBUG

CORS_ALLOW_ALL_ORIGINS = DEBUG
CORS_ALLOWED_ORIGINS = env.items(
    "DJANGO_CORS_ALLOWED_ORIGINS", "http://localhost:5173,http://127.0.0.1:5173"
)
CORS_URLS_REGEX = r"^/api/"

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["jobs.parsers.StrictJSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "UNAUTHENTICATED_USER": None,
    "EXCEPTION_HANDLER": "jobs.exception_handler.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Rowlease",
    "DESCRIPTION": "A job queue that lives in PostgreSQL.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

UNFOLD = {"SITE_TITLE": "Rowlease", "SITE_HEADER": "Rowlease"}

for _setting in conf.SETTINGS:
    globals()[_setting.name] = env.integer(_setting.name, _setting.default)
JOB_WORKER_LOG_LEVEL = env.text("JOB_WORKER_LOG_LEVEL", "INFO")
