"""Several worker processes, and the parent that sees to them and never claims.

The parent forks them once Django is set up: what the settings, the models and the
handlers take of memory is there once, and a process that is started again runs the same
code as its neighbours, whatever was deployed meanwhile. From then on the parent waits,
for a signal to hand on and for the end of a process to replace it. It has no database
session, so it can neither lose one nor share one with its children.

A child takes every stop signal as the first. At a terminal Ctrl-C reaches the children
too, and systemd signals each process of a service unless told otherwise: what the parent
hands on is then the second that they get, and must not end them. The parent alone counts,
and what ends children at once is SIGKILL.

Each child reads from a pipe that nobody writes to and whose other end only the parent has.
However the parent ends, the kernel closes that end, and the child stops as on SIGTERM.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import random
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from django.db import connections

from jobs.logs import worker_logger

logger = worker_logger()

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

RESTART_FIRST_SECONDS = 0.5
RESTART_MAX_SECONDS = 30.0
# Whatever ended a process that ran so long, it was not the start.
SOUND_LIFE_SECONDS = 60.0


class Work(Protocol):
    """A worker as a process of it is concerned."""

    def run(self) -> int:
        """Work until `stop`; the exit code."""

    def stop(self) -> None:
        """Come to an end; from any thread or signal handler, as often as you like."""


@dataclass(slots=True)
class Place:
    """Where one worker process is after the other; times are on the monotonic clock."""

    start_at: float
    pid: int | None = None
    started_at: float = 0.0
    short_lives: int = 0

    def fill(self, pid: int | None, now: float) -> None:
        """A process was started here; `None`: it could not be."""
        self.pid = pid
        self.started_at = now

    def leave(self, now: float) -> float:
        """It ended; after how many seconds the next one starts."""
        if now - self.started_at >= SOUND_LIFE_SECONDS:
            self.short_lives = 0
        self.short_lives += 1
        self.pid = None
        delay_seconds = restart_delay_seconds(self.short_lives)
        self.start_at = now + delay_seconds
        return delay_seconds


def restart_delay_seconds(short_lives: int) -> float:
    """The wait after so many processes in a row that ended soon, from 1 on."""
    doublings = min(short_lives - 1, 10)
    longest_seconds: float = min(RESTART_FIRST_SECONDS * 2**doublings, RESTART_MAX_SECONDS)
    # Spread out, so that processes that died together do not start together.
    return longest_seconds * random.uniform(0.5, 1.0)


class Parent:
    """Keeps `count` processes running, each with a worker that `make_worker` makes in it."""

    def __init__(self, count: int, make_worker: Callable[[], Work]) -> None:
        self._make_worker = make_worker
        self._places = [Place(time.monotonic()) for _ in range(count)]
        self._heard: list[int] = []
        self._handed_on = 0
        self._exit_code = 0
        self._wake_reader, self._wake_writer = os.pipe()
        self._life_reader, self._life_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        self._wake_up = select.poll()
        self._wake_up.register(self._wake_reader, select.POLLIN)

    def run(self) -> int:
        """Keep them running until a stop signal; the exit code once all have ended.

        It is 0 where each ended with 0 after the signal, else 1. A second signal ends
        them at once. Call it from the main thread, which alone is told of signals.
        """
        _let_go_of_the_database()
        _warn_of_threads()
        logger.info("Starting %d worker processes as their parent", len(self._places))
        # What is there now is there for good: collections in the children need not look at
        # it, which would also copy it page by page.
        gc.collect()
        gc.freeze()
        with self._hearing_signals():
            while True:
                self._start_the_missing()
                self._hand_signals_on()
                self._note_who_ended()
                if self._heard and not self._living():
                    break
                self._wait()
        self.close()
        logger.info("All worker processes ended")
        return self._exit_code

    def close(self) -> None:
        """Give its four descriptors back; it cannot run any more."""
        for descriptor in (self._wake_reader, self._wake_writer):
            os.close(descriptor)
        for descriptor in (self._life_reader, self._life_writer):
            os.close(descriptor)

    @contextlib.contextmanager
    def _hearing_signals(self) -> Iterator[None]:
        """Note stop signals and wake up for them; the handlers before are put back after."""

        def hear(signum: int, frame: Any) -> None:
            self._heard.append(signum)

        def look_around(signum: int, frame: Any) -> None:
            """That there is a handler is what makes the signal wake us up."""

        handlers = {**dict.fromkeys(STOP_SIGNALS, hear), signal.SIGCHLD: look_around}
        wake_before = signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        before = {signum: signal.signal(signum, handler) for signum, handler in handlers.items()}
        try:
            yield
        finally:
            signal.set_wakeup_fd(wake_before)
            for signum, handler in before.items():
                signal.signal(signum, handler)

    def _living(self) -> list[int]:
        return [place.pid for place in self._places if place.pid is not None]

    def _start_the_missing(self) -> None:
        for place in self._places:
            now = time.monotonic()
            if place.pid is not None or now < place.start_at or self._heard:
                continue
            try:
                place.fill(self._fork(), now)
            except OSError as error:
                place.fill(None, now)
                logger.error(
                    "No worker process can be started (%s); tried again in %.1f s",
                    error,
                    place.leave(now),
                )

    def _fork(self) -> int:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        # A stop signal that is for the child must wait until the child can take it.
        mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            with warnings.catch_warnings():
                # Of threads, such as those that a numeric library starts when imported.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                self._live_as_a_child(mask_before)
            return pid
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)

    def _live_as_a_child(self, mask: set[signal.Signals] | set[int]) -> NoReturn:
        """Be a worker, and nothing else of what the parent was about to do."""
        exit_code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (self._wake_reader, self._wake_writer, self._life_writer):
                os.close(descriptor)
            worker = self._make_worker()
            for signum in STOP_SIGNALS:
                signal.signal(signum, lambda signum, frame: worker.stop())
            follower = threading.Thread(
                target=self._follow_the_parent, args=[worker], name="parent-watch", daemon=True
            )
            follower.start()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            exit_code = worker.run()
        except BaseException:
            logger.exception("A worker process cannot go on")
        finally:
            # Not sys.exit: the frames above, and what was left for the end, are the parent's.
            with contextlib.suppress(Exception):
                logging.shutdown()
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(exit_code)

    def _follow_the_parent(self, worker: Work) -> None:
        os.read(self._life_reader, 1)
        logger.warning("The parent process is gone; stopping as on SIGTERM")
        worker.stop()

    def _hand_signals_on(self) -> None:
        """The first signal as SIGTERM; the second as one that nobody can put off."""
        if self._heard and self._handed_on == 0:
            self._handed_on = 1
            name = signal.Signals(self._heard[0]).name
            logger.info("Stopping %d worker processes on %s", len(self._living()), name)
            self._send(signal.SIGTERM)
        if len(self._heard) > 1 and self._handed_on == 1:
            self._handed_on = 2
            logger.warning("A second signal: ending %d worker processes", len(self._living()))
            self._send(signal.SIGKILL)

    def _send(self, signum: signal.Signals) -> None:
        # A process that ended keeps its id until `_note_who_ended` asked for it.
        for pid in self._living():
            os.kill(pid, signum)

    def _note_who_ended(self) -> None:
        for place in self._places:
            if place.pid is None:
                continue
            pid, status = os.waitpid(place.pid, os.WNOHANG)
            if pid == 0:
                continue
            now = time.monotonic()
            life_seconds = now - place.started_at
            delay_seconds = place.leave(now)
            if not self._heard:
                logger.warning(
                    "Worker process %d %s after %.1f s; the next starts in %.1f s",
                    pid,
                    how_it_ended(status),
                    life_seconds,
                    delay_seconds,
                )
            elif status:
                self._exit_code = 1
                logger.error("Worker process %d %s", pid, how_it_ended(status))

    def _wait(self) -> None:
        """Until a signal comes, a process ends or the next one is to be started."""
        starts = [place.start_at for place in self._places if place.pid is None]
        milliseconds = None
        if starts and not self._heard:
            milliseconds = max(0.0, min(starts) - time.monotonic()) * 1000
        self._wake_up.poll(milliseconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_reader, 4096)


def how_it_ended(status: int) -> str:
    """What a wait status says, in words: the signal's name or the exit code."""
    exit_code = os.waitstatus_to_exitcode(status)
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        return f"was killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was killed by signal {-exit_code}"


def _let_go_of_the_database() -> None:
    """Close what the project opened while it was set up; a session cannot be shared."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        close_pool = getattr(connection, "close_pool", None)
        if close_pool is not None:
            close_pool()
        del connections[connection.alias]


def _warn_of_threads() -> None:
    main = threading.main_thread()
    others = [thread.name for thread in threading.enumerate() if thread is not main]
    if others:
        logger.warning(
            "Threads that were started before the worker processes are not in them: %s",
            ", ".join(others),
        )
