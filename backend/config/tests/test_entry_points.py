"""Web and worker as the operator starts them: real processes with a bad or good environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parent.parent.parent

ENTRY_POINTS = {
    "wsgi": ["-c", "import config.wsgi"],
    "gunicorn": ["-m", "gunicorn", "--bind", "127.0.0.1:0", "--workers", "2", "config.wsgi"],
    "runserver": ["manage.py", "runserver", "127.0.0.1:0"],
    "worker": ["manage.py", "run_job_workers"],
    "migrate": ["manage.py", "migrate"],
}

HAS_TOOLBAR = "from django.conf import settings; print('debug_toolbar' in settings.INSTALLED_APPS)"


def run(arguments: list[str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=BACKEND,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("arguments", ENTRY_POINTS.values(), ids=ENTRY_POINTS.keys())
def test_a_bad_value_ends_every_entry_point_with_one_line(
    arguments: list[str], outside_environ: dict[str, str]
) -> None:
    ended = run(arguments, outside_environ | {"JOB_WORKER_THREADS": "a\nb"})
    assert ended.stderr == (
        "JOB_WORKER_THREADS='a\\nb' is not allowed: a whole number from 1 to 1024\n"
    )
    assert (ended.returncode, ended.stdout) == (3, "")


@pytest.mark.parametrize("arguments", [ENTRY_POINTS["wsgi"], ENTRY_POINTS["worker"]])
def test_the_development_key_is_refused_without_debug_and_never_shown(
    arguments: list[str], outside_environ: dict[str, str]
) -> None:
    ended = run(arguments, outside_environ | {"DEBUG": "false"})
    assert ended.stderr == (
        "DJANGO_SECRET_KEY=(not set) is not allowed: a key of your own, since DEBUG is false\n"
    )
    assert ended.returncode == 3


def test_gunicorn_gives_up_where_only_its_worker_loads_the_project(
    outside_environ: dict[str, str],
) -> None:
    # Any module but gunicorn.conf.py, so that nothing is loaded before the fork.
    arguments = ["-m", "gunicorn", "--config", "python:config", "--bind", "127.0.0.1:0"]
    ended = run([*arguments, "config.wsgi"], outside_environ | {"JOB_WORKER_THREADS": "0"})
    assert "JOB_WORKER_THREADS='0' is not allowed" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.returncode == 3


def test_the_toolbar_is_on_in_a_web_process(outside_environ: dict[str, str]) -> None:
    ended = run(["-c", f"import config.wsgi; {HAS_TOOLBAR}"], outside_environ)
    assert (ended.stdout, ended.stderr) == ("True\n", "")


@pytest.mark.parametrize(
    "environ",
    [
        {"ENABLE_DJANGO_DEBUG_TOOLBAR": "false"},
        {"ENABLE_DJANGO_DEBUG_TOOLBAR": "true", "DEBUG": "false", "DJANGO_SECRET_KEY": "own"},
    ],
    ids=["switched off", "no DEBUG"],
)
def test_the_toolbar_is_off_in_a_web_process_that_does_not_want_it(
    environ: dict[str, str], outside_environ: dict[str, str]
) -> None:
    ended = run(["-c", f"import config.wsgi; {HAS_TOOLBAR}"], outside_environ | environ)
    assert ended.stdout == "False\n"


def test_f113_the_toolbar_is_off_in_the_worker(outside_environ: dict[str, str]) -> None:
    as_worker = (
        "import os, sys; sys.argv = ['manage.py', 'run_job_workers'];"
        "os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'; "
    )
    ended = run(["-c", as_worker + HAS_TOOLBAR], outside_environ | {"DEBUG": "true"})
    assert (ended.stdout, ended.stderr) == ("False\n", "")


@pytest.mark.parametrize("debug", ["true", "false"])
def test_static_files_are_served_without_collectstatic(
    debug: str, outside_environ: dict[str, str]
) -> None:
    request = (
        "from config.wsgi import application; from django.test import Client;"
        "from django.templatetags.static import static;"
        "url = static('drf_spectacular_sidecar/swagger-ui-dist/swagger-ui.css');"
        "print(Client(HTTP_HOST='localhost').get(url).status_code)"
    )
    environ = {"DEBUG": debug, "DJANGO_SECRET_KEY": "own", "ENABLE_DJANGO_DEBUG_TOOLBAR": "false"}
    ended = run(["-c", request], outside_environ | environ)
    assert ended.stdout == "200\n", ended.stderr


def test_the_checks_find_nothing_with_no_variable_set(outside_environ: dict[str, str]) -> None:
    ended = run(["manage.py", "check", "--fail-level", "WARNING"], outside_environ)
    assert ended.returncode == 0, ended.stderr
