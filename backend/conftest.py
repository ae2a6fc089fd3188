"""What every test of the backend shares.

The suite runs on a real PostgreSQL, the one that POSTGRES_* names; each xdist
worker has a database of its own. With TEST_DATABASE_ENGINE=sqlite the tests that
need a server are skipped by name and the rest still runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test.utils import setup_databases, teardown_databases

from jobs import memo


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None,
    django_db_modify_db_settings: None,  # An own name for each process of xdist.
    django_db_blocker: Any,
) -> Iterator[None]:
    """The test database, whichever tests were chosen.

    pytest-django's own makes none where no chosen test has its mark, and those that look
    at pages have not: they would fill, and empty, the database they were started with.
    """
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False, aliases={"default": False})
    yield
    with django_db_blocker.unblock():
        teardown_databases(made, verbosity=0)


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
