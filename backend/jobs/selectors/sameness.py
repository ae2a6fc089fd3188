"""Whether a job that exists is what somebody wants to create."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db import connections, router

from jobs.models import Job

# A job that is gone has neither type nor payload.
_OTHERWISE = """
SELECT asked.place - 1
FROM unnest(%(ids)s::uuid[], %(types)s::text[], %(payloads)s::jsonb[])
    WITH ORDINALITY AS asked (id, type, payload, place)
LEFT JOIN jobs_job AS j ON j.id = asked.id
WHERE (j.type = asked.type AND j.payload = asked.payload) IS NOT TRUE
"""


def made_otherwise(asked: Iterable[tuple[UUID, str, dict[str, Any]]]) -> set[int]:
    """The places, from 0, at which the stored job has not this type and payload.

    Payloads are compared as `jsonb` does: `1` equals `1.0`, `true` does not equal `1`.
    """
    ids, types, payloads = [], [], []
    for job_id, job_type, payload in asked:
        ids.append(job_id)
        types.append(job_type)
        payloads.append(json.dumps(payload))
    if not ids:
        return set()
    with connections[router.db_for_read(Job)].cursor() as cursor:
        cursor.execute(_OTHERWISE, {"ids": ids, "types": types, "payloads": payloads})
        return {place for (place,) in cursor.fetchall()}
