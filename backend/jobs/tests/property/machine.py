"""The life of one job between two workers, against a model of six lines.

A queue full of jobs whose leases hold never meets the fence: such a machine still
passed with half of the fence deleted. Here there is one job, every lease has ended
as soon as it was given, attempts start again after a manual retry, and the workers
go on writing with every claim they ever held.
"""

from __future__ import annotations

from contextlib import ExitStack

from django.db import transaction
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from jobs import services
from jobs.lifecycle import Status
from jobs.records import Owner, Record
from jobs.tests.support import OTHER, WORKER, WRITES, expire, make_due, queued, sql, write

# A success ends the job for good, and with it all that could still be found out.
OFTEN = (*WRITES, "fail_job", "fail_job", "renew_lease", "report_progress")

_RECORDS = {
    "complete_job": lambda owner: Record.succeeded(owner),
    "fail_job": lambda owner: Record.failed(owner, "it broke"),
    "renew_lease": lambda owner: Record.lease_renewed(owner),
    "report_progress": lambda owner: Record.progress(owner),
}


class OneJobTwoWorkers(RuleBasedStateMachine):
    """What the services do to one job is what the model says, and nothing else is."""

    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self._undo = ExitStack()
        self._undo.enter_context(transaction.atomic())
        self._undo.callback(transaction.set_rollback, True)
        self.prepare()
        self.status, self.attempts, self.events = Status.QUEUED, 0, 1
        self.locked_by: str | None = None

    def prepare(self) -> None:
        """Change the database for this machine's life; undone with it."""

    def teardown(self) -> None:
        """Leave the database as it was."""
        self._undo.close()

    @initialize(target=claims, max_attempts=st.sampled_from([1, 2]))
    def begin_with_a_claim(self, max_attempts: int) -> Owner:
        """All that can go wrong needs a claim that has lost its lease: begin with one."""
        self.max_attempts = max_attempts
        self.job_id = queued(max_attempts=max_attempts).id
        return self._claimed(WORKER)

    @precondition(lambda self: self.status == Status.QUEUED)
    @rule(target=claims, worker=st.sampled_from([WORKER, OTHER]), batched=st.booleans())
    def claim(self, worker: str, batched: bool) -> Owner:
        """The job is due and somebody takes it; the lease is over at once."""
        return self._claimed(worker, batched)

    @rule(worker=st.sampled_from([WORKER, OTHER]))
    def look_in_vain(self, worker: str) -> None:
        """What is not queued cannot be claimed, what is not running cannot be cleaned up."""
        if self.status != Status.QUEUED:
            assert services.claim_next_job(worker_id=worker) is None
        if self.status != Status.RUNNING:
            assert services.cleanup_expired_jobs() == []

    @rule(owner=claims, service=st.sampled_from(OFTEN), batched=st.booleans())
    def write(self, owner: Owner, service: str, batched: bool) -> None:
        """A worker writes with a claim it holds, or held once."""
        held = (Status.RUNNING, owner.worker_id, owner.attempt)
        allowed = (self.status, self.locked_by, self.attempts) == held
        if batched:
            exchange = services.record_and_claim(records=[_RECORDS[service](owner)])
            accepted = owner in exchange.recorded
        else:
            accepted = write(service, owner._asdict()) is not None
        assert accepted == allowed, f"{service} by {owner}: {accepted}, not {allowed}"
        if allowed:
            self.events += 1
            expire(self.job_id)
            if service == "complete_job":
                self.status, self.locked_by = Status.SUCCEEDED, None
            elif service == "fail_job":
                self._lose_the_attempt()

    @precondition(lambda self: self.status == Status.RUNNING)
    @rule()
    def clean_up(self) -> None:
        """The lease is over, so the attempt is taken back."""
        assert [job.id for job in services.cleanup_expired_jobs()] == [self.job_id]
        self.events += 1
        self._lose_the_attempt()

    @precondition(lambda self: self.status == Status.FAILED)
    @rule()
    def retry(self) -> None:
        """Attempts start again at 0, so an old claim's number comes back."""
        services.retry_job(job_id=self.job_id)
        self.status, self.attempts, self.locked_by = Status.QUEUED, 0, None
        self.events += 1

    @invariant()
    def the_row_and_the_account_of_it_are_the_models(self) -> None:
        """No write that was refused left anything behind."""
        (stored,) = sql(
            "SELECT status, attempts, locked_by, (SELECT count(*) FROM jobs_jobevent) FROM jobs_job"
        )
        expected = (self.status, self.attempts, self.locked_by, self.events)
        assert stored == expected, f"the job is {stored}, not {expected}"

    def _claimed(self, worker: str, batched: bool = False) -> Owner:
        make_due(self.job_id)
        if batched:
            (claimed,) = services.record_and_claim(worker_ids=[worker]).claimed
            owner = claimed.owner
        else:
            job = services.claim_next_job(worker_id=worker)
            assert job is not None
            owner = Owner(job.id, worker, job.attempts)
        expire(self.job_id)
        self.status, self.locked_by = Status.RUNNING, worker
        self.attempts += 1
        self.events += 1
        return owner

    def _lose_the_attempt(self) -> None:
        exhausted = self.attempts == self.max_attempts
        self.status, self.locked_by = (Status.FAILED if exhausted else Status.QUEUED), None


class WithoutTheShapeCheck(OneJobTwoWorkers):
    """The same where a hand in SQL leaves a worker's name on a job that is not running.

    `job_status_valid_shape` forbids that, so with it the fence's `status` can be
    missed by no test: each of the two is enough. This machine takes the other away.
    """

    def prepare(self) -> None:
        """Drop the CHECK for this machine's life."""
        sql("ALTER TABLE jobs_job DROP CONSTRAINT job_status_valid_shape")

    @precondition(lambda self: self.status == Status.RUNNING)
    @rule(status=st.sampled_from([Status.QUEUED, Status.FAILED]))
    def move_by_hand(self, status: Status) -> None:
        """Somebody stops the job in SQL and forgets the columns of its lock."""
        if status == Status.QUEUED and self.attempts == self.max_attempts:
            status = Status.FAILED
        sql("UPDATE jobs_job SET status = %s", status.value)
        self.status = status
