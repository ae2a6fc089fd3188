"""Hypothesis is the same in every run, so that a red run can be looked at again."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("suite", derandomize=True, deadline=None, database=None)
settings.load_profile("suite")
