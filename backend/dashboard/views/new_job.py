"""A form that creates a job."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import router
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from dashboard import access, drafts, json_view, reading
from dashboard.drafts import Draft
from dashboard.pages import Page
from dashboard.questions import Question
from jobs import conf, memo, registry, selectors, services
from jobs.deadline import database_deadline
from jobs.errors import InvalidJob, JobNotFound
from jobs.models import Job
from jobs.registry import JobType
from jobs.validation import parse_uuid

logger = logging.getLogger(__name__)

SEE_OTHER = 303
UNPROCESSABLE = 422
TOO_LARGE = 413


# Django's own check reads the form, and for one that is too large answers with a page
# that says so to nobody. `_create` has the check.
@method_decorator(csrf_exempt, name="dispatch")
class NewJob(Page):
    """A form, empty or filled with a copy of a job; it leads to the job it created."""

    template = "dashboard/new_job.html"
    section = "new_job"
    permissions = (access.CREATE,)

    def context(self, request: HttpRequest, **kwargs: Any) -> dict[str, Any]:
        """The form as it is first seen; raises `JobNotFound` for a copy of no job."""
        question = Question(request)
        copy_of, job_type = question.text("copy_of"), question.text("type")
        question.check()
        if copy_of:
            return _copied(request, copy_of)
        known = {described.name: described for described in registry.described_types()}
        example = known[job_type].example if job_type in known else "{}"
        return _form(request, Draft(type=job_type, payload=example))

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Create the job, or show the form again with what is wrong at the fields."""
        try:
            request.POST  # noqa: B018 - Django reads the form here
        except RequestDataTooBig:
            errors = {"payload": "It was too large to be read; what you typed is lost here."}
            context = _form(request, Draft(), errors)
            return self.render(request, self.template, context, TOO_LARGE)
        return self._create(request)

    @method_decorator(csrf_protect)
    def _create(self, request: HttpRequest) -> HttpResponse:
        draft = Draft.posted(request.POST)
        with database_deadline(reading.PAGE_DEADLINE_SECONDS, router.db_for_write(Job)):
            read = drafts.read(draft, selectors.database_now())
            errors = read.errors
            if not errors:
                try:
                    return _created(request, read.arguments)
                except InvalidJob as error:
                    errors = {error.field: error.reason}
        return self.render(request, self.template, _form(request, draft, errors), UNPROCESSABLE)


def _created(request: HttpRequest, arguments: dict[str, Any]) -> HttpResponse:
    """The way to the job, with word whether it is new."""
    job, created = services.create_job(**arguments)
    notice = "created"
    if not created:
        same = selectors.job_is_made_of(
            job.pk, type=arguments["type"], payload=arguments["payload"]
        )
        notice = "existing" if same else "mismatch"
    else:
        logger.info("%s created job %s.", access.name_of(request) or "Somebody", job.pk)
        # Whoever is led on shall not be shown counts of before.
        memo.forget_all()
    url = f"{reverse('dashboard:job', args=[job.pk])}?notice={notice}"
    return HttpResponseRedirect(url, status=SEE_OTHER)


def _copied(request: HttpRequest, copy_of: str) -> dict[str, Any]:
    """The form with what a job was made of, but for its key, which is its own."""
    if not access.allows(request, access.SEE):
        raise PermissionDenied(f"This needs the permission {access.SEE}.")
    job_id = parse_uuid(copy_of)
    if job_id is None:
        raise JobNotFound(copy_of)
    job, _ = selectors.job_in_short(job_id)
    payload = json_view.of("payload", selectors.text_of(job_id, "payload", json_view.MAX_CHARS))
    is_whole = payload is not None and payload.is_whole
    draft = Draft(
        type=job.type,
        payload=payload.raw if payload is not None and is_whole else "",
        priority=str(job.priority),
        max_attempts=str(job.max_attempts),
    )
    return {
        **_form(request, draft),
        "original": job,
        "is_payload_left_out": not is_whole,
        "original_payload": payload,
    }


@dataclass(frozen=True, slots=True)
class ShownType:
    """A registered type; `doc` as runs of text, of which each may be code."""

    name: str
    example: str
    doc: list[tuple[str, bool]]


def _shown(described: JobType) -> ShownType:
    # A docstring's lines are broken for an editor; its paragraphs are meant.
    paragraphs = [" ".join(lines.split()) for lines in described.doc.split("\n\n")]
    pieces = "\n\n".join(paragraphs).split("`")
    # Without their partner ticks are just ticks.
    pieces = pieces if len(pieces) % 2 else ["`".join(pieces)]
    doc = [(piece, number % 2 == 1) for number, piece in enumerate(pieces) if piece]
    return ShownType(described.name, described.example, doc)


def _form(
    request: HttpRequest, draft: Draft, errors: dict[str, str] | None = None
) -> dict[str, Any]:
    try:
        api_url = request.build_absolute_uri(reverse("jobs:jobs"))
    except NoReverseMatch:
        api_url = ""
    types = [_shown(described) for described in registry.described_types()]
    return {
        "draft": draft,
        "errors": errors or {},
        "first_error": next(iter(errors), "") if errors else "",
        "types": types,
        "known": next((known for known in types if known.name == draft.type.strip()), None),
        "units": list(drafts.UNITS),
        "zone": timezone.get_current_timezone_name(),
        "api_url": api_url,
        "max_bytes": conf.get("JOB_PAYLOAD_MAX_BYTES"),
        "max_key_length": conf.MAX_KEY_LENGTH,
        "max_type_length": conf.MAX_TYPE_LENGTH,
        "priority_min": conf.SMALLINT_MIN,
        "priority_max": conf.SMALLINT_MAX,
        "default_attempts": conf.default_max_attempts(),
    }
