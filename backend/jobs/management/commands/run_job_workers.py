"""`manage.py run_job_workers`: run jobs until told to stop."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from jobs import conf
from jobs.processes import Parent
from jobs.worker import Worker


class Command(BaseCommand):
    """Parse, set up logging and signals, call."""

    help = (
        "Run jobs in JOB_WORKER_PROCESSES processes of JOB_WORKER_THREADS threads each until "
        "SIGINT or SIGTERM, then let running handlers finish. A second signal ends all at once."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run one worker, or several in processes; exits 1 when handlers had to be left behind."""
        count = conf.get("JOB_WORKER_PROCESSES")
        _set_up_logging(with_process_id=count > 1)
        exit_code = _run_one() if count == 1 else _run_several(count)
        if exit_code:
            # Not sys.exit: handlers that will not end may have threads that would not.
            logging.shutdown()
            os._exit(exit_code)


def _run_one() -> int:
    worker = Worker()
    with _stopping_on_signals(worker):
        return worker.run()


def _run_several(count: int) -> int:
    if not hasattr(os, "fork"):
        raise CommandError("JOB_WORKER_PROCESSES over 1 needs a system that can fork.")
    if threading.current_thread() is not threading.main_thread():
        raise CommandError("JOB_WORKER_PROCESSES over 1 needs the main thread, which gets signals.")
    return Parent(count, Worker).run()


def _set_up_logging(*, with_process_id: bool) -> None:
    logger = logging.getLogger("jobs")
    logger.setLevel(getattr(settings, "JOB_WORKER_LOG_LEVEL", "INFO"))
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        process_id = "%(process)d " if with_process_id else ""
        handler.setFormatter(
            logging.Formatter(f"%(asctime)s %(levelname)s {process_id}%(threadName)s %(message)s")
        )
        logger.addHandler(handler)


@contextlib.contextmanager
def _stopping_on_signals(worker: Worker) -> Iterator[None]:
    """Stop `worker` on SIGINT and SIGTERM; the handlers before are put back after.

    Outside the main thread Python allows no signal handlers, and none are set.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: Any) -> None:
        if worker.is_stopping():
            os._exit(1)
        worker.stop()

    before = {signum: signal.signal(signum, stop) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
