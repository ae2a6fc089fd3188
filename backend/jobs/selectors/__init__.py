"""Everything that is shown: lists, one job, timelines, the feed, the counts.

Reads only; `services` holds what changes. Times are compared with the database's
clock.
"""

from jobs.selectors.event_lists import TIMELINE_LIMIT, Timeline, events, timeline, was_recorded
from jobs.selectors.failures import (
    FailureGroup,
    FailureGroups,
    failure_groups,
    normalised_error,
)
from jobs.selectors.job_lists import job, job_is_made_of, jobs
from jobs.selectors.queue_stats import Stats, queue_is_writable, stats

__all__ = [
    "TIMELINE_LIMIT",
    "FailureGroup",
    "FailureGroups",
    "Stats",
    "Timeline",
    "events",
    "failure_groups",
    "job",
    "job_is_made_of",
    "jobs",
    "normalised_error",
    "queue_is_writable",
    "stats",
    "timeline",
    "was_recorded",
]
