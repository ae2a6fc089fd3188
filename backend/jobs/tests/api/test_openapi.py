"""The OpenAPI document and its page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS

from jobs import conf, validation
from jobs.lifecycle import EventType, Status
from jobs.sql import JOB_COLUMNS

COMMITTED = Path(__file__).parents[4] / "docs" / "reference" / "openapi.yaml"


@pytest.fixture
def generated(tmp_path: Path) -> str:
    """The document as the documented command writes it; fails on any warning."""
    made = tmp_path / "openapi.yaml"
    GENERATOR_STATS.reset()
    call_command("spectacular", file=str(made), validate=True, fail_on_warn=True)
    return made.read_text(encoding="utf-8")


@pytest.fixture
def document(generated: str) -> Any:
    return yaml.safe_load(generated)


def test_the_committed_document_is_the_generated_one(generated: str) -> None:
    assert generated == COMMITTED.read_text(encoding="utf-8"), (
        "write it again with the command that docs/reference/api.md names"
    )


def test_f103_the_document_is_served_without_a_warning(api: Client, document: Any) -> None:
    served = yaml.safe_load(api.get("/api/schema/").content)
    assert served == document


def test_f103_the_enums_have_stable_names(document: Any) -> None:
    schemas = document["components"]["schemas"]
    enums = {name: set(schema["enum"]) for name, schema in schemas.items() if "enum" in schema}
    assert enums == {"JobStatus": set(Status), "JobEventType": set(EventType)}


def test_the_shapes_are_those_of_the_contract(document: Any) -> None:
    schemas = document["components"]["schemas"]
    assert tuple(schemas["Job"]["properties"]) == JOB_COLUMNS
    assert set(schemas["Job"]["required"]) == set(JOB_COLUMNS)
    assert list(schemas["JobEvent"]["properties"]) == [
        "id",
        "job",
        "type",
        "attempt",
        "worker_id",
        "message",
        "data",
        "created_at",
    ]


def test_the_ranges_are_those_of_the_rules(document: Any) -> None:
    fields = document["components"]["schemas"]["NewJob"]["properties"]
    assert (
        fields["type"].items()
        >= {
            "pattern": validation.TYPE_PATTERN,
            "minLength": 1,
            "maxLength": conf.MAX_TYPE_LENGTH,
        }.items()
    )
    assert (fields["priority"]["minimum"], fields["priority"]["maximum"]) == (-32768, 32767)
    assert (fields["max_attempts"]["minimum"], fields["max_attempts"]["maximum"]) == (1, 32767)
    assert fields["idempotency_key"]["maxLength"] == conf.MAX_KEY_LENGTH
    nullable = {name for name, field in fields.items() if field.get("nullable")}
    assert nullable == {"available_at", "idempotency_key"}
    assert document["components"]["schemas"]["NewJob"]["required"] == ["type"]


def codes_and_headers(document: Any, path: str, method: str) -> dict[str, set[str]]:
    responses = document["paths"][path][method]["responses"]
    return {code: set(answer.get("headers", ())) for code, answer in responses.items()}


@pytest.mark.parametrize(
    ("path", "method", "expected"),
    [
        ("/api/health/", "get", {"200": set(), "503": set()}),
        ("/api/config/", "get", {"200": set()}),
        ("/api/jobs/", "get", {"200": set(), "400": set(), "503": {"Retry-After"}}),
        (
            "/api/jobs/",
            "post",
            {
                "201": {"Location"},
                "200": {"Idempotent-Replay", "Idempotent-Mismatch"},
                **{code: set() for code in ("400", "411", "413", "415")},
                "503": {"Retry-After"},
            },
        ),
        ("/api/jobs/{job_id}/", "get", {"200": set(), "404": set(), "503": {"Retry-After"}}),
        (
            "/api/jobs/{job_id}/events/",
            "get",
            {"200": {"Link"}, "404": set(), "503": {"Retry-After"}},
        ),
        (
            "/api/jobs/{job_id}/retry/",
            "post",
            {
                **{code: set() for code in ("200", "404", "409", "411")},
                "503": {"Retry-After"},
            },
        ),
        ("/api/jobs/stats/", "get", {"200": set(), "503": {"Retry-After"}}),
        *(
            (f"/api/jobs/{name}/", "get", {"200": set(), "400": set(), "503": {"Retry-After"}})
            for name in ("timeseries", "types", "failures")
        ),
        (
            "/api/jobs/bulk/",
            "post",
            {
                **{code: set() for code in ("200", "201", "400", "411", "413", "415")},
                "503": {"Retry-After"},
            },
        ),
        (
            "/api/jobs/retry/",
            "post",
            {
                **{code: set() for code in ("200", "400", "411", "413", "415")},
                "503": {"Retry-After"},
            },
        ),
        ("/api/job-events/", "get", {"200": set(), "400": set(), "503": {"Retry-After"}}),
    ],
)
def test_every_answer_of_every_call_is_documented(
    path: str, method: str, expected: dict[str, set[str]], document: Any
) -> None:
    assert codes_and_headers(document, path, method) == expected


def test_the_page_loads_nothing_from_outside(api: Client) -> None:
    response = api.get("/api/docs/")
    assert response.status_code == 200
    html = response.content.decode()
    addresses = re.findall(r"""(?:src|href|url)\s*[=:]\s*["']([^"']+)""", html)
    assert addresses
    assert [address for address in addresses if not address.startswith("/")] == []
    assert "//" not in re.sub(r"^\s*//.*$", "", html, flags=re.MULTILINE)
    for address in addresses:
        assert b"".join(api.get(address)), address


def test_the_configuration_is_what_a_client_may_know(api: Client) -> None:
    config = api.get("/api/config/").json()
    assert config["worker"] == {
        "threads": 4,
        "poll_interval_ms": 500,
        "lease_seconds": 30,
        "cleanup_interval_seconds": 5,
        "cleanup_batch_size": 100,
        "backoff_base_seconds": 5,
        "backoff_max_seconds": 300,
        "max_attempts_default": 3,
        "shutdown_grace_seconds": 30,
        "processes": 1,
        "log_level": "INFO",
    }
    assert {"demo.success", "demo.fail", "demo.slow", "demo.timeout", "demo.flaky"} <= set(
        config["job_types"]
    )
    assert config["statuses"] == list(Status)
    assert config["event_types"] == list(EventType)
    assert config["limits"]["payload_max_bytes"] == 1_048_576
    assert config["time_zone"] == "Asia/Tehran"
    assert not re.search("secret|password|postgres", str(config), re.IGNORECASE)


@pytest.mark.parametrize("address", ["/api/docs/", "/api/schema/"])
@pytest.mark.parametrize("method", ["OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "X"])
@pytest.mark.parametrize("accept", ["*/*", "image/png"])
def test_the_documentation_is_only_read(
    address: str, method: str, accept: str, api: Client
) -> None:
    response = api.generic(method, address, headers={"accept": accept})
    assert response.status_code in ((405,) if accept == "*/*" else (405, 406))
    assert response["Content-Type"] == "application/json"
    assert response["Allow"] == "GET, HEAD"
    assert list(response.json()) == ["detail"]


@pytest.mark.parametrize("address", ["/api/docs/", "/api/schema/"])
def test_the_documentation_refuses_as_json(address: str, api: Client) -> None:
    for query, accept, status in (("", "image/png", 406), ("?format=bogus", "*/*", 404)):
        response = api.get(address + query, headers={"accept": accept})
        assert response.status_code == status
        assert response["Content-Type"] == "application/json"
        assert list(response.json()) == ["detail"]
    assert api.head(address).status_code == 200


def test_the_document_has_one_version_whatever_is_asked_for(api: Client) -> None:
    response = api.get("/api/schema/?version=x%0d%0aa:b")
    assert response.status_code == 200
    assert response.content == api.get("/api/schema/").content
