"""The two tables with their constraints and indexes."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import jobs.conf
import jobs.models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=jobs.models.new_job_id,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("type", models.CharField(max_length=120)),
                (
                    "payload",
                    models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("running", "running"),
                            ("succeeded", "succeeded"),
                            ("failed", "failed"),
                        ],
                        db_default="queued",
                        default="queued",
                        max_length=16,
                    ),
                ),
                ("priority", models.SmallIntegerField(db_default=50, default=50)),
                (
                    "available_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("attempts", models.IntegerField(db_default=0, default=0)),
                ("max_attempts", models.IntegerField(default=jobs.conf.default_max_attempts)),
                ("idempotency_key", models.CharField(max_length=255, null=True)),
                ("locked_by", models.CharField(max_length=255, null=True)),
                ("locked_until", models.DateTimeField(null=True)),
                ("last_error", models.TextField(db_default="", default="")),
                ("result", models.JSONField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "updated_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        models.OrderBy(models.F("priority"), descending=True),
                        models.F("available_at"),
                        models.F("created_at"),
                        models.F("id"),
                        condition=models.Q(("status", "queued")),
                        name="job_claim_idx",
                    ),
                    models.Index(
                        condition=models.Q(("status", "running")),
                        fields=["locked_until"],
                        name="job_timeout_idx",
                    ),
                    models.Index(fields=["created_at", "id"], name="jobs_job_created_at_idx"),
                    models.Index(
                        condition=models.Q(("status", "failed")),
                        fields=["created_at", "id"],
                        name="jobs_job_status_idx",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["queued", "running", "succeeded", "failed"])
                        ),
                        name="job_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("finished_at__isnull", True),
                                ("locked_by__isnull", True),
                                ("locked_until__isnull", True),
                                ("status", "queued"),
                            ),
                            models.Q(
                                ("finished_at__isnull", True),
                                ("locked_by__isnull", False),
                                ("locked_until__isnull", False),
                                ("status", "running"),
                            ),
                            models.Q(
                                ("finished_at__isnull", False),
                                ("locked_by__isnull", True),
                                ("locked_until__isnull", True),
                                ("status", "succeeded"),
                            ),
                            models.Q(
                                ("finished_at__isnull", False),
                                ("locked_by__isnull", True),
                                ("locked_until__isnull", True),
                                ("status", "failed"),
                            ),
                            _connector="OR",
                        ),
                        name="job_status_valid_shape",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("attempts__gte", 0),
                            ("max_attempts__gte", 1),
                            ("attempts__lte", models.F("max_attempts")),
                        ),
                        name="job_attempts_valid",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("type", ""), _negated=True), name="job_type_not_empty"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("idempotency_key__isnull", False)),
                        fields=("idempotency_key",),
                        name="job_idempotency_key_unique",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="JobEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "type",
                    models.CharField(
                        choices=[
                            ("created", "created"),
                            ("claimed", "claimed"),
                            ("progress", "progress"),
                            ("lease_renewed", "lease renewed"),
                            ("succeeded", "succeeded"),
                            ("retry_scheduled", "retry scheduled"),
                            ("failed", "failed"),
                            ("timeout_requeued", "timeout requeued"),
                            ("manual_retry", "manual retry"),
                        ],
                        max_length=32,
                    ),
                ),
                ("attempt", models.IntegerField(db_default=0, default=0)),
                ("worker_id", models.CharField(max_length=255, null=True)),
                ("message", models.TextField(db_default="", default="")),
                (
                    "data",
                    models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["job", "id"], name="job_event_job_id_idx"),
                    models.Index(
                        condition=models.Q(
                            (
                                "type__in",
                                (
                                    "progress",
                                    "lease_renewed",
                                    "retry_scheduled",
                                    "failed",
                                    "timeout_requeued",
                                    "manual_retry",
                                ),
                            )
                        ),
                        fields=["type", "id"],
                        name="jobs_jobevent_type_idx",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "type__in",
                                [
                                    "created",
                                    "claimed",
                                    "progress",
                                    "lease_renewed",
                                    "succeeded",
                                    "retry_scheduled",
                                    "failed",
                                    "timeout_requeued",
                                    "manual_retry",
                                ],
                            )
                        ),
                        name="job_event_type_known",
                    )
                ],
            },
        ),
    ]
