"""A lock that the kernel gives back when its holders are gone, however they went."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devdb.errors import DirectoryRefused, StartFailed

POLL_SECONDS = 0.02


class FileLock:
    """An exclusive `flock` on a file of ours.

    The lock belongs to the open file, so a child that inherits `descriptor` holds it as well: it
    is free only once this process *and* that child, and the child's children, are gone. That is
    a proof that nothing alive uses what it guards, which no number read from a pid file is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        """The open file, to be inherited by a child. Only while the lock is held."""
        assert self._descriptor is not None, f"{self.path} is not locked by us"
        return self._descriptor

    def try_acquire(self) -> bool:
        """Take the lock if it is free. False: somebody else holds it.

        Raises DirectoryRefused when the file cannot be opened, which means that another user
        made it.
        """
        assert self._descriptor is None, f"{self.path} is locked by us already"
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise DirectoryRefused(
                f"{self.path} cannot be opened: {error.strerror}. If another user made it, run as "
                f"that user, or move {self.path.parent} away."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def acquire_until(self, deadline: float) -> bool:
        """Wait for the lock until `time.monotonic()` reaches the deadline. False: it did."""
        while not self.try_acquire():
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def release(self) -> None:
        """Let go of our hold; a child that inherited the lock keeps its own."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def turn(path: Path, timeout_seconds: float) -> Iterator[int]:
    """Hold the lock for a block, which gets its descriptor for children to inherit.

    Raises StartFailed when somebody else holds it for longer than `timeout_seconds`.
    """
    lock = FileLock(path)
    if not lock.acquire_until(time.monotonic() + timeout_seconds):
        raise StartFailed(
            f"Another process has held {path} for {timeout_seconds:g} s. Try again, or end that "
            f"process: `fuser {path}` finds it."
        )
    try:
        yield lock.descriptor
    finally:
        lock.release()
