"""Jobs go through a real worker to their end."""

from __future__ import annotations

import pytest

from jobs.lifecycle import Status
from jobs.models import JobEvent
from jobs.tests.worker.support import create, ended, event_types, running_worker

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_job_is_claimed_run_and_recorded_with_its_result() -> None:
    with running_worker() as worker:
        (job,) = ended(create("test.result", payload={"kind": "list"}))
    assert (job.status, job.attempts) == (Status.SUCCEEDED, 1)
    assert job.result == [1, "a", None, True, 1.5]
    assert event_types(job) == ["created", "claimed", "succeeded"]
    assert set(JobEvent.objects.filter(attempt=1).values_list("worker_id", flat=True)) == set(
        worker.worker_ids
    )
