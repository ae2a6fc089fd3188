"""Only `services` changes jobs and events (F117): read from the source itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parents[3]
MODELS = {"Job", "JobEvent"}
WRITES = {
    "create",
    "acreate",
    "get_or_create",
    "update_or_create",
    "bulk_create",
    "bulk_update",
    "update",
    "aupdate",
    "delete",
    "adelete",
    "save",
    "asave",
    "select_for_update",
}
ALLOWED = {Path("jobs/services.py")}


def sources() -> list[Path]:
    """Every module of the backend that is neither a test nor a migration."""
    found = [path.relative_to(BACKEND) for path in BACKEND.rglob("*.py")]
    return [
        path
        for path in found
        if not {"tests", "migrations"} & set(path.parts)
        and not any(part.startswith(".") for part in path.parts)
    ]


def names_in(node: ast.AST) -> set[str]:
    """Every bare name below `node`."""
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def writes_in(tree: ast.AST) -> Iterator[str]:
    """Calls that could write a job or an event."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in MODELS:
            yield f"line {node.lineno}: makes a {node.func.id}"
        if isinstance(node.func, ast.Attribute) and node.func.attr in WRITES:
            subject = names_in(node.func.value)
            is_an_object = subject & {"job", "event", "obj", "instance", "queryset"}
            if subject & MODELS or is_an_object:
                yield f"line {node.lineno}: .{node.func.attr}()"


def statements_in(tree: ast.AST) -> Iterator[str]:
    """SQL text that writes to the queue's tables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = " ".join(node.value.lower().split())
            for table in ("jobs_job", "jobs_jobevent"):
                for verb in ("insert into", "update", "delete from", "truncate"):
                    if f"{verb} {table}" in text:
                        yield f"line {node.lineno}: {verb} {table}"


@pytest.mark.parametrize("path", sources(), ids=str)
def test_only_the_services_write_jobs_and_events(path: Path) -> None:
    if path in ALLOWED:
        return
    tree = ast.parse((BACKEND / path).read_text("utf-8"))
    assert [*writes_in(tree), *statements_in(tree)] == []


@pytest.mark.parametrize(
    "source",
    [
        "Job(type='x')",
        "Job.objects.create(type='x')",
        "Job.objects.filter(pk=1).update(status='failed')",
        "JobEvent.objects.bulk_create([])",
        "job.save()",
        "Job.objects.using('x').in_status(s).delete()",
        "queryset.update(status='queued')",
    ],
)
def test_a_writer_would_be_found(source: str) -> None:
    assert list(writes_in(ast.parse(source)))


def test_a_statement_that_writes_would_be_found() -> None:
    assert list(statements_in(ast.parse("cursor.execute('DELETE  FROM jobs_job')")))
    assert list(statements_in(ast.parse("f'UPDATE jobs_jobevent SET {x}'")))


def test_every_sql_file_that_writes_is_one_of_the_services_statements() -> None:
    writing = {
        path.stem
        for path in (BACKEND / "jobs/sql").glob("*.sql")
        if re.search("INSERT INTO|UPDATE jobs_job|DELETE FROM", path.read_text("utf-8"))
    }
    assert writing == {"claim", "create", "record", "retry"}
    for path in sources():
        if path not in ALLOWED:
            text = (BACKEND / path).read_text("utf-8")
            assert [name for name in writing if f'load("{name}"' in text] == []


def test_every_update_moves_updated_at() -> None:
    for path in (BACKEND / "jobs/sql").glob("*.sql"):
        text = path.read_text("utf-8")
        assert text.count("UPDATE jobs_job") == text.count("updated_at = statement_timestamp()")
