"""The threads that run handlers, and the seats they take.

A seat is a worker id; what is claimed is claimed for a free seat. There are as many
threads as seats, and any of them takes the next seat that was given work. So a round's
work wakes one thread, which wakes the next before it begins where there is more. Where
handlers take long all threads are at work at once, as if each had a seat of its own;
where they take less time than waking a thread does, few of them do it all.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from jobs.logs import worker_logger
from jobs.services import ClaimedAttempt

logger = worker_logger()

# A claimed attempt, and when its lease ends on the monotonic clock.
Work = tuple[ClaimedAttempt, float]


class Seat:
    """One worker id, and what it was given and nobody has begun."""

    def __init__(self, worker_id: str, name: str, crew: Crew) -> None:
        self.worker_id = worker_id
        self.name = name
        self.given: Work | None = None
        self.taken_by: _Member | None = None
        self._crew = crew

    def run(self, claimed: ClaimedAttempt, lease_ends_at: float) -> None:
        """Have a thread start on `claimed`; `lease_ends_at` is on the monotonic clock."""
        self.given = (claimed, lease_ends_at)
        self._crew.offer(self)


class _Member:
    """One thread, and how it is woken."""

    def __init__(self, name: str, work: Callable[[_Member], None]) -> None:
        # Held until somebody rings; a semaphore of Python's would cost several times as much.
        self.bell = threading.Lock()
        self.bell.acquire()
        self.is_on_its_way = False
        # A daemon, so that a handler that never ends cannot keep the process.
        self.thread = threading.Thread(target=work, args=[self], name=name, daemon=True)


class Crew:
    """As many threads as seats; `run_one` does what a seat was given, and raises nothing."""

    def __init__(self, worker_ids: list[str], run_one: Callable[[Seat], None]) -> None:
        names = [f"job-thread-{number}" for number in range(1, len(worker_ids) + 1)]
        self.seats = [
            Seat(worker_id, name, self) for worker_id, name in zip(worker_ids, names, strict=True)
        ]
        self._run_one = run_one
        self._members = [_Member(name, self._work) for name in names]
        self._lock = threading.Lock()
        self._offered: deque[Seat] = deque()
        self._idle: list[_Member] = []
        self._is_one_on_its_way = False
        self._is_over = False

    def start(self) -> None:
        """Begin to wait for work."""
        for member in self._members:
            member.thread.start()

    def offer(self, seat: Seat) -> None:
        """Let the next thread that is free take `seat`."""
        with self._lock:
            self._offered.append(seat)
            self._wake_one()

    def end(self) -> None:
        """Let each thread return once it has no work."""
        with self._lock:
            self._is_over = True
            for member in self._idle:
                member.bell.release()
            self._idle.clear()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the threads to return, at most `timeout_seconds` for each."""
        for member in self._members:
            member.thread.join(timeout_seconds)

    def _wake_one(self) -> None:
        # One at a time: who comes wakes the next where something is left by then.
        if self._idle and not self._is_one_on_its_way:
            member = self._idle.pop()
            self._is_one_on_its_way = member.is_on_its_way = True
            member.bell.release()

    def _work(self, member: _Member) -> None:
        while True:
            try:
                seat = self._next(member)
                if seat is None:
                    return
                member.thread.name = seat.name
            except BaseException:
                # Raised into this thread from outside, for a handler that is over.
                logger.warning("An exception came for a handler that had ended", exc_info=True)
                self._put_back(member)
            else:
                self._run_one(seat)

    def _next(self, member: _Member) -> Seat | None:
        while True:
            with self._lock:
                self._has_come(member)
                if self._offered:
                    seat = self._offered[0]
                    seat.taken_by = member
                    self._offered.popleft()
                    if self._offered:
                        self._wake_one()
                    return seat
                if self._is_over:
                    return None
                self._idle.append(member)
            member.bell.acquire()

    def _has_come(self, member: _Member) -> None:
        if member.is_on_its_way:
            self._is_one_on_its_way = member.is_on_its_way = False

    def _put_back(self, member: _Member) -> None:
        """What `member` had taken and not begun is for anybody again."""
        with self._lock:
            self._has_come(member)
            if member in self._idle:
                self._idle.remove(member)
            # It may have been rung for and have heard the exception instead.
            member.bell.acquire(blocking=False)
            for seat in self.seats:
                is_waiting = seat.given is not None and seat not in self._offered
                if is_waiting and seat.taken_by is member:
                    self._offered.appendleft(seat)
