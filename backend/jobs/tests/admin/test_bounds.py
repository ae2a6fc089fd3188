from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs.admin import JobAdmin, JobEventAdmin, limits
from jobs.models import Job
from jobs.tests.admin.conftest import EVENTS, JOBS, Page, job_url, messages_of, page_of

pytestmark = pytest.mark.django_db

# session, user, time limit, count, page; and in a test a savepoint and its release
LIST_QUERIES = 7
# session, user, job, timeline
PAGE_QUERIES = 4
# The templates of the frame and fifty rows of long texts.
LIST_BYTES = 500_000
JOBS_IN_EACH_STATUS = 10_100


def fill(jobs: int) -> None:
    """So many jobs of as many types, each with two events, made by one statement each."""
    with connection.cursor() as cursor:
        # A list's time limit lasts until the end of its transaction, here the test's.
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(
            """INSERT INTO jobs_job (id, type, payload, status, priority, attempts, max_attempts,
                locked_by, locked_until, finished_at, last_error, created_at)
            SELECT gen_random_uuid(), 'kind.' || n, '{"a": 1}', s.status, n % 100, 1, 3,
                CASE WHEN s.status = 'running' THEN 'host:' || n END,
                CASE WHEN s.status = 'running' THEN now() END,
                CASE WHEN s.status IN ('succeeded', 'failed') THEN now() END,
                CASE WHEN s.status = 'failed' THEN repeat('<error> ', 100) ELSE '' END,
                now() - n * interval '1 second'
            FROM generate_series(1, %s) n,
                LATERAL (SELECT (ARRAY['queued', 'running', 'succeeded', 'failed'])[n %% 4 + 1]
                    AS status) s""".replace("n % 100", "n %% 100"),
            [jobs],
        )
        cursor.execute(
            """INSERT INTO jobs_jobevent (job_id, type, attempt, worker_id, message)
            SELECT id, t, 1, 'host', 'Something happened'
            FROM jobs_job, unnest(ARRAY['created', 'claimed']) t"""
        )
        # The foreign keys are checked here, not when the test is over.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ANALYZE jobs_job, jobs_jobevent")


def opened(client: Client, url: str, **query: str) -> tuple[Page, int, int]:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = client.get(url, query)
    return page_of(answer), len(queries), len(answer.content)


LISTS = [
    (JOBS, {}),
    (JOBS, {"status": "failed"}),
    (JOBS, {"status": "queued"}),
    (JOBS, {"attention": "overdue"}),
    (JOBS, {"type": "kind"}),
    (JOBS, {"q": "kind"}),
    (EVENTS, {}),
    (EVENTS, {"type": "claimed"}),
    (EVENTS, {"q": "happened"}),
]


def test_forty_thousand_jobs_cost_what_ten_cost(boss: Client) -> None:
    fill(10)
    few = [opened(boss, url, **query)[1] for url, query in LISTS]
    assert few == [LIST_QUERIES] * len(LISTS)
    assert "10 jobs" in opened(boss, JOBS)[0].text

    # More in each status than are counted.
    assert JOBS_IN_EACH_STATUS > limits.MAX_COUNT
    fill(4 * JOBS_IN_EACH_STATUS)

    for url, query in LISTS:
        page, queries, size = opened(boss, url, **query)
        assert queries == LIST_QUERIES, (url, query)
        assert size < LIST_BYTES, (url, query)
        assert "10,000+" in page.text, (url, query)
        assert len(page.all("option")) <= 2
        rows = [row for row in page.all("tr") if "data-row" in (row.get("class") or "")]
        assert len(rows) == 50

    page, queries, size = opened(boss, JOBS, p="200")
    assert (queries, size < LIST_BYTES) == (LIST_QUERIES, True)
    # Past the count there are no pages to skip through.
    assert boss.get(JOBS, {"p": "201"}).status_code == 302
    # And "all" is never shown at once.
    assert opened(boss, JOBS, all="")[2] < LIST_BYTES

    job = Job.objects.filter(status="failed").latest("created_at")
    boss.get(job_url(job))  # The first page of a process looks its content type up.
    _, queries, size = opened(boss, job_url(job))
    assert queries == PAGE_QUERIES
    assert size < 100_000


def test_no_list_reads_a_payload_and_no_count_reads_past_its_limit(boss: Client) -> None:
    fill(10)
    for url, query in LISTS:
        with CaptureQueriesContext(connection) as queries:
            boss.get(url, query)
        count, rows = (query["sql"] for query in queries.captured_queries[-3:-1])
        assert "LIMIT 10001" in count
        assert '"payload"' not in rows
        assert '"result"' not in rows
        assert '"data"' not in rows


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ({}, "jobs_job_created_at_idx"),
        ({"status": "failed"}, "jobs_job_status_idx"),
    ],
)
def test_the_newest_jobs_are_read_from_an_index(
    boss: Client, query: dict[str, str], index: str
) -> None:
    fill(4_000)
    with CaptureQueriesContext(connection) as queries:
        boss.get(JOBS, query)
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + queries.captured_queries[-2]["sql"])
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert index in plan, plan
    assert "Sort" not in plan, plan


def test_a_search_that_takes_too_long_is_given_up_with_a_word(
    boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(1)
    monkeypatch.setattr(limits, "MAX_LIST_MS", 300)
    for model_admin in (JobAdmin, JobEventAdmin):
        monkeypatch.setattr(
            model_admin,
            "get_search_results",
            lambda self, request, queryset, term: (
                queryset.extra(where=["pg_sleep(60) IS NOT NULL"]) if term else queryset,
                False,
            ),
        )
    for url in (JOBS, EVENTS):
        answer = boss.get(url, {"q": "rare"}, follow=True)
        assert answer.redirect_chain == [(url, 302)]
        ((level, text),) = messages_of(answer)
        assert (level, text[:26]) == ("warning", "This search took too long ")


@pytest.mark.parametrize("url", [JOBS, EVENTS])
def test_a_list_that_takes_too_long_without_a_search_says_to_try_again(
    boss: Client, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    fill(1)
    monkeypatch.setattr(limits, "MAX_LIST_MS", 300)
    for model_admin in (JobAdmin, JobEventAdmin):
        monkeypatch.setattr(
            model_admin,
            "get_search_results",
            lambda self, request, queryset, term: (
                queryset.extra(where=["pg_sleep(60) IS NOT NULL"]),
                False,
            ),
        )
    answer = boss.get(url)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
