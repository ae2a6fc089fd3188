"""What the constraints and indexes say, as PostgreSQL tells it of a migrated database.

Compared without casts, brackets and spaces: a dump that was restored has others of them.
"""

from __future__ import annotations

import re

_OF_NO_MATTER = re.compile(r"::(?:character varying|text)(?:\[\])?|[()\s]")

CHECKS = {
    "job_status_known": "status = ANY ARRAY['queued', 'running', 'succeeded', 'failed']",
    "job_status_valid_shape": " OR ".join(
        f"finished_at IS {finished} AND locked_by IS {locked} AND locked_until IS {locked}"
        f" AND status = '{status}'"
        for status, finished, locked in (
            ("queued", "NULL", "NULL"),
            ("running", "NULL", "NOT NULL"),
            ("succeeded", "NOT NULL", "NULL"),
            ("failed", "NOT NULL", "NULL"),
        )
    ),
    "job_attempts_valid": "attempts >= 0 AND max_attempts >= 1 AND attempts <= max_attempts",
    "job_type_not_empty": "NOT type = ''",
    "job_event_type_known": "type = ANY ARRAY['created', 'claimed', 'progress', 'lease_renewed',"
    " 'succeeded', 'retry_scheduled', 'failed', 'timeout_requeued', 'manual_retry']",
}
INDEXES = {
    "job_claim_idx": "priority DESC, available_at, created_at, id WHERE status = 'queued'",
    "job_timeout_idx": "locked_until WHERE status = 'running'",
    "jobs_job_created_at_idx": "created_at, id",
    "jobs_job_status_idx": "created_at, id WHERE status = 'failed'",
    "job_retry_idx": "created_at, id WHERE attempts > 0 AND status = 'queued'",
    "job_idempotency_key_unique": "idempotency_key WHERE idempotency_key IS NOT NULL",
    "job_event_job_id_idx": "job_id, id",
    "jobs_jobevent_type_idx": "type, id WHERE type = ANY ARRAY['progress', 'lease_renewed',"
    " 'retry_scheduled', 'failed', 'timeout_requeued', 'manual_retry']",
}


def says(told: str, expected: str) -> bool:
    """Whether the server's text `told` is the `expected` one."""
    return _bare(told) == _bare(expected)


def _bare(text: str) -> str:
    return _OF_NO_MATTER.sub("", text)
