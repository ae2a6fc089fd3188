"""Settings of the peers that live in Django; PEER says which."""

import os

SECRET_KEY = "only for a benchmark on this machine"
USE_TZ = True
DEBUG = False
PEER = os.environ["PEER"]
INSTALLED_APPS = [{"ox": "django_ox", "tasks_db": "django_tasks_db", "dj_queue": "dj_queue"}[PEER]]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["POSTGRES_DB"],
        "USER": os.environ["POSTGRES_USER"],
        "PASSWORD": os.environ["POSTGRES_PASSWORD"],
        "HOST": os.environ["POSTGRES_HOST"],
        "PORT": os.environ["POSTGRES_PORT"],
        # Django's default closes the connection after each task; its documentation and the
        # peers' advise to keep it. Which of the two holds is said beside the figures.
        "CONN_MAX_AGE": 600 if os.environ.get("PEER_KEEPS_CONNECTIONS") else 0,
    }
}
_WORKERS = {
    "threads": int(os.environ.get("PEER_THREADS", "0")),
    "processes": int(os.environ.get("PEER_PROCESSES", "0")),
}
_OPTIONS = {"workers": [{key: value for key, value in _WORKERS.items() if value}]}
TASKS = {
    "default": {
        "ox": {"BACKEND": "django_ox.backend.OxBackend"},
        "tasks_db": {"BACKEND": "django_tasks_db.DatabaseBackend"},
        "dj_queue": {
            "BACKEND": "dj_queue.backend.DjQueueBackend",
            "QUEUES": [],
            "OPTIONS": _OPTIONS if any(_WORKERS.values()) else {},
        },
    }[PEER]
}
