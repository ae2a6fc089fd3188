"""The shapes of that call: many new jobs in, each of them out."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from jobs.new_jobs import MAX_AT_ONCE
from jobs.serializers import NEW_JOB, BriefJobSerializer, NewJobSerializer


class NewJobsField(serializers.ListField):
    """Some new jobs; what is wrong is told by the place of the job in the list, from 0."""

    child = NewJobSerializer()
    default_error_messages: ClassVar = {
        "not_a_list": "Must be a list of jobs.",
        "empty": "May not be empty.",
        "too_many": f"At most {MAX_AT_ONCE} jobs at once.",
    }

    def to_internal_value(self, data: Any) -> list[Any]:
        """The jobs, each with fields of the right types."""
        if not isinstance(data, list):
            self.fail("not_a_list")
        if not data:
            self.fail("empty")
        # Before any of them is looked at, for a body may hold hundreds of thousands.
        if len(data) > MAX_AT_ONCE:
            self.fail("too_many")
        found = []
        problems: dict[str, Any] = {}
        for place, item in enumerate(data):
            if not isinstance(item, dict):
                problems[str(place)] = ["Must be a JSON object."]
                continue
            try:
                found.append(NEW_JOB.run_validation(item))
            except serializers.ValidationError as error:
                problems[str(place)] = error.detail
        if problems:
            raise serializers.ValidationError(problems)
        return found


class NewJobsSerializer(serializers.Serializer[Any]):
    """The jobs that are to be created together."""

    jobs = NewJobsField(min_length=1, max_length=MAX_AT_ONCE)


class CreatedJobSerializer(serializers.Serializer[Any]):
    """What became of one of them."""

    created = serializers.BooleanField(
        help_text="False: a job with this idempotency key existed, or stands earlier in the list."
    )
    mismatch = serializers.BooleanField(
        help_text="The job that existed has another type or payload."
    )
    job = BriefJobSerializer(help_text="The new job, or the one that existed, unchanged.")


class CreatedJobsSerializer(serializers.Serializer[Any]):
    """What became of each, in the order of the request."""

    created = serializers.IntegerField(help_text="How many were created.")
    jobs = CreatedJobSerializer(many=True)


NEW_JOBS = NewJobsSerializer()
