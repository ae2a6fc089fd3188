"""Many jobs at once: all of them, or none."""

from __future__ import annotations

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import services
from jobs.bulk import openapi
from jobs.bulk.serializers import NEW_JOBS
from jobs.parsers import ListOfObjectsParser
from jobs.selectors.sameness import made_otherwise
from jobs.serializers import BRIEF_JOB, LARGE_COLUMNS
from jobs.views import QueueView, answer_in_time


class NewJobsView(QueueView):
    """The creation of many."""

    parser_classes = (ListOfObjectsParser,)

    @openapi.create_jobs
    def post(self, request: Request) -> Response:
        """Create the jobs, or answer those that have the idempotency keys."""
        wanted = NEW_JOBS.run_validation(request.data)["jobs"]
        with answer_in_time():
            answers = services.create_jobs(jobs=wanted, deferring=LARGE_COLUMNS)
            known = [place for place, (_, created) in enumerate(answers) if not created]
            others = made_otherwise(
                (answers[place][0].pk, wanted[place]["type"], wanted[place].get("payload", {}))
                for place in known
            )
        mismatched = {known[place] for place in others}
        body = {
            "created": len(answers) - len(known),
            "jobs": [
                {
                    "created": created,
                    "mismatch": place in mismatched,
                    "job": BRIEF_JOB.to_representation(job),
                }
                for place, (job, created) in enumerate(answers)
            ],
        }
        any_created = len(known) < len(answers)
        return Response(body, status.HTTP_201_CREATED if any_created else status.HTTP_200_OK)
