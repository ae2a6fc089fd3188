"""Everything that is shown: lists, one job, timelines, the feed, the counts.

Reads only; `services` holds what changes. Times are compared with the database's
clock.
"""

from jobs.selectors.event_feed import EventPage, event_page, events_after, events_before, job_types
from jobs.selectors.event_lists import (
    TIMELINE_LIMIT,
    Timeline,
    events,
    events_of,
    timeline,
    was_recorded,
)
from jobs.selectors.failures import (
    Failure,
    FailureGroup,
    FailureGroups,
    failure_groups,
    failure_of,
    normalised_error,
    tracebacks_of,
)
from jobs.selectors.job_filter import JobFilter
from jobs.selectors.job_lists import job, job_id_with_ends, job_is_made_of
from jobs.selectors.job_pages import MOST_PASSED_OVER, JobPage, TooFar, job_page
from jobs.selectors.job_search import (
    JobRow,
    JobSearch,
    database_now,
    failed_jobs,
    jobs_shown,
    newcomers,
    search_jobs,
)
from jobs.selectors.metrics import COUNT_LIMIT, WINDOWS, Activity, Counts, activity, counts
from jobs.selectors.one_job import (
    CutText,
    EventDetails,
    ShortEvent,
    ShortTimeline,
    event_details,
    job_in_short,
    short_timeline,
    text_of,
)
from jobs.selectors.queue_stats import Stats, queue_is_writable, stats
from jobs.selectors.workers import RunningJob, WorkerSeen, WorkersSeen, workers_seen

__all__ = [
    "COUNT_LIMIT",
    "MOST_PASSED_OVER",
    "TIMELINE_LIMIT",
    "WINDOWS",
    "Activity",
    "Counts",
    "CutText",
    "EventDetails",
    "EventPage",
    "Failure",
    "FailureGroup",
    "FailureGroups",
    "JobFilter",
    "JobPage",
    "JobRow",
    "JobSearch",
    "RunningJob",
    "ShortEvent",
    "ShortTimeline",
    "Stats",
    "Timeline",
    "TooFar",
    "WorkerSeen",
    "WorkersSeen",
    "activity",
    "counts",
    "database_now",
    "event_details",
    "event_page",
    "events",
    "events_after",
    "events_before",
    "events_of",
    "failed_jobs",
    "failure_groups",
    "failure_of",
    "job",
    "job_id_with_ends",
    "job_in_short",
    "job_is_made_of",
    "job_page",
    "job_types",
    "jobs_shown",
    "newcomers",
    "normalised_error",
    "queue_is_writable",
    "search_jobs",
    "short_timeline",
    "stats",
    "text_of",
    "timeline",
    "tracebacks_of",
    "was_recorded",
    "workers_seen",
]
