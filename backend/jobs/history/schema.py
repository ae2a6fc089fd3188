"""Looks whether the constraints and indexes of the models are in the database, and hold."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from jobs.history import definitions, rules
from jobs.history.report import Findings
from jobs.models import Job, JobEvent

# Of what somebody else wrote, so much is told.
_LONGEST = 200
# PostgreSQL keeps a foreign key by four triggers, which a superuser can switch off.
_CONSTRAINTS = """
SELECT conname, contype, convalidated, confrelid = 'jobs_job'::regclass,
    NOT EXISTS (
        SELECT FROM pg_trigger WHERE tgconstraint = c.oid AND tgenabled NOT IN ('O', 'A')
    ),
    CASE contype WHEN 'c' THEN pg_get_expr(conbin, conrelid) ELSE pg_get_constraintdef(oid) END
FROM pg_constraint AS c
WHERE conrelid = %s::regclass
"""
# Since PostgreSQL 18 a NOT NULL is a constraint, and may be NOT VALID.
_NOT_NULL = """
SELECT attname, attnotnull AND NOT EXISTS (
    SELECT FROM pg_constraint
    WHERE conrelid = attrelid AND contype = 'n' AND conkey = ARRAY[attnum] AND NOT convalidated
)
FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
"""
_INDEXES = """
SELECT relname, indisvalid AND indisready AND indislive, indisunique,
    (
        SELECT string_agg(
            pg_get_indexdef(indexrelid, place, true)
            || CASE indoption[place - 1] & 1 WHEN 1 THEN ' DESC' ELSE '' END,
            ', ' ORDER BY place
        )
        FROM generate_series(1, indnkeyatts) AS place
    ) || coalesce(' WHERE ' || pg_get_expr(indpred, indrelid), '')
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = %s::regclass
"""
# The sequence's own value belongs to no snapshot, so it is read after the ids.
_IDS = """
WITH largest AS MATERIALIZED (SELECT max(id) AS id FROM jobs_jobevent),
drawn AS MATERIALIZED (
    SELECT seqrelid::regclass::text AS name, seqincrement, seqcache, seqcycle,
        has_sequence_privilege(seqrelid, 'SELECT') AS is_readable,
        CASE WHEN has_sequence_privilege(seqrelid, 'SELECT, USAGE')
            THEN pg_sequence_last_value(seqrelid) END AS last
    FROM pg_sequence, largest
    WHERE seqrelid = pg_get_serial_sequence('jobs_jobevent', 'id')::regclass
        AND (largest.id IS NULL OR largest.id IS NOT NULL)
)
SELECT name, seqincrement, seqcache, seqcycle, is_readable, last, largest.id FROM drawn, largest
"""


def compare_schema(connection: BaseDatabaseWrapper, findings: Findings) -> None:
    """Tell what is missing or does not hold."""
    for model in (Job, JobEvent):
        _compare_constraints(connection, model, findings)
        _compare_indexes(connection, model, findings)
    _look_at_ids(connection, findings)


def _compare_constraints(
    connection: BaseDatabaseWrapper, model: type[models.Model], findings: Findings
) -> None:
    table = model._meta.db_table
    found = _rows(connection, _CONSTRAINTS, table)
    for constraint in model._meta.constraints:
        if isinstance(constraint, models.CheckConstraint):
            held = [row[2] for row in found if row[:2] == (constraint.name, "c")]
            told = [row[5] for row in found if row[:2] == (constraint.name, "c")]
            what = f"{table}: {constraint.name}"
            _hold(findings, rules.CONSTRAINTS_VALID, what, held)
            if all(held):
                expected = definitions.CHECKS[constraint.name]
                _compare_text(findings, rules.CONSTRAINTS_VALID, what, told, expected)
    primary_keys = [row[5] for row in found if row[1] == "p"]
    what = f"{table}: the primary key"
    _hold(findings, rules.CONSTRAINTS_VALID, what, primary_keys)
    _compare_text(findings, rules.CONSTRAINTS_VALID, what, primary_keys, "PRIMARY KEY (id)")
    if model is JobEvent:
        held = [row[2] and row[4] for row in found if row[1] == "f" and row[3]]
        what = f"{table}: the foreign key to jobs_job"
        _hold(findings, rules.CONSTRAINTS_VALID, what, held)
        if any("ON DELETE" in row[5] for row in found if row[1] == "f" and row[3]):
            findings.add(rules.CONSTRAINTS_VALID, None, f"{what} lets a job's events go with it")
    not_null = dict(_rows(connection, _NOT_NULL, table))
    for field in model._meta.concrete_fields:
        if not field.null:
            held = [not_null[field.column]]
            _hold(findings, rules.CONSTRAINTS_VALID, f"{table}: NOT NULL of {field.column}", held)


def _compare_indexes(
    connection: BaseDatabaseWrapper, model: type[models.Model], findings: Findings
) -> None:
    table = model._meta.db_table
    found = {name: rest for name, *rest in _rows(connection, _INDEXES, table)}
    unique = [
        constraint.name
        for constraint in model._meta.constraints
        if isinstance(constraint, models.UniqueConstraint)
    ]
    for name in [*(index.name for index in model._meta.indexes), *unique]:
        valid, is_unique, told = found.get(name, (None, None, None))
        held = [] if valid is None else [valid and (name not in unique or is_unique)]
        what = f"{table}: {name}"
        _hold(findings, rules.INDEXES_VALID, what, held)
        if held and all(held):
            _compare_text(findings, rules.INDEXES_VALID, what, [told], definitions.INDEXES[name])


def _look_at_ids(connection: BaseDatabaseWrapper, findings: Findings) -> None:
    findings.applied[rules.IDS_GROW] += 1
    sequences = _rows(connection, _IDS)
    if not sequences:
        findings.add(rules.IDS_GROW, None, "jobs_jobevent.id has no sequence")
    for name, increment, cache, cycles, is_readable, last, largest in sequences:
        if (increment, cache) != (1, 1):
            message = f"the sequence gives ids by {increment}, {cache} to a session"
            findings.add(rules.IDS_GROW, None, message)
        if cycles:
            findings.add(rules.IDS_GROW, None, "the sequence begins anew at its end")
        following = None if last is None else last + 1
        if last is None and is_readable:
            # Started anew, it has given none yet.
            ((following,),) = _rows(connection, f"SELECT last_value FROM {name}")
        if following is not None and largest is not None and following <= largest:
            message = f"the next id is {following}, but the largest is {largest}"
            findings.add(rules.IDS_GROW, None, message, largest)


def _hold(findings: Findings, rule: str, what: str, held: list[Any]) -> None:
    findings.applied[rule] += 1
    if not held:
        findings.add(rule, None, f"{what} is missing")
    elif not all(held):
        findings.add(rule, None, f"{what} is not enforced, or not validated")


def _compare_text(findings: Findings, rule: str, what: str, told: list[str], expected: str) -> None:
    for text in told:
        if not definitions.says(text, expected):
            findings.add(rule, None, f"{what} is another one: {text[:_LONGEST]}")


def _rows(connection: BaseDatabaseWrapper, statement: str, *parameters: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())
