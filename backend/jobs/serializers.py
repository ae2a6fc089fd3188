"""The shapes that go in and out; the rules for their values are `validation`'s.

A field refuses what has the wrong type and converts nothing on a guess. Lengths,
ranges and patterns are declared here for the OpenAPI document alone: `services`
holds every caller to them, in one and the same words.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

from django.utils.timezone import get_current_timezone, is_naive
from drf_spectacular.utils import extend_schema_field, inline_serializer
from rest_framework import serializers

from jobs import conf, validation
from jobs.lifecycle import EventType, Status
from jobs.models import Job, JobEvent
from jobs.sql import JOB_COLUMNS

# The labels are the enums' names, as the OpenAPI document's overrides have them.
STATUS_CHOICES = [(status.value, status.name) for status in Status]
EVENT_TYPE_CHOICES = [(event.value, event.name) for event in EventType]

_DIGITS = re.compile(r"[0-9]+", re.ASCII)

WORKER_SETTINGS = tuple(
    setting.name for setting in conf.SETTINGS if setting.name.startswith("JOB_WORKER_")
)


def name_in_config(setting: str) -> str:
    """`JOB_WORKER_LEASE_SECONDS` as `lease_seconds`."""
    return setting.removeprefix("JOB_WORKER_").lower()


class WholeNumberField(serializers.IntegerField):
    """A JSON integer; `true`, `1.0`, `1e2` and `"1"` are something else."""

    default_error_messages: ClassVar = {"invalid": "Must be a whole number."}

    def to_internal_value(self, data: Any) -> int:
        """`data` as it is."""
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data

    def run_validators(self, value: Any) -> None:
        """None here; see the module."""


class TextField(serializers.CharField):
    """A JSON string, not trimmed; a number is not made into one."""

    default_error_messages: ClassVar = {"invalid": "Must be a string."}

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """As any field's; a `CharField` has a rule of its own for blank text."""
        return serializers.Field.run_validation(self, data)

    def to_internal_value(self, data: Any) -> str:
        """`data` as it is."""
        if not isinstance(data, str):
            self.fail("invalid")
        return data

    def run_validators(self, value: Any) -> None:
        """None here; see the module."""


@extend_schema_field(
    {
        "type": "string",
        "pattern": validation.TYPE_PATTERN,
        "minLength": 1,
        "maxLength": conf.MAX_TYPE_LENGTH,
    }
)
class JobTypeField(TextField):
    """A handler's name."""


@extend_schema_field({"type": "object", "additionalProperties": {}})
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


@extend_schema_field({"nullable": True, "description": "Any JSON value."})
class AnyJSONField(serializers.JSONField):
    """Any JSON value."""


class MomentField(serializers.DateTimeField):
    """An ISO 8601 string; without an offset it is read in `TIME_ZONE`.

    There, a time that the clocks skip is refused, and of one that comes twice the
    first is meant.
    """

    default_error_messages: ClassVar = {
        "invalid": "Must be a date and time like 2026-01-31T12:00:00+03:30.",
        "make_aware": "The clocks of {timezone} skip this time; give it with an offset.",
        "overflow": "Must be in the years 1970 to 9998.",
    }

    def to_internal_value(self, value: Any) -> Any:
        """A moment with a zone."""
        if not isinstance(value, str):
            self.fail("invalid")
        return super().to_internal_value(value)

    def enforce_timezone(self, value: datetime) -> datetime:
        """`value` in a zone; a time that is skipped does not survive UTC and back."""
        try:
            moment = super().enforce_timezone(value)
            back = moment.astimezone(UTC).astimezone(moment.tzinfo)
        except OverflowError:
            self.fail("overflow")
        if is_naive(value) and back.replace(tzinfo=None) != value:
            self.fail("make_aware", timezone=moment.tzinfo)
        return moment


