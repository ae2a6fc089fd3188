"""The API's addresses.

Ids are any text here: a malformed one is answered as JSON by the view, as an
unknown one is. The API's description needs drf-spectacular among the project's apps.
"""

from __future__ import annotations

from django.apps import apps
from django.urls import path

from jobs import views
from jobs.bulk import views as bulk
from jobs.insight import views as insight

app_name = "jobs"
urlpatterns = [
    path("health/", views.HealthView.as_view(), name="health"),
    path("config/", views.ConfigView.as_view(), name="config"),
    path("jobs/", views.JobsView.as_view(), name="jobs"),
    path("jobs/stats/", views.StatsView.as_view(), name="job-stats"),
    path("jobs/timeseries/", insight.TimeseriesView.as_view(), name="job-timeseries"),
    path("jobs/types/", insight.TypesView.as_view(), name="job-types"),
    path("jobs/failures/", insight.FailuresView.as_view(), name="job-failures"),
    path("jobs/bulk/", bulk.NewJobsView.as_view(), name="jobs-bulk"),
    path("jobs/retry/", insight.RetryJobsView.as_view(), name="jobs-retry"),
    path("jobs/<str:job_id>/", views.JobView.as_view(), name="job"),
    path("jobs/<str:job_id>/events/", views.JobEventsView.as_view(), name="job-timeline"),
    path("jobs/<str:job_id>/retry/", views.RetryView.as_view(), name="job-retry"),
    path("job-events/", views.EventsView.as_view(), name="job-events"),
]
if apps.is_installed("drf_spectacular"):
    urlpatterns += [
        path("schema/", views.SchemaView.as_view(), name="schema"),
        path("docs/", views.DocsView.as_view(), name="docs"),
    ]
