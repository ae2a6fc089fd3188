"""The project's settings with the handlers of a run, and sessions that tell whose they are."""

import os

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as PROJECT_APPS
from config.settings import POSTGRESQL

WHO = os.environ.get("CHAOS_WHO", "conductor")

INSTALLED_APPS = [*PROJECT_APPS, "chaos.work"]

options = {**POSTGRESQL["OPTIONS"], "application_name": WHO}
if WHO == "conductor":
    # Whoever heals what is broken must not wait behind it.
    options["options"] = "-c lock_timeout=200ms"
DATABASES = {"default": {**POSTGRESQL, "OPTIONS": options}}
