"""The rules that every history keeps, by name; the names never change.

Times are compared only where one statement wrote both, or where the statement that wrote
the later asked for the earlier in its WHERE. An event's time is the moment its statement
arrived, and a statement that then waited for a row may come after one that arrived later:
the order of a job's events is that of their ids, which are drawn under the row's lock.
"""

from __future__ import annotations

# The word of events.
CREATED_ONCE = "created_once"
EVENT_KNOWN = "event_known"
CLAIMED_FROM_QUEUED = "claimed_from_queued"
INSIDE_CLAIM = "inside_claim"
OF_THE_OWNER = "of_the_owner"
RETRIED_AFTER_FAILED = "retried_after_failed"
SUCCEEDED_IS_FINAL = "succeeded_is_final"
# Attempts.
ATTEMPTS_DENSE = "attempts_dense"
ATTEMPTS_BOUNDED = "attempts_bounded"
FAILED_WHEN_EXHAUSTED = "failed_when_exhausted"
# Leases.
LEASE_AS_GRANTED = "lease_as_granted"
LEASE_NEVER_SHORTENED = "lease_never_shortened"
LEASES_DISJOINT = "leases_disjoint"
TAKEN_BACK_AFTER_LEASE = "taken_back_after_lease"
# Waiting.
DELAY_AS_TOLD = "delay_as_told"
BACKOFF_EXACT = "backoff_exact"
CLAIMED_WHEN_DUE = "claimed_when_due"
# What an event holds.
EVENT_COMPLETE = "event_complete"
RETRY_TELLS_WHAT_IT_CLEARED = "retry_tells_what_it_cleared"
# The row is what its events make of it.
HISTORY_PRESENT = "history_present"
EVENT_HAS_JOB = "event_has_job"
ROW_STATUS = "row_status"
ROW_ATTEMPTS = "row_attempts"
ROW_LEASE = "row_lease"
ROW_FINISHED_AT = "row_finished_at"
ROW_AVAILABLE_AT = "row_available_at"
ROW_OUTCOME = "row_outcome"
ROW_TIMES = "row_times"
ROW_AS_CREATED = "row_as_created"
# Nothing is stranded.
QUEUED_HAS_ATTEMPTS = "queued_has_attempts"
RUNNING_WITHIN_BOUND = "running_within_bound"
# What the database itself holds.
CONSTRAINTS_VALID = "constraints_valid"
INDEXES_VALID = "indexes_valid"
IDS_GROW = "ids_grow"

RULES: dict[str, str] = {
    CREATED_ONCE: "A job's first event is `created`, and no other one is.",
    EVENT_KNOWN: "Every event is of a known type.",
    CLAIMED_FROM_QUEUED: "A job is claimed only while queued: each claim has ended, and ended "
    "once, before the next.",
    INSIDE_CLAIM: "Progress, renewals and outcomes stand between a claim and its one outcome.",
    OF_THE_OWNER: "They carry the worker and the attempt of that claim.",
    RETRIED_AFTER_FAILED: "`manual_retry` comes directly after `failed`.",
    SUCCEEDED_IS_FINAL: "Nothing comes after `succeeded`.",
    ATTEMPTS_DENSE: "Each claim's attempt is one more than the claim's before it, and 1 after "
    "`created` and `manual_retry`.",
    ATTEMPTS_BOUNDED: "No attempt is above `max_attempts`.",
    FAILED_WHEN_EXHAUSTED: "A job fails on its last attempt, and is requeued on those before.",
    LEASE_AS_GRANTED: "A claim's lease ends `lease_seconds` after it, a renewed one after its "
    "renewal, and none is shorter or longer than settings allow.",
    LEASE_NEVER_SHORTENED: "A renewal never moves the end of a lease backwards.",
    LEASES_DISJOINT: "No claim is earlier than the end of the attempt before it.",
    TAKEN_BACK_AFTER_LEASE: "No attempt is taken back before its last granted lease has ended.",
    DELAY_AS_TOLD: "`available_at` of a requeued job is its event's time and `delay_seconds`, "
    "which are no fewer and no more than settings allow.",
    BACKOFF_EXACT: "`delay_seconds` is `min(base * 2^(attempt-1), max)`.",
    CLAIMED_WHEN_DUE: "No claim is earlier than the `available_at` in force.",
    EVENT_COMPLETE: "An event holds what its type must have, in a form that can be read.",
    RETRY_TELLS_WHAT_IT_CLEARED: "`manual_retry` names the attempts, error and end that the job "
    "had.",
    HISTORY_PRESENT: "Every job has events.",
    EVENT_HAS_JOB: "Every event has its job.",
    ROW_STATUS: "The job's status is the one its events lead to.",
    ROW_ATTEMPTS: "`attempts` counts the claims since `created` or the last `manual_retry`.",
    ROW_LEASE: "`locked_by` and `locked_until` are those last granted while the job runs, else "
    "null.",
    ROW_FINISHED_AT: "`finished_at` is the time of the event that ended the job, else null.",
    ROW_AVAILABLE_AT: "`available_at` is the one last told.",
    ROW_OUTCOME: "`last_error` is the last failed attempt's until the next claim or retry, and "
    "only a job that succeeded has a `result`.",
    ROW_TIMES: "`created_at` and `updated_at` are the times of the first and the last event.",
    ROW_AS_CREATED: "The job has the type and the priority it was created with.",
    QUEUED_HAS_ATTEMPTS: "A queued job has an attempt left.",
    RUNNING_WITHIN_BOUND: "No job runs past the end of its lease by more than the bound.",
    CONSTRAINTS_VALID: "All constraints are there as they were made, enforced and validated.",
    INDEXES_VALID: "All indexes are there as they were made, and valid.",
    IDS_GROW: "Events' ids are drawn one at a time, upwards, from above the largest, without end.",
}