class UUIDInAnySpellingField(serializers.UUIDField):
    """A UUID in every spelling that `validation.parse_uuid` reads."""

    default_error_messages: ClassVar = {"invalid": "Must be a UUID."}

    def to_internal_value(self, data: Any) -> UUID:
        """The UUID."""
        job_id = validation.parse_uuid(data) if isinstance(data, str) else None
        if job_id is None:
            self.fail("invalid")
        return job_id


class EventIdField(serializers.Field[int, str, int, Any]):
    """An event's id, or 0, in digits."""

    default_error_messages: ClassVar = {
        "invalid": f"Must be a whole number from 0 to {conf.BIGINT_MAX}."
    }

    def to_internal_value(self, data: str) -> int:
        """The number."""
        if not _DIGITS.fullmatch(data) or len(data.lstrip("0")) > 19 or int(data) > conf.BIGINT_MAX:
            self.fail("invalid")
        return int(data)


class KnownField(serializers.ChoiceField):
    """One of the values there are; the refusal lists them."""

    def __init__(self, choices: list[tuple[str, str]], **options: Any) -> None:
        allowed = ", ".join(value for value, _ in choices)
        messages: dict[str, Any] = {"invalid_choice": f"Must be one of {allowed}."}
        super().__init__(choices, error_messages=messages, **options)


class NewJobSerializer(serializers.Serializer[Any]):
    """What a client says of a job it creates."""

    type = JobTypeField()
    payload = ObjectField(required=False)
    priority = WholeNumberField(
        required=False,
        min_value=conf.SMALLINT_MIN,
        max_value=conf.SMALLINT_MAX,
        help_text=f"Higher first; {conf.DEFAULT_PRIORITY} where it is left out.",
    )
    available_at = MomentField(
        required=False,
        allow_null=True,
        help_text="Not before this time; null or left out: now. Years 1970 to 9998. Without an "
        "offset it is a time in the server's zone.",
    )
    max_attempts = WholeNumberField(required=False, min_value=1, max_value=conf.SMALLINT_MAX)
    idempotency_key = TextField(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=conf.MAX_KEY_LENGTH,
        help_text="Trimmed. A known key answers its job, unchanged.",
    )


_TIMES = ("available_at", "locked_until", "created_at", "updated_at", "finished_at")


# Of a thousand jobs these would have no end.
LARGE_COLUMNS = ("payload", "result", "last_error")


class BriefJobSerializer(serializers.ModelSerializer[Job]):
    """One job without what may be large: `payload`, `result` and `last_error`."""

    status = serializers.ChoiceField(STATUS_CHOICES)

    class Meta:
        model = Job
        fields = tuple(name for name in JOB_COLUMNS if name not in LARGE_COLUMNS)
        read_only_fields = fields

    def to_representation(self, job: Job) -> dict[str, Any]:
        """The columns as REST framework's fields would spell them, in a fifth of the time."""
        zone = get_current_timezone()
        answer = {name: getattr(job, name) for name in self.Meta.fields}
        answer["id"] = str(answer["id"])
        for name in _TIMES:
            moment = answer[name]
            if moment is not None:
                text = moment.astimezone(zone).isoformat()
                answer[name] = (
                    text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
                )
        return answer


class JobSerializer(BriefJobSerializer):
    """One job."""

    payload = ObjectField()
    result = AnyJSONField(allow_null=True)

    class Meta(BriefJobSerializer.Meta):
        fields = JOB_COLUMNS
        read_only_fields = JOB_COLUMNS


# Made once. Each instance makes its fields anew, which was most of what a request to create
# a job cost; they hold nothing of a request.
NEW_JOB = NewJobSerializer()
JOB = JobSerializer()
BRIEF_JOB = BriefJobSerializer()


class JobEventSerializer(serializers.ModelSerializer[JobEvent]):
    """One event of a job."""

    # The column is here already; the related row would be a query for each event.
    job = serializers.UUIDField(source="job_id")
    type = serializers.ChoiceField(EVENT_TYPE_CHOICES)
    data = ObjectField()  # type: ignore[assignment]

    class Meta:
        model = JobEvent
        fields = ("id", "job", "type", "attempt", "worker_id", "message", "data", "created_at")
        read_only_fields = fields


