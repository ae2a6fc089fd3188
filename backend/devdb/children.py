"""Child processes that cannot outlive us."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from devdb.accounts import Account
from devdb.errors import StartFailed

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def start_child(
    command: Sequence[str],
    *,
    death_signal: signal.Signals,
    environment: Mapping[str, str],
    cwd: Path,
    output: int | IO[bytes] | None = None,
    stdin: int = subprocess.DEVNULL,
    account: Account | None = None,
    keep_open: Sequence[int] = (),
    own_session: bool = True,
) -> subprocess.Popen[bytes]:
    """Start a process that the kernel sends `death_signal` when this process ends, however it ends.

    `output` takes both its outputs (None: they go where ours go), `keep_open` are descriptors that
    it inherits, `account` is who it runs as (None: as we are), and in a session of its own a
    Ctrl-C at the terminal does not reach it, so that its parent decides the order of the end.

    Call it from the main thread: the kernel sends the signal when the *thread* that started the
    child ends, so a helper thread would take the child with it. Raises StartFailed otherwise, and
    where the program cannot be run.
    """
    if threading.current_thread() is not threading.main_thread():
        raise StartFailed(
            f"{command[0]} has to be started from the main thread: a child started by another "
            "thread is ended by the kernel together with that thread."
        )
    parent = os.getpid()

    def tie_to_parent() -> None:
        # Popen calls this after it changed user and group: that order matters, because changing
        # credentials clears the parent-death signal.
        if _libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0) != 0:
            os._exit(127)
        # Had the parent died before the line above, no signal would ever come.
        if os.getppid() != parent:
            os._exit(127)

    try:
        return subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(environment),
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT if output is not None else None,
            pass_fds=tuple(keep_open),
            start_new_session=own_session,
            # Unsafe beside other threads in general; this function takes no lock of Python's.
            preexec_fn=tie_to_parent,
            **(account.credentials if account is not None else {}),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StartFailed(f"{command[0]} could not be started: {error}.") from error


def stop_child(
    child: subprocess.Popen[bytes], steps: Sequence[tuple[signal.Signals, float]]
) -> int:
    """Stop a child politely first, and return its exit status.

    `steps` are signals with the seconds that each one gets; after the last one it is killed.
    """
    for number, seconds in steps:
        if child.poll() is None:
            child.send_signal(number)
        try:
            return child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            continue
    child.kill()
    return child.wait()
