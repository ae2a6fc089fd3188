"""The pages about the API say what the API has."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from jobs import conf
from jobs.pagination import MAX_OFFSET, EventPagination, JobPagination
from jobs.selectors import TIMELINE_LIMIT
from jobs.views import API_DEADLINE_SECONDS

REFERENCE = Path(__file__).parents[4] / "docs" / "reference"
API = (REFERENCE / "api.md").read_text(encoding="utf-8")
ERRORS = (REFERENCE / "errors.md").read_text(encoding="utf-8")
DOCUMENT = yaml.safe_load((REFERENCE / "openapi.yaml").read_text(encoding="utf-8"))


def test_every_call_has_a_heading_and_no_heading_lacks_its_call() -> None:
    headings = set(re.findall(r"^## `([A-Z]+) (/api/\S+)`$", API, re.MULTILINE))
    calls = {
        (method.upper(), path.replace("{job_id}", "{id}"))
        for path, methods in DOCUMENT["paths"].items()
        for method in methods
    }
    assert headings == calls


def test_every_field_of_a_new_job_is_in_the_table() -> None:
    section = API.split("## `POST /api/jobs/`")[1].split("\n## ")[0]
    documented = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert documented == list(DOCUMENT["components"]["schemas"]["NewJob"]["properties"])


def test_every_code_of_an_error_is_explained() -> None:
    explained = set(re.findall(r"^\| (\d{3}) \|", ERRORS, re.MULTILINE))
    documented = {
        code
        for methods in DOCUMENT["paths"].values()
        for call in methods.values()
        for code in call["responses"]
        if code >= "400"
    }
    assert explained == documented | {"405", "406"}


def test_the_numbers_are_those_of_the_code() -> None:
    for text in (
        f"25, at most {JobPagination.max_limit}",
        f"{EventPagination.page_size}, at most {EventPagination.max_page_size}",
        f"0 to {MAX_OFFSET}",
        f"newest {TIMELINE_LIMIT:,}",
        f"{API_DEADLINE_SECONDS} s with the database",
        f"from {conf.SMALLINT_MIN} to {conf.SMALLINT_MAX}",
        f"1 to {conf.MAX_TYPE_LENGTH} letters",
        f"1 to {conf.MAX_KEY_LENGTH} characters",
        f"at most {conf.MAX_JSON_DEPTH} deep",
    ):
        assert text in API, text
    assert JobPagination.default_limit == 25
