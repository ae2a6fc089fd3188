"""The benchmark's settings, as a web server has them in production, with a bare view."""

from benchmarks.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.web"
