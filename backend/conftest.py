"""What every test of the backend shares.

The suite runs on a real PostgreSQL, the one that POSTGRES_* names; each xdist
worker has a database of its own. With TEST_DATABASE_ENGINE=sqlite the tests that
need a server are skipped by name and the rest still runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings

from jobs import memo


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Each test asks the database anew."""
    memo.forget_all()
    yield
    memo.forget_all()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs PostgreSQL where there is none."""
    if "postgresql" in settings.DATABASES["default"]["ENGINE"]:
        return
    needs_server = pytest.mark.skip(reason="needs PostgreSQL (TEST_DATABASE_ENGINE=sqlite)")
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if (
            item.get_closest_marker("django_db")
            or "db" in fixtures
            or "transactional_db" in fixtures
        ):
            item.add_marker(needs_server)
