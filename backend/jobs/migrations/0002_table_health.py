"""How PostgreSQL stores and vacuums the two tables; docs/decisions/0020 has the numbers.

Takes a SHARE UPDATE EXCLUSIVE lock on each table for a moment: it waits for a VACUUM or
an ANALYZE that runs there, and neither reads nor writes wait for it. Nothing is
rewritten: fillfactor holds for pages that are filled from now on.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

SETTINGS = {
    "jobs_job": {
        # Each job is updated twice; the new versions find room beside the old ones.
        "fillfactor": "80",
        # Every 10,000 finished jobs, however many the table holds.
        "autovacuum_vacuum_scale_factor": "0",
        "autovacuum_vacuum_threshold": "20000",
        # Else a large table's dead index entries are left for being few among many rows.
        "vacuum_index_cleanup": "on",
        # Giving pages back takes a lock that keeps every worker out.
        "vacuum_truncate": "off",
    },
    "jobs_jobevent": {
        # Nothing is ever updated: what is written once is looked at, and frozen, once.
        "autovacuum_vacuum_insert_scale_factor": "0",
        "autovacuum_vacuum_insert_threshold": "200000",
        "autovacuum_freeze_min_age": "0",
        "vacuum_truncate": "off",
    },
}


class OnPostgreSQL(migrations.RunSQL):
    """SQL for PostgreSQL; other databases have nothing of the kind to set."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        """Run it where the database is PostgreSQL."""
        if schema_editor.connection.vendor == "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        """Take it back where the database is PostgreSQL."""
        if schema_editor.connection.vendor == "postgresql":
            super().database_backwards(app_label, schema_editor, from_state, to_state)


def put(table: str) -> str:
    """The statement that puts the settings of `table` in force."""
    settings = ", ".join(f"{name} = {value}" for name, value in SETTINGS[table].items())
    return f"ALTER TABLE {table} SET ({settings})"


def take_back(table: str) -> str:
    """The statement that leaves `table` to the server's defaults again."""
    return f"ALTER TABLE {table} RESET ({', '.join(SETTINGS[table])})"


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_jobs_and_events")]

    operations = [OnPostgreSQL(put(table), reverse_sql=take_back(table)) for table in SETTINGS]