class StatsSerializer(serializers.Serializer[Any]):
    """The queue in numbers."""

    total = serializers.IntegerField()
    total_is_estimate = serializers.BooleanField(
        help_text="More jobs succeeded than are counted; the other statuses are exact."
    )
    succeeded_is_estimate = serializers.BooleanField(help_text="As `total_is_estimate`.")
    by_status = inline_serializer(
        "JobCountByStatus", {status.value: serializers.IntegerField() for status in Status}
    )
    overdue_running = serializers.IntegerField(help_text="Running, with a lease that ran out.")
    retries_pending = serializers.IntegerField(help_text="Queued, and attempted before.")
    oldest_queued_at = serializers.DateTimeField(allow_null=True)
    ready = serializers.IntegerField(help_text="Queued and due.")
    scheduled = serializers.IntegerField(help_text="Queued for later.")
    oldest_ready_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when the job that has been due longest has been due."
    )


class HealthSerializer(serializers.Serializer[Any]):
    """The queue can be used."""

    ok = serializers.BooleanField()
    database = serializers.CharField()


class SickHealthSerializer(HealthSerializer):
    """The queue cannot be used."""

    detail = serializers.CharField()


class LimitsSerializer(serializers.Serializer[Any]):
    """What requests and answers may hold."""

    payload_max_bytes = serializers.IntegerField()
    json_max_depth = serializers.IntegerField()
    type_max_length = serializers.IntegerField()
    idempotency_key_max_length = serializers.IntegerField()
    priority_min = serializers.IntegerField()
    priority_max = serializers.IntegerField()
    max_attempts_max = serializers.IntegerField()
    jobs_page_max = serializers.IntegerField()
    events_page_max = serializers.IntegerField()
    timeline_max = serializers.IntegerField()


class ConfigSerializer(serializers.Serializer[Any]):
    """What a client needs to know and may know."""

    worker = inline_serializer(
        "WorkerSettings",
        {
            **{name_in_config(name): serializers.IntegerField() for name in WORKER_SETTINGS},
            "log_level": serializers.CharField(),
        },
    )
    job_types = serializers.ListField(child=serializers.CharField())
    statuses = serializers.ListField(child=serializers.CharField())
    event_types = serializers.ListField(child=serializers.CharField())
    limits = LimitsSerializer()
    time_zone = serializers.CharField()


class JobFilterSerializer(serializers.Serializer[Any]):
    """The filters of the list of jobs."""

    status = KnownField(STATUS_CHOICES, required=False)
    type = TextField(required=False)

    def validate_status(self, value: str) -> Status:
        """The status itself."""
        return Status(value)


class EventFilterSerializer(serializers.Serializer[Any]):
    """The filters of the feed."""

    type = KnownField(EVENT_TYPE_CHOICES, required=False)
    job_id = UUIDInAnySpellingField(required=False)
    after_id = EventIdField(required=False)

    def validate_type(self, value: str) -> EventType:
        """The event type itself."""
        return EventType(value)


class JobPageSerializer(serializers.Serializer[Any]):
    """A page of jobs."""

    count = serializers.IntegerField()
    count_is_estimate = serializers.BooleanField(
        help_text="There are about so many: more than are counted, or than were looked at."
    )
    next = serializers.URLField(
        allow_null=True, help_text="Where the list goes on, after a page that is not full too."
    )
    previous = serializers.URLField(allow_null=True)
    results = JobSerializer(many=True)


class EventPageSerializer(serializers.Serializer[Any]):
    """A page of the feed."""

    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = JobEventSerializer(many=True)


class DetailSerializer(serializers.Serializer[Any]):
    """An error that is no field's."""

    detail = serializers.CharField()
