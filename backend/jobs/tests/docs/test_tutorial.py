"""The tutorial, followed word for word on the test's database."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from jobs.models import Job
from jobs.tests.docs.support import DOCS, blocks
from jobs.tests.worker.support import BACKEND, WorkerProcess, ended

PAGE = DOCS / "tutorial.md"
FILES = {block.file: block.text for block in blocks(PAGE) if block.language == "python"}
PRINTED = {block.file: block.text for block in blocks(PAGE) if block.language == "text"}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The terminal of the tutorial; its files lie in a directory of this test's."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "wordcount" / "__init__.py").touch()
    return {
        "PYTHONPATH": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "tutorial_settings",
        "POSTGRES_DB": str(settings.DATABASES["default"]["NAME"]),
    }


def shell(script: str, environment: dict[str, str]) -> str:
    """What `python manage.py shell -v 0 < script` prints."""
    with (Path(environment["PYTHONPATH"]) / script).open() as text:
        done = subprocess.run(
            [sys.executable, "manage.py", "shell", "-v", "0"],
            cwd=BACKEND,
            env={**os.environ, **environment},
            stdin=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def work(environment: dict[str, str], log: Path) -> str:
    """Run a worker until the newest job ended, then stop it; its log."""
    with WorkerProcess(log, **environment) as worker:
        ended(Job.objects.latest("created_at"))
        worker.send(signal.SIGINT)
        assert worker.exit_code() == 0
        return worker.log()


# Seven processes, one after the other.
@pytest.mark.timeout(300)
@pytest.mark.django_db(transaction=True)
def test_the_tutorial_does_what_it_says(environment: dict[str, str], tmp_path: Path) -> None:
    assert shell("enqueue.py", environment) == PRINTED["enqueue.py"]
    assert shell("enqueue.py", environment) == "was there already\n"
    assert "wordcount.count" in work(environment, tmp_path / "first.log")
    assert shell("show.py", environment) == PRINTED["show.py"]
    assert shell("fail.py", environment) == ""
    work(environment, tmp_path / "second.log")
    assert shell("show_failure.py", environment) == PRINTED["show_failure.py"]


@pytest.mark.django_db
def test_the_request_of_the_tutorial_makes_its_job(client: Client) -> None:
    curl = re.search(r"curl -s http://[\d.:]+(\S+) .*?-d '(.*?)'\n", PAGE.read_text(), re.DOTALL)
    assert curl is not None
    path, body = curl.groups()
    answer = client.post(path, body, content_type="application/json")
    assert answer.status_code == 201
    assert Job.objects.get(pk=answer.json()["id"]).type == "wordcount.count"


def test_every_file_of_the_tutorial_is_named_in_its_text() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(FILES) == {
        "wordcount/handlers.py",
        "tutorial_settings.py",
        "enqueue.py",
        "show.py",
        "fail.py",
        "show_failure.py",
    }
    for name in FILES:
        assert f"`{name}`" in text
    scripts = {name for name in FILES if "/" not in name} - {"tutorial_settings.py"}
    assert (
        set(re.findall(r"^    python manage.py shell -v 0 < (\S+)$", text, re.MULTILINE)) == scripts
    )
