"""A claim that meets a claim, a cleanup, a retry or a stale outcome, step by step."""

from __future__ import annotations

import pytest

from jobs import records
from jobs.history import replay
from jobs.lifecycle import Status
from jobs.models import Job
from jobs.records import Owner
from jobs.tests.interleavings.calls import (
    CLAIMS,
    COMPLETIONS,
    THIRD,
    Claim,
    Write,
    clean_up,
    expired,
    overtaken,
    retry,
)
from jobs.tests.interleavings.conductor import BEGUN, COMMITTING, LOOKING, every_order
from jobs.tests.interleavings.legal import assert_legal, the_winner, winners
from jobs.tests.support import OTHER, WORKER, event_types, failed, queued, row

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Due as soon as it is queued, which no setting allows; the checker is told so."""
    monkeypatch.setattr(records, "backoff_seconds", lambda *_: 0.0)
    monkeypatch.setattr(replay, "_SHORTEST_DELAY", 0)


each_claim = pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)


@each_claim
def test_of_two_claims_of_one_job_one_gets_it(claim: Claim) -> None:
    def verdict(job: Job, one: Owner | None, other: Owner | None) -> None:
        owner = the_winner(one, other)
        assert owner == (job.pk, row(job.pk)["locked_by"], 1)
        assert_legal()

    tour = every_order(
        {"one": claim(WORKER), "other": claim(OTHER)}, prepare=queued, verdict=verdict
    )
    assert (tour.orders, tour.with_waiting) == (24, 0)


@pytest.mark.parametrize(
    ("kind", "step", "orders"),
    [("alone", BEGUN, 90), ("alone", COMMITTING, 48), ("in a round", COMMITTING, 48)],
)
def test_of_three_claims_of_two_jobs_two_get_one_each(kind: str, step: str, orders: int) -> None:
    claim = CLAIMS[kind]

    def verdict(job: Job, *answers: Owner | None) -> None:
        got = winners(*answers)
        assert len({owner.job_id for owner in got}) == len(got) == 2
        assert_legal(jobs=2)

    tour = every_order(
        {"one": claim(WORKER), "two": claim(OTHER), "three": claim("third")},
        prepare=lambda: [queued(priority=60), queued()],
        verdict=verdict,
        steps=[step],
    )
    assert (tour.orders, tour.with_waiting) == (orders, 0)


@each_claim
@pytest.mark.usefixtures("no_backoff")
def test_a_claim_gets_an_attempt_that_was_taken_back_only_after_that(claim: Claim) -> None:
    def verdict(job: Job, moved: list[Job], claimed: Owner | None) -> None:
        assert [each.pk for each in winners(moved)[0]] == [job.pk]
        taken = ["created", "claimed", "timeout_requeued"]
        if claimed is not None:
            assert claimed == (job.pk, OTHER, 2)
            taken.append("claimed")
        assert event_types(job.pk) == taken
        assert_legal(with_backoff=False)

    tour = every_order(
        {"cleanup": clean_up, "claim": claim(OTHER)}, prepare=expired, verdict=verdict
    )
    assert (tour.orders, tour.with_waiting) == (21, 0)


@each_claim
def test_a_claim_gets_a_job_that_is_retried_only_after_that(claim: Claim) -> None:
    def verdict(job: Job, retried: Job, claimed: Owner | None) -> None:
        assert winners(retried)[0].status == Status.QUEUED
        assert claimed in (None, (job.pk, OTHER, 1))
        assert event_types(job.pk)[3:] == ["manual_retry", "claimed"][: 1 + (claimed is not None)]
        assert_legal()

    tour = every_order({"retry": retry, "claim": claim(OTHER)}, prepare=failed, verdict=verdict)
    assert (tour.orders, tour.with_waiting) == (15, 0)


@each_claim
@pytest.mark.parametrize("complete", COMPLETIONS.values(), ids=COMPLETIONS)
def test_a_stale_completion_never_counts_whenever_the_next_attempt_is_claimed(
    claim: Claim, complete: Write
) -> None:
    def verdict(job: Job, stale: object, claimed: Owner | None) -> None:
        assert not winners(stale)
        owner = row(job.pk)["locked_by"]
        # The stale worker's round may have been the first to look for a job.
        assert (winners(claimed), owner) in (([(job.pk, OTHER, 2)], OTHER), ([], THIRD))
        assert owner == OTHER or complete is not COMPLETIONS["alone"]
        assert_legal()

    tour = every_order(
        {"stale": complete, "claim": claim(OTHER)}, prepare=overtaken, verdict=verdict
    )
    assert (tour.orders, tour.with_waiting) == (15 if complete is COMPLETIONS["alone"] else 24, 0)


@pytest.mark.usefixtures("no_backoff")
def test_a_claim_a_cleanup_and_a_late_completion() -> None:
    def verdict(job: Job, completed: Job | None, moved: list[Job], claimed: Owner | None) -> None:
        winners(completed, moved, claimed)
        assert (completed is not None) == (moved == [])
        assert claimed is None or moved
        assert_legal(with_backoff=False)

    tour = every_order(
        {"completion": COMPLETIONS["alone"], "cleanup": clean_up, "claim": CLAIMS["alone"](OTHER)},
        prepare=expired,
        verdict=verdict,
        steps=[LOOKING, COMMITTING],
    )
    assert (tour.orders, tour.with_waiting) == (36, 5)
