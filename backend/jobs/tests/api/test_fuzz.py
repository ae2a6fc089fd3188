"""Requests made from the API's own OpenAPI document, right ones and wrong ones.

Each answer must be one that the document has: its code, its kind, its shape, its
headers; and none may say that the server failed. The seed is fixed, so that a run
says nothing about luck.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
OPERATIONS = [
    ("GET", "/api/jobs/"),
    ("POST", "/api/jobs/"),
    ("GET", "/api/jobs/stats/"),
    ("GET", "/api/jobs/timeseries/"),
    ("GET", "/api/jobs/types/"),
    ("GET", "/api/jobs/failures/"),
    ("POST", "/api/jobs/retry/"),
    ("POST", "/api/jobs/bulk/"),
    ("GET", "/api/jobs/{job_id}/"),
    ("GET", "/api/jobs/{job_id}/events/"),
    ("POST", "/api/jobs/{job_id}/retry/"),
    ("GET", "/api/job-events/"),
    ("GET", "/api/health/"),
    ("GET", "/api/config/"),
]
WITHOUT_PARAMETERS = ("/api/jobs/stats/", "/api/health/", "/api/config/")
# A run that never saw these has tried nothing.
USUAL_ANSWERS = defaultdict(
    lambda: 200,
    {
        ("POST", "/api/jobs/", GenerationMode.POSITIVE): 201,
        ("POST", "/api/jobs/", GenerationMode.NEGATIVE): 400,
        ("POST", "/api/jobs/bulk/", GenerationMode.POSITIVE): 201,
        ("POST", "/api/jobs/bulk/", GenerationMode.NEGATIVE): 400,
        ("GET", "/api/jobs/", GenerationMode.NEGATIVE): 400,
        ("GET", "/api/job-events/", GenerationMode.NEGATIVE): 400,
        ("GET", "/api/jobs/timeseries/", GenerationMode.NEGATIVE): 400,
        ("GET", "/api/jobs/types/", GenerationMode.NEGATIVE): 400,
        ("GET", "/api/jobs/failures/", GenerationMode.NEGATIVE): 400,
        ("POST", "/api/jobs/retry/", GenerationMode.NEGATIVE): 400,
        **{
            (method, path, mode): 404
            for method, path in OPERATIONS
            for mode in GenerationMode
            if "{job_id}" in path
        },
    },
)
EXAMPLES = 30
# A list of jobs takes as long to make up as ten of them.
EXAMPLES_OF = {"/api/jobs/bulk/": 10}


@pytest.fixture(scope="module")
def requests_close_no_connection() -> Iterator[None]:
    """Or each would end its test's transaction; Django's own client does the same."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture(scope="module")
def document(requests_close_no_connection: None) -> Any:
    """The document, and with it the way to the application."""
    return schemathesis.openapi.from_wsgi("/api/schema/", get_wsgi_application())


def test_every_operation_of_the_document_is_tried(document: Any) -> None:
    found = {
        (found.ok().method.upper(), found.ok().path) for found in document.get_all_operations()
    }
    assert {call for call in found if call[1] not in ("/api/schema/", "/api/docs/")} == set(
        OPERATIONS
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [
        (method, path, mode)
        for method, path in OPERATIONS
        for mode in GenerationMode
        # There is no wrong way to ask for these.
        if mode is GenerationMode.POSITIVE or path not in WITHOUT_PARAMETERS
    ],
)
def test_no_request_gets_an_answer_that_is_not_documented(
    method: str, path: str, mode: Any, document: Any
) -> None:
    cases = document[path][method].as_strategy(generation_mode=mode)
    answered: set[int] = set()

    @seed(20261201)
    @settings(
        max_examples=EXAMPLES_OF.get(path, EXAMPLES),
        phases=[Phase.explicit, Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def send(data: Any) -> None:
        case = data.draw(cases)
        response = case.call()
        answered.add(response.status_code)
        case.validate_response(response, checks=CHECKS)

    send()
    assert USUAL_ANSWERS[method, path, mode] in answered
