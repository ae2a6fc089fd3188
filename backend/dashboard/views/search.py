"""The search box: an id, whole or short, goes straight to the job, other text to the list."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard import reading
from dashboard.pages import Page
from dashboard.questions import Question
from jobs import display, selectors
from jobs.validation import parse_uuid


class Search(Page):
    """Where a search leads; it shows nothing itself."""

    def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """A redirect."""
        question = Question(request)
        text = question.text("q")
        question.check()
        job_id = parse_uuid(text)
        ends = display.ends_of_short_id(text)
        if ends is not None:
            with reading.bounded():
                job_id = selectors.job_id_with_ends(*ends)
        if job_id is not None:
            return redirect("dashboard:job", job_id=job_id)
        jobs = reverse("dashboard:jobs")
        return redirect(f"{jobs}?{urlencode({'type': text})}" if text else jobs)
