"""Sessions that stop at named steps, and a conductor who lets one go on at a time.

A service is cut into steps without a fail point in it. While a test runs, triggers of its
own stand in the database:

- `begun`       a write has begun: its snapshot is taken, nothing is read or locked
- `changed`     the row is changed (and so locked), its event is not told yet
- `committing`  all is told; the COMMIT has begun and waits

and a session stops in Python before it sends a statement that only reads jobs (`looking`).
There are no triggers on the rows of `jobs_job`: they would change how an UPDATE locks, and
to others a row that is locked and one that is changed look the same.

A stop is an advisory lock that the conductor holds until it lets that session go on. Who
stands where, and who waits for whose lock, is asked of the database; nobody sleeps and
hopes. All sessions read committed, as the product's do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import connection, connections

from jobs.tests.support import sql

BEGUN, CHANGED, COMMITTING, LOOKING = "begun", "changed", "committing", "looking"
ALL_STEPS = (BEGUN, CHANGED, COMMITTING, LOOKING)

# More than any session has; each is a lock that is taken beforehand.
_MOST_STEPS = 12
_PATIENCE_SECONDS = 20.0
# Between two looks, for the processor's sake; nothing rests on it.
_MOMENT_SECONDS = 0.0003

# The number of a stop comes from a sequence, since that is the only thing in a session
# that a rollback does not take back.
_INSTALL = """
CREATE FUNCTION interleaving_stop(step text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    session text := current_setting('interleaving.session', true);
BEGIN
    IF session <> ''
        AND step = ANY (string_to_array(current_setting('interleaving.steps', true), ' '))
    THEN
        PERFORM set_config('application_name', step, false);
        PERFORM pg_advisory_xact_lock(
            session::int, nextval(('interleaving_' || session)::regclass)::int
        );
    END IF;
END $$;

CREATE FUNCTION interleaving_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Of several events the first one's is the COMMIT's stop.
    IF TG_ARGV[0] <> 'committing'
        OR current_setting('interleaving.ends', true) IS DISTINCT FROM pg_current_xact_id()::text
    THEN
        PERFORM interleaving_stop(TG_ARGV[0]);
    END IF;
    IF TG_ARGV[0] = 'committing' THEN
        PERFORM set_config('interleaving.ends', pg_current_xact_id()::text, true);
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER interleaving_begun BEFORE INSERT OR UPDATE ON jobs_job
    FOR EACH STATEMENT EXECUTE FUNCTION interleaving_trigger('begun');
CREATE TRIGGER interleaving_changed BEFORE INSERT ON jobs_jobevent
    FOR EACH ROW EXECUTE FUNCTION interleaving_trigger('changed');
-- Its name is sorted behind that of the foreign key's own trigger, so it comes after it.
CREATE CONSTRAINT TRIGGER interleaving_committing AFTER INSERT ON jobs_jobevent
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION interleaving_trigger('committing');
"""

_REMOVE = """
DROP FUNCTION interleaving_trigger() CASCADE;
DROP FUNCTION interleaving_stop(text);
"""

_WHERE_THEY_ARE = """
SELECT p, a.application_name, pg_blocking_pids(p)
FROM unnest(%s::int[]) AS p, pg_stat_get_activity(p) AS a
"""

_CLOSE_THE_GATES = """
SELECT setval(('interleaving_' || s)::regclass, 1, false),
    ARRAY(SELECT pg_advisory_lock(s, n)::text FROM generate_series(1, %s) AS n)
FROM generate_series(1, %s) AS s
"""
_OPEN_A_GATE = "SELECT pg_advisory_unlock(%s, %s)"

Call = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """Who could go on, and who did."""

    possible: tuple[int, ...]
    taken: int


@dataclass(slots=True)
class Order:
    """One order of the steps: what was chosen, what was seen, what each call answered."""

    choices: list[Choice] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    waited: bool = False


@dataclass(slots=True)
class Tour:
    """How many orders there were, and in how many of them one had to wait for another."""

    orders: int = 0
    with_waiting: int = 0


def _ask(statement: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    """The rows of a statement of the conductor's; asked thousands of times, so prepared."""
    rows: list[tuple[Any, ...]] = connection.connection.execute(
        statement, parameters, prepare=True
    ).fetchall()
    return rows


def stop(step: str) -> None:
    """Stop this thread's session here, where it is one that the conductor leads."""
    raw = connection.connection
    raw.execute("SELECT interleaving_stop(%s)", [step])


def _stop_before_looking(
    execute: Callable[..., Any], statement: str, parameters: Any, many: bool, context: Any
) -> Any:
    if statement.startswith("SELECT") and "FROM" in statement and "jobs_job" in statement:
        stop(LOOKING)
    return execute(statement, parameters, many, context)


class Session:
    """A thread with a connection of its own that stops at `steps`."""

    def __init__(self, number: int, steps: Sequence[str]) -> None:
        self.number = number
        self._steps = " ".join(steps)
        self._pool = ThreadPoolExecutor(1)
        self.pid: int = self._pool.submit(self._connect).result(_PATIENCE_SECONDS)
        self.future: Future[Any] | None = None

    def _connect(self) -> int:
        sql(f"SET interleaving.session = {self.number}")
        sql(f"SET interleaving.steps = '{self._steps}'")
        sql("SET synchronous_commit = off")
        pid: int = sql("SELECT pg_backend_pid()")[0][0]
        return pid

    def start(self, call: Call) -> None:
        """Begin with `call`."""
        self.future = self._pool.submit(self._run, call)

    def _run(self, call: Call) -> Any:
        with connection.execute_wrapper(_stop_before_looking):
            return call()

    @property
    def is_done(self) -> bool:
        """Whether the call has returned or raised."""
        return self.future is not None and self.future.done()

    def answer(self) -> Any:
        """What the call returned, or the exception that it raised."""
        assert self.future is not None
        error = self.future.exception()
        return self.future.result() if error is None else error

    def close(self) -> None:
        """End the thread and its connection."""
        self._pool.submit(connections.close_all).result(_PATIENCE_SECONDS)
        self._pool.shutdown()


class Conductor:
    """Leads the sessions; its own connection is the test's."""

    def __init__(self, sessions: Sequence[Session], names: Sequence[str]) -> None:
        self._sessions = sessions
        self._names = names
        self._pids = [session.pid for session in sessions]
        self._pid: int = sql("SELECT pg_backend_pid()")[0][0]

    def one_order(self, calls: Sequence[Call], plan: Sequence[int]) -> Order:
        """Let the sessions go on as `plan` says, and then always the first that can."""
        order = Order()
        self._close_the_gates()
        try:
            for session in self._sessions:
                session.future = None
            let_go = [0] * len(self._sessions)
            while possible := self._who_can_go_on(order):
                turn = len(order.choices)
                taken = plan[turn] if turn < len(plan) else possible[0]
                assert taken in possible, f"the same steps went otherwise: {order.steps}"
                order.choices.append(Choice(possible, taken))
                session = self._sessions[taken]
                if session.future is None:
                    session.start(calls[taken])
                else:
                    let_go[taken] += 1
                    assert let_go[taken] <= _MOST_STEPS
                    _ask(_OPEN_A_GATE, [session.number, let_go[taken]])
            order.answers = [session.answer() for session in self._sessions]
        finally:
            sql("SELECT pg_advisory_unlock_all()")
        return order

    def _close_the_gates(self) -> None:
        count = len(self._sessions)
        _ask(_CLOSE_THE_GATES, [_MOST_STEPS, count])

    def _who_can_go_on(self, order: Order) -> tuple[int, ...]:
        """Those that stand at a step, once nobody moves any more; empty: all are done."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        seen: list[str] = []
        while True:
            before, seen = seen, self._look()
            if "" not in seen:
                at_a_stop = [
                    number for number, where in enumerate(seen) if where not in ("done", "waits")
                ]
                # Whoever waits is seen so twice: for one that was at its stop in between.
                if "waits" not in seen or (at_a_stop and seen == before):
                    break
            assert time.monotonic() < deadline, f"nobody moves: {seen} after {order.steps}"
            if "" in seen:
                time.sleep(_MOMENT_SECONDS)
        order.waited |= "waits" in seen
        order.steps.append(
            ", ".join(f"{name} {where}" for name, where in zip(self._names, seen, strict=True))
        )
        return tuple(at_a_stop)

    def _look(self) -> list[str]:
        """Where each session is; empty: on its way."""
        places = dict.fromkeys(self._pids, "")
        for pid, step, blockers in _ask(_WHERE_THEY_ARE, [self._pids]):
            if self._pid in blockers:
                places[pid] = step
            elif blockers:
                places[pid] = "waits"
        for session in self._sessions:
            if session.future is None:
                places[session.pid] = "not begun"
            elif session.is_done:
                places[session.pid] = "done"
        return [places[pid] for pid in self._pids]


@contextmanager
def stops_in_the_database(count: int) -> Iterator[None]:
    """The triggers and what `count` sessions need; gone afterwards."""
    sql(_INSTALL)
    for number in range(1, count + 1):
        sql(f"CREATE SEQUENCE interleaving_{number}")
    try:
        yield
    finally:
        for number in range(1, count + 1):
            sql(f"DROP SEQUENCE interleaving_{number}")
        sql(_REMOVE)


def every_order(
    calls: dict[str, Callable[[Any], Any]],
    *,
    prepare: Callable[[], Any],
    verdict: Callable[..., None],
    steps: Sequence[str] = ALL_STEPS,
) -> Tour:
    """Run `calls`, each in its own session, in every order of their steps.

    Before each order the tables are emptied and `prepare` makes what the calls are given;
    after it `verdict` is given that and each call's answer, an exception where it raised.
    A session that waits for another's lock goes on by itself once it gets it.
    """
    tour = Tour()
    plan: list[int] = []
    with ExitStack() as stack:
        sql("SET synchronous_commit = off")
        stack.callback(sql, "RESET synchronous_commit")
        stack.enter_context(stops_in_the_database(len(calls)))
        sessions = []
        for number in range(1, len(calls) + 1):
            sessions.append(Session(number, steps))
            stack.callback(sessions[-1].close)
        conductor = Conductor(sessions, list(calls))
        while True:
            sql("DELETE FROM jobs_jobevent; DELETE FROM jobs_job")
            given = prepare()
            bound = [partial(call, given) for call in calls.values()]
            order = conductor.one_order(bound, plan)
            tour.orders += 1
            tour.with_waiting += order.waited
            try:
                verdict(given, *order.answers)
            except BaseException as error:
                error.add_note(f"order {tour.orders}:\n  " + "\n  ".join(order.steps))
                raise
            choices = order.choices
            while choices and choices[-1].taken == choices[-1].possible[-1]:
                choices.pop()
            if not choices:
                return tour
            last = choices.pop()
            next_one = last.possible[last.possible.index(last.taken) + 1]
            plan = [*(choice.taken for choice in choices), next_one]
