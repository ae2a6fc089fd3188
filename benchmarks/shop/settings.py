"""The project's settings with the shop's handlers, as looking at the dashboard needs them."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as PROJECT_APPS

INSTALLED_APPS = [*PROJECT_APPS, "benchmarks.shop"]
DASHBOARD_ACCESS = "open"

JOB_WORKER_POLL_INTERVAL_MS = 20
# The queue stands still once it is filled: nobody takes back what is overdue.
JOB_WORKER_LEASE_SECONDS = 300
JOB_WORKER_CLEANUP_INTERVAL_SECONDS = 3_600
