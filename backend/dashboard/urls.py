"""The pages' addresses; mount them anywhere, under the namespace they bring."""

from __future__ import annotations

from django.urls import path

from dashboard.views.events import Events
from dashboard.views.failures import Failures
from dashboard.views.job import JobPage
from dashboard.views.jobs import Jobs
from dashboard.views.new_job import NewJob
from dashboard.views.overview import Overview
from dashboard.views.retry import Retry
from dashboard.views.retry_many import RetryMany
from dashboard.views.search import Search
from dashboard.views.workers import Workers

app_name = "dashboard"
urlpatterns = [
    path("", Overview.as_view(), name="overview"),
    path("search/", Search.as_view(), name="search"),
    path("jobs/", Jobs.as_view(), name="jobs"),
    path("jobs/new/", NewJob.as_view(), name="new_job"),
    path("jobs/retry/", RetryMany.as_view(), name="retry_many"),
    path("jobs/<str:job_id>/retry/", Retry.as_view(), name="retry"),
    path("jobs/<str:job_id>/", JobPage.as_view(), name="job"),
    path("failures/", Failures.as_view(), name="failures"),
    path("events/", Events.as_view(), name="events"),
    path("workers/", Workers.as_view(), name="workers"),
]
