"""The shapes that go in and out; the rules for their values are `validation`'s.

A field refuses what has the wrong type, since a service's caller in Python and a
client in JSON differ in that: here nothing is converted on a guess.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

from django.utils.timezone import is_naive
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from jobs import conf, validation
from jobs.lifecycle import EventType, Status
from jobs.models import Job, JobEvent
from jobs.sql import JOB_COLUMNS

STATUS_CHOICES = [(status.value, status.name) for status in Status]
EVENT_TYPE_CHOICES = [(event.value, event.name) for event in EventType]

_ANY_JSON_OBJECT = {"type": "object", "additionalProperties": {}}
_TYPE = {
    "type": "string",
    "pattern": validation.TYPE_PATTERN,
    "minLength": 1,
    "maxLength": conf.MAX_TYPE_LENGTH,
}
_ANY_JSON = {"nullable": True, "description": "Any JSON value."}


class WholeNumberField(serializers.IntegerField):
    """A JSON integer; `true`, `1.0`, `1e2` and `"1"` are something else."""

    default_error_messages: ClassVar = {"invalid": "Must be a whole number."}

    def to_internal_value(self, data: Any) -> int:
        """`data` as it is."""
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data

    def run_validators(self, value: Any) -> None:
        """The range is declared for the schema; `validation` is what holds it."""


class TextField(serializers.CharField):
    """A JSON string, not trimmed; numbers are not made into one."""

    default_error_messages: ClassVar = {"invalid": "Must be a string."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """`data` as it is, empty text too, which `validation` refuses in its own words."""
        if data == "":
            return data
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> str:
        """`data` as it is."""
        if not isinstance(data, str):
            self.fail("invalid")
        return data

    def run_validators(self, value: Any) -> None:
        """The length is declared for the schema; `validation` is what holds it."""


@extend_schema_field(_ANY_JSON_OBJECT)
class ObjectField(serializers.Field[dict[str, Any], dict[str, Any], dict[str, Any], Any]):
    """A JSON object."""

    default_error_messages: ClassVar = {"invalid": "Must be a JSON object."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """`data` as it is."""
        if not isinstance(data, dict):
            self.fail("invalid")
        return data

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        """`value` as it is."""
        return value


class MomentField(serializers.DateTimeField):
    """An ISO 8601 string; without an offset it is read in `TIME_ZONE`.

    A time that a clock change skips is refused; of one that comes twice the first
    is meant.
    """

    default_error_messages: ClassVar = {
        "invalid": "Must be a date and time as in 2026-01-31T12:00:00+03:30.",
        "make_aware": "There is no such time in {timezone}: the clocks skip it.",
        "overflow": "Must be in the years 1970 to 9998.",
    }

    def to_internal_value(self, value: Any) -> Any:
        """A moment with a zone."""
        if not isinstance(value, str):
            self.fail("invalid")
        return super().to_internal_value(value)

    def enforce_timezone(self, value: datetime) -> datetime:
        """`value` in a zone; what is skipped there does not survive going to UTC and back."""
        moment = super().enforce_timezone(value)
        if is_naive(value):
            back = moment.astimezone(UTC).astimezone(moment.tzinfo)
            if back.replace(tzinfo=None) != value:
                self.fail("make_aware", timezone=moment.tzinfo)
        return moment


class NewJobSerializer(serializers.Serializer[Any]):
    """What a client says of a job it creates."""

    type = extend_schema_field(_TYPE)(TextField)()
    payload = ObjectField(required=False)
    priority = WholeNumberField(
        required=False,
        min_value=conf.SMALLINT_MIN,
        max_value=conf.SMALLINT_MAX,
    )
    available_at = MomentField(required=False, allow_null=True)
    max_attempts = WholeNumberField(required=False, min_value=1, max_value=conf.SMALLINT_MAX)
    idempotency_key = TextField(
        required=False, allow_null=True, min_length=1, max_length=conf.MAX_KEY_LENGTH
    )


class JobSerializer(serializers.ModelSerializer[Job]):
    """One job."""

    status = serializers.ChoiceField(STATUS_CHOICES)
    payload = ObjectField()
    result = extend_schema_field(_ANY_JSON)(serializers.JSONField)(allow_null=True)

    class Meta:
        model = Job
        fields = JOB_COLUMNS
        read_only_fields = JOB_COLUMNS


class JobEventSerializer(serializers.ModelSerializer[JobEvent]):
    """One event of a job."""

    # The column is already here; the related row would be a query for each event.
    job = serializers.UUIDField(source="job_id")
    type = serializers.ChoiceField(EVENT_TYPE_CHOICES)
    data = ObjectField()

    class Meta:
        model = JobEvent
        fields = ("id", "job", "type", "attempt", "worker_id", "message", "data", "created_at")
        read_only_fields = fields


class StatsSerializer(serializers.Serializer[Any]):
    """The queue in numbers."""

    total = serializers.IntegerField()
    by_status = serializers.DictField(child=serializers.IntegerField())
    overdue_running = serializers.IntegerField()
    retries_pending = serializers.IntegerField()
    oldest_queued_at = serializers.DateTimeField(allow_null=True)


class JobFilterSerializer(serializers.Serializer[Any]):
    """The filters of the list of jobs."""

    status = serializers.ChoiceField(STATUS_CHOICES, required=False)
    type = TextField(required=False)

    def validate_status(self, value: str) -> Status:
        """The status itself."""
        return Status(value)


class AnySpellingUUIDField(serializers.UUIDField):
    """A UUID in every spelling that `uuid.UUID` reads."""

    default_error_messages: ClassVar = {"invalid": "Must be a UUID."}

    def to_internal_value(self, data: Any) -> UUID:
        """The UUID."""
        try:
            return UUID(data)
        except ValueError:
            self.fail("invalid")


class EventFilterSerializer(serializers.Serializer[Any]):
    """The filters of the feed."""

    type = serializers.ChoiceField(EVENT_TYPE_CHOICES, required=False)
    job_id = AnySpellingUUIDField(required=False)

    def validate_type(self, value: str) -> EventType:
        """The event type itself."""
        return EventType(value)


class DetailSerializer(serializers.Serializer[Any]):
    """An error that is no field's."""

    detail = serializers.CharField()
