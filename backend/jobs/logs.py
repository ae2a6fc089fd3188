"""The worker's logger, which nothing can make raise."""

from __future__ import annotations

import contextlib
import logging
from typing import Any


class SurvivingLogger(logging.LoggerAdapter[logging.Logger]):
    """Logs as usual; where logging itself fails, the line is lost and nothing else.

    A handler may have closed stderr, or installed a filter that raises; a thread or
    a dispatcher must not end for a line about it.
    """

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log `msg`; raises nothing."""
        with contextlib.suppress(Exception):
            super().log(level, msg, *args, **kwargs)


def worker_logger() -> SurvivingLogger:
    """The logger `jobs.worker`."""
    return SurvivingLogger(logging.getLogger("jobs.worker"), {})
