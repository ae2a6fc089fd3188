"""The shapes of these answers, and of the body of a bulk retry."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers

from jobs import validation
from jobs.errors import InvalidJob
from jobs.lifecycle import Status
from jobs.selectors import WINDOWS, job_cursor
from jobs.selectors.failures import PARTS
from jobs.selectors.job_filter import JobFilter
from jobs.serializers import (
    KnownField,
    MomentField,
    ObjectField,
    TextField,
    WholeNumberField,
)
from jobs.services import MAX_RETRIES_AT_ONCE

DEFAULT_WINDOW = "1h"
MAX_TEXT_LENGTH = 500
MISSING = "missing"

_WINDOW_CHOICES = [(name, name) for name in WINDOWS]


def _moment(value: datetime) -> datetime:
    """A moment in the years that a job's times lie in."""
    try:
        moment = validation.clean_available_at(value)
    except InvalidJob as error:
        raise serializers.ValidationError(error.reason) from None
    assert moment is not None
    return moment


class WindowFilterSerializer(serializers.Serializer[Any]):
    """Which of the windows."""

    window = KnownField(_WINDOW_CHOICES, required=False, default=DEFAULT_WINDOW)


class FailureFilterSerializer(serializers.Serializer[Any]):
    """The filters of the groups of failures."""

    type = TextField(required=False)
    since = MomentField(required=False)

    def validate_type(self, value: str) -> str:
        """A text of a length that can be looked for."""
        return _text(value)

    def validate_since(self, value: datetime) -> datetime:
        """A moment that can be compared."""
        return _moment(value)


def _text(value: str) -> str:
    if len(value) > MAX_TEXT_LENGTH:
        raise serializers.ValidationError(f"At most {MAX_TEXT_LENGTH} characters.")
    return value


def _seconds(what: str) -> serializers.FloatField:
    return serializers.FloatField(allow_null=True, help_text=f"{what}, in seconds.")


class PercentilesSerializer(serializers.Serializer[Any]):
    """Wait and run time of the jobs that ended."""

    wait_p50 = _seconds("From when a job was due to its claim, for half of them at most")
    wait_p95 = _seconds("The same for 95 of 100")
    run_p50 = _seconds("From the claim to the end, for half of them at most")
    run_p95 = _seconds("The same for 95 of 100")


class BucketSerializer(PercentilesSerializer):
    """What happened from `start` to the next bucket's."""

    start = serializers.DateTimeField()
    succeeded = serializers.FloatField()
    failed = serializers.FloatField()
    retried = serializers.FloatField(help_text="Attempts that failed with attempts left.")


class WindowSerializer(serializers.Serializer[Any]):
    """A window of time, and how much of it was read."""

    window = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(help_text="The end of the bucket that is under way.")
    is_estimate = serializers.BooleanField(
        help_text="There were too many events to read them all; a sample stands for them."
    )
    events_read = serializers.IntegerField()
    attempts_read = serializers.IntegerField(
        help_text="The ended attempts that types, wait and run time are made of."
    )
    attempts_are_all = serializers.BooleanField()


class TimeseriesSerializer(PercentilesSerializer, WindowSerializer):
    """What happened in a window, in equal buckets."""

    bucket_seconds = serializers.IntegerField()
    succeeded = serializers.FloatField()
    failed = serializers.FloatField()
    retried = serializers.FloatField()
    buckets = BucketSerializer(many=True)


class TypeSerializer(serializers.Serializer[Any]):
    """A job type and what its jobs did in the window."""

    type = serializers.CharField()
    is_registered = serializers.BooleanField(
        help_text="Whether this process has a handler for it; a worker's may have others."
    )
    description = serializers.CharField(help_text="The first line of the handler's docstring.")
    finished = serializers.FloatField(help_text="Jobs that succeeded or failed.")
    failed_share = serializers.FloatField(
        allow_null=True, help_text="0 to 1; null where none finished."
    )
    per_minute = serializers.FloatField()
    spark = serializers.ListField(
        child=serializers.FloatField(), help_text="`finished` in 24 equal parts of the window."
    )


class TypesSerializer(WindowSerializer):
    """The registered types and those that were seen."""

    types = TypeSerializer(many=True)


class FailureGroupSerializer(serializers.Serializer[Any]):
    """Failed jobs of one type whose errors have `error` in common."""

    type = serializers.CharField()
    error = serializers.CharField(allow_blank=True)
    count = serializers.IntegerField()
    first_seen = serializers.DateTimeField()
    last_seen = serializers.DateTimeField()
    sample_id = serializers.UUIDField(help_text="The job that failed last.")
    sample_error = serializers.CharField(allow_blank=True, help_text="The start of its error.")
    per_bucket = serializers.ListField(
        child=serializers.IntegerField(),
        help_text=f"Failures in each of {PARTS} equal parts of the time from since to until.",
    )


