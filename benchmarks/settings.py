"""The project's settings with the handler that does nothing."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as PROJECT_APPS

INSTALLED_APPS = [*PROJECT_APPS, "benchmarks.noop"]
