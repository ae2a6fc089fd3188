from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from jobs import services
from jobs.models import Job

WORKER = "host:1:thread-1:00000001"
JOBS = "/admin/jobs/job/"
EVENTS = "/admin/jobs/jobevent/"


class Page(HTMLParser):
    """What a browser would make of the HTML: elements with attributes, and text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_script = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        (self.scripts if self._in_script else self.texts).append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def raw_text(self) -> str:
        return "".join(self.texts)

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        """The attributes of every `tag` element that has these."""
        return [
            found
            for name, found in self.elements
            if name == tag and attributes.items() <= {k: v or "" for k, v in found.items()}.items()
        ]

    def links(self) -> list[str]:
        return [found["href"] or "" for found in self.all("a") if "href" in found]


def page_of(response: Any) -> Page:
    assert response.status_code == 200, response.status_code
    return Page(response.content.decode())


def job_url(job: Job | Any, view: str = "change") -> str:
    return f"{JOBS}{getattr(job, 'pk', job)}/{view}/"


def messages_of(response: Any) -> list[tuple[str, str]]:
    return [(message.level_tag, str(message)) for message in response.context["messages"]]


def make_job(**arguments: Any) -> Job:
    return services.create_job(type=arguments.pop("type", "demo.success"), **arguments)[0]


def make_running_job(worker_id: str = WORKER, **arguments: Any) -> Job:
    job = make_job(priority=32767, **arguments)
    claimed = services.claim_next_job(worker_id=worker_id)
    assert claimed is not None
    assert claimed.pk == job.pk
    return claimed


def make_succeeded_job(result: Any = None, **arguments: Any) -> Job:
    job = make_running_job(**arguments)
    done = services.complete_job(
        job_id=job.pk, worker_id=job.locked_by or "", attempt=job.attempts, result=result
    )
    assert done is not None
    return done


def make_failed_job(error: str = "ValueError: no", **arguments: Any) -> Job:
    job = make_running_job(max_attempts=1, **arguments)
    failed = services.fail_job(
        job_id=job.pk, worker_id=job.locked_by or "", attempt=job.attempts, error=error
    )
    assert failed is not None
    return failed


def client_with(*permissions: str) -> Client:
    """A client logged in as staff with these permissions on jobs and events."""
    user = User.objects.create_user("-".join(permissions) or "nobody", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def boss(db: None) -> Client:
    """A client logged in as a superuser."""
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


@pytest.fixture
def viewer(db: None) -> Client:
    """A client that may view jobs and events, and no more."""
    return client_with("view_job", "view_jobevent")


@pytest.fixture
def operator(db: None) -> Client:
    """A client that may view, and retry too."""
    return client_with("view_job", "view_jobevent", "change_job")