class FailuresSerializer(serializers.Serializer[Any]):
    """The groups, largest first."""

    read = serializers.IntegerField(help_text="The failed jobs that were looked at, newest first.")
    is_cut = serializers.BooleanField(help_text="There are older ones that were not looked at.")
    since = serializers.DateTimeField(allow_null=True)
    until = serializers.DateTimeField()
    groups_left_out = serializers.IntegerField(help_text="Smaller groups that are not told.")
    groups = FailureGroupSerializer(many=True)


class RetriesSerializer(serializers.Serializer[Any]):
    """What a bulk retry did, or with `dry_run` would do."""

    dry_run = serializers.BooleanField()
    as_of = serializers.DateTimeField(
        allow_null=True, help_text="Jobs that failed later are left alone."
    )
    matched = serializers.IntegerField()
    retried = serializers.IntegerField()
    skipped = inline_serializer(
        "JobCountBySkippedStatus",
        {
            **{status.value: serializers.IntegerField() for status in Status},
            MISSING: serializers.IntegerField(),
        },
    )
    further = serializers.CharField(
        allow_null=True, help_text="The `after` to go on with; null where all is done."
    )
    not_retried = serializers.ListField(
        child=serializers.UUIDField(), help_text="Of the `ids`, those that were skipped."
    )


class TruthField(serializers.BooleanField):
    """`true` or `false`; `1` and `"yes"` are something else."""

    default_error_messages: ClassVar = {"invalid": "Must be true or false."}

    def to_internal_value(self, data: Any) -> bool:
        """`data` as it is."""
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class IdsField(serializers.Field[list[UUID], Any, Any, Any]):
    """Ids of jobs, in every spelling; the refusal says which is none."""

    default_error_messages: ClassVar = {
        "invalid": "Must be a list of ids.",
        "empty": "May not be empty.",
        "too_many": f"At most {MAX_RETRIES_AT_ONCE} jobs at once.",
        "no_id": "Number {number} is not a UUID.",
    }

    def to_internal_value(self, data: Any) -> list[UUID]:
        """The ids."""
        if not isinstance(data, list):
            self.fail("invalid")
        if not data:
            self.fail("empty")
        if len(data) > MAX_RETRIES_AT_ONCE:
            self.fail("too_many")
        found = []
        for number, text in enumerate(data, start=1):
            job_id = validation.parse_uuid(text) if isinstance(text, str) else None
            if job_id is None:
                self.fail("no_id", number=number)
            found.append(job_id)
        return found


class FailedJobFilterSerializer(serializers.Serializer[Any]):
    """Which failed jobs; all of what is given must hold."""

    type = TextField(required=False)
    type_is = TextField(required=False)
    priority = WholeNumberField(required=False)
    created_after = MomentField(required=False)
    created_before = MomentField(required=False)
    error = TextField(required=False)
    error_group = TextField(required=False)

    validate_type = validate_type_is = validate_error = validate_error_group = staticmethod(_text)
    validate_created_after = validate_created_before = staticmethod(_moment)

    def validate_priority(self, value: int) -> int:
        """A number that a job can have."""
        try:
            return validation.clean_priority(value)
        except InvalidJob as error:
            raise serializers.ValidationError(error.reason) from None


class RetryJobsSerializer(serializers.Serializer[Any]):
    """Which jobs to retry: `ids`, or a `filter` and how far to go."""

    ids = IdsField(required=False)
    filter = ObjectField(required=False)
    as_of = MomentField(required=False)
    dry_run = TruthField(required=False, default=False)
    after = TextField(required=False)

    def validate_filter(self, value: dict[str, Any]) -> JobFilter:
        """The filter; a name that is none would make it wider than was meant."""
        inner = FailedJobFilterSerializer(data=value)
        _refuse_unknown(value, inner.fields, "filter")
        if not inner.is_valid():
            raise serializers.ValidationError(
                [
                    f"{name}: {reason}"
                    for name, reasons in inner.errors.items()
                    for reason in reasons
                ]
            )
        return JobFilter(state=Status.FAILED.value, **inner.validated_data)

    def validate_as_of(self, value: datetime) -> datetime:
        """A moment that can be compared."""
        return _moment(value)

    def validate_after(self, value: str) -> Any:
        """Where the call before came to."""
        place = job_cursor.read(value)
        if place is None:
            raise serializers.ValidationError("Not a place of a bulk retry.")
        return place

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """One of the two ways, with what belongs to it."""
        if ("ids" in attrs) == ("filter" in attrs):
            raise serializers.ValidationError("Give either ids or a filter.")
        if "ids" in attrs and "after" in attrs:
            raise serializers.ValidationError({"after": ["Goes with a filter."]})
        if "ids" in attrs and attrs["dry_run"]:
            raise serializers.ValidationError({"dry_run": ["Goes with a filter."]})
        if "after" in attrs and "as_of" not in attrs:
            raise serializers.ValidationError({"as_of": ["Goes with after: the first call's."]})
        _refuse_unknown(self.initial_data, self.fields, "body")
        return attrs


def _refuse_unknown(given: dict[str, Any], known: Any, where: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise serializers.ValidationError(
            f"The {where} has a field that does not exist: {unknown[0]:.100}"
        )
