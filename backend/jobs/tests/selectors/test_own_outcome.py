"""A worker whose COMMIT's answer was lost looks for its outcome in the timeline."""

from __future__ import annotations

import pytest

from jobs import selectors, services
from jobs.lifecycle import EventType
from jobs.records import Owner
from jobs.tests.support import WORKER, failed, owned_by, running

pytestmark = pytest.mark.django_db

ENDS = {EventType.RETRY_SCHEDULED, EventType.FAILED}


def test_an_outcome_is_its_own_where_worker_attempt_and_kind_are() -> None:
    job = running()
    owner = Owner(**owned_by(job))
    claim = job.events.get(type="claimed").pk
    assert not selectors.was_recorded(owner, ENDS, after_event_id=claim)
    services.fail_job(**owner._asdict(), error="it broke")
    assert selectors.was_recorded(owner, ENDS, after_event_id=claim)
    assert not selectors.was_recorded(owner, {EventType.SUCCEEDED}, after_event_id=claim)
    others = (owner._replace(worker_id="another"), owner._replace(attempt=2))
    assert not any(selectors.was_recorded(other, ENDS, after_event_id=claim) for other in others)


def test_an_outcome_from_before_the_claim_is_not_its_own() -> None:
    """After a manual retry worker and attempt are the same again."""
    job = failed()
    services.retry_job(job_id=job.pk)
    (claimed,) = services.record_and_claim(worker_ids=[WORKER]).claimed
    assert claimed.owner == Owner(job.pk, WORKER, 1)
    assert not selectors.was_recorded(claimed.owner, ENDS, after_event_id=claimed.fencing_token)
