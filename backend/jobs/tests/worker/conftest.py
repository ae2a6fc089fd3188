"""The misbehaving handlers are registered for every worker test."""

from __future__ import annotations

import jobs.tests.worker.testapp.handlers  # noqa: F401
